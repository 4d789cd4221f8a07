"""The judge of OGC's relations: patterns of the DE-9IM matrix, which `oracles.matrix` builds by rational arithmetic."""

from __future__ import annotations

from functools import cache
from typing import Any

import shapely

from oracles.matrix import matrix_rational, shape_of

WORDS = ("S_DISJOINT", "S_TOUCHES", "S_CROSSES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS")


@cache
def matrix_of(a: bytes, b: bytes) -> str:
    """Return the matrix of two shapes in WKB."""
    return matrix_rational(shape_of(shapely.from_wkb(a)), shape_of(shapely.from_wkb(b)))


def word_holds(word: str, a: Any, b: Any) -> bool:
    """Return whether OGC's relation holds between two Shapely shapes, of points, lines and regions."""
    m = matrix_of(a.wkb, b.wkb)
    met = any(m[k] != "F" for k in (0, 1, 3, 4))
    within = m[0] != "F" and m[2] == m[5] == "F"
    contains = m[0] != "F" and m[6] == m[7] == "F"
    first, second = shapely.get_dimensions([a, b]).tolist()
    if word == "S_CROSSES":
        if first == second:
            return bool(first == 1 and m[0] == "0")
        return m[0] != "F" and m[2 if first < second else 6] != "F"
    if word == "S_OVERLAPS":
        return bool(first == second and first > 0 and m[0] == str(first) and m[2] != "F" and m[6] != "F")
    return {
        "S_DISJOINT": not met, "S_INTERSECTS": met, "S_TOUCHES": met and m[0] == "F", "S_WITHIN": within,
        "S_CONTAINS": contains, "S_EQUALS": within and contains,
    }[word]  # fmt: skip
