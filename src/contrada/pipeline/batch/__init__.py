"""Compile, simplify and match whole tables with Spark."""
