"""A report of a matching run as one HTML page."""
