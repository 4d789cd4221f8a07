"""Formats of messages and subscriptions: GeoJSON, CAP, CloudEvents, CSV, Parquet, Arrow, GIS files."""
