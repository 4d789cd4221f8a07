"""What is right, found by other means than the product's: Shapely, rational arithmetic, scans, laws."""
