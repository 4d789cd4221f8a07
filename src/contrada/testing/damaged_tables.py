"""Damaged directories of saved tables and columns."""

from __future__ import annotations


def table_case(number: int) -> None:
    """Damage a saved table and open it."""


def column_case(number: int) -> None:
    """Damage a saved column and open it."""
