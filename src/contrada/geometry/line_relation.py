"""OGC's relations of two shapes of any dimensions, and sets of them: the spatial operators where a line takes part."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from operator import index
from typing import ClassVar

from contrada import codes
from contrada.arguments import checks_methods
from contrada.errors import ArgumentError
from contrada.geometry.immutable import Immutable
from contrada.geometry.relation import Relation, RelationSet


class LineRelation(IntEnum):
    """OGC's relations between points, lines and regions; exactly one holds. Read "message value RELATION constant".

    `WITHIN` and `CONTAINS` leave out equal shapes.

    >>> LineRelation.WITHIN.inverse
    <LineRelation.CONTAINS: 5>
    """

    DISJOINT = int(codes.LINE_DISJOINT)
    TOUCHES = int(codes.LINE_TOUCHES)
    OVERLAPS = int(codes.LINE_OVERLAPS)
    EQUALS = int(codes.LINE_EQUALS)
    WITHIN = int(codes.LINE_WITHIN)
    CONTAINS = int(codes.LINE_CONTAINS)
    CROSSES = int(codes.LINE_CROSSES)

    @property
    def inverse(self) -> LineRelation:
        """The relation of b to a if this is the relation of a to b."""
        return _INVERSE.get(self, self)

    def __str__(self) -> str:
        return self.name.lower()

    def __or__(self, other: int) -> LineRelationSet:  # type: ignore[override]
        """Return the set of this relation and another relation or set."""
        return LineRelationSet(self) | other

    def __invert__(self) -> LineRelationSet:  # type: ignore[override]
        """Return all relations but this one."""
        return ~LineRelationSet(self)


_INVERSE = {LineRelation.WITHIN: LineRelation.CONTAINS, LineRelation.CONTAINS: LineRelation.WITHIN}
ALL_LINE_RELATIONS = (1 << len(LineRelation)) - 1


@checks_methods("__init__", "from_mask")
class LineRelationSet(Immutable):
    """Any subset of `LineRelation`, stored as a 7-bit mask: an operator for lines. Immutable.

    OGC's eight words are sets: `S_WITHIN` has the member `EQUALS` too.

    >>> LineRelation.CROSSES | LineRelation.TOUCHES
    LineRelationSet(TOUCHES, CROSSES)
    >>> ~LineRelationSet.S_INTERSECTS == LineRelationSet.S_DISJOINT
    True
    """

    __slots__ = ("_mask",)
    _mask: int

    S_DISJOINT: ClassVar[LineRelationSet]
    S_TOUCHES: ClassVar[LineRelationSet]
    S_CROSSES: ClassVar[LineRelationSet]
    S_OVERLAPS: ClassVar[LineRelationSet]
    S_EQUALS: ClassVar[LineRelationSet]
    S_WITHIN: ClassVar[LineRelationSet]
    S_CONTAINS: ClassVar[LineRelationSet]
    S_INTERSECTS: ClassVar[LineRelationSet]

    def __init__(self, *relations: LineRelation | LineRelationSet) -> None:
        mask = 0
        for relation in relations:
            added = _try_mask(relation)
            if added is None:
                raise ArgumentError(f"LineRelationSet: need a LineRelation, got {relation!r:.60}")
            mask |= added
        object.__setattr__(self, "_mask", mask)

    @classmethod
    def from_mask(cls, mask: int) -> LineRelationSet:
        """Return the set that has relation k as a member iff bit k of `mask` is set.

        >>> LineRelationSet.from_mask(0b11)
        LineRelationSet(DISJOINT, TOUCHES)
        """
        if not 0 <= mask <= ALL_LINE_RELATIONS:
            raise ArgumentError(f"mask: need an integer from 0 to {ALL_LINE_RELATIONS}, got {mask!r:.40}")
        made = cls()
        object.__setattr__(made, "_mask", int(mask))
        return made

    @property
    def mask(self) -> int:
        """The members as bits: bit k is set iff relation k is a member."""
        return self._mask

    @property
    def word(self) -> str | None:
        """OGC's name of this set, None if it has none.

        >>> LineRelationSet(LineRelation.CROSSES).word, LineRelationSet(LineRelation.WITHIN).word
        ('S_CROSSES', None)
        """
        return next((name for name in LINE_WORDS if self == getattr(LineRelationSet, name)), None)

    @property
    def inverse(self) -> LineRelationSet:
        """The inverses of the members: relations of b to a if a member holds of a to b.

        >>> LineRelationSet.S_WITHIN.inverse == LineRelationSet.S_CONTAINS
        True
        """
        return LineRelationSet(*(relation.inverse for relation in self))

    def __or__(self, other: object) -> LineRelationSet:
        mask = _try_mask(other)
        return NotImplemented if mask is None else LineRelationSet.from_mask(self._mask | mask)

    __ror__ = __or__

    def __and__(self, other: object) -> LineRelationSet:
        mask = _try_mask(other)
        return NotImplemented if mask is None else LineRelationSet.from_mask(self._mask & mask)

    __rand__ = __and__

    def __invert__(self) -> LineRelationSet:
        return LineRelationSet.from_mask(~self._mask & ALL_LINE_RELATIONS)

    def __le__(self, other: object) -> bool:
        """Return True if every member is a member of `other`."""
        mask = _try_mask(other)
        return NotImplemented if mask is None else self._mask & ~mask == 0

    def __contains__(self, relation: int) -> bool:
        number = index(relation)
        return 0 <= number < len(LineRelation) and bool(self._mask >> number & 1)

    def __iter__(self) -> Iterator[LineRelation]:
        return (relation for relation in LineRelation if self._mask >> relation & 1)

    def __len__(self) -> int:
        return self._mask.bit_count()

    def __bool__(self) -> bool:
        return self._mask != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LineRelationSet) and self._mask == other._mask

    def __hash__(self) -> int:
        return hash((LineRelationSet, self._mask))

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return LineRelationSet.from_mask, (self._mask,)

    def __repr__(self) -> str:
        ogc = next((name for name in LINE_WORDS if self is getattr(LineRelationSet, name)), None)
        return f"LineRelationSet.{ogc}" if ogc else f"LineRelationSet({', '.join(one.name for one in self)})"


def _try_mask(value: object) -> int | None:
    if isinstance(value, LineRelationSet):
        return value.mask
    return 1 << value if isinstance(value, LineRelation) else None


LINE_WORDS = (
    "S_DISJOINT", "S_TOUCHES", "S_CROSSES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS",
)  # fmt: skip
LineRelationSet.S_DISJOINT = LineRelationSet(LineRelation.DISJOINT)
LineRelationSet.S_TOUCHES = LineRelationSet(LineRelation.TOUCHES)
LineRelationSet.S_CROSSES = LineRelationSet(LineRelation.CROSSES)
LineRelationSet.S_OVERLAPS = LineRelationSet(LineRelation.OVERLAPS)
LineRelationSet.S_EQUALS = LineRelationSet(LineRelation.EQUALS)
LineRelationSet.S_WITHIN = LineRelationSet(LineRelation.WITHIN, LineRelation.EQUALS)
LineRelationSet.S_CONTAINS = LineRelationSet(LineRelation.CONTAINS, LineRelation.EQUALS)
LineRelationSet.S_INTERSECTS = ~LineRelationSet.S_DISJOINT

# What holds between two regions, or a region and a point, in OGC's words.
OF_RELATIONS: dict[Relation, LineRelation] = {
    Relation.DISJOINT: LineRelation.DISJOINT, Relation.MEETS: LineRelation.TOUCHES,
    Relation.OVERLAPS: LineRelation.OVERLAPS, Relation.EQUALS: LineRelation.EQUALS,
    Relation.INSIDE: LineRelation.WITHIN, Relation.COVERED_BY: LineRelation.WITHIN,
    Relation.CONTAINS: LineRelation.CONTAINS, Relation.COVERS: LineRelation.CONTAINS,
}  # fmt: skip
_SHARED_WORDS = [name for name in LINE_WORDS if hasattr(RelationSet, name)]
# Masks of relations that are a word of OGC's, or the negation of one, and what they mean where a line takes part.
WORD_MASKS: dict[int, int] = {}
for _name in _SHARED_WORDS:
    _of_regions, _of_lines = getattr(RelationSet, _name), getattr(LineRelationSet, _name)
    WORD_MASKS[_of_regions.mask] = _of_lines.mask
    WORD_MASKS[(~_of_regions).mask] = (~_of_lines).mask
_REGION_MASKS = {line_mask: mask for mask, line_mask in WORD_MASKS.items()}


def line_mask_of(mask: int) -> int:
    """Return the line relations for which a set of the eight relations holds of a line and a region or point.

    They follow from the words of OGC, and the negations of these, whose relations are all in the set.

    >>> LineRelationSet.from_mask(line_mask_of(RelationSet.S_WITHIN.mask)) == LineRelationSet.S_WITHIN
    True
    >>> line_mask_of(RelationSet(Relation.INSIDE).mask)
    0
    """
    found = 0
    for word, line_mask in WORD_MASKS.items():
        if word & ~mask == 0:
            found |= line_mask
    return found


def line_relations_of(relations: RelationSet) -> LineRelationSet | None:
    """Return the operator for lines that is the same word of OGC's, or its negation; None if there is none.

    >>> line_relations_of(RelationSet.S_TOUCHES), line_relations_of(RelationSet(Relation.INSIDE))
    (LineRelationSet(TOUCHES), None)
    """
    mask = WORD_MASKS.get(relations.mask)
    return None if mask is None else LineRelationSet.from_mask(mask)


def region_relations_of(relations: LineRelationSet) -> RelationSet | None:
    """Return the set of the eight relations that is the same word of OGC's, or its negation; None if there is none."""
    mask = _REGION_MASKS.get(relations.mask)
    return None if mask is None else RelationSet.from_mask(mask)
