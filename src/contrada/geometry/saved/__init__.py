"""Columns and tables saved as directories of NumPy files, checked when they are opened."""
