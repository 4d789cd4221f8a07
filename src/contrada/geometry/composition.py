"""Composition table: the relations of x to z that follow from the relations of x to y and of y to z."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from contrada.arguments import checks_arguments
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

    Entry [p, q] is the mask of these relations. Sound for all regions and points.

    >>> within, intersects = RelationSet.S_WITHIN.mask, RelationSet.S_INTERSECTS.mask
    >>> RelationSet.from_mask(int(covering_relations()[intersects, within])) == RelationSet.S_WITHIN
    True
    """
    return _relations_where(lambda first, composed: composed & ~first == 0)


@cache
def conflicting_relations() -> NDArray[np.uint8]:
    """Return, for two constraints as in `covering_relations`, the relations of b to a for which no x satisfies both.

    >>> within = RelationSet.S_WITHIN.mask
    >>> RelationSet.from_mask(int(conflicting_relations()[within, within]))
    RelationSet(DISJOINT, MEETS)
    """
    return _relations_where(lambda first, composed: composed & first == 0)


def _relations_where(holds: Callable[[NDArray[np.uint8], NDArray[np.uint8]], NDArray[np.bool_]]) -> NDArray[np.uint8]:
    """Return masks of the relations for which `holds` is true of the first mask and the composition with the second."""
    first = np.arange(256, dtype=np.uint8)[:, None]
    found = np.zeros((256, 256), np.uint8)
    for relation in Relation:
        composed = mask_table()[:, 1 << relation][None, :]
        found |= holds(first, composed).astype(np.uint8) << np.uint8(relation)
    found.setflags(write=False)
    return found
