"""Explain why a message matches a subscription, or why not, constraint by constraint."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from contrada.geometry import Circle, Line, LineRelation, Point, Region, Relation
from contrada.geometry.distance import rough_distance
from contrada.geometry.metres import rough_metres
from contrada.matching.names import Name
from contrada.model import Constraint, Predicate
from contrada.model.evaluate import asked_kind, relation_to, truth
from contrada.model.operators import printed_value
from contrada.model.reach import DistanceOperator
from contrada.model.values import KIND_NAMES, TEXT, scalar_of

ASKED_WIDTH, VALUE_WIDTH, WKT_WIDTH, WRITTEN_WIDTH = 96, 40, 36, 240  # maximum characters shown
TRUTH_WORDS = {True: "yes", False: "no", None: "unknown"}
RELATION_PHRASES = {
    Relation.DISJOINT: "is disjoint from",
    Relation.INSIDE: "is inside",
    Relation.COVERED_BY: "is covered by",
}
LINE_PHRASES = {LineRelation.DISJOINT: "is disjoint from", LineRelation.WITHIN: "is within"}


class ConstraintExplained(NamedTuple):
    """One constraint against one message: `value` is the message's value (None: absent).

    `truth` is None if unknown; `relation` is the relation of `value` to the constraint's region, point or line.

    >>> print(explained_constraint(Constraint("price", "<", 100), {"price": "12"}))
    unknown  price < 100  price is '12', not a number
    """

    constraint: Constraint
    value: Any
    truth: bool | None
    relation: Relation | LineRelation | None

    @property
    def distance(self) -> float | None:
        """The rounded distance of the value from the shape of a distance constraint; None for others."""
        constraint, value = self.constraint, self.value
        if not isinstance(constraint.operator, DistanceOperator) or not isinstance(
            value, Region | Point | Circle | Line
        ):
            return None
        if constraint.operator.unit is not None:
            return None if isinstance(value, Circle | Line) else rough_metres(value, constraint.value)
        return rough_distance(value, constraint.value)

    @property
    def _unit(self) -> str:
        operator = self.constraint.operator
        return f" {operator.unit}" if isinstance(operator, DistanceOperator) and operator.unit else ""

    @property
    def reason(self) -> str:
        """The value, and how it relates to the constraint, in words."""
        name = shortened(self.constraint.attribute, VALUE_WIDTH)
        if self.value is None:
            return f"{name} is absent"
        if isinstance(self.relation, LineRelation):
            phrase = f"{name} {LINE_PHRASES.get(self.relation, str(self.relation))} it"
            return phrase if self.truth is not None else f"{phrase}; it is a line, and the operator relates regions"
        if self.relation is not None:
            return f"{name} {RELATION_PHRASES.get(self.relation, str(self.relation))} it"
        if self.distance is not None:
            return f"{name} is {self.distance:.12g}{self._unit} away from it"
        text = f"{name} is {shown_value(self.value, VALUE_WIDTH)}"
        return text if self.truth is not None else f"{text}, not {_kind_asked(self.constraint)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation of a constraint as JSON: CQL2 text, regions as GeoJSON, times as ISO 8601 text."""
        return {
            "attribute": self.constraint.attribute,
            "asked": str(self.constraint),
            "value": plain_value(self.value),
            "truth": self.truth,
            "relation": None if self.relation is None else str(self.relation),
            **({} if self.distance is None else {"distance": self.distance}),
        }

    def __str__(self) -> str:
        return self.line(0)

    def line(self, width: int) -> str:
        """Return one line of text, with the constraint padded to `width` characters."""
        return f"{TRUTH_WORDS[self.truth]:<7}  {shown_constraint(self.constraint):<{width}}  {self.reason}"


class FilterExplained(NamedTuple):
    """One filter: `truth` is True if all constraints are True; None if some are unknown and none is False."""

    constraints: tuple[ConstraintExplained, ...]
    truth: bool | None

    @property
    def failing(self) -> int:
        """The number of constraints that are not true."""
        return sum(part.truth is not True for part in self.constraints)

    def to_dict(self) -> dict[str, Any]:
        """Return the filter's explanation as JSON."""
        return {"truth": self.truth, "constraints": [part.to_dict() for part in self.constraints]}


class Explanation(NamedTuple):
    """Why a message matches a subscription, or why not; it matches if and only if `truth` is True.

    `str` returns text, `to_dict` data; Jupyter shows it with pictures of the regions.

    >>> from contrada import ForwardingTable
    >>> table = ForwardingTable()
    >>> key = table.subscribe("ops-team", Constraint("severity", ">=", 3), key="k17")
    >>> print(table.explain({"severity": 2}, "k17"))
    'k17' of 'ops-team' does not match: 1 of 1 constraint fails.
    filter 1
      no       severity >= 3  severity is 2
    """

    key: Name
    subscriber: Name
    filters: tuple[FilterExplained, ...]
    truth: bool | None
    written: str | None = None  # the filter as text, or the template, if it was written

    @property
    def nearest(self) -> int:
        """The index of the filter with the fewest constraints that are not true; the first of several.

        If the message matches, the message satisfies this filter.
        """
        failing = [part.failing for part in self.filters]
        return failing.index(min(failing))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole explanation as JSON; null is an unknown truth."""
        return {
            "key": self.key,
            "subscriber": self.subscriber,
            "written": self.written,
            "truth": self.truth,
            "nearest": self.nearest,
            "filters": [part.to_dict() for part in self.filters],
        }

    def __str__(self) -> str:
        shown = [shown_constraint(part.constraint) for each in self.filters for part in each.constraints]
        width = max(map(len, shown))
        lines = [self.verdict]
        if self.written is not None:
            lines.append(f"written: {shortened(self.written, WRITTEN_WIDTH)}")
        for number, part in enumerate(self.filters):
            nearest = number == self.nearest and len(self.filters) > 1
            note = ", matches" if part.truth else ", nearest" if nearest else ""
            lines.append(f"filter {number + 1}{note}")
            lines += [f"  {constraint.line(width)}" for constraint in part.constraints]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the explanation for Jupyter: each constraint with value and verdict, and regions in pictures."""
        from contrada.matching.pictures import explanation_html

        return explanation_html(self)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        whose = f"{self.key!r} of {self.subscriber!r}"
        if self.truth:
            return f"{whose} matches."
        nearest = self.filters[self.nearest]
        place = " of its nearest filter" if len(self.filters) > 1 else ""
        verb = "fails" if nearest.failing == 1 else "fail"
        return f"{whose} does not match: {nearest.failing} of {_constraints(nearest)}{place} {verb}."


def explain(predicate: Predicate, message: Mapping[str, Any], key: Name, subscriber: Name) -> Explanation:
    """Explain why a message satisfies the predicate of a subscription, or why not.

    >>> from contrada import Filter
    >>> one, other = Constraint("size", "=", 1), Constraint("size", "=", 2)
    >>> predicate = Predicate([Filter([one]), Filter([other, Constraint("flag", "=", True)])])
    >>> explain(predicate, {"size": 2, "flag": True}, "k17", "ops-team").nearest
    1
    """
    filters = []
    for part in predicate:
        constraints = tuple(explained_constraint(constraint, message) for constraint in part)
        filters.append(FilterExplained(constraints, _all([each.truth for each in constraints])))
    return Explanation(key, subscriber, tuple(filters), _any([part.truth for part in filters]))


def explained_constraint(constraint: Constraint, message: Mapping[str, Any]) -> ConstraintExplained:
    """Evaluate one constraint against a message."""
    value = message.get(constraint.attribute)
    return ConstraintExplained(constraint, value, truth(constraint, value), relation_to(constraint, value))


def _constraints(part: FilterExplained) -> str:
    count = len(part.constraints)
    return f"{count} constraint{'s' * (count > 1)}"


def _all(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _any(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def _kind_asked(constraint: Constraint) -> str:
    kind = asked_kind(constraint)
    if kind is None:
        operator = constraint.operator
        in_metres = isinstance(operator, DistanceOperator) and operator.unit is not None
        return "a region or point of longitude and latitude" if in_metres else "a region, point or line"
    return KIND_NAMES[kind] if kind == TEXT else f"a {KIND_NAMES[kind]}"


def shown_constraint(constraint: Constraint) -> str:
    """Return a constraint on one line; long regions and sets are cut after the first vertices or members.

    >>> shown_constraint(Constraint("area", Relation.OVERLAPS, Region.box(0, 0, 100, 100)))
    'S_OVERLAPS(area, POLYGON ((0 0, 100 0, ...)))'
    """
    text = str(constraint)
    if isinstance(constraint.value, Region | Point | Line):
        wkt = constraint.value.to_wkt()
        text = text.replace(wkt, shortened_wkt(wkt, WKT_WIDTH))
    return shortened(text, ASKED_WIDTH)


def shown_value(value: Any, width: int) -> str:
    """Return a value of a message on one line of at most `width` characters."""
    if isinstance(value, Region | Point | Line):
        return shortened_wkt(value.to_wkt(), width)
    if isinstance(value, Circle):
        return shortened(value.to_text(), width)
    if isinstance(value, str) or scalar_of(value) is not None:
        try:
            return shortened(printed_value(value), width)
        except ValueError:  # Python prints at most 4,300 digits
            return "a very long number"
    return shortened(str(value) if isinstance(value, np.generic) else _text_of(value, repr), width)


def plain_value(value: Any) -> Any:
    """Return a value as JSON: unchanged, as GeoJSON, or as text if JSON has no form for it.

    >>> plain_value(np.float32(0.5)), plain_value(math.nan), plain_value(date(2020, 1, 2)), plain_value([1])
    (0.5, 'nan', '2020-01-02T00:00:00Z', '[1]')
    """
    if isinstance(value, Region | Point | Circle | Line):
        return value.to_geojson()
    if isinstance(value, np.bool_ | np.integer | np.floating) and not isinstance(value, np.longdouble | np.timedelta64):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 10_000 else hex(value)  # Python prints at most 4,300 digits
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, date | np.datetime64) and scalar_of(value) is not None:
        return printed_value(value).removeprefix("TIMESTAMP('").removesuffix("')")
    return _text_of(value, str)


def _text_of(value: Any, how: Callable[[Any], str]) -> str:
    """Return the text of a value of unsupported type; lists may be nested deeper than Python can print."""
    try:
        return how(value)
    except (RecursionError, ValueError):  # ValueError: a number inside has more digits than Python prints
        return f"a {type(value).__name__} that cannot be printed"


def shortened(text: str, width: int) -> str:
    """Return `text` on one line, cut to at most `width` characters.

    >>> shortened("a\\nb", 20), shortened("long, too long", 9)
    ('a\\\\nb', 'long, ...')
    """
    some = text[: width + 1]  # the rest would be cut anyway
    line = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in some)
    return line if len(line) <= width else line[: width - 3] + "..."


def shortened_wkt(wkt: str, width: int) -> str:
    """Return WKT of about `width` characters: all digits of the first vertices, the rest left out, brackets closed.

    >>> shortened_wkt("POLYGON ((0 0, 1 0.123456789, 1 1, 0 1, 0 0))", 35)
    'POLYGON ((0 0, 1 0.123456789, ...))'
    """
    if len(wkt) <= width:
        return wkt
    cut = wkt.rfind(",", 0, width - 5)
    kept = wkt[: (cut if cut >= 0 else wkt.find(",")) + 1]
    return f"{kept} ...{')' * (kept.count('(') - kept.count(')'))}" if kept else wkt
