"""Composition table: the relations of x to z that follow from the relations of x to y and of y to z."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checks_arguments
from contrada.geometry.line_relation import LineRelation, line_mask_of
from contrada.geometry.relation import Relation, RelationSet, relation_set

# Rows: the relation of x to y; columns: the relation of y to z; in the order DC EC PO EQ NTPP NTPPi TPPi TPP of
# `Relation` (Randell, Cui and Cohn 1992). Each cell names the relations of x to z that can hold. D disjoint, M meets, O
# overlaps, E equals, I inside, C contains, V covers, B covered-by, * any.
_TABLE = """
*       DMOIB   DMOIB   D   DMOIB     D       D         DMOIB
DMOCV   DMOEVB  DMOIB   M   OIB       D       DM        MOIB
DMOCV   DMOCV   *       O   OIB       DMOCV   DMOCV     OIB
D       M       O       E   I         C       V         B
D       D       DMOIB   I   I         *       DMOIB     I
DMOCV   OCV     OCV     C   EOICVB    C       C         OCV
DMOCV   MOCV    OCV     V   OIB       C       CV        EOVB
D       DM      DMOIB   B   I         DMOCV   DMOEVB    IB
"""
_MASKS = {letter: 1 << relation for letter, relation in zip("DMOEICVB", Relation, strict=True)} | {"*": 255}
_ROWS = [[sum(map(_MASKS.__getitem__, cell)) for cell in line.split()] for line in _TABLE.strip().splitlines()]
TABLE: NDArray[np.uint8] = np.array(_ROWS, np.uint8)
TABLE.setflags(write=False)

# Lines x against y and z, which are regions or points. Rows: the relation of y to z; columns: the relation of x to y,
# which is D, T, X or W for a region y, and D, T or C for a point. Each cell names the relations of x to z that can
# hold: D disjoint, T touches, X crosses, W within, C contains.
_LINE_TABLES = {
    (False, False): """
DISJOINT    DTXW  DTX   DTX   D
MEETS       DTXW  DTXW  DTX   DT
OVERLAPS    DTXW  DTXW  DTXW  DTXW
EQUALS      D     T     X     W
INSIDE      DTXW  XW    XW    W
CONTAINS    D     D     DTX   DTXW
COVERS      D     DT    DTX   DTXW
COVERED_BY  DTXW  TXW   XW    W
""",
    (True, False): """
DISJOINT    DTXW  DTX   DTX
MEETS       DTXW  TXW   TXW
INSIDE      DTXW  XW    XW
""",
    (False, True): """
DISJOINT    DTC   DTC   DTC   D
MEETS       D     DTC   DTC   DTC
CONTAINS    D     D     DTC   DTC
""",
    (True, True): """
DISJOINT    DTC   DTC   DTC
EQUALS      D     T     C
""",
}
_LINE_BITS = {
    "D": 1 << LineRelation.DISJOINT, "T": 1 << LineRelation.TOUCHES, "X": 1 << LineRelation.CROSSES,
    "W": 1 << LineRelation.WITHIN, "C": 1 << LineRelation.CONTAINS,
}  # fmt: skip
_LINE_COLUMNS = {False: "DTXW", True: "DTC"}  # possible relations of a line to a region, and to a point


def _line_mask(letters: str) -> int:
    return sum(map(_LINE_BITS.__getitem__, letters))


# By whether y and z are points, and the relation of y to z: what follows from each relation of x to y.
LINE_TABLES: dict[tuple[bool, bool], dict[Relation, dict[int, int]]] = {
    kinds: {
        Relation[name]: {
            _LINE_BITS[letter]: _line_mask(cell) for letter, cell in zip(_LINE_COLUMNS[kinds[0]], cells, strict=True)
        }
        for name, *cells in map(str.split, text.strip().splitlines())
    }
    for kinds, text in _LINE_TABLES.items()
}
# The line relations for which a mask of the eight relations holds of a line, to a region and to a point.
LINE_MASKS: NDArray[np.uint8] = np.array(
    [[line_mask_of(mask) & _line_mask(_LINE_COLUMNS[is_point]) for mask in range(256)] for is_point in (False, True)],
    np.uint8,
)
LINE_MASKS.setflags(write=False)


@cache
def mask_table() -> NDArray[np.uint8]:
    """Return the table over masks: entry [p, q] is the mask of relations of x to z for x in p to y and y in q to z."""
    is_member = (np.arange(256)[:, None] >> np.arange(8) & 1).astype(bool)
    rows = np.bitwise_or.reduce(np.where(is_member[:, :, None], TABLE, 0), axis=1)  # with a single relation
    table: NDArray[np.uint8] = np.bitwise_or.reduce(np.where(is_member, rows[:, None, :], 0), axis=2)
    table.setflags(write=False)
    return table


@checks_arguments
def compose(first: Relation | RelationSet, second: Relation | RelationSet) -> RelationSet:
    """Return the relations of x to z that can hold if x is in `first` to y and y is in `second` to z.

    Sound for all regions, with holes and several parts, and for points.

    >>> compose(Relation.INSIDE, Relation.MEETS)
    RelationSet(DISJOINT)
    >>> compose(Relation.EQUALS, RelationSet.S_WITHIN) == RelationSet.S_WITHIN
    True
    """
    return RelationSet.from_mask(int(mask_table()[relation_set(first).mask, relation_set(second).mask]))


@cache
def covering_relations() -> NDArray[np.uint8]:
    """Return the relations of b to a for which the constraint (x in p to a) covers the constraint (x in q to b).

    Entry [p, q] is the mask of these relations. Sound for all regions and points; for lines x too with
    `covering_by_kinds`.

    >>> within, intersects = RelationSet.S_WITHIN.mask, RelationSet.S_INTERSECTS.mask
    >>> RelationSet.from_mask(int(covering_relations()[intersects, within])) == RelationSet.S_WITHIN
    True
    """
    return _relations_where(lambda first, composed: composed & ~first == 0)


@cache
def covering_by_kinds() -> NDArray[np.uint8]:
    """Return `covering_relations` for all x, lines too: entry [i, j, p, q]; i is 1 if a is a point, and j if b is.

    >>> within, inside = RelationSet.S_WITHIN.mask, RelationSet(Relation.INSIDE).mask
    >>> covering_relations()[inside, within].item(), covering_by_kinds()[0, 0, inside, within].item()
    (16, 0)
    """
    return _by_kinds(covering_relations(), lambda first, composed: composed & ~first == 0)


@cache
def conflicting_by_kinds() -> NDArray[np.uint8]:
    """Return, as `covering_by_kinds`, the relations of b to a for which no x satisfies both constraints.

    >>> within = RelationSet.S_WITHIN.mask
    >>> RelationSet.from_mask(int(conflicting_by_kinds()[0, 0, within, within]))
    RelationSet(DISJOINT, MEETS)
    """

    def exclude_each_other(first: NDArray[np.uint8], composed: NDArray[np.uint8]) -> NDArray[np.bool_]:
        return np.asarray(composed & first == 0)

    return _by_kinds(_relations_where(exclude_each_other), exclude_each_other)


def masks_agree_on_lines(merged: int, first: int, second: int, is_union: bool) -> bool:
    """Return True if lines satisfy the merged mask just where they satisfy one of two masks, or both.

    >>> meets, inside = RelationSet(Relation.MEETS).mask, RelationSet(Relation.INSIDE).mask
    >>> masks_agree_on_lines(meets | inside, meets, inside, True)
    True
    """
    one, other = LINE_MASKS[:, first], LINE_MASKS[:, second]
    return bool((LINE_MASKS[:, merged] == (one | other if is_union else one & other)).all())


Holds = Callable[[NDArray[np.uint8], NDArray[np.uint8]], NDArray[np.bool_]]


def _relations_where(holds: Holds) -> NDArray[np.uint8]:
    """Return masks of the relations for which `holds` is true of the first mask and the composition with the second."""
    first = np.arange(256, dtype=np.uint8)[:, None]
    found = np.zeros((256, 256), np.uint8)
    for relation in Relation:
        composed = mask_table()[:, 1 << relation][None, :]
        found |= holds(first, composed).astype(np.uint8) << np.uint8(relation)
    found.setflags(write=False)
    return found


def _by_kinds(relations: NDArray[np.uint8], holds: Holds) -> NDArray[np.uint8]:
    """Return those of the relations for which `holds` is also true of the line relations, by kinds of a and b."""
    found = np.zeros((2, 2, 256, 256), np.uint8)
    for (is_point, to_point), table in LINE_TABLES.items():
        for relation, cells in table.items():
            composed = np.zeros(256, np.uint8)
            for bit, cell in cells.items():
                composed |= np.where(LINE_MASKS[int(is_point)] & bit, cell, 0).astype(np.uint8)
            is_true = holds(LINE_MASKS[int(to_point)][:, None], composed[None, :])
            found[int(to_point), int(is_point)] |= is_true.astype(np.uint8) << np.uint8(relation)
    found &= relations
    found.setflags(write=False)
    return found
