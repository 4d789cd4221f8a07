"""Regions, filters and messages made to be hard."""
