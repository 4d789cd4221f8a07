"""Experiments of the papers: rows to a file, plots from the file."""
