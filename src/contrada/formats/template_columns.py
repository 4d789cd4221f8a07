"""Build Arrow columns from single values, for templates."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from contrada.geometry import Point, PointArray, Region, RegionArray
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.model.values import TIME, scalar_of


def misfits(values: Sequence[Any]) -> list[int]:
    """Return the rows of a column of one kind that no Arrow type holds exactly together with the others.

    >>> misfits([1, 2**53 + 1]), misfits([0.5, 2**53 + 1]), misfits(["a"])
    ([], [1], [])
    """
    if (instants := _instants(values)) is not None:
        return [row for row, count in enumerate(instants[1]) if not -(2**63) <= count < 2**63]
    if all(isinstance(value, int) for value in values):
        return [row for row, value in enumerate(values) if not -(2**63) <= value < 2**63]
    if not all(isinstance(value, int | float | Decimal) for value in values) or _as_decimals(values) is not None:
        return []
    return [row for row, value in enumerate(values) if not _is_double(value)]


def column_of(values: Sequence[Any]) -> Any:
    """Return an Arrow column of values of one kind, without misfits; regions and points as WKB with their CRS."""
    from contrada.geometry.arrow.geoarrow import with_crs

    first = values[0] if values else None
    if isinstance(first, Region | Point):
        points = [(point.x, point.y) for point in values] if isinstance(first, Point) else None
        column = RegionArray.from_regions(values) if points is None else PointArray(points, crs=first.crs)
        return with_crs(pa.chunked_array([column.to_wkb()]), column.crs)
    if (instants := _instants(values)) is not None:
        return pa.array(instants[1], pa.int64()).cast(pa.timestamp(instants[0], "UTC"))
    if any(isinstance(value, float | Decimal) for value in values):
        decimals = _as_decimals(values)
        return pa.array([float(value) for value in values], pa.float64()) if decimals is None else decimals
    return pa.array(list(values))


def _as_decimals(values: Sequence[Any]) -> Any | None:
    """Return a column of decimals if there are some and all values fit, else None."""
    if not any(isinstance(value, Decimal) for value in values):
        return None
    try:
        return pa.array([Decimal(value) for value in values])
    except (pa.ArrowException, ValueError, ArithmeticError):
        return None


def _is_double(value: Any) -> bool:
    try:
        return Fraction(float(value)) == Fraction(value)
    except (OverflowError, ValueError):
        return False


def _instants(values: Sequence[Any]) -> tuple[str, list[int]] | None:
    """Return the unit of timestamps and their counts since 1970; None if they are no timestamps."""
    scalars = [scalar_of(value) for value in values]
    times = [scalar for scalar in scalars if scalar is not None and scalar.kind == TIME]
    if not times or len(times) < len(values):
        return None
    if any(time.rest for time in times):
        return "ns", [time.key * 1000 + time.rest for time in times]
    return "us", [time.key for time in times]
