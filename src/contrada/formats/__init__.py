"""Read messages and subscriptions from GeoJSON, CAP, CloudEvents, CSV, Parquet, Arrow and GIS files."""
