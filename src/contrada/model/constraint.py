"""Constraint: one test on one attribute."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

from contrada.arguments import checks_methods
from contrada.codes import WITHIN_MASK
from contrada.doors import input_errors, reason_of
from contrada.errors import FilterError, LimitError
from contrada.forking import cached_property
from contrada.geometry import Circle, Line, Point, Region, Relation, RelationSet
from contrada.geometry.immutable import Immutable
from contrada.geometry.line_relation import LineRelation, LineRelationSet, line_relations_of, region_relations_of
from contrada.geometry.metres import check_degrees, check_places
from contrada.geometry.reading import one_shape_of
from contrada.limits import check_limit
from contrada.model import operators
from contrada.model.forms import Slot, Test
from contrada.model.operators import Column
from contrada.model.reach import (
    CIRCLE_DISTANCE,
    CIRCLE_OUTCOMES,
    CIRCLE_RELATIONS,
    WHOLE,
    DistanceOperator,
    printed_reach,
    reach_of,
)
from contrada.model.text import encode_text, parse_like
from contrada.model.types import type_named, type_taking
from contrada.model.values import NUMBER, scalar_of

LINES_IN_METRES = "distances in metres are between regions and points; lines have none"
SpatialOperator: TypeAlias = RelationSet | LineRelationSet | DistanceOperator


@checks_methods("__init__")
class Constraint(Immutable):
    """Test of one attribute of a message, immutable.

    The operator is a Relation or RelationSet, read "attribute RELATION value", or WithinDistance or BeyondDistance, and
    the value a Region or Point. With a LineRelation or LineRelationSet, OGC's words in RelationSet, or a distance that
    is not in metres, it may be a Line too. Or the operator is text: `=`, `!=`, `<`, `<=`, `>`, `>=`, `between`,
    `in`, `prefix`, `suffix`, `contains`, `like`, their negations with `not`, `is null`, `is not null`. `casei` ignores
    the case of text, `accenti` its accents.

    >>> str(Constraint("area", RelationSet.S_WITHIN, Region.box(0, 0, 1, 1)))
    'S_WITHIN(area, POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0)))'
    >>> str(Constraint("severity", ">=", 3)), str(Constraint("name", "not prefix", "50%", casei=True))
    ('severity >= 3', "CASEI(name) NOT LIKE CASEI('50\\\\%%')")
    """

    attribute: str
    operator: str | SpatialOperator
    value: Any
    casei: bool
    accenti: bool

    def __init__(
        self,
        attribute: str,
        operator: str | Relation | LineRelation | SpatialOperator,
        value: Any = None,
        *,
        casei: bool = False,
        accenti: bool = False,
        escape: str = "\\",
    ) -> None:
        if not attribute or not isinstance(attribute, str):
            raise FilterError(f"attribute name: need non-empty text, got {attribute!r:.60}")
        try:
            kept, operand = _checked(operator, value, casei or accenti, escape)
        except input_errors() as error:
            kind = LimitError if isinstance(error, LimitError) else FilterError
            raise kind(f"constraint on {attribute!r}: {reason_of(error)}") from error
        self.__dict__.update(
            attribute=attribute, operator=kept, value=operand, casei=bool(casei), accenti=bool(accenti)
        )

    @classmethod
    def _restored(
        cls, attribute: str, operator: str | SpatialOperator, value: Any, casei: bool, accenti: bool,
        kind: str | None,
    ) -> Constraint:  # fmt: skip
        """Return the constraint that was made with these parts, which are not checked again."""
        made = cls.__new__(cls)
        made.__dict__.update(
            attribute=attribute, operator=operator, value=value, casei=casei, accenti=accenti, kind=kind
        )
        return made

    @cached_property
    def kind(self) -> str | None:
        """What this is compared with: a region, point or line, what is near one, or an added type; None for scalars."""
        if isinstance(self.operator, LineRelationSet):
            if isinstance(self.value, Line):
                return "line"
            return "line point" if isinstance(self.value, Point) else "line region"
        if isinstance(self.operator, RelationSet):
            return "point" if isinstance(self.value, Point) else "region"
        if isinstance(self.operator, DistanceOperator):
            group = "near" if self.operator.unit is None else "metres"
            if isinstance(self.value, Line):
                return f"{group} line"
            return f"{group} point" if isinstance(self.value, Point) else f"{group} region"
        own = type_taking(self.operator, self.value)
        return None if own is None or self.casei or self.accenti else own.name

    @property
    def relations(self) -> RelationSet:
        """Relations that a constraint on a relation asks for."""
        if not isinstance(self.operator, RelationSet):
            raise AttributeError(f"`{self}` asks for no relation")
        return self.operator

    @property
    def is_spatial(self) -> bool:
        """Whether this compares with a region, point or line."""
        return isinstance(self.operator, SpatialOperator)

    @property
    def is_local(self) -> bool:
        """Whether only values that meet or lie near the region, point or line satisfy this."""
        if isinstance(self.operator, LineRelationSet):
            return LineRelation.DISJOINT not in self.operator
        if isinstance(self.operator, DistanceOperator):
            return self.operator.is_within
        return isinstance(self.operator, RelationSet) and Relation.DISJOINT not in self.operator

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of a template that are in the place of values."""
        if isinstance(self.operator, DistanceOperator):
            return tuple(item for item in (self.value, self.operator.distance) if isinstance(item, Column))
        if type(self.value) is not tuple and type(self.value) is not Column:  # most constraints
            return ()
        return tuple(item for item in self._items if isinstance(item, Column))

    @property
    def _items(self) -> tuple[Any, ...]:
        """Values of a pair or set, or the only value."""
        return self.value if type(self.value) is tuple else (self.value,)

    @cached_property
    def _test(self) -> Test:
        """Test that a constraint on scalars or text is reduced to."""
        assert isinstance(self.operator, str)
        return operators.test_of(self.operator, self.value, self.casei, self.accenti)

    @cached_property
    def long_numbers(self) -> frozenset[Fraction]:
        """Numbers among the operands that are too long for tests to distinguish."""
        return operators.exact_operands(self.value) if self._test.form == NUMBER else frozenset()

    @property
    def slot(self) -> Slot:
        """Attribute, and the form of its value, that a constraint on scalars or text tests."""
        return self.attribute, self._test.form

    @property
    def negated(self) -> Constraint:
        """Constraint that is true where this is false, and unknown where this is unknown.

        >>> print(Constraint("severity", ">=", 3).negated, "|", Constraint("open", "=", True).negated)
        severity < 3 | open = FALSE
        """
        if isinstance(self.operator, SpatialOperator):
            return Constraint(self.attribute, ~self.operator, self.value)
        if self.kind is not None:
            raise FilterError(f"`{self}` cannot be negated: its operator belongs to a registered type")
        if self.operator in ("=", "!=") and isinstance(self.value, bool):
            return Constraint(self.attribute, self.operator, not self.value)
        return self._asking(operators.negation_of(self.operator), self.value)

    def _asking(self, operator: str | SpatialOperator, value: Any) -> Constraint:
        """Return a constraint on the same attribute with the same foldings."""
        return Constraint(self.attribute, operator, value, casei=self.casei, accenti=self.accenti)

    def _bound(self, values: Mapping[str, Any]) -> Constraint:
        """Return the constraint with values, by name, in place of the columns of a template."""
        if not self.columns:
            return self
        items = tuple(values[item.name] if isinstance(item, Column) else item for item in self._items)
        operator = self.operator
        if isinstance(operator, DistanceOperator) and isinstance(operator.distance, Column):
            return self._asking(reach_of(values[operator.distance.name], operator.mask, operator.unit), items[0])
        return self._asking(self.operator, items if type(self.value) is tuple else items[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constraint) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        if isinstance(self.operator, RelationSet):
            return self.attribute, self.operator.mask, self.value
        if isinstance(self.operator, DistanceOperator | LineRelationSet):
            return self.attribute, self.operator, self.value
        if self.columns:
            # A date equals its midnight.
            alike = tuple((scalar_of(item) or item, operators.exact_operands(item)) for item in self._items)
            return self.attribute, self.operator, alike, self.casei, self.accenti
        if self.kind is not None:
            return self.attribute, self.operator, self.value, self.casei, self.accenti
        return self.attribute, self._test, self.long_numbers  # the test does not distinguish numbers that are too long

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        made = partial(Constraint, casei=self.casei, accenti=self.accenti)
        return made, (self.attribute, self.operator, self.value)

    def __str__(self) -> str:
        """Return the constraint as CQL2 text."""
        name = operators.printed_name(self.attribute)
        if isinstance(self.operator, DistanceOperator):
            return printed_reach(name, self.operator, self.value)
        if self.kind is not None and isinstance(self.operator, str):
            return type_named(self.kind).printed(name, self.operator, self.value)
        if isinstance(self.operator, str):
            return operators.printed(name, self.operator, self.value, self.casei, self.accenti)
        value = str(self.value) if isinstance(self.value, Column) else self.value.to_wkt()
        word = self.operator.word or (~self.operator).word
        if word is not None:
            return f"{'' if self.operator.word else 'NOT '}{word}({name}, {value})"
        names = "".join(f", '{relation}'" for relation in self.operator)
        function = "relation" if isinstance(self.operator, RelationSet) else "line_relation"
        return f"{function}({name}, {value}{names})"

    def __repr__(self) -> str:
        return f"<Constraint {self}>"


def _checked(operator: object, value: Any, is_folded: bool, escape: str) -> tuple[str | SpatialOperator, Any]:
    """Return the operator and the operand to keep."""
    if isinstance(operator, Relation | LineRelation | SpatialOperator):
        if isinstance(value, Circle):
            operator, value = _of_circle(operator, value)
        if not isinstance(value, Region | Point | Line | Column):
            value = one_shape_of(value)
        if is_folded:
            raise FilterError("casei and accenti apply to text only")
        if isinstance(operator, DistanceOperator):
            return _checked_reach(operator, value), value
        asked = LineRelationSet(operator) if isinstance(operator, LineRelation | LineRelationSet) else None
        relations = RelationSet(operator) if asked is None else asked  # type: ignore[arg-type]
        return operator_for(relations, "line" if isinstance(value, Line) else "region"), value
    if not isinstance(operator, str):
        needed = "text, a Relation, RelationSet, LineRelation or LineRelationSet, WithinDistance or BeyondDistance"
        raise FilterError(f"operator: need {needed}, got {operator!r:.60}")
    plain = " ".join(operator.lower().split())
    if not is_folded and type_taking(plain, value) is not None:
        return plain, value
    name = operators.normalised(operator)
    if isinstance(value, Region | Point | Circle | Line):
        raise FilterError(f"`{name}` applies to scalars and text; for regions use a Relation such as OVERLAPS")
    operand = operators.checked_operand(name, value)
    some = operand[0] if type(operand) is tuple else operand
    if is_folded and not isinstance(some, str | Column):
        raise FilterError("casei and accenti apply to text only")
    check_pattern(name, operand)
    if name.endswith("like") and not isinstance(operand, Column):
        operand = parse_like(operand, escape).to_text()
    return name, operand


def _of_circle(operator: Relation | LineRelation | SpatialOperator, circle: Circle) -> tuple[DistanceOperator, Point]:
    """Return a relation to a circle as an operator on the distance from its centre."""
    if isinstance(operator, DistanceOperator):
        raise FilterError(CIRCLE_DISTANCE)
    if isinstance(operator, LineRelation | LineRelationSet):
        relations = region_relations_of(LineRelationSet(operator))
    else:
        relations = RelationSet(operator)
    outcomes = None if relations is None else CIRCLE_OUTCOMES.get(relations)
    if outcomes is None:
        raise FilterError(f"{CIRCLE_RELATIONS} polygon")
    return reach_of(circle.radius, outcomes), circle.center


def operator_for(operator: SpatialOperator, kind: str) -> SpatialOperator:
    """Return the operator to keep for a value of a kind: "region", "point" or "line"; raise FilterError if none fits.

    >>> operator_for(RelationSet.S_WITHIN, "line")
    LineRelationSet(EQUALS, WITHIN)
    """
    if isinstance(operator, LineRelationSet):
        return operator if kind == "line" else region_relations_of(operator) or operator
    if kind != "line":
        return operator
    if isinstance(operator, RelationSet):
        return _of_line(operator)
    if operator.unit is not None:
        raise FilterError(LINES_IN_METRES)
    return operator


def _checked_reach(operator: DistanceOperator, value: Any) -> DistanceOperator:
    if isinstance(value, Line) and operator.unit is not None:
        raise FilterError(LINES_IN_METRES)
    if operator.mask & WITHIN_MASK in (WHOLE, WITHIN_MASK ^ WHOLE) and not isinstance(value, Point):
        raise FilterError("only a circle, of a point and a distance, can hold the whole of a value")
    if operator.unit is not None and not isinstance(value, Column):
        check_degrees(value.crs)
        check_places(value._column)
    return operator


def _of_line(relations: RelationSet) -> LineRelationSet:
    """Return the operator for a line that is the same word of OGC's; raise FilterError if there is none."""
    found = line_relations_of(relations)
    if found is None:
        word = relations.word or " or ".join(map(str, relations))
        raise FilterError(
            f"`{word}` relates regions; with a line use S_WITHIN, S_CROSSES or another of OGC's relations"
        )
    return found


def is_pattern(operator: object) -> bool:
    """Return True for the operators LIKE and CONTAINS, and their negations."""
    return isinstance(operator, str) and operator.endswith(("like", "contains"))


def check_pattern(operator: str, value: Any) -> None:
    """Raise LimitError for a pattern of LIKE or CONTAINS that is too long; other operators and columns pass.

    >>> check_pattern("like", "%a" * 40_000)
    Traceback (most recent call last):
    contrada.errors.LimitError: the pattern has 80,000 bytes in a LIKE pattern; the limit is 4,096 ...
    """
    if is_pattern(operator) and isinstance(value, str):
        check_limit("pattern_bytes", len(encode_text(value)), "the pattern")
