"""The data structures of the three papers as printed, and the papers' experiments."""
