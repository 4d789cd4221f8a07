"""Simplify predicates: drop redundant constraints and filters without changing any answer."""
