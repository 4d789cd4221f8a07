"""Covering between filters, and dominance between points."""
