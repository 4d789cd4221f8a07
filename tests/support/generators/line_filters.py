"""Random constraints on OGC's relations, and shapes for them on a coarse grid: lines, regions and points."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

import contrada as ct
from oracles.ogc import WORDS, word_holds

SIZE = 9


def coarse_line(rng: np.random.Generator) -> Any:
    """Return a line on a coarse grid: crossing itself, closed, in parts that meet, or along others."""

    def part(most: int) -> list[tuple[int, int]]:
        while True:
            steps = rng.integers(-2, 3, (rng.integers(2, most), 2))
            found = [tuple(p) for p in (rng.integers(0, SIZE, 2) + np.cumsum(steps, axis=0)).tolist()]
            if len(set(found)) > 1:
                return found

    kind = rng.integers(0, 4)
    if kind == 0:
        x, y = rng.integers(0, SIZE, 2).tolist()
        return shapely.LineString([(x, y), (x + int(rng.integers(1, 6)), y)])  # many lie along each other and edges
    if kind == 1:
        closed = part(6)
        return shapely.LineString([*closed, closed[0]])
    if kind == 2:
        return shapely.LineString(part(7))
    first = part(4)
    return shapely.MultiLineString([first, [first[-1], (first[-1][0] + 1, first[-1][1] + 2)], part(4)])


def coarse_shape(rng: np.random.Generator) -> Any:
    """Return a line, or a point, box, triangle, or region with a hole or of two parts."""
    x, y, w, h = (int(k) for k in (*rng.integers(0, SIZE, 2), *rng.integers(1, 5, 2)))
    box, kind = shapely.box(x, y, x + w, y + h), rng.integers(0, 10)
    if kind < 5:
        return coarse_line(rng)
    if kind == 5:
        return shapely.Point(x, y)
    if kind == 6:
        return shapely.Polygon([(x, y), (x + w, y), (x + w, y + h)])
    if kind == 7:
        hole = [(x + 1, y + 1), (x + w + 1, y + 1), (x + w + 1, y + h + 1)]
        return shapely.Polygon(shapely.box(x, y, x + w + 2, y + h + 2).exterior.coords, [hole])
    if kind == 8:
        return shapely.MultiPolygon([box, shapely.box(x + w, y + h, x + w + 2, y + h + 1)])
    return box


def of(found: Any) -> Any:
    """Return a Shapely shape as a value of ours."""
    kinds: dict[str, Any] = {"Point": ct.Point, "LineString": ct.Line, "MultiLineString": ct.Line}
    return kinds.get(found.geom_type, ct.Region).from_shapely(found)


def text_of(word: str, negated: bool, found: Any) -> str:
    """Return a constraint as CQL2 text."""
    return f"{'NOT ' if negated else ''}{word}(area, {of(found).to_wkt()})"


def drawn(rng: np.random.Generator, count: int) -> list[tuple[str, bool, Any]]:
    """Return constraints: a word, whether it is negated, and a shape."""
    return [(str(rng.choice(WORDS)), bool(rng.random() < 0.25), coarse_shape(rng)) for _ in range(count)]


def filter_text(some: list[tuple[str, bool, Any]], least: int) -> str:
    """Return a filter: constraints, and a level above the least unless that is negative."""
    return " AND ".join([*(text_of(*one) for one in some), *([f"level > {least}"] if least >= 0 else [])])


def holds(one: tuple[str, bool, Any], message: Any | None) -> bool:
    """Return whether a message satisfies a constraint, by rational arithmetic."""
    word, negated, asked = one
    return message is not None and word_holds(word, message, asked) != negated
