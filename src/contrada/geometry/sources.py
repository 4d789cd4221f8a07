"""Convert WKB, WKT, GeoJSON and Shapely input to raw arrays; only unreadable input is a fault here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import GOOD, MALFORMED, MISSING, WRONG_TYPE
from contrada.errors import RegionError
from contrada.geometry.arrays import offsets_of
from contrada.geometry.crs import Crs, Named, crs_member, named_by_srids, named_by_values
from contrada.geometry.wellknown import shapes_from_wkt, split_ewkt, wkb_buffers

_KIND_CODES = {"Point": 1, "LineString": 2, "MultiPoint": 4, "MultiLineString": 5, "GeometryCollection": 7}


class RawRegions(NamedTuple):
    """Regions as given: rows of parts of rings of vertices. Rows with a fault have no parts."""

    xy: NDArray[np.float64]
    ring_offsets: NDArray[np.int64]
    part_offsets: NDArray[np.int64]
    region_offsets: NDArray[np.int64]
    faults: NDArray[np.int64]
    kinds: NDArray[np.int64]
    crs: Crs | None  # CRS of the whole column
    named: Named | None = None  # systems that rows name


def raw_from_wkb(values: Any) -> RawRegions:
    """Return raw arrays from WKB: an Arrow array or a sequence of bytes or hex text."""
    data, positions, missing = wkb_buffers(values)
    n = len(missing)
    faults, kinds, srids = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    regions, totals = np.empty(n + 1, np.int64), np.empty(3, np.int64)
    kernels.count_wkb(data, positions, missing, faults, kinds, srids, regions, totals)
    parts, rings = np.empty(totals[0] + 1, np.int64), np.empty(totals[1] + 1, np.int64)
    bits = np.empty((totals[2], 2), np.uint64)
    kernels.fill_wkb(data, positions, faults, bits, rings, parts)
    return RawRegions(bits.view(np.float64), rings, parts, regions, faults, kinds, None, named_by_srids(srids))


def raw_from_shapely(values: Any) -> RawRegions:
    """Return raw arrays from Shapely geometries, a sequence or an array; None counts as missing."""
    array = np.atleast_1d(np.asarray(values, dtype=object))
    strangers = np.flatnonzero(~(shapely.is_geometry(array) | shapely.is_missing(array)))
    if strangers.size:
        row = int(strangers[0])
        raise RegionError(f"row {row}: need a Shapely geometry, got {type(array[row]).__name__}", row=row)
    return raw_from_wkb(list(shapely.to_wkb(array, include_srid=True, output_dimension=2)))


def raw_from_wkt(values: Sequence[str | None]) -> RawRegions:
    """Return raw arrays from WKT or EWKT texts."""
    texts: list[str | None] = []
    srids = np.full(len(values), -1, np.int64)
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            raise RegionError(f"row {row}: WKT: need text, got {type(value).__name__}", row=row)
        if value is not None:
            srids[row], value = split_ewkt(value)
        texts.append(value)
    geometries, faults = shapes_from_wkt(texts, on_invalid="fix")  # "fix" closes open rings
    raw = raw_from_shapely(geometries)
    raw.faults[faults != GOOD] = faults[faults != GOOD]
    return raw._replace(named=named_by_srids(srids))


class _Row(NamedTuple):
    """One region as given: the rings of its parts, or a fault; and the type of its geometry."""

    parts: Sequence[Sequence[NDArray[np.float64]]]
    fault: np.int64
    kind: int


def raw_from_coordinates(polygons: Sequence[Sequence[Any]]) -> RawRegions:
    """Return raw arrays of one region from the coordinates of its parts: (shell, hole, hole, ...)."""
    return _raw_of([_row_of(polygons)])


def _row_of(polygons: Sequence[Sequence[Any]]) -> _Row:
    parts = [[_as_vertices(ring, p, k) for k, ring in enumerate(polygon)] for p, polygon in enumerate(polygons)]
    return _Row(parts, GOOD, 6)


def _raw_of(rows: Sequence[_Row]) -> RawRegions:
    parts = [part for row in rows for part in row.parts]
    rings = [ring for part in parts for ring in part]
    return RawRegions(
        np.concatenate([*rings, np.empty((0, 2))]),
        offsets_of(np.array([len(ring) for ring in rings], np.int64)),
        offsets_of(np.array([len(part) for part in parts], np.int64)),
        offsets_of(np.array([len(row.parts) for row in rows], np.int64)),
        np.array([row.fault for row in rows], np.int64),
        np.array([row.kind for row in rows], np.int64),
        None,
    )


def _as_vertices(ring: Any, part: int, k: int) -> NDArray[np.float64]:
    """Return the vertices of one ring; a third coordinate is dropped."""
    where = "the shell" if k == 0 else f"hole {k}"
    where += f" of part {part}" if part else ""
    try:
        vertices = np.asarray(ring if isinstance(ring, np.ndarray) else list(ring), np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RegionError(f"{where} is not a sequence of (x, y): {error}", part=part, ring=k) from error
    if vertices.size == 0:
        return np.empty((0, 2))
    if vertices.ndim != 2 or not 2 <= vertices.shape[1] <= 4:
        raise RegionError(f"{where} is not a sequence of (x, y): shape {vertices.shape}", part=part, ring=k)
    return vertices[:, :2]


def raw_from_geojson(values: Sequence[Any]) -> RawRegions:
    """Return raw arrays from GeoJSON geometries or features, as dicts or text."""
    raw = _raw_of([_row_of_geojson(value) for value in values])
    return raw._replace(named=named_by_values([crs_member(value) for value in values]))


def _row_of_geojson(value: Any) -> _Row:
    if value is None:
        return _Row((), MISSING, -1)
    try:
        geometry = json.loads(value) if isinstance(value, (str, bytes)) else value
        if geometry.get("type") == "Feature":
            geometry = geometry["geometry"]
            if geometry is None:
                return _Row((), MISSING, -1)
        kind, coordinates = geometry["type"], geometry.get("coordinates", [])
        if kind == "Polygon":
            return _row_of([coordinates])
        if kind == "MultiPolygon":
            return _row_of(coordinates)
        return _Row((), WRONG_TYPE if kind in _KIND_CODES else MALFORMED, _KIND_CODES.get(kind, -1))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):  # RegionError is a ValueError
        return _Row((), MALFORMED, -1)
