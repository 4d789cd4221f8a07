"""Parameters of the map's routes: places, times, sizes."""

from __future__ import annotations

from collections.abc import Mapping

from contrada.service.http.endpoints import Parameter
from contrada.service.http.events import number_of
from contrada.service.map.schemas import Plane
from contrada.service.map.tile_index import DEEPEST
from contrada.service.problems import BAD_PARAMETER

SEQUENCE = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
LIMIT = {"type": "integer", "minimum": 1, "maximum": 1000}
LARGEST = 1 << 53  # sequence number in a query

SIMPLIFY = Parameter(
    "simplify",
    "leave out vertices of large shapes, within this distance in units of the coordinates; 0: none",
    {"type": "number", "minimum": 0},
)
FROM = Parameter("from", "a time, such as 2026-05-01T12:00:00Z, or seconds since 1970")
TO = Parameter("to", "a time, before which messages came")


def simplify_of(query: Mapping[str, str]) -> float:
    """Return how far a simplified outline may be off."""
    return number_of(query, "simplify", 0.0, 0.0, 1e12)


def limit_of(query: Mapping[str, str], default: int, name: str = "limit", least: int = 1) -> int:
    """Return the largest number of items in an answer."""
    return int(number_of(query, name, default, least, 1_000))


def sequence_of(query: Mapping[str, str], name: str) -> int | None:
    """Return a sequence number of the query; None if there is none."""
    if name not in query:
        return None
    return int(number_of(query, name, 0, 0, LARGEST))


def tile_of_path(path: Mapping[str, str]) -> tuple[int, int, int]:
    """Return zoom, column and row of a tile; raise a Problem (400) if there is no such tile."""
    found = [path[name] for name in ("z", "x", "y")]
    if not all(text.isascii() and text.isdigit() and len(text) <= 10 for text in found):
        raise BAD_PARAMETER(f"need three whole numbers z, x and y, got {'/'.join(found)!r:.60}", attribute="z")
    zoom, column, row = map(int, found)
    if zoom > DEEPEST or column >= 1 << zoom or row >= 1 << zoom:
        raise BAD_PARAMETER(f"there is no tile {zoom}/{column}/{row}; zoom is 0 to {DEEPEST}", attribute="z")
    return zoom, column, row


def plane_of_query(query: Mapping[str, str]) -> Plane | None:
    """Return the plane of plain coordinates: the middle and the span, as x,y,span; None for degrees."""
    text = query.get("plane")
    if text is None:
        return None
    parts = dict(zip(("x", "y", "span"), text.split(","), strict=False))
    if len(parts) < 3 or text.count(",") != 2:
        raise BAD_PARAMETER(f"plane: need x,y,span, got {text!r:.60}", attribute="plane")
    x, y = (number_of(parts, name, 0.0, -1e300, 1e300) for name in ("x", "y"))
    return Plane(x, y, number_of(parts, "span", 1.0, 1e-300, 1e300))
