"""Read WKB and WKT from outside with Shapely, after a scan for input that would crash the C library.

GEOS reads collections recursively. A collection nested 20,000 deep overflows the stack, and a count in a header may ask
for any amount of memory. Every call of `shapely.from_wkb` and `shapely.from_wkt` on data from outside is in this
module.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import GOOD, MALFORMED, MISSING, NESTED, WRONG_TYPE
from contrada.errors import RegionError
from contrada.geometry.arrays import offsets_of
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.arrow.checks import whole_array
from contrada.geometry.crs import nesting_of
from contrada.halving import in_halves
from contrada.limits import limit

MAX_SRID = (1 << 32) - 1
_SRID_FLAG = 0x20  # in the highest byte of a geometry's type
_CURVED = re.compile(r"CURVE|CIRCULAR|SURFACE|TIN\b|TRIANGLE", re.IGNORECASE)
_NUMBER = r"\s*+-?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_VERTEX = rf"{_NUMBER}\s{_NUMBER}\s*+"
_PLAIN_POLYGON = re.compile(rf"POLYGON\s*+\(\s*+\(({_VERTEX}(?:,{_VERTEX})*+)\)\s*+\)\Z", re.IGNORECASE)


class WellKnownShapes(NamedTuple):
    """Shapely geometries, None where there is a fault, and the faults of the rows as in codes.py."""

    geometries: NDArray[np.object_]
    faults: NDArray[np.int64]


def wkb_buffers(values: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Return bytes, row offsets and missing marks; uses Arrow's own buffers where possible."""
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return arrow_buffers(values)
    rows = [_as_bytes(value, row) for row, value in enumerate(values)]
    missing = np.array([row is None for row in rows], np.uint8)
    filled = [row or b"" for row in rows]
    data = np.frombuffer(b"".join(filled), np.uint8)
    return data, offsets_of(np.fromiter(map(len, filled), np.int64, len(filled))), missing


def _as_bytes(value: Any, row: int) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return bytes.fromhex(value)
        except ValueError:
            return b""
    if isinstance(value, (bytearray, memoryview, np.bytes_)):
        return bytes(value)
    raise RegionError(f"row {row}: WKB: need bytes or hex text, got {type(value).__name__}", row=row)


def arrow_buffers(
    values: Any, reader_checks_offsets: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]:
    """Return bytes, row offsets and missing marks of an Arrow array of binary values.

    The offsets are sound, unless the caller says that what reads them checks them.
    """
    array = whole_array(values, reader_checks_offsets)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        try:
            array = array.cast(pa.large_binary())
        except pa.ArrowException as error:
            raise RegionError(f"WKB: need a binary column, got {array.type}") from error
    width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    _, positions, data = array.buffers()
    n = len(array)
    missing = np.asarray(array.is_null()).astype(np.uint8) if array.null_count else np.zeros(n, np.uint8)
    if n == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64), missing
    starts = np.frombuffer(positions, width)[array.offset : array.offset + n + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), starts, missing


def wkb_srids(values: Any) -> NDArray[np.int64]:
    """Return the SRIDs of an Arrow array of WKB by row, 0 where there is none."""
    data, positions, missing = arrow_buffers(values)
    srids = np.zeros(len(missing), np.int64)
    long = np.flatnonzero((missing == 0) & (np.diff(positions) >= 9))  # byte order, type, SRID
    starts = positions[long]
    order = data[starts]
    is_little = order == 1
    named = (order <= 1) & (data[starts + np.where(is_little, 4, 1)] & _SRID_FLAG != 0)
    if named.any():
        numbers = data[starts[named][:, None] + np.arange(5, 9)]
        srids[long[named]] = np.where(is_little[named], numbers.view("<u4")[:, 0], numbers.view(">u4")[:, 0])
    return srids


def shapes_from_wkb(values: Any) -> WellKnownShapes:
    """Return Shapely geometries of WKB, EWKB or hex text, in an Arrow array or a sequence; None is missing.

    >>> point = bytes.fromhex("0101000000") + bytes(16)
    >>> found = shapes_from_wkb([point, point[:9], None])
    >>> found.geometries[0].wkt, found.faults.tolist()
    ('POINT (0 0)', [0, 4, 1])
    """
    data, positions, missing = wkb_buffers(values)
    rows = len(missing)
    faults = np.empty(rows, np.int64)
    kernels.scan_wkb(data, positions, missing, np.empty(limit("nesting"), np.int64), faults)
    good = np.flatnonzero(faults == GOOD)
    given = np.empty(len(good), dtype=object)
    for k, row in enumerate(good.tolist()):
        given[k] = data[positions[row] : positions[row + 1]].tobytes()
    return _read("from_wkb", given, good, faults, "ignore")


def shapes_from_wkt(texts: Sequence[str | None], on_invalid: str = "ignore") -> WellKnownShapes:
    """Return Shapely geometries of WKT; `on_invalid="fix"` closes open rings.

    >>> found = shapes_from_wkt(["POINT(1 2)", "GEOMETRYCOLLECTION(" * 20_000, None])
    >>> found.geometries[0].wkt, found.faults.tolist()
    ('POINT (1 2)', [0, 16, 1])
    """
    given = np.empty(len(texts), dtype=object)
    given[:] = texts
    faults = np.array([MISSING if text is None else _scan_text(text) for text in texts], np.int64)
    good = np.flatnonzero(faults == GOOD)
    return _read("from_wkt", given[good], good, faults, on_invalid)


def wkb_of_plain_polygon(text: Any) -> bytes | None:
    """Return the WKB of a polygon with one ring and plain numbers; None for every other text. Quicker than Shapely.

    >>> wkb_of_plain_polygon("POLYGON((0 0, 1 0, 0 1, 0 0))")[:9].hex(), wkb_of_plain_polygon("POINT(1 2)")
    ('010300000001000000', None)
    """
    found = _PLAIN_POLYGON.match(text) if isinstance(text, str) else None
    if found is None:
        return None
    numbers = [float(number) for number in found[1].replace(",", " ").split()]
    return struct.pack(f"<BIII{len(numbers)}d", 1, 3, 1, len(numbers) // 2, *numbers)


def split_ewkt(text: str) -> tuple[int, str]:
    """Return the SRID of EWKT, 0 if it has none, and the WKT after it; empty text if the SRID is no number.

    >>> split_ewkt("SRID=4326;POINT (1 2)")
    (4326, 'POINT (1 2)')
    """
    if text[:5].upper() != "SRID=":
        return 0, text
    number, _, wkt = text[5:].partition(";")
    digits = number.strip()
    if not (digits.isascii() and digits.isdigit()):
        return 0, ""
    return min(int(digits[:12]), MAX_SRID), wkt


def _scan_text(text: str) -> np.int64:
    """Return the fault of one WKT text that shows without reading the numbers."""
    if not text.isascii() or "\0" in text:  # WKT has only letters, digits and signs
        return MALFORMED
    if _CURVED.search(text):
        return WRONG_TYPE
    is_nested = text.count("(") > limit("nesting") and nesting_of(text) > limit("nesting")
    return NESTED if is_nested else GOOD


def _read(
    name: str, given: NDArray[np.object_], rows: NDArray[np.int64], faults: NDArray[np.int64], on_invalid: str
) -> WellKnownShapes:
    """Return geometries by row from the values of `rows`; values that Shapely cannot read are malformed."""
    made = np.full(len(faults), None, dtype=object)
    errors = (shapely.errors.ShapelyError, NotImplementedError, ValueError, OverflowError)

    def read(start: int, stop: int) -> Any:
        return getattr(shapely, name)(given[start:stop], on_invalid=on_invalid)

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # such coordinates are rejected later
        for part in in_halves(len(rows), read, errors):
            made[rows[part.start : part.stop]] = part.result
    return WellKnownShapes(made, np.where((faults == GOOD) & shapely.is_missing(made), MALFORMED, faults))
