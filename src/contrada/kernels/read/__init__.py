"""Read and validate regions."""
