"""Many peers in one process, from a seed."""
