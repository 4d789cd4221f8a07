"""The evaluation of the overlay paper."""
