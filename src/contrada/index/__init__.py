"""Indexes of constraints, one per kind."""
