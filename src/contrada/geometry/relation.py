"""The eight relations of two regions, and sets of them, which are the spatial operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from operator import index
from typing import ClassVar

from contrada import codes
from contrada.arguments import checks_methods
from contrada.errors import ArgumentError
from contrada.geometry.immutable import Immutable


class Relation(IntEnum):
    """The eight relations; exactly one holds between two regions. Read "message region RELATION subscription region".

    >>> Relation.INSIDE.inverse
    <Relation.CONTAINS: 5>
    >>> str(Relation.COVERED_BY)
    'covered-by'
    """

    DISJOINT = int(codes.DISJOINT)
    MEETS = int(codes.MEETS)
    OVERLAPS = int(codes.OVERLAPS)
    EQUALS = int(codes.EQUALS)
    INSIDE = int(codes.INSIDE)
    CONTAINS = int(codes.CONTAINS)
    COVERS = int(codes.COVERS)
    COVERED_BY = int(codes.COVERED_BY)

    @property
    def inverse(self) -> Relation:
        """The relation of b to a if this is the relation of a to b."""
        return _INVERSE.get(self, self)

    def __str__(self) -> str:
        """Return the name as the papers write it."""
        return self.name.lower().replace("_", "-")

    def __or__(self, other: int) -> RelationSet:  # type: ignore[override]
        """Return the set of this relation and another relation or set."""
        return RelationSet(self) | other

    def __invert__(self) -> RelationSet:  # type: ignore[override]
        """Return all relations but this one."""
        return ~RelationSet(self)


# The other relations are their own inverses.
_INVERSE = {Relation.INSIDE: Relation.CONTAINS, Relation.COVERS: Relation.COVERED_BY}
_INVERSE |= {inverse: relation for relation, inverse in _INVERSE.items()}


@checks_methods("__init__", "from_mask")
class RelationSet(Immutable):
    """Any subset of the eight relations, stored as an 8-bit mask: one spatial operator. Immutable.

    >>> Relation.OVERLAPS | Relation.MEETS
    RelationSet(MEETS, OVERLAPS)
    >>> ~RelationSet.S_INTERSECTS == RelationSet(Relation.DISJOINT)
    True
    >>> Relation.EQUALS in RelationSet.S_WITHIN
    True
    """

    __slots__ = ("_mask",)
    _mask: int

    S_DISJOINT: ClassVar[RelationSet]
    S_TOUCHES: ClassVar[RelationSet]
    S_OVERLAPS: ClassVar[RelationSet]
    S_EQUALS: ClassVar[RelationSet]
    S_WITHIN: ClassVar[RelationSet]
    S_CONTAINS: ClassVar[RelationSet]
    S_INTERSECTS: ClassVar[RelationSet]
    NONE: ClassVar[RelationSet]
    ALL: ClassVar[RelationSet]

    def __init__(self, *relations: Relation | RelationSet) -> None:
        mask = 0
        for relation in relations:
            added = _try_mask(relation)
            if added is None:
                raise ArgumentError(f"RelationSet: need a Relation, got {relation!r:.60}")
            mask |= added
        object.__setattr__(self, "_mask", mask)

    @classmethod
    def from_mask(cls, mask: int) -> RelationSet:
        """Return the set that has relation k as a member iff bit k of `mask` is set.

        >>> RelationSet.from_mask(0b110)
        RelationSet(MEETS, OVERLAPS)
        """
        if not 0 <= mask <= 255:
            raise ArgumentError(f"mask: need an integer from 0 to 255, got {mask!r:.40}")
        made = cls()
        object.__setattr__(made, "_mask", int(mask))
        return made

    @property
    def mask(self) -> int:
        """The members as bits: bit k is set iff relation k is a member."""
        return self._mask

    @property
    def word(self) -> str | None:
        """Name of this set in CQL2: the OGC name if there is one, else the name of its only member.

        >>> RelationSet.S_WITHIN.word, RelationSet(Relation.INSIDE).word, RelationSet(Relation.MEETS).word
        ('S_WITHIN', 'inside', 'S_TOUCHES')
        """
        only = next(iter(self)).name.lower() if len(self) == 1 else None
        return next((name for name in _OGC_NAMES if self == getattr(RelationSet, name)), only)

    @property
    def inverse(self) -> RelationSet:
        """The inverses of the members: relations of b to a if a member holds of a to b.

        >>> RelationSet.S_WITHIN.inverse == RelationSet.S_CONTAINS
        True
        """
        return RelationSet(*(relation.inverse for relation in self))

    def __or__(self, other: object) -> RelationSet:
        mask = _try_mask(other)
        return NotImplemented if mask is None else RelationSet.from_mask(self._mask | mask)

    __ror__ = __or__

    def __and__(self, other: object) -> RelationSet:
        mask = _try_mask(other)
        return NotImplemented if mask is None else RelationSet.from_mask(self._mask & mask)

    __rand__ = __and__

    def __sub__(self, other: object) -> RelationSet:
        mask = _try_mask(other)
        return NotImplemented if mask is None else RelationSet.from_mask(self._mask & ~mask)

    def __invert__(self) -> RelationSet:
        return RelationSet.from_mask(~self._mask & 255)

    def __le__(self, other: object) -> bool:
        """Return True if every member is a member of `other`."""
        mask = _try_mask(other)
        return NotImplemented if mask is None else self._mask & ~mask == 0

    def __contains__(self, relation: int) -> bool:
        number = index(relation)  # int() would write out Decimal("1E+999999")
        return 0 <= number < 8 and bool(self._mask >> number & 1)

    def __iter__(self) -> Iterator[Relation]:
        return (relation for relation in Relation if self._mask >> relation & 1)

    def __len__(self) -> int:
        return self._mask.bit_count()

    def __bool__(self) -> bool:
        return self._mask != 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RelationSet) and self._mask == other._mask

    def __hash__(self) -> int:
        return hash((RelationSet, self._mask))

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return RelationSet.from_mask, (self._mask,)

    def __repr__(self) -> str:
        ogc = next((name for name in _OGC_NAMES if self is getattr(RelationSet, name)), None)
        return f"RelationSet.{ogc}" if ogc else f"RelationSet({', '.join(relation.name for relation in self)})"


def _try_mask(value: object) -> int | None:
    if isinstance(value, RelationSet):
        return value.mask
    return 1 << value if isinstance(value, Relation) else None


def relation_set(relations: Relation | RelationSet | Iterable[Relation]) -> RelationSet:
    """Return the set that a relation, a set or an iterable of relations names.

    >>> relation_set([Relation.MEETS, Relation.EQUALS])
    RelationSet(MEETS, EQUALS)
    """
    if isinstance(relations, (Relation, RelationSet)):
        return RelationSet(relations)
    return RelationSet(*relations)


_OGC_NAMES = ("S_DISJOINT", "S_TOUCHES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS")
RelationSet.S_DISJOINT = RelationSet(Relation.DISJOINT)
RelationSet.S_TOUCHES = RelationSet(Relation.MEETS)
RelationSet.S_OVERLAPS = RelationSet(Relation.OVERLAPS)
RelationSet.S_EQUALS = RelationSet(Relation.EQUALS)
RelationSet.S_WITHIN = RelationSet(Relation.INSIDE, Relation.COVERED_BY, Relation.EQUALS)
RelationSet.S_CONTAINS = RelationSet(Relation.CONTAINS, Relation.COVERS, Relation.EQUALS)
RelationSet.S_INTERSECTS = ~RelationSet.S_DISJOINT
RelationSet.NONE = RelationSet()
RelationSet.ALL = ~RelationSet.NONE
