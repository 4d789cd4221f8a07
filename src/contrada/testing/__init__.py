"""Regions made up for tests, benchmarks and demonstrations, and the means to check answers about them."""
