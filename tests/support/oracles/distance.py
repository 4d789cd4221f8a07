"""The judge of distances: the square of the distance of two shapes as a fraction, and the doubles around its root.

Written for tests, to be obviously right; it shares no code with the kernels. Coordinates become integers in a common
scale. The distance of two segments that do not cross is that of an end of one from the other, whose nearest point is
computed as a fraction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from generators.rings import polygons
from oracles.rational import boundary, common_scale

Vertex: TypeAlias = tuple[int, int]
Segment: TypeAlias = tuple[Vertex, Vertex]


def square_of_distance(a: Any, b: Any) -> Fraction:
    """Return the square of the distance of two Shapely shapes: points, and lines and polygons of one or many parts."""
    shapes = [_polygons(shape) for shape in (a, b)]
    scale = common_scale(*shapes)
    first, second = (_segments(shape, kind, scale) for shape, kind in ((shapes[0], a), (shapes[1], b)))
    if ("Polygon" in a.geom_type and _holds_one(first, second)) or (
        "Polygon" in b.geom_type and _holds_one(second, first)
    ):
        return Fraction(0)
    best: tuple[int, int] | None = None
    for one in first:
        for other in second:
            found = _of_segments(one, other)
            if best is None or found[0] * best[1] < best[0] * found[1]:
                best = found
        if best == (0, 1):
            break
    assert best is not None
    return Fraction(*best) / scale**2


def is_within(square: Fraction, distance: float, further: float = 0.0) -> bool:
    """Return whether a distance with this square is at most the exact sum of two doubles."""
    asked = Fraction(distance) + Fraction(further)
    return asked >= 0 and square <= asked * asked


def doubles_around_root(square: Fraction) -> tuple[float, float, float]:
    """Return the double next to the root of a fraction, and the doubles below and above it."""
    if square == 0:
        return 0.0, 0.0, 5e-324
    shift = 120 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    scaled = square * Fraction(4) ** shift
    root = float(Fraction(math.isqrt(scaled.numerator // scaled.denominator)) / Fraction(2) ** shift)
    return root, math.nextafter(root, 0.0), math.nextafter(root, math.inf)


def _polygons(shape: Any) -> Any:
    """Return the coordinates of a shape as the judge of regions reads them; the parts of a line as shells."""
    if "Polygon" in shape.geom_type:
        return polygons(shape)
    parts = getattr(shape, "geoms", [shape])
    return [(list(part.coords), []) for part in parts]


def _segments(shape: Any, given: Any, scale: int) -> list[Segment]:
    if given.geom_type == "Point":
        (((x, y),), _) = shape[0]
        spot = int(Fraction(x) * scale), int(Fraction(y) * scale)
        return [(spot, spot)]
    if "Line" in given.geom_type:
        parts = [[(int(Fraction(x) * scale), int(Fraction(y) * scale)) for x, y in part] for part, _ in shape]
        return [edge for part in parts for edge in pairwise(part)]
    return [((edge.px, edge.py), (edge.qx, edge.qy)) for edge in boundary(shape, scale)]


def _holds_one(outline: Sequence[Segment], other: Iterable[Segment]) -> bool:
    """Return whether an outline holds, inside, an end of one of the other segments; on its edges does not matter."""
    return any(_is_inside(outline, start) for start, _ in other)


def _is_inside(outline: Sequence[Segment], spot: Vertex) -> bool:
    x, y = spot
    inside = False
    for (px, py), (qx, qy) in outline:
        if (py > y) != (qy > y):
            side = (qx - px) * (y - py) - (x - px) * (qy - py)
            inside ^= side > 0 if qy > py else side < 0
    return inside


def _of_segments(one: Segment, other: Segment) -> tuple[int, int]:
    """Return the square of the distance of two segments as a fraction."""
    if _cross(one, other):
        return 0, 1
    ends = [(spot, other) for spot in one] + [(spot, one) for spot in other]
    best = _from_segment(*ends[0])
    for spot, segment in ends[1:]:
        found = _from_segment(spot, segment)
        if found[0] * best[1] < best[0] * found[1]:
            best = found
    return best


def _from_segment(spot: Vertex, segment: Segment) -> tuple[int, int]:
    (ax, ay), (bx, by) = segment
    ux, uy, vx, vy = bx - ax, by - ay, spot[0] - ax, spot[1] - ay
    length = ux * ux + uy * uy
    along = ux * vx + uy * vy
    if along <= 0 or length == 0:
        return vx * vx + vy * vy, 1
    if along >= length:
        return (spot[0] - bx) ** 2 + (spot[1] - by) ** 2, 1
    # The nearest point is a + along / length * u; the numerators of its distance along both axes.
    x, y = vx * length - along * ux, vy * length - along * uy
    return x * x + y * y, length * length


def _cross(one: Segment, other: Segment) -> bool:
    """Return whether two segments cross within both."""
    return all(_turn(*s, *t[:1]) * _turn(*s, *t[1:]) < 0 for s, t in ((one, other), (other, one)))


def _turn(a: Vertex, b: Vertex, c: Vertex) -> int:
    turn = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (turn > 0) - (turn < 0)
