"""One index per kind of constraint."""
