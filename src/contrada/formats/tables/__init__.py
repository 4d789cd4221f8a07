"""Read tables of rows from Parquet, Arrow and GIS files: as messages, as subscriptions of a template, merged."""
