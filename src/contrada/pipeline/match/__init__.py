"""Compiling, simplifying and matching whole tables on Spark."""
