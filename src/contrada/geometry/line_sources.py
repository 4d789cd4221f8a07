"""Read WKB, WKT, GeoJSON, Shapely and Arrow input as columns of valid lines; bad rows are rejected with reasons."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.codes import GOOD, LINE, MISSING
from contrada.errors import RegionError
from contrada.geometry.arrays import Arrays, offsets_of, take
from contrada.geometry.crs import (
    Crs,
    Named,
    common_crs,
    crs_member,
    is_geographic,
    named_by_srids,
    named_by_values,
    resolved,
)
from contrada.geometry.faults import FaultCode, Rejection, rejection
from contrada.geometry.point import in_range, shapely_srids
from contrada.geometry.wellknown import shapes_from_wkb, shapes_from_wkt, split_ewkt

if TYPE_CHECKING:
    from contrada.geometry.reading import SourceKind

LINE_TYPES = (
    shapely.GeometryType.LINESTRING, shapely.GeometryType.LINEARRING, shapely.GeometryType.MULTILINESTRING,
)  # fmt: skip
_SPLIT = "split a line that crosses the antimeridian into a MultiLineString (RFC 7946, 3.1.9)"


class RawLines(NamedTuple):
    """Lines as given: rows of parts of vertices. Rows with a fault have no parts."""

    xy: NDArray[np.float64]
    part_offsets: NDArray[np.int64]
    line_offsets: NDArray[np.int64]
    faults: dict[int, Rejection]
    crs: Crs | None = None  # CRS of the whole column
    named: Named | None = None  # systems that rows name


class CheckedLines(NamedTuple):
    """Arrays of the valid rows, their CRS, the rows they come from, and the rejected rows."""

    arrays: Arrays
    crs: Crs | None
    rows: NDArray[np.int64]
    rejected: tuple[Rejection, ...]


def read_rows(kind: SourceKind, values: Any, crs: Any) -> CheckedLines:
    """Return the valid lines of a column of one kind, and the rejected rows."""
    if kind == "shapely":
        return check_lines(raw_from_shapely(values), common_crs(getattr(values, "crs", None), crs))
    if kind == "arrow":
        from contrada.geometry.arrow.lines import raw_lines_from_arrow

        return check_lines(raw_lines_from_arrow(values), crs)
    if kind == "wkb":
        return check_lines(raw_from_wkb(values), crs)
    return check_lines((raw_from_wkt if kind == "wkt" else raw_from_geojson)(list(values)), crs)


def raw_from_wkb(values: Any) -> RawLines:
    """Return raw lines from WKB: an Arrow array or a sequence of bytes or hex text."""
    return _raw_of_shapes(*shapes_from_wkb(values))


def raw_from_shapely(values: Any) -> RawLines:
    """Return raw lines from Shapely geometries, a sequence or an array; None counts as missing."""
    array = np.atleast_1d(np.asarray(values, dtype=object))
    others = np.flatnonzero(~(shapely.is_geometry(array) | shapely.is_missing(array)))
    if others.size:
        row = int(others[0])
        raise RegionError(f"row {row}: need a Shapely geometry, got {type(array[row]).__name__}", row=row)
    return _raw_of_shapes(array, np.zeros(len(array), np.int64))


def raw_from_wkt(values: Sequence[str | None]) -> RawLines:
    """Return raw lines from WKT or EWKT texts."""
    texts: list[str | None] = []
    srids = np.full(len(values), -1, np.int64)
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            raise RegionError(f"row {row}: WKT: need text, got {type(value).__name__}", row=row)
        if value is not None:
            srids[row], value = split_ewkt(value)
        texts.append(value)
    return _raw_of_shapes(*shapes_from_wkt(texts))._replace(named=named_by_srids(srids))


def raw_from_geojson(values: Sequence[Any]) -> RawLines:
    """Return raw lines from GeoJSON geometries or features, as dicts or text."""
    faults: dict[int, Rejection] = {}
    rows = []
    for row, value in enumerate(values):
        parts = _parts_of_geojson(value)
        if isinstance(parts, Rejection):
            faults[row] = parts._replace(row=row)
            parts = []
        rows.append(parts)
    return _raw_of_parts(rows, faults)._replace(named=named_by_values([crs_member(value) for value in values]))


def raw_from_coordinates(parts: Iterable[Any]) -> RawLines:
    """Return the raw line of the coordinates of its parts."""
    return _raw_of_parts([[_as_vertices(part, k) for k, part in enumerate(parts)]], {})


def _raw_of_parts(rows: Sequence[Sequence[NDArray[np.float64]]], faults: dict[int, Rejection]) -> RawLines:
    parts = [part for row in rows for part in row]
    return RawLines(
        np.concatenate([*parts, np.empty((0, 2))]),
        offsets_of(np.array([len(part) for part in parts], np.int64)),
        offsets_of(np.array([len(row) for row in rows], np.int64)),
        faults,
    )


def _as_vertices(part: Any, k: int) -> NDArray[np.float64]:
    """Return the vertices of one part; a third coordinate is dropped."""
    where = f"part {k}"
    try:
        vertices = np.asarray(part if isinstance(part, np.ndarray) else list(part), np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RegionError(f"{where} is not a sequence of (x, y): {error}", part=k) from error
    if vertices.size == 0:
        return np.empty((0, 2))
    if vertices.ndim != 2 or not 2 <= vertices.shape[1] <= 4:
        raise RegionError(f"{where} is not a sequence of (x, y): shape {vertices.shape}", part=k)
    return vertices[:, :2]


def _parts_of_geojson(value: Any) -> list[NDArray[np.float64]] | Rejection:
    malformed = Rejection(0, "malformed or truncated geometry", FaultCode.MALFORMED)
    if value is None:
        return rejection(0, (int(MISSING), 0, 0))
    try:
        geometry = json.loads(value) if isinstance(value, (str, bytes)) else value
        if geometry.get("type") == "Feature":
            geometry = geometry["geometry"]
            if geometry is None:
                return rejection(0, (int(MISSING), 0, 0))
        kind, coordinates = geometry["type"], geometry.get("coordinates", [])
        if kind == "LineString":
            return [_as_vertices(coordinates, 0)]
        if kind == "MultiLineString":
            return [_as_vertices(part, k) for k, part in enumerate(coordinates)]
        return _wrong_type(0, kind) if kind in shapely.GeometryType.__members__ or kind in _NAMES else malformed
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):  # RegionError is a ValueError
        return malformed


_NAMES = ("Point", "Polygon", "MultiPoint", "MultiPolygon", "GeometryCollection")


def _wrong_type(row: int, name: str) -> Rejection:
    code = FaultCode.POINT if name == "Point" else FaultCode.WRONG_TYPE
    return Rejection(row, f"wrong geometry type {name}; a line is a LineString or MultiLineString", code)


def _raw_of_shapes(array: NDArray[np.object_], codes: NDArray[np.int64]) -> RawLines:
    """Return raw lines from Shapely geometries; None is missing, or has the fault of its row."""
    kinds = shapely.get_type_id(array)
    is_line = np.isin(kinds, LINE_TYPES)
    faults = {}
    for row in np.flatnonzero(~is_line).tolist():
        if kinds[row] < 0:
            faults[row] = rejection(row, (int(codes[row]) if codes[row] != GOOD else int(MISSING), 0, 0))
        else:
            faults[row] = _wrong_type(row, array[row].geom_type)
    lines = array.copy()
    lines[~is_line] = None
    parts, owners = shapely.get_parts(lines, return_index=True)
    return RawLines(
        shapely.get_coordinates(parts).reshape(-1, 2),
        offsets_of(shapely.get_num_coordinates(parts)),
        offsets_of(np.bincount(owners, minlength=len(array))),
        faults,
        None,
        named_by_srids(shapely_srids(array)),
    )


def check_lines(raw: RawLines, crs: Any = None) -> CheckedLines:
    """Return the valid lines of a column: repeated vertices and empty parts are left out, no coordinate changes."""
    crs, foreign = resolved(raw.named, common_crs(raw.crs, crs))
    n_rows, n_parts = len(raw.line_offsets) - 1, len(raw.part_offsets) - 1
    xy = raw.xy + 0.0  # -0.0 becomes 0.0
    part_of = np.repeat(np.arange(n_parts), np.diff(raw.part_offsets))
    row_of = np.repeat(np.arange(n_rows), np.diff(raw.line_offsets))
    faults = {**raw.faults, **_bad_coordinates(xy, part_of, row_of, raw)}
    repeats = np.zeros(len(xy), bool)
    repeats[1:] = (part_of[1:] == part_of[:-1]) & (xy[1:] == xy[:-1]).all(axis=1)
    sizes = np.bincount(part_of[~repeats], minlength=n_parts)
    for part in np.flatnonzero(sizes == 1).tolist():
        row = int(row_of[part])
        if row not in faults:
            faults[row] = _too_short(row, part - int(raw.line_offsets[row]), xy[raw.part_offsets[part]])
    counts = np.bincount(row_of[sizes > 1], minlength=n_rows)
    for row in np.flatnonzero(counts == 0).tolist():
        faults.setdefault(row, Rejection(row, "empty geometry", FaultCode.EMPTY))
    xy, filled = xy[~repeats], sizes > 0
    parts, lines = offsets_of(sizes[filled]), offsets_of(np.bincount(row_of[filled], minlength=n_rows))
    bounds = _bounds(xy, parts, lines)
    arrays = Arrays(xy, parts, lines.astype(np.int32), np.full(len(parts) - 1, LINE, np.uint8), bounds)
    if crs is not None and is_geographic(crs):
        _refuse_beyond_the_globe(bounds, faults)
    faults = {**faults, **foreign}
    good = np.ones(n_rows, bool)
    good[list(faults)] = False
    rows = np.flatnonzero(good)
    chosen = arrays if len(rows) == n_rows else take(arrays, rows)
    return CheckedLines(chosen, crs, rows, tuple(faults[row] for row in sorted(faults)))


def _bad_coordinates(
    xy: NDArray[np.float64], part_of: NDArray[np.int64], row_of: NDArray[np.int64], raw: RawLines
) -> dict[int, Rejection]:
    """Return the rejections of rows with a coordinate that is not finite, or outside 1e-120..1e120 in magnitude."""
    found: dict[int, Rejection] = {}
    for vertex in np.flatnonzero(~in_range(xy)).tolist():
        part = int(part_of[vertex])
        row = int(row_of[part])
        if row in found:
            continue
        place = (float(xy[vertex, 0]), float(xy[vertex, 1]))
        is_finite = bool(np.isfinite(xy[vertex]).all())
        what = "coordinate outside 1e-120..1e120 in magnitude" if is_finite else "coordinate is not finite"
        number = part - int(raw.line_offsets[row])
        reason = f"{_prefix(number)}{what} near ({place[0]!r}, {place[1]!r})"
        found[row] = Rejection(row, reason, FaultCode.BAD_COORDINATE, number, None, place)
    return found


def _too_short(row: int, part: int, vertex: NDArray[np.float64]) -> Rejection:
    x, y = vertex.tolist()
    reason = f"{_prefix(part)}fewer than two distinct vertices near ({x!r}, {y!r})"
    return Rejection(row, reason, FaultCode.TOO_FEW_VERTICES, part, None, (x, y))


def _prefix(part: int) -> str:
    return f"part {part}: " if part else ""


def _bounds(xy: NDArray[np.float64], parts: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the boxes of lines; NaN for lines without vertices."""
    bounds = np.full((len(lines) - 1, 4), np.nan)
    starts = parts[lines]
    filled = np.flatnonzero(np.diff(starts) > 0)
    if len(filled):
        with np.errstate(invalid="ignore"):  # rows with a NaN are rejected
            bounds[filled, :2] = np.minimum.reduceat(xy, starts[filled], axis=0)
            bounds[filled, 2:] = np.maximum.reduceat(xy, starts[filled], axis=0)
    return bounds


def _refuse_beyond_the_globe(bounds: NDArray[np.float64], faults: dict[int, Rejection]) -> None:
    """Reject lines outside longitude -180..180 and latitude -90..90."""
    with np.errstate(invalid="ignore"):
        outside = (np.abs(bounds) > [180, 90, 180, 90]).any(axis=1)
    for row in np.flatnonzero(outside).tolist():
        why = f"box {bounds[row].tolist()} is outside longitude -180..180, latitude -90..90; {_SPLIT}"
        faults.setdefault(row, Rejection(row, why, FaultCode.OFF_THE_GLOBE))
