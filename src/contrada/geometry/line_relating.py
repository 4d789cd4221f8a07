"""Tell pairs of points, lines and regions by OGC's relations, exactly; with no more of a matrix than is asked for."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import ASKS_MEETING, ASKS_RELATION, LINE_DISJOINT_BIT
from contrada.geometry.arrays import frozen
from contrada.geometry.circle import SpatialValue, SpatialValues
from contrada.geometry.column import RegionArray
from contrada.geometry.crs import common_crs
from contrada.geometry.line import Line
from contrada.geometry.line_column import LineArray
from contrada.geometry.line_relation import ALL_LINE_RELATIONS, OF_RELATIONS, LineRelation
from contrada.geometry.matrix import BB, BE, BI, EB, EI, IB, IE, II, POINT_END, POINT_IN, POINT_OUT, entries_of
from contrada.geometry.point import Point, PointArray
from contrada.geometry.region import Region
from contrada.geometry.relate import ALL_ROWS, relate_rows
from contrada.geometry.relation import Relation

ShapeColumn: TypeAlias = RegionArray | PointArray | LineArray
AnyValue: TypeAlias = SpatialValue | Line  # of a message
AnyValues: TypeAlias = SpatialValues | LineArray
Rows: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.uint8]

_MET = sum(3 << 2 * entry for entry in (II, IB, BI, BB))  # bits of a matrix of which one is set if shapes meet
UNLIMITED = 1 << 62  # comparisons of a pair
_OF_RELATIONS = np.array([OF_RELATIONS[relation] for relation in Relation], np.uint8)
_INVERSE = np.array([relation.inverse for relation in LineRelation], np.uint8)
_OF_PLACES = np.zeros(3, np.uint8)
_OF_PLACES[[POINT_OUT, POINT_END, POINT_IN]] = LineRelation.DISJOINT, LineRelation.TOUCHES, LineRelation.WITHIN
# Masks that ask only whether there is a common point.
_MEETING_MASKS = (0, LINE_DISJOINT_BIT, ALL_LINE_RELATIONS ^ LINE_DISJOINT_BIT, ALL_LINE_RELATIONS)
_ASKS_MEETING = np.isin(np.arange(ALL_LINE_RELATIONS + 1), _MEETING_MASKS)


def line_relation(a: Region | Point | Line, b: Region | Point | Line) -> LineRelation:
    """Return OGC's relation of two shapes.

    >>> line_relation(Line([(0, 0), (4, 4)]), Region.box(2, 0, 6, 8))
    <LineRelation.CROSSES: 6>
    """
    common_crs(a.crs, b.crs)
    every = np.array([0b1111111 ^ 0b11], np.uint8)  # a mask that takes the whole matrix to decide
    return LineRelation(int(line_relations(a._column, b._column, ALL_ROWS, np.zeros(1, np.int64), every)[0]))


def line_relations(a: ShapeColumn, b: ShapeColumn, a_rows: Rows, b_rows: Rows, masks: Codes) -> Codes:
    """Return the relation of row a_rows[k] of `a` to row b_rows[k] of `b`, exact enough to decide masks[k].

    If `a_rows` is empty, `a` has one row, which is used for all pairs. Values are not copied, and no CRS is checked.
    """
    count = len(b_rows)
    if not count:
        return np.empty(0, np.uint8)
    if not isinstance(a, LineArray) and not isinstance(b, LineArray):
        return np.asarray(_OF_RELATIONS[relate_rows(a, b, a_rows, b_rows)])
    first = a_rows if len(a_rows) else np.zeros(count, np.int64)
    if isinstance(a, PointArray) or isinstance(b, PointArray):
        return _of_points(a, b, first, b_rows)
    is_turned = isinstance(a, RegionArray)
    found = np.empty(count, np.uint8)
    only_meeting = _ASKS_MEETING[masks]
    for until_met in (True, False):
        chosen = np.flatnonzero(only_meeting == until_met)
        if len(chosen):
            pairs = (first[chosen], b_rows[chosen]) if len(chosen) < count else (first, b_rows)
            one, other = (b, a) if is_turned else (a, b)
            asked = ASKS_MEETING if until_met else ASKS_RELATION
            codes = _matrices(one, other, *(pairs[::-1] if is_turned else pairs), asked)
            if until_met:  # any relation but disjoint will do
                found[chosen] = np.where(codes & _MET, LineRelation.TOUCHES, LineRelation.DISJOINT)
                continue
            own = _relations_of(entries_of(codes).T, isinstance(one, LineArray) and isinstance(other, LineArray))
            found[chosen] = _INVERSE[own] if is_turned else own
    return found


def _of_points(a: ShapeColumn, b: ShapeColumn, a_rows: Rows, b_rows: Rows) -> Codes:
    """Return the relations of points and lines, which may come first or second."""
    if isinstance(b, PointArray):
        return np.asarray(_INVERSE[_of_points(b, a, b_rows, a_rows)])
    assert isinstance(a, PointArray)
    assert isinstance(b, LineArray)
    places = np.empty(len(b_rows), np.uint8)
    arrays = (a.xy, *b._kernel_arrays(), frozen(a_rows), frozen(b_rows), _most_vertices(b, b_rows))
    kernels.locate_on_lines(*arrays, 0, len(places), places)
    return np.asarray(_OF_PLACES[places])


def _matrices(a: ShapeColumn, b: ShapeColumn, a_rows: Rows, b_rows: Rows, asked: int) -> NDArray[np.int64]:
    """Return the codes of the matrices of lines with regions or lines, as far as what is asked needs them."""
    assert isinstance(a, LineArray)
    assert not isinstance(b, PointArray)
    out = np.empty(len(b_rows), np.int64)
    kernel = kernels.relate_lines_to_regions if isinstance(b, RegionArray) else kernels.relate_lines
    sizes = _most_vertices(a, a_rows), _most_vertices(b, b_rows)
    arrays: tuple[Any, ...] = (*a._kernel_arrays(), *b._kernel_arrays(), frozen(a_rows), frozen(b_rows))
    kernel(*arrays, asked, UNLIMITED, *sizes, 0, len(out), out)
    return out


def _most_vertices(column: RegionArray | LineArray, rows: Rows) -> int:
    """Return the number of vertices of the largest shape among chosen rows, or of all if that is less work."""
    a = column._arrays
    if len(rows) > len(column):
        return int(np.diff(a.ring_offsets[a.region_offsets]).max(initial=1))
    starts, stops = a.ring_offsets[a.region_offsets[rows]], a.ring_offsets[a.region_offsets[rows + 1]]
    return int((stops - starts).max(initial=1))


def _relations_of(m: NDArray[np.int64], are_lines: bool) -> Codes:
    """Return the relations of lines to lines, or to regions, from the entries of their matrices."""
    is_met = (m[II] | m[IB] | m[BI] | m[BB]) > 0
    is_within, holds = (m[IE] | m[BE]) == 0, (m[EI] | m[EB]) == 0
    found = np.full(m.shape[1], LineRelation.CROSSES, np.uint8)
    if are_lines:
        found[m[II] > 1] = LineRelation.OVERLAPS
    found[is_within] = LineRelation.WITHIN
    found[holds] = LineRelation.CONTAINS
    found[is_within & holds] = LineRelation.EQUALS
    found[m[II] == 0] = LineRelation.TOUCHES
    found[~is_met] = LineRelation.DISJOINT
    return found
