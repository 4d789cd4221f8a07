"""A browser for the tests of pages."""

from browser import chromium

__all__ = ["chromium"]
