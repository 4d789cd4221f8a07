"""The demonstration: a synthetic district, and the whole pipeline on it."""
