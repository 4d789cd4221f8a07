"""Write regions as WKT, WKB, GeoJSON and Shapely; coordinates do not change."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import shapely
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import EWKB_SRID, HOLE
from contrada.geometry.arrays import Arrays, compact, frozen, offsets_of
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.crs import srid_of

if TYPE_CHECKING:
    from contrada.geometry.column import RegionArray

_JSON = msgspec.json.Encoder()
Ring = NDArray[np.float64]
Polygons = Sequence[tuple[Ring, tuple[Ring, ...]]]


def part_offsets(a: Arrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first rings of all parts (and the end), and the offsets of the regions into the parts.

    The arrays hold only these regions, as `compact` returns them.
    """
    shells = np.flatnonzero(a.ring_flags & HOLE == 0)
    return np.append(shells, len(a.ring_flags)), np.searchsorted(shells, a.region_offsets)


def column_parts(column: RegionArray) -> tuple[tuple[Ring, tuple[Ring, ...]], ...]:
    """Return the polygons of the only region of a column: shell and holes as closed rings."""
    a = column.arrays
    first, last = a.region_offsets.tolist()
    rings = [a.xy[start:stop] for start, stop in pairwise(a.ring_offsets[first : last + 1].tolist())]
    shells = [k for k, flags in enumerate(a.ring_flags[first:last].tolist()) if not flags & HOLE]
    return tuple((rings[first], tuple(rings[first + 1 : stop])) for first, stop in pairwise([*shells, len(rings)]))


def column_to_shapely(column: RegionArray) -> NDArray[np.object_]:
    """Return Shapely polygons, and multipolygons for regions of several parts."""
    if len(column) == 0:
        return np.empty(0, dtype=object)
    a = compact(column.arrays)
    starts, regions = part_offsets(a)
    polygons = shapely.from_ragged_array(shapely.GeometryType.POLYGON, a.xy, (a.ring_offsets, starts))
    counts = np.diff(regions)
    made = polygons[regions[:-1]]
    many = np.repeat(counts > 1, counts)
    if many.any():
        owners = np.repeat(np.cumsum(counts > 1) - 1, counts)[many]
        made[counts > 1] = shapely.multipolygons(polygons[many], indices=owners)
    code = None if column.crs is None else column.crs.epsg
    return np.asarray(made if code is None else shapely.set_srid(made, code), dtype=object)


def column_to_wkb(column: RegionArray, srid: bool = False) -> Any:
    """Return an Arrow array of little-endian WKB, or EWKB: polygons, and multipolygons for regions of several parts."""
    a = column.arrays
    regions, parts = a.region_offsets, np.diff(part_offsets(compact(a))[1])
    vertices = a.ring_offsets[regions[1:]] - a.ring_offsets[regions[:-1]]
    # Byte order takes 1 byte, type 4, count 4; each ring has a count of 4, and each vertex two doubles.
    sizes = 9 * (parts + (parts > 1)) + 4 * np.diff(regions).astype(np.int64) + 16 * vertices
    offsets = offsets_of(sizes)
    data = np.empty(offsets[-1], np.uint8)
    kernels.write_wkb(a.xy.view(np.uint64), a.ring_offsets, regions, a.ring_flags, frozen(offsets), data)
    if srid:  # EWKB: a flag in the highest byte of the type, then the SRID
        number = np.frombuffer(struct.pack("<I", srid_of(column.crs)), np.uint8)
        data[offsets[:-1] + 4] |= EWKB_SRID >> 24
        data = np.insert(data, np.repeat(offsets[:-1] + 5, 4), np.tile(number, len(column)))
        offsets = offsets + 4 * np.arange(len(offsets))
    is_small = offsets[-1] <= np.iinfo(np.int32).max
    kind, ends = (pa.binary(), offsets.astype(np.int32)) if is_small else (pa.large_binary(), offsets)
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(ends), pa.py_buffer(data)])


def number_text(value: float) -> str:
    """Return the shortest text that reads back to the same double, without a trailing `.0`."""
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def ring_text(ring: Ring) -> str:
    """Return the WKT of the vertices of a ring or of a part of a line."""
    # JSON takes a tenth of the time of repr. It writes numbers alike, but for those of many digits before or after 0.
    text = _JSON.encode(ring.tolist()).decode()
    if "e" in text or "0.0000" in text:
        return "(" + ", ".join(f"{number_text(x)} {number_text(y)}" for x, y in ring.tolist()) + ")"
    text = text.replace(".0,", ",").replace(".0]", "]").replace("],[", ";").replace(",", " ").replace(";", ", ")
    return f"({text[2:-2]})"


def polygons_to_wkt(polygons: Polygons) -> str:
    """Return the WKT of a polygon, or of a multipolygon for several."""
    texts = ["(" + ", ".join(map(ring_text, (shell, *holes))) + ")" for shell, holes in polygons]
    return f"POLYGON {texts[0]}" if len(texts) == 1 else f"MULTIPOLYGON ({', '.join(texts)})"


def _polygon_bytes(shell: Ring, holes: tuple[Ring, ...]) -> bytes:
    rings = (shell, *holes)
    pieces = [struct.pack("<BII", 1, 3, len(rings))]
    for ring in rings:
        pieces += [struct.pack("<I", len(ring)), ring.astype("<f8", copy=False).tobytes()]
    return b"".join(pieces)


def polygons_to_wkb(polygons: Polygons) -> bytes:
    """Return the little-endian WKB of a polygon, or of a multipolygon for several."""
    texts = [_polygon_bytes(shell, holes) for shell, holes in polygons]
    return texts[0] if len(texts) == 1 else struct.pack("<BII", 1, 6, len(texts)) + b"".join(texts)


def polygons_to_geojson(polygons: Polygons) -> dict[str, Any]:
    """Return a GeoJSON geometry."""
    coordinates = [[ring.tolist() for ring in (shell, *holes)] for shell, holes in polygons]
    if len(coordinates) == 1:
        return {"type": "Polygon", "coordinates": coordinates[0]}
    return {"type": "MultiPolygon", "coordinates": coordinates}
