"""The broker."""
