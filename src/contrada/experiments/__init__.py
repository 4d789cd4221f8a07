"""The papers' tables and figures, measured again: rows to a file, plots from the file."""
