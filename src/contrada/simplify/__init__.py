"""Predicates without what is redundant in them."""
