"""Read circles of Arrow columns: structs of x, y and radius, and circles among regions and points in binary columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import MISSING
from contrada.errors import ContradaError
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.circle import WKB_SIZE, Circle, CircleArray, circle_of_bytes
from contrada.geometry.crs import Crs, common_crs
from contrada.geometry.faults import CIRCLE_CODE, FaultCode, Rejection, rejection
from contrada.geometry.point import PointArray, in_range
from contrada.geometry.wellknown import arrow_buffers

FIELDS = {"x", "y", "radius"}
HEADER = np.frombuffer(bytes((1, CIRCLE_CODE, 0, 0, 0)), np.uint8)


class CircleRows(NamedTuple):
    """Circles of an attribute, and the rows they belong to."""

    column: CircleArray
    rows: NDArray[np.int64]


class SiftedCircles(NamedTuple):
    """Good rows of a batch as columns of circles, one for each CRS, and the rejected rows."""

    parts: list[CircleRows]
    rejected: list[Rejection]


def is_circle_type(kind: Any) -> bool:
    """Return True for structs of x, y and radius, all floating-point numbers.

    >>> import pyarrow as pa
    >>> is_circle_type(pa.struct({"x": pa.float64(), "y": pa.float64(), "radius": pa.float64()}))
    True
    """
    if not pa.types.is_struct(kind) or kind.num_fields != len(FIELDS):
        return False
    fields = [kind.field(k) for k in range(kind.num_fields)]
    return {field.name for field in fields} == FIELDS and all(pa.types.is_floating(field.type) for field in fields)


def sift_struct(values: Any, crs: Crs | None) -> SiftedCircles:
    """Return the circles of a column of structs; a null is rejected as absent, a null in a struct as bad."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    x, y, radii = (_numbers(array.field(name)) for name in ("x", "y", "radius"))
    is_null = np.asarray(array.is_null())
    null = (int(MISSING), 0, 0)
    rejected = [rejection(row, null) for row in np.flatnonzero(is_null).tolist()]
    rows = np.flatnonzero(~is_null)
    found = _sifted(np.column_stack([x, y])[rows], radii[rows], rows, crs)
    return SiftedCircles(found.parts, sorted(rejected + found.rejected, key=lambda bad: bad.row))


def sift_binary(values: Any, rows: NDArray[np.int64], crs: Crs | None) -> SiftedCircles:
    """Return the circles among the given rows of a binary column; rows of other kinds are in neither part."""
    if not len(rows):
        return SiftedCircles([], [])
    data, positions, _ = arrow_buffers(values)
    starts, sizes = positions[:-1][rows], np.diff(positions)[rows]
    plain = np.flatnonzero(sizes == WKB_SIZE)
    plain = plain[(data[starts[plain][:, None] + np.arange(len(HEADER))] == HEADER).all(axis=1)]
    numbers = data[starts[plain][:, None] + np.arange(len(HEADER), WKB_SIZE)].reshape(-1).view("<f8").reshape(-1, 3)
    whole = _sifted(np.ascontiguousarray(numbers[:, :2]), numbers[:, 2].copy(), rows[plain], crs)
    parts, rejected = list(whole.parts), list(whole.rejected)
    others = np.setdiff1d(np.arange(len(rows)), plain, assume_unique=True)
    by_srid: dict[int, list[tuple[int, float, float, float]]] = {}
    for k in others[np.isin(sizes[others], (WKB_SIZE, WKB_SIZE + 4))].tolist():
        made = circle_of_bytes(data[starts[k] : starts[k] + sizes[k]].tobytes())
        if made is not None:
            by_srid.setdefault(made[3], []).append((int(rows[k]), *made[:3]))
    for srid, found in by_srid.items():
        own, *each = np.array(found, np.float64).T
        places = own.astype(np.int64)
        try:
            named = common_crs(srid or None, crs)
        except ContradaError as error:
            rejected += [Rejection(row, str(error), FaultCode.OTHER_CRS) for row in places.tolist()]
            continue
        some = _sifted(np.column_stack(each[:2]), np.ascontiguousarray(each[2]), places, named)
        parts += some.parts
        rejected += some.rejected
    return SiftedCircles(parts, rejected)


def _sifted(
    xy: NDArray[np.float64], radii: NDArray[np.float64], rows: NDArray[np.int64], crs: Crs | None
) -> SiftedCircles:
    """Split circles into good ones and rejected rows."""
    xy, radii = np.ascontiguousarray(xy, np.float64) + 0.0, radii + 0.0  # -0.0 becomes 0.0
    is_good = in_range(xy) & (radii >= 0) & (radii < np.inf)
    rejected = []
    for k in np.flatnonzero(~is_good).tolist():
        try:
            Circle(xy[k].tolist(), radii.item(k))
        except ContradaError as error:
            rejected.append(Rejection(int(rows[k]), f"circle: {error}", FaultCode.VALUE))
    good = np.flatnonzero(is_good)
    if not len(good):
        return SiftedCircles([], rejected)
    made = CircleArray(PointArray.of_checked(xy[good], crs), radii[good])
    return SiftedCircles([CircleRows(made, rows[good])], rejected)


def _numbers(array: Any) -> NDArray[np.float64]:
    """Return floating-point numbers, NaN for null."""
    return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
