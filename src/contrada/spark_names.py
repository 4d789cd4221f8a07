"""Quote column names for Spark SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return a column name quoted for Spark, whatever characters it has.

    >>> quoted("wind.speed")
    '`wind.speed`'
    """
    return "`" + name.replace("`", "``") + "`"
