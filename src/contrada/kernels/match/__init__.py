"""Find the constraints and filters that a message satisfies."""
