"""Read GeoJSON: geometry objects, features as messages, and features as columns."""
