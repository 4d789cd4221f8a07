"""The judge: how two regions relate and whether a region is valid, in exact rational arithmetic.

Written for tests, to be obviously right rather than fast, and to share neither code nor method with the
kernels. The edges of both regions are cut at every point where they meet, so that no edge passes through
the inside of another's piece. Just left and just right of the middle of each piece then lies a face of the
arrangement, and every face borders some piece: asking which regions hold those two points, by counting
crossings, visits every face. Nothing is rounded: coordinates are scaled to integers once, cuts are
fractions, and the step aside is infinitely small, so that it needs no size.

A region is a sequence of polygons, a polygon a pair (shell, holes), a ring a sequence of (x, y), closed or
not, of ints, floats or Fractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from math import lcm
from typing import NamedTuple, TypeAlias

Number: TypeAlias = float | Fraction
Ring: TypeAlias = Sequence[Sequence[Number]]
Polygon: TypeAlias = tuple[Ring, Sequence[Ring]]
Polygons: TypeAlias = Sequence[Polygon]

DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY = range(8)


class Edge(NamedTuple):
    """A directed segment from p to q, both integer points, and its box."""

    px: int
    py: int
    qx: int
    qy: int
    xmin: int
    ymin: int
    xmax: int
    ymax: int


Outline: TypeAlias = list[Edge]


def relate_rational(a: Polygons, b: Polygons) -> int:
    """Return the code of the one relation that holds between two valid regions."""
    scale = common_scale(a, b)
    edges_a, edges_b = boundary(a, scale), boundary(b, scale)
    faces: set[frozenset[int]] = set()
    for sides in piece_sides([edges_a, edges_b]):
        faces.update(sides)
        if len(faces) == 4:  # outside both, in a alone, in b alone, in both
            return OVERLAPS
    touch = any(cuts(e, f) for e in edges_a for f in near(e, edges_b))
    return relation_code({0, 1} in faces, {0} in faces, {1} in faces, touch)


def relation_code(common: bool, a_leaves: bool, b_leaves: bool, touch: bool) -> int:
    """Return the relation of two regions: is there a point within both, in a alone, in b alone, on both boundaries?"""
    if not common:
        return MEETS if touch else DISJOINT
    if a_leaves and b_leaves:
        return OVERLAPS
    if a_leaves:
        return COVERS if touch else CONTAINS
    if b_leaves:
        return COVERED_BY if touch else INSIDE
    return EQUALS


def point_rational(point: Sequence[Number], region: Polygons) -> int:
    """Return MEETS for a point on a valid region's boundary, INSIDE for one in its interior or DISJOINT."""
    scale = common_scale(region, [([point], [])])
    x, y = integer(point[0], scale), integer(point[1], scale)
    spot = make_edge((x, y), (x, y))
    edges = boundary(region, scale)
    if any(cuts(edge, spot) for edge in edges):
        return MEETS
    left, right = odd_crossings((x, y, 1), (0, 1), [edges])
    assert right == left, "the two half lines from a point off the boundary agree"
    return INSIDE if 0 in left else DISJOINT


def valid_rational(polygons: Polygons) -> str | None:
    """Return None for a valid region, else what is wrong: OGC's rules for Polygon and MultiPolygon.

    Rings are simple curves; holes lie within their shell, apart from each other; rings share points but no
    segment; the interior of each part is connected; parts share points but neither interior nor segment.
    """
    scale = common_scale(polygons)
    if not polygons:
        return "empty"
    for part, (shell, holes) in enumerate(polygons):
        outlines = [outline(ring, scale) for ring in (shell, *holes)]
        for ring, edges in enumerate(outlines):
            if (fault := ring_fault(edges)) is not None:
                return f"part {part}, ring {ring}: {fault}"
        if (fault := polygon_fault(outlines)) is not None:
            return f"part {part}: {fault}"
    parts = [boundary([polygon], scale) for polygon in polygons]
    for left, right in piece_sides(parts):
        if len(left) > 1 or len(right) > 1:
            return "parts overlap"
        if len(left ^ right) != 1:
            return "parts share a segment"
    return None


def ring_fault(edges: Outline) -> str | None:
    """Return why the edges are no simple closed curve, or None if they are one."""
    if len({(e.px, e.py) for e in edges}) < 3:
        return "fewer than three distinct vertices"
    last = len(edges) - 1
    for (i, e), (j, f) in combinations(enumerate(edges), 2):
        allowed = {Fraction(1)} if j == i + 1 else {Fraction(0)} if (i, j) == (0, last) else set()
        if cuts(e, f) != allowed:
            return f"edges {i} and {j} meet"
    return None


def polygon_fault(outlines: list[Outline]) -> str | None:
    """Return why simple rings, shell first, bound no valid polygon, or None if they do."""
    for left, right in piece_sides(outlines):
        for face in (left, right):
            holes = face - {0}
            if holes and 0 not in face:
                return f"ring {min(holes)} leaves the shell"
            if len(holes) > 1:
                return f"rings {sorted(holes)} overlap"
        if len(left ^ right) != 1:
            return f"rings {sorted(left ^ right)} share a segment"
    # Euler's formula counts the faces: the outside, one for each hole, and those of the interior.
    faces = count_faces(outlines)
    return None if faces == len(outlines) + 1 else "the interior is not connected"


def count_faces(outlines: list[Outline]) -> int:
    """Return how many faces closed curves that share points, but no segments, divide the plane into."""
    edges = [edge for edges in outlines for edge in edges]
    pieces = 0
    component = list(range(len(outlines)))
    owner: dict[tuple[Fraction, Fraction], int] = {}
    for ring, ring_edges in enumerate(outlines):
        for edge in ring_edges:
            places = all_cuts(edge, edges)
            pieces += len(places) - 1
            for place in places:
                node = (edge.px + place * (edge.qx - edge.px), edge.py + place * (edge.qy - edge.py))
                old, new = component[owner.setdefault(node, ring)], component[ring]
                component = [new if c == old else c for c in component]
    return pieces - len(owner) + len(set(component)) + 1


def piece_sides(groups: list[Outline]) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """Cut all edges at each other; yield, for every piece, the groups just left and just right of it."""
    edges = [edge for group in groups for edge in group]
    for edge in edges:
        dx, dy = edge.qx - edge.px, edge.qy - edge.py
        for low, high in pairwise(sorted(all_cuts(edge, edges))):
            middle = (low + high) / 2
            n, w = middle.numerator, middle.denominator
            yield odd_crossings((w * edge.px + n * dx, w * edge.py + n * dy, w), (dx, dy), groups)


def odd_crossings(
    middle: tuple[int, int, int], direction: tuple[int, int], groups: list[Outline]
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the groups whose edges a half line left from a point crosses oddly often; then to its right.

    The point is (x / w, y / w), the half lines are at right angles to the direction. Edges through the
    point itself count for neither: they must run along the direction.
    """
    (x, y, w), (dx, dy) = middle, direction
    left: set[int] = set()
    right: set[int] = set()
    for group, edges in enumerate(groups):
        for px, py, qx, qy, *_ in edges:
            px, py, qx, qy = w * px - x, w * py - y, w * qx - x, w * qy - y
            ahead_p, ahead_q = px * dx + py * dy, qx * dx + qy * dy
            if (ahead_p > 0) == (ahead_q > 0):
                continue
            aside_p, aside_q = dx * py - dy * px, dx * qy - dy * qx
            aside = aside_p * ahead_q - aside_q * ahead_p  # where the edge crosses, times ahead_q - ahead_p
            if aside:
                side = left if (aside > 0) == (ahead_q > ahead_p) else right
                side ^= {group}
    return frozenset(left), frozenset(right)


def all_cuts(edge: Edge, others: list[Edge]) -> set[Fraction]:
    """Return the places along an edge, 0 and 1 included, where it meets any of the edges."""
    places = {Fraction(0), Fraction(1)}
    for other in near(edge, others):
        places |= cuts(edge, other)
    return places


def near(edge: Edge, others: list[Edge]) -> list[Edge]:
    """Return those of the others whose box shares a point with the edge's: all that can meet it."""
    _, _, _, _, xmin, ymin, xmax, ymax = edge
    return [f for f in others if f[4] <= xmax and f[6] >= xmin and f[5] <= ymax and f[7] >= ymin]


def cuts(e: Edge, f: Edge) -> set[Fraction]:
    """Return where along e (0 its start, 1 its end) it meets f: a point, or both ends of what they share."""
    ex, ey, fx, fy = e.qx - e.px, e.qy - e.py, f.qx - f.px, f.qy - f.py
    gx, gy = f.px - e.px, f.py - e.py
    slope = ex * fy - ey * fx
    if slope:
        on_e, on_f = gx * fy - gy * fx, gx * ey - gy * ex  # both times the slope
        if slope < 0:
            on_e, on_f, slope = -on_e, -on_f, -slope
        return {Fraction(on_e, slope)} if 0 <= on_e <= slope and 0 <= on_f <= slope else set()
    if gx * ey != gy * ex:
        return set()
    length = ex * ex + ey * ey
    ends = {Fraction(gx * ex + gy * ey, length), Fraction((gx + fx) * ex + (gy + fy) * ey, length)}
    first, last = max(min(ends), Fraction(0)), min(max(ends), Fraction(1))
    return {first, last} if first <= last else set()


def boundary(polygons: Polygons, scale: int) -> Outline:
    """Return the edges of all rings."""
    return [edge for shell, holes in polygons for ring in (shell, *holes) for edge in outline(ring, scale)]


def outline(ring: Ring, scale: int) -> Outline:
    """Return the edges of a ring, closed or not, without those of length zero."""
    nodes = [(integer(x, scale), integer(y, scale)) for x, y in ring]
    return [make_edge(p, q) for p, q in zip(nodes, nodes[1:] + nodes[:1], strict=True) if p != q]


def make_edge(p: tuple[int, int], q: tuple[int, int]) -> Edge:
    """Return the edge from p to q."""
    return Edge(*p, *q, min(p[0], q[0]), min(p[1], q[1]), max(p[0], q[0]), max(p[1], q[1]))


def integer(value: Number, scale: int) -> int:
    """Return value * scale, which must be an integer."""
    scaled = Fraction(value) * scale
    assert scaled.denominator == 1
    return scaled.numerator


def common_scale(*regions: Polygons) -> int:
    """Return the smallest factor that makes integers of all coordinates."""
    rings = [ring for region in regions for shell, holes in region for ring in (shell, *holes)]
    return lcm(*{Fraction(value).denominator for ring in rings for point in ring for value in point})
