"""Simulate an overlay of many peers in one process, from a seed."""
