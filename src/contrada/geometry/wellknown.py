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
from contrada.geometry.sources import wkb_buffers
from contrada.halving import in_halves
from contrada.limits import limit

_CURVED = re.compile(r"CURVE|CIRCULAR|SURFACE|TIN\b|TRIANGLE", re.IGNORECASE)
_NUMBER = r"\s*+-?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+"
_VERTEX = rf"{_NUMBER}\s{_NUMBER}\s*+"
_PLAIN_POLYGON = re.compile(rf"POLYGON\s*+\(\s*+\(({_VERTEX}(?:,{_VERTEX})*+)\)\s*+\)\Z", re.IGNORECASE)
_BRACKETS = np.zeros(256, np.int64)
_BRACKETS[[ord("("), ord(")")]] = 1, -1


class Shapes(NamedTuple):
    """Shapely geometries, None where there is a fault, and the faults of the rows as in kernels/read/faults.py."""

    geometries: NDArray[np.object_]
    faults: NDArray[np.int64]


def shapes_from_wkb(values: Any) -> Shapes:
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


def shapes_from_wkt(texts: Sequence[str | None], on_invalid: str = "ignore") -> Shapes:
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


def wkb_of_plain_polygon(text: str) -> bytes | None:
    """Return the WKB of a polygon with one ring and plain numbers; None for every other text. Quicker than Shapely.

    >>> wkb_of_plain_polygon("POLYGON((0 0, 1 0, 0 1, 0 0))")[:9].hex(), wkb_of_plain_polygon("POINT(1 2)")
    ('010300000001000000', None)
    """
    found = _PLAIN_POLYGON.match(text)
    if found is None:
        return None
    numbers = [float(number) for number in found[1].replace(",", " ").split()]
    return struct.pack(f"<BIII{len(numbers)}d", 1, 3, 1, len(numbers) // 2, *numbers)


def _scan_text(text: str) -> np.int64:
    """Return the fault of one WKT text that shows without reading the numbers."""
    if not text.isascii() or "\0" in text:  # WKT has only letters, digits and signs
        return MALFORMED
    if _CURVED.search(text):
        return WRONG_TYPE
    if text.count("(") <= limit("nesting"):
        return GOOD
    depth = np.cumsum(_BRACKETS[np.frombuffer(text.encode(), np.uint8)])
    return NESTED if depth.max() > limit("nesting") else GOOD


def _read(
    name: str, given: NDArray[np.object_], rows: NDArray[np.int64], faults: NDArray[np.int64], on_invalid: str
) -> Shapes:
    """Return geometries by row from the values of `rows`; values that Shapely cannot read are malformed."""
    made = np.full(len(faults), None, dtype=object)
    errors = (shapely.errors.ShapelyError, NotImplementedError, ValueError, OverflowError)

    def read(start: int, stop: int) -> Any:
        return getattr(shapely, name)(given[start:stop], on_invalid=on_invalid)

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # such coordinates are rejected later
        for part in in_halves(len(rows), read, errors):
            made[rows[part.start : part.stop]] = part.result
    return Shapes(made, np.where((faults == GOOD) & shapely.is_missing(made), MALFORMED, faults))
