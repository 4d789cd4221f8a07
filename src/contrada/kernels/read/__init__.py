"""Reading and validating regions."""
