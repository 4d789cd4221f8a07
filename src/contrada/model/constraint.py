"""Constraint: one test on one attribute."""

from __future__ import annotations

from typing import NamedTuple

from contrada.errors import FilterError
from contrada.geometry import Point, Region, Relation, RelationSet

SpatialValue = Region | Point


class Column(NamedTuple):
    """In a template, the place of a value that comes from a column of the subscriptions' table.

    >>> str(Constraint("area", Relation.OVERLAPS, Column("geometry")))
    'overlaps(area, $geometry)'
    """

    name: str

    def __str__(self) -> str:
        return f"${self.name}"


class Constraint:
    """A test of one attribute of a message, immutable: `area` in one of these relations to a region or point.

    The operator is a Relation or a RelationSet, read "attribute RELATION value".

    >>> str(Constraint("area", RelationSet.S_WITHIN, Region.box(0, 0, 1, 1)))
    "relation(area, POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0)), 'equals', 'inside', 'covered-by')"
    """

    __slots__ = ("attribute", "relations", "value")
    attribute: str
    relations: RelationSet
    value: SpatialValue | Column

    def __init__(self, attribute: str, operator: Relation | RelationSet, value: SpatialValue | Column) -> None:
        if not attribute or not isinstance(attribute, str):
            raise FilterError(f"an attribute is named by text, not {attribute!r}")
        if not isinstance(operator, (Relation, RelationSet)):
            raise FilterError(f"constraint on {attribute!r}: {operator!r} is not a Relation or RelationSet")
        if not isinstance(value, (Region, Point, Column)):
            raise FilterError(
                f"constraint on {attribute!r}: relations need a Region or Point, not {type(value).__name__}"
            )
        object.__setattr__(self, "attribute", attribute)
        object.__setattr__(self, "relations", RelationSet(operator))
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Constraint cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int, object]:
        return self.attribute, self.relations.mask, self.value

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Constraint, (self.attribute, self.relations, self.value)

    def __str__(self) -> str:
        """The constraint as CQL2 text."""
        value = str(self.value) if isinstance(self.value, Column) else self.value.to_wkt()
        if len(self.relations) == 1:
            (relation,) = self.relations
            return f"{relation.name.lower()}({self.attribute}, {value})"
        names = "".join(f", '{relation}'" for relation in self.relations)
        return f"relation({self.attribute}, {value}{names})"

    def __repr__(self) -> str:
        return f"<Constraint {self}>"
