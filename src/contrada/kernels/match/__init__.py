"""Which constraints and filters a message satisfies."""
