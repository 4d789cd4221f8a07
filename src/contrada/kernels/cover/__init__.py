"""Covering of filters and of points."""
