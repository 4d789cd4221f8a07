"""Names of columns as Spark SQL takes them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column's name as Spark takes any name.

    >>> quoted("wind.speed")
    '`wind.speed`'
    """
    return "`" + name.replace("`", "``") + "`"
