"""GeoArrow columns of lines: linestrings and multilinestrings."""

from __future__ import annotations

import struct
from types import MappingProxyType
from typing import Any

import numpy as np

from contrada.codes import MISSING
from contrada.errors import RegionError
from contrada.geometry.arrays import Arrays
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import bad_texts
from contrada.geometry.arrow.geoarrow import GeoArrowType, list_array, metadata_of, storage_of, vertex_array, vertices
from contrada.geometry.arrow.mixed import is_vertex, nesting
from contrada.geometry.crs import Crs
from contrada.geometry.faults import FaultCode, Rejection, rejection
from contrada.geometry.line_sources import RawLines, raw_from_wkb, raw_from_wkt


class LineArrowType(GeoArrowType):
    """GeoArrow extension type of lines, which have as many nested lists as other shapes have."""

    names = MappingProxyType({1: "geoarrow.linestring", 2: "geoarrow.multilinestring"})


def lines_to_arrow(a: Arrays, crs: Crs | None) -> Any:
    """Return a GeoArrow multilinestring array, interleaved, with the CRS in its type."""
    parts = list_array(a.ring_offsets, vertex_array(a.xy), "vertices")
    storage = list_array(a.region_offsets.astype(np.int64), parts, "linestrings")
    kind = LineArrowType(storage.type, metadata_of(crs))
    return pa.ExtensionArray.from_storage(kind, storage)


def as_lines(column: Any, crs: Crs | None) -> Any:
    """Return a column of linestrings or multilinestrings with a type that says so, and names the CRS."""
    kind = LineArrowType(column.type, metadata_of(crs))
    return pa.chunked_array([pa.ExtensionArray.from_storage(kind, chunk) for chunk in column.chunks], kind)


def is_line_array(values: Any) -> bool:
    """Return True for GeoArrow lines, and for WKB of which the first value that is not null is a line."""
    array, _ = storage_of(values)
    depth, inner = nesting(array.type)
    if is_vertex(inner):
        names = ("geoarrow.linestring", "geoarrow.multilinestring")
        return depth == 1 or (depth == 2 and getattr(values.type, "extension_name", "") in names)
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        return False
    first = next((value.as_py() for value in array if value.is_valid), b"")
    order = "<I" if first[:1] == b"\x01" else ">I"
    return len(first) > 4 and struct.unpack(order, first[1:5])[0] % 1000 & 0xFFFF in (2, 5)


def raw_lines_from_arrow(values: Any) -> RawLines:
    """Return raw lines from an Arrow array of WKB, WKT or GeoArrow linestrings or multilinestrings."""
    array, crs = storage_of(values)
    kind = array.type
    if nesting(kind)[0]:
        raw = _raw_from_lists(array)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        bad = bad_texts(array)
        texts = array.cast(pa.large_binary()).to_pylist()
        raw = raw_from_wkt([None if text is None else text.decode(errors="replace") for text in texts])
        malformed = {row: Rejection(row, "malformed or truncated geometry", FaultCode.MALFORMED) for row in bad}
        raw = raw._replace(faults={**raw.faults, **malformed})
    else:
        raw = raw_from_wkb(array)
    return raw if crs is None else raw._replace(crs=crs)


def _raw_from_lists(array: Any) -> RawLines:
    depth, inner = nesting(array.type)
    if depth not in (1, 2) or not is_vertex(inner):
        raise RegionError(f"need GeoArrow linestrings or multilinestrings, got {array.type}")
    missing = np.asarray(array.is_null()) if array.null_count else np.zeros(len(array), bool)
    offsets, values = [], array
    for _ in range(depth):
        if values is not array and values.null_count:
            raise RegionError("GeoArrow multilinestrings cannot have null parts")
        offsets.append(np.asarray(values.offsets, np.int64) if len(values) else np.zeros(1, np.int64))
        values = values.values
    if depth == 1:  # every line has one part
        offsets.insert(0, np.arange(len(array) + 1))
    lines = offsets[0] - offsets[0][0]
    parts = offsets[1][offsets[0][0] : offsets[0][-1] + 1] if depth == 2 else offsets[1]
    xy = vertices(values)[parts[0] : parts[-1]]
    faults = {row: rejection(row, (int(MISSING), 0, 0)) for row in np.flatnonzero(missing).tolist()}
    return RawLines(xy, parts - parts[0], lines, faults)
