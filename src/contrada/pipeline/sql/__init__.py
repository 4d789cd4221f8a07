"""Functions for SQL and DataFrames, and the data source `contrada`."""
