"""The overlay paper's evaluation."""
