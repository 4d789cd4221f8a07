"""Report a matching run as one HTML page."""
