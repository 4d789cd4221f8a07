"""Read Arrow columns that hold regions, points and lines; messages may have circles, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import CrsError
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.circles import CircleRows, is_circle_type, sift_binary, sift_struct
from contrada.geometry.circle import NOT_WRAPPED, leaves_world
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import Crs, common_crs, metadata_crs
from contrada.geometry.faults import FaultCode, Rejection
from contrada.geometry.globe import HALF, Globe, may_need_wrap
from contrada.geometry.globe_reading import column_on_globe
from contrada.geometry.line_column import LineArray, sift_lines
from contrada.geometry.point import PointArray, SiftedPoints, plain_points, sift_plain
from contrada.geometry.reading import sift_point_rows, sift_regions
from contrada.geometry.wellknown import wkb_srids

MAX_DEPTH = 3  # of the lists of a multipolygon
# Faults of regions that may be none once the regions are wrapped.
MENDED_BY_WRAP = frozenset(
    (FaultCode.OFF_THE_GLOBE, FaultCode.ZERO_AREA, FaultCode.SELF_INTERSECTION, FaultCode.HOLE_OUTSIDE,
     FaultCode.HOLE_CROSSES_SHELL, FaultCode.HOLES_OVERLAP, FaultCode.NOT_CONNECTED, FaultCode.PARTS_OVERLAP,
     FaultCode.PARTS_SHARE_EDGE)
)  # fmt: skip
POINT_FIELDS = ({"x", "y"}, {"x", "y", "z"}, {"x", "y", "m"}, {"x", "y", "z", "m"})


class ValueRows(NamedTuple):
    """Values of one kind of an attribute, and the rows they belong to, in ascending order."""

    column: RegionArray | PointArray | LineArray
    rows: NDArray[np.int64]


def storage_type(kind: Any) -> Any:
    """Return the type that values are stored as: the storage type of an extension type."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def crs_of_type(kind: Any) -> Crs | None:
    """Return the CRS that an extension type names."""
    serialize = getattr(kind, "__arrow_ext_serialize__", None)
    return None if serialize is None else metadata_crs(serialize())


def is_vertex(kind: Any) -> bool:
    """Return True for types in which GeoArrow keeps one vertex or point: a struct of x, y or a short list of doubles.

    >>> import pyarrow as pa
    >>> is_vertex(pa.list_(pa.float64(), 2)), is_vertex(pa.struct({"x": pa.float64(), "name": pa.string()}))
    (True, False)
    """
    if pa.types.is_fixed_size_list(kind):
        return kind.list_size in (2, 3, 4) and bool(pa.types.is_floating(kind.value_type))
    if not pa.types.is_struct(kind):
        return False
    fields = [kind.field(k) for k in range(kind.num_fields)]
    return {field.name for field in fields} in POINT_FIELDS and all(pa.types.is_floating(f.type) for f in fields)


def is_binary(values: Any) -> bool:
    """Return True for columns of bytes."""
    kind = storage_type(values.type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def nesting(kind: Any) -> tuple[int, Any]:
    """Return how many lists are around the values of a type, and the type of these values."""
    depth = 0
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        depth, kind = depth + 1, kind.value_type
    return depth, kind


def is_geometry(values: Any) -> bool:
    """Return True for columns that may hold geometry: binary columns, and columns nested as in GeoArrow."""
    depth, inner = nesting(storage_type(values.type))
    return is_binary(values) or (depth <= MAX_DEPTH and is_vertex(inner))


def is_line_type(kind: Any) -> bool:
    """Return True for types of GeoArrow linestrings and multilinestrings; polygons have lists of the same depth."""
    depth, inner = nesting(storage_type(kind))
    if not is_vertex(inner):
        return False
    return depth == 1 or (depth == 2 and getattr(kind, "extension_name", "") == "geoarrow.multilinestring")


def is_spatial(values: Any) -> bool:
    """Return True for columns that may hold regions, points or circles, as messages may."""
    return is_geometry(values) or is_circle_type(storage_type(values.type))


SpatialRows = ValueRows | CircleRows


class Mixed(NamedTuple):
    """Geometry column as columns of one kind each; rejected rows with reasons; rows that were repaired.

    Circles are among the rejected rows, unless they are asked for.
    """

    parts: list[ValueRows]
    rejected: list[Rejection]
    repaired: NDArray[np.int64]
    circles: Sequence[CircleRows] = ()

    @property
    def with_circles(self) -> list[SpatialRows]:
        """The columns of regions, points and circles."""
        return [*self.parts, *self.circles]


def parts_of(values: Any, globe: Globe | None = None) -> tuple[list[ValueRows], list[Rejection]]:
    """Return a geometry column as columns of regions, points and lines with their rows, and the rejected rows.

    A column that is no geometry has no spatial values and no rejected rows. `globe` says how values are wrapped.
    """
    mixed = sift_mixed(values)
    for bad in mixed.rejected:
        if bad.fault is FaultCode.OTHER_CRS:
            raise bad.error()
    mixed = _on_globe(values, mixed, globe)
    return mixed.parts, mixed.rejected


def parts_by_crs(
    values: Any, crs: Crs | None = None, repair: bool = False, globe: Globe | None = None, circles: bool = False
) -> Mixed:
    """Split a column whose rows are not compared with each other: rows of WKB with other SRIDs form their own parts.

    `crs` is the system of rows that name none; `repair` repairs regions that can be repaired; `globe` says how regions
    in longitude and latitude are read. With `circles`, those of messages are read too.
    """
    if not is_binary(values) or crs_of_type(values.type) is not None:
        return sift_mixed(values, crs, repair, globe, circles)
    plain = plain_points(values)
    if plain is not None:
        return _of_points(sift_plain(plain, crs))
    srids = wkb_srids(values)
    distinct = np.unique(srids).tolist() if srids.any() else [0]
    if len(distinct) < 2:
        return sift_mixed(values, None if distinct and distinct[0] else crs, repair, globe, circles)
    parts: list[ValueRows] = []
    round_parts: list[CircleRows] = []
    rejected: list[Rejection] = []
    repaired = []
    for srid in distinct:
        rows = np.flatnonzero(srids == srid)
        some = sift_mixed(values.take(rows), None if srid else crs, repair, globe, circles)
        parts += [ValueRows(part.column, rows[part.rows]) for part in some.parts]
        round_parts += [CircleRows(part.column, rows[part.rows]) for part in some.circles]
        rejected += [bad._replace(row=int(rows[bad.row])) for bad in some.rejected]
        repaired.append(rows[some.repaired])
    return Mixed(parts, sorted(rejected, key=lambda bad: bad.row), np.concatenate(repaired), round_parts)


def mixed_on_globe(values: Any, globe: Globe | None, keeps_others: bool = False, circles: bool = False) -> Mixed:
    """Return what `parts_by_crs` returns, with regions and points wrapped; circles that leave the world are rejected.

    Rows in a CRS that is not in degrees are rejected, or kept as they are with `keeps_others`.

    Only rows that leave longitude -180..180, that are too wide, or that are bad as they are, are read a second time.
    """
    return _on_globe(values, parts_by_crs(values, circles=circles), globe, keeps_others)


def _on_globe(values: Any, mixed: Mixed, globe: Globe | None, keeps_others: bool = False) -> Mixed:
    if globe is None or globe.wrap is None:
        return mixed
    parts, rejected, again = list[ValueRows](), list[Rejection](), list[NDArray[np.int64]]()
    for column, rows in mixed.parts:
        try:
            globe.check_crs(column.crs)
        except CrsError as error:
            if keeps_others:
                parts.append(ValueRows(column, rows))
            else:
                rejected += [Rejection(row, str(error), FaultCode.OTHER_CRS) for row in rows.tolist()]
            continue
        if isinstance(column, PointArray):
            parts.append(ValueRows(column_on_globe(column, globe), rows))
            continue
        if isinstance(column, LineArray):  # lines are not wrapped
            parts.append(ValueRows(column, rows))
            continue
        far = may_need_wrap(column.bounds, globe.wrap)
        again.append(rows[far])
        parts.append(ValueRows(column[~far], rows[~far]) if far.any() else ValueRows(column, rows))
    for bad in mixed.rejected:
        if bad.fault in MENDED_BY_WRAP:
            again.append(np.array([bad.row]))
        else:
            rejected.append(bad)
    rows = np.sort(np.concatenate([*again, np.empty(0, np.int64)]))
    if len(rows):
        more = _read_on_globe(values.take(rows), globe)
        parts += [ValueRows(part.column, rows[part.rows]) for part in more.parts]
        rejected += [bad._replace(row=int(rows[bad.row])) for bad in more.rejected]
    circles = list[CircleRows]()
    for circle_part in mixed.circles:
        good, bad_ones = _circles_on_globe(circle_part, globe, keeps_others)
        circles.append(good)
        rejected += bad_ones
    rejected.sort(key=lambda bad: bad.row)
    return Mixed([part for part in parts if len(part.rows)], rejected, mixed.repaired, circles)


def _circles_on_globe(part: CircleRows, globe: Globe, keeps_others: bool) -> tuple[CircleRows, list[Rejection]]:
    """Return the circles within longitude -180..180, and the others as rejections: they are not wrapped."""
    try:
        globe.check_crs(part.column.crs)
    except CrsError as error:
        if keeps_others:
            return part, []
        rejected = [Rejection(row, str(error), FaultCode.OTHER_CRS) for row in part.rows.tolist()]
        return CircleRows(part.column.chosen(part.rows[:0]), part.rows[:0]), rejected
    far = np.zeros(len(part.rows), bool)
    for k in np.flatnonzero(np.abs(part.column.bounds[:, ::2]).max(axis=1, initial=0.0) > HALF).tolist():
        far[k] = leaves_world(part.column[k])
    if not far.any():
        return part, []
    near = np.flatnonzero(~far)
    rejected = [Rejection(row, NOT_WRAPPED, FaultCode.VALUE) for row in part.rows[far].tolist()]
    return CircleRows(part.column.chosen(near), part.rows[near]), rejected


def _read_on_globe(values: Any, globe: Globe) -> Mixed:
    """Return rows read with `globe`; if one of them is in another CRS, they are read row by row."""
    try:
        return parts_by_crs(values, globe=globe)
    except CrsError as error:
        if len(values) == 1:
            return Mixed([], [Rejection(0, str(error), FaultCode.OTHER_CRS)], np.empty(0, np.int64))
    parts, rejected = list[ValueRows](), list[Rejection]()
    for row in range(len(values)):
        one = _read_on_globe(values.slice(row, 1), globe)
        parts += [ValueRows(part.column, part.rows + row) for part in one.parts]
        rejected += [bad._replace(row=row) for bad in one.rejected]
    return Mixed(parts, rejected, np.empty(0, np.int64))


def _of_points(sifted: SiftedPoints) -> Mixed:
    return Mixed([ValueRows(sifted.points, sifted.rows)], list(sifted.rejected), np.empty(0, np.int64))


def sift_mixed(
    values: Any, crs: Crs | None = None, repair: bool = False, globe: Globe | None = None, circles: bool = False
) -> Mixed:
    """Split a column that is in `crs`: a row that names another system by its SRID is rejected."""
    none = np.empty(0, np.int64)
    if circles and is_circle_type(storage_type(values.type)):
        sifted = sift_struct(values, common_crs(crs_of_type(values.type), crs))
        return Mixed([], sifted.rejected, none, sifted.parts)
    if not is_geometry(values):
        return Mixed([], [], none)
    if is_vertex(storage_type(values.type)):
        return _of_points(sift_point_rows("arrow", values, crs))
    plain = plain_points(values)
    if plain is not None:
        return _of_points(sift_plain(plain, common_crs(crs_of_type(values.type), crs)))
    if is_line_type(values.type):
        lines = sift_lines("arrow", values, crs)
        return Mixed([ValueRows(lines.lines, lines.rows)] if len(lines.rows) else [], list(lines.rejected), none)
    regions = sift_regions("arrow", values, crs, repair, globe)
    parts = [ValueRows(regions.regions, regions.rows)]
    rejected = [bad for bad in regions.rejected if bad.fault is not FaultCode.POINT]
    if is_binary(values):
        rejected = _without_lines(values, rejected, regions.regions.crs if crs is None else crs, parts)
    others = np.array([bad.row for bad in regions.rejected if bad.fault is FaultCode.POINT], np.int64)
    if others.size:
        own = regions.regions.crs if crs is None else crs
        points = sift_point_rows("arrow", values.take(others), own)
        parts.append(ValueRows(points.points, others[points.rows]))
        rejected += [bad._replace(row=int(others[bad.row])) for bad in points.rejected]
    parts = [part for part in parts if len(part.rows)]
    if not circles:
        return Mixed(parts, rejected, regions.repaired)
    strange = np.array([bad.row for bad in rejected if bad.fault is FaultCode.WRONG_TYPE], np.int64)
    sifted = sift_binary(values, strange, regions.regions.crs if crs is None else crs)
    done = {bad.row for bad in sifted.rejected}.union(*(part.rows.tolist() for part in sifted.parts))
    rejected = [bad for bad in rejected if bad.row not in done] + sifted.rejected
    return Mixed(parts, rejected, regions.repaired, sifted.parts)


def _without_lines(values: Any, rejected: list[Rejection], crs: Crs | None, parts: list[ValueRows]) -> list[Rejection]:
    """Add the lines among the rejected rows of WKB to `parts`; return the other rejected rows, and bad lines."""
    rows = np.array([bad.row for bad in rejected if bad.fault is FaultCode.WRONG_TYPE], np.int64)
    if not rows.size:
        return rejected
    lines = sift_lines("arrow", values.take(pa.array(rows)), crs)
    parts.append(ValueRows(lines.lines, rows[lines.rows]))
    no_lines = (FaultCode.WRONG_TYPE, FaultCode.CURVED)
    known = {int(rows[bad.row]): bad for bad in lines.rejected if bad.fault not in no_lines}
    kept = {*rows[lines.rows].tolist()}
    others = (known.get(bad.row, bad)._replace(row=bad.row) for bad in rejected if bad.row not in kept)
    return list(others)


def is_null(rejected: Rejection) -> bool:
    """Return True if the value was absent, which is no fault."""
    return rejected.fault is FaultCode.NULL
