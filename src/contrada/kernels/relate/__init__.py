"""Relations of regions and points, exact."""
