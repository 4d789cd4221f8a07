"""DE-9IM matrices and OGC's predicates between points, lines and regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.arguments import checks_arguments
from contrada.codes import ASKS_MATRIX, ASKS_MEETING
from contrada.errors import ArgumentError, LimitError
from contrada.geometry.arrays import frozen
from contrada.geometry.circle import Circle
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import common_crs
from contrada.geometry.line import Line
from contrada.geometry.line_column import LineArray
from contrada.geometry.point import Point, PointArray
from contrada.geometry.pool import run_sliced
from contrada.geometry.reading import shape_of
from contrada.geometry.region import Region
from contrada.geometry.relate import ALL_ROWS, broadcast_length, relate
from contrada.geometry.relation import Relation, RelationSet
from contrada.limits import limit, variable

Column: TypeAlias = RegionArray | LineArray | PointArray
Codes: TypeAlias = NDArray[np.int64]

# Entries of a matrix, in the order of its text. A code has two bits for each: 0 for F, otherwise the dimension plus 1.
II, IB, IE, BI, BB, BE, EI, EB, EE = range(9)
_TRANSPOSED = (II, BI, EI, IB, BB, EB, IE, BE, EE)
_SHIFTS = 2 * np.arange(9)
_LETTERS = np.array(list("F012"))
COMPARISONS_PER_VERTEX = 256  # a search in the edge index takes about 80
POINT_OUT, POINT_END, POINT_IN = 0, 1, 2  # answers of kernels.locate_on_lines


@checks_arguments
def de9im(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return the DE-9IM matrix of `a` and `b`, exactly: text of nine characters.

    The characters are the dimensions (0, 1, 2, or F for none) of what interior, boundary and exterior of `a` have in
    common with interior, boundary and exterior of `b`: II, IB, IE, BI, BB, BE, EI, EB, EE. Both may be points, lines
    and regions, and columns of these, which broadcast like NumPy arrays and give an array of texts. The boundary of a
    line follows OGC's mod-2 rule. Geometry of Shapely, GeoPandas and GeoArrow, and objects with `__geo_interface__`,
    are accepted too. Nothing is rounded.

    >>> from contrada import Line, Region
    >>> de9im(Line([(0, 0), (4, 4)]), Region.box(2, 0, 6, 8))
    '1010F0212'
    >>> de9im(Line([(0, 0), (2, 2)]), Line([(0, 2), (2, 0)]))
    '0F1FF0102'
    """
    _refuse_circles(a, b)
    codes, is_single = _codes(a, b, threads, until_met=False)
    texts = _LETTERS[entries_of(codes)].view("U9").reshape(-1)
    return str(texts[0]) if is_single else texts


def _predicate(holds: Callable[[NDArray[np.int64], int, int], NDArray[np.bool_]], until_met: bool = False) -> Any:
    def evaluate(a: Any, b: Any, threads: int | None) -> Any:
        _refuse_circles(a, b)
        first, second = shape_of(a), shape_of(b)
        codes, is_single = _codes(first, second, threads, until_met)
        answers = holds(entries_of(codes).T, _dimension(first), _dimension(second))
        return bool(answers[0]) if is_single else answers

    return evaluate


def _refuse_circles(a: Any, b: Any) -> None:
    if isinstance(a, Circle) or isinstance(b, Circle):
        needed = "circles take part in intersects, disjoint, within, relate and within_distance"
        raise ArgumentError(f"{needed}; this needs a polygon, such as circle.to_shapely()")


def _relation_of_circles(a: Any, b: Any, threads: int | None, asked: RelationSet) -> Any:
    """Return whether a relation is among those asked for, where one of both is a circle."""
    found = relate(a, b, threads=threads)
    return found in asked if isinstance(found, Relation) else np.isin(found, list(asked))


def _have_common_point(m: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray((m[II] | m[IB] | m[BI] | m[BB]) > 0)


def _is_inside(m: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray((m[IE] | m[BE]) == 0)


def _holds_crosses(m: NDArray[np.int64], a: int, b: int) -> NDArray[np.bool_]:
    if a == b:
        return np.asarray(m[II] == 1) if a == 1 else np.zeros(m.shape[1], bool)
    return np.asarray((m[II] > 0) & ((m[IE] if a < b else m[EI]) > 0))


def _holds_overlaps(m: NDArray[np.int64], a: int, b: int) -> NDArray[np.bool_]:
    if a != b:
        return np.zeros(m.shape[1], bool)
    return np.asarray((m[II] == a + 1) & (m[IE] > 0) & (m[EI] > 0))


_intersects = _predicate(lambda m, a, b: _have_common_point(m), until_met=True)
_touches = _predicate(lambda m, a, b: (m[II] == 0) & _have_common_point(m))
_within = _predicate(lambda m, a, b: (m[II] > 0) & _is_inside(m))
_covered_by = _predicate(lambda m, a, b: _have_common_point(m) & _is_inside(m))
_equals = _predicate(lambda m, a, b: (m[II] > 0) & _is_inside(m) & ((m[EI] | m[EB]) == 0))
_crosses = _predicate(_holds_crosses)
_overlaps = _predicate(_holds_overlaps)


@checks_arguments
def intersects(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `a` and `b` have a point in common; arguments as for `de9im`.

    >>> from contrada import Line, Region
    >>> intersects(Line([(0, 0), (4, 4)]), Region.box(4, 4, 6, 6))
    True
    """
    if isinstance(a, Circle) or isinstance(b, Circle):
        return _relation_of_circles(a, b, threads, RelationSet.S_INTERSECTS)
    return _intersects(a, b, threads)


@checks_arguments
def disjoint(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `a` and `b` have no point in common; arguments as for `de9im`.

    >>> from contrada import Line, Region
    >>> disjoint(Line([(0, 0), (3, 4)]), Region.box(4, 4, 6, 6))
    True
    """
    if isinstance(a, Circle) or isinstance(b, Circle):
        return _relation_of_circles(a, b, threads, RelationSet.S_DISJOINT)
    return not found if isinstance(found := _intersects(a, b, threads), bool) else ~found


@checks_arguments
def touches(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `a` and `b` have points in common, but no points of both interiors; arguments as for `de9im`.

    >>> from contrada import Line, Region
    >>> touches(Line([(4, 0), (4, 9)]), Region.box(0, 0, 4, 4))
    True
    """
    return _touches(a, b, threads)


@checks_arguments
def crosses(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where a line goes into and out of a region, or two lines cross in points only; see `de9im`.

    With shapes of two dimensions, the interior of the smaller one is partly in the interior of the other, and partly
    outside. Two lines cross where the interiors have points, but no piece, in common. Two points or two regions never
    cross.

    >>> from contrada import Line, Region
    >>> crosses(Line([(0, 0), (4, 4)]), Region.box(2, 0, 6, 8)), crosses(Line([(3, 3), (4, 4)]), Region.box(2, 0, 6, 8))
    (True, False)
    """
    return _crosses(a, b, threads)


@checks_arguments
def overlaps(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where shapes of one dimension share a part of that dimension, and each leaves the other.

    Arguments as for `de9im`.

    >>> from contrada import Line
    >>> overlaps(Line([(0, 0), (4, 0)]), Line([(2, 0), (6, 0)]))
    True
    """
    return _overlaps(a, b, threads)


@checks_arguments
def within(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `a` has no point outside of `b`, and the interiors meet; arguments as for `de9im`.

    A line along the boundary of a region is covered by the region, but not within it.

    >>> from contrada import Line, Region
    >>> within(Line([(0, 0), (4, 4)]), Region.box(0, 0, 4, 4)), within(Line([(0, 0), (4, 0)]), Region.box(0, 0, 4, 4))
    (True, False)
    """
    if isinstance(a, Circle) or isinstance(b, Circle):
        return _relation_of_circles(a, b, threads, RelationSet.S_WITHIN)
    return _within(a, b, threads)


@checks_arguments
def contains(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `b` is within `a`.

    >>> from contrada import Line, Point
    >>> contains(Line([(0, 0), (4, 4)]), Point(1, 1)), contains(Line([(0, 0), (4, 4)]), Point(0, 0))
    (True, False)
    """
    return _within(b, a, threads)


@checks_arguments
def covered_by(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `a` has no point outside of `b`; arguments as for `de9im`.

    >>> from contrada import Line, Region
    >>> covered_by(Line([(0, 0), (4, 0)]), Region.box(0, 0, 4, 4))
    True
    """
    return _covered_by(a, b, threads)


@checks_arguments
def covers(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `b` is covered by `a`.

    >>> from contrada import Line, Point
    >>> covers(Line([(0, 0), (4, 4)]), Point(0, 0))
    True
    """
    return _covered_by(b, a, threads)


@checks_arguments
def equals(a: Any, b: Any, *, threads: int | None = None) -> Any:
    """Return True where `a` and `b` have the same points, whatever their vertices; arguments as for `de9im`.

    >>> from contrada import Line
    >>> equals(Line([(0, 0), (4, 0)]), Line([(4, 0), (1, 0)], [(1, 0), (0, 0)]))
    True
    """
    return _equals(a, b, threads)


def _dimension(value: Any) -> int:
    return 0 if isinstance(value, (Point, PointArray)) else 1 if isinstance(value, (Line, LineArray)) else 2


def entries_of(codes: Codes) -> NDArray[np.int64]:
    """Return the entries of matrices, (n, 9): 0 for F, otherwise the dimension plus 1."""
    return codes[:, np.newaxis] >> _SHIFTS & 3


def _codes(a: Any, b: Any, threads: int | None, until_met: bool) -> tuple[Codes, bool]:
    """Return the codes of the matrices, and whether both values are single.

    With `until_met` a code is only certain to show whether there is a common point.
    """
    first, second = shape_of(a), shape_of(b)
    is_single = isinstance(first, (Region, Point, Line)) and isinstance(second, (Region, Point, Line))
    one = first._column if isinstance(first, (Region, Point, Line)) else first
    other = second._column if isinstance(second, (Region, Point, Line)) else second
    common_crs(one.crs, other.crs)
    return matrix_codes(one, other, threads, until_met), is_single


def matrix_codes(a: Column, b: Column, threads: int | None = None, until_met: bool = False) -> Codes:
    """Return the codes of the matrices of two columns of one CRS, which broadcast."""
    rows = broadcast_length(a, b)
    if rows == 0:
        return np.empty(0, np.int64)
    if _dimension(a) > _dimension(b):
        return _transposed(matrix_codes(b, a, threads, until_met))
    if isinstance(a, PointArray):
        return _point_codes(a, b, rows, threads)
    out = np.empty(rows, np.int64)
    sizes = _most_vertices(a), _most_vertices(b)
    most = _most_comparisons(*sizes)
    if isinstance(a, LineArray):
        assert isinstance(b, (LineArray, RegionArray)), "points come first"
        arrays = (*a._kernel_arrays(), *b._kernel_arrays())
        kernel = kernels.relate_lines_to_regions if isinstance(b, RegionArray) else kernels.relate_lines
        asked = ASKS_MEETING if until_met else ASKS_MATRIX
        run_sliced(
            lambda start, stop: kernel(*arrays, ALL_ROWS, ALL_ROWS, asked, most, *sizes, start, stop, out),
            rows,
            threads,
        )
        return _checked(out)
    assert isinstance(b, RegionArray)
    return _region_codes(a, b, rows, threads)


def _most_vertices(column: Column) -> int:
    """Return the number of vertices of the largest shape of a column."""
    assert not isinstance(column, PointArray)
    a = column._arrays
    return int(np.diff(a.ring_offsets[a.region_offsets]).max(initial=1))


def _most_comparisons(*vertices: int) -> int:
    """Return how many comparisons a pair of shapes may take, by the vertices of the largest of each column."""
    return limit("comparisons") + COMPARISONS_PER_VERTEX * sum(vertices)


def _checked(codes: Codes) -> Codes:
    """Return the codes; a pair that took too many comparisons is a LimitError that names its row."""
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise LimitError(
            f"row {row}: too many edges are near each other: more than {limit('comparisons'):,} comparisons beyond"
            f" {COMPARISONS_PER_VERTEX} for each vertex ({variable('comparisons')})"
        )
    return codes


def _transposed(codes: Codes) -> Codes:
    return np.asarray((entries_of(codes)[:, _TRANSPOSED] << _SHIFTS).sum(axis=1))


def _code(**entries: int | NDArray[Any]) -> Any:
    """Return codes from entries by name, each a dimension plus 1."""
    places = dict(zip(("II", "IB", "IE", "BI", "BB", "BE", "EI", "EB", "EE"), _SHIFTS.tolist(), strict=True))
    return sum(np.asarray(value, np.int64) << places[name] for name, value in entries.items())


def _outline_arrays(a: RegionArray) -> tuple[NDArray[Any], ...]:
    """Return the boundaries of regions as kernels take lines: closed, so without boundaries of their own."""
    xy, rings, regions, _, bounds, boxes, chains = a._kernel_arrays()
    return xy, rings, regions, bounds, boxes, chains, frozen(np.empty((0, 2))), frozen(np.zeros(len(a) + 1, np.int64))


def _region_codes(a: RegionArray, b: RegionArray, rows: int, threads: int | None) -> Codes:
    """Return the codes of two columns of regions, from their relations and from where their boundaries run."""
    relations = np.broadcast_to(relate(a, b, threads=threads), rows)
    of_a, of_b = np.empty(rows, np.int64), np.empty(rows, np.int64)
    most = _most_comparisons(_most_vertices(a), _most_vertices(b))
    for line, region, out in ((a, b, of_a), (b, a, of_b)):
        arrays = (*_outline_arrays(line), *region._kernel_arrays())

        sizes = _most_vertices(line), _most_vertices(region)

        def relate_slice(start: int, stop: int, arrays: Any = arrays, sizes: Any = sizes, out: Any = out) -> None:
            kernels.relate_lines_to_regions(*arrays, ALL_ROWS, ALL_ROWS, ASKS_MATRIX, most, *sizes, start, stop, out)

        run_sliced(relate_slice, rows, threads)
        _checked(out)
    outline_a, outline_b = entries_of(of_a).T, entries_of(of_b).T
    apart = np.isin(relations, [Relation.DISJOINT, Relation.MEETS])
    a_inside = np.isin(relations, [Relation.EQUALS, Relation.INSIDE, Relation.COVERED_BY])
    b_inside = np.isin(relations, [Relation.EQUALS, Relation.CONTAINS, Relation.COVERS])
    return np.asarray(
        _code(
            II=np.where(apart, 0, 3), IB=outline_b[II], IE=np.where(a_inside, 0, 3),
            BI=outline_a[II], BB=outline_a[IB], BE=outline_a[IE],
            EI=np.where(b_inside, 0, 3), EB=outline_b[IE], EE=3,
        )
    )  # fmt: skip


def _point_codes(a: PointArray, b: Column, rows: int, threads: int | None) -> Codes:
    """Return the codes of points with points, lines or regions; the boundary of a point is empty."""
    if isinstance(b, LineArray):
        places = np.empty(rows, np.uint8)
        arrays = (a.xy, *b._kernel_arrays(), ALL_ROWS, ALL_ROWS, _most_vertices(b))
        run_sliced(lambda start, stop: kernels.locate_on_lines(*arrays, start, stop, places), rows, threads)
        has_boundary = np.broadcast_to(np.diff(b._boundaries()[1]) > 0, rows)  # never one point: the count is even
        inside, on_boundary = places == POINT_IN, places == POINT_END
        return np.asarray(_code(II=inside, IB=on_boundary, IE=places == POINT_OUT, EI=2, EB=has_boundary, EE=3))
    relations = np.broadcast_to(relate(a, b, threads=threads), rows)
    if isinstance(b, PointArray):
        same = relations == Relation.EQUALS
        return np.asarray(_code(II=same, IE=~same, EI=~same, EE=3))
    inside, on_boundary = relations == Relation.INSIDE, relations == Relation.MEETS
    return np.asarray(_code(II=inside, IB=on_boundary, IE=relations == Relation.DISJOINT, EI=3, EB=2, EE=3))
