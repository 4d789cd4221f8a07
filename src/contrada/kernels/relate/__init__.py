"""Exact relations between regions and points."""
