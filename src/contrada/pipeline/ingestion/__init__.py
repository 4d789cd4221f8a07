"""Ingest: read files and tables, keep rows with valid geometry, and put the others into a quarantine."""
