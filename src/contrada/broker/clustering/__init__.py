"""Clusters of members whose regions are near each other: how a merged filter is found and measured."""
