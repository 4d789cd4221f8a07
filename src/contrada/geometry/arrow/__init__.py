"""Arrow columns of geometry: GeoArrow, columns of regions and points, checks of data from outside."""
