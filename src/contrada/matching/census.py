"""Census of attributes: find attributes that subscriptions ask about but messages lack or have with another type.

Subscriptions on such attributes match nothing, and no error says so. `contrada match`, with and without Spark, and
`contrada stream` keep one census each and print its lines in their summaries. Counting takes one pass per batch over
the types of the attributes that subscriptions ask about; an Arrow column is counted by its null count.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from contrada.codes import PRESENT, TEXT
from contrada.formats.tables.rows import attributes_of
from contrada.geometry import Circle, Line, Point, Region
from contrada.geometry.arrow.mixed import is_spatial
from contrada.matching.line_constraints import LINE_KINDS
from contrada.matching.metre_constraints import shape_kind
from contrada.model.values import KIND_NAMES

SPATIAL = "region or point"
ANYTHING = "anything"  # kind of `is null` and of added types: a value of any type may satisfy them
MAX_LISTED_ATTRIBUTES = 10  # in one line
_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("boolean", (bool, np.bool_)),
    ("duration", (timedelta, np.timedelta64)),
    ("number", (int, float, Decimal, np.integer, np.floating)),
    ("text", (str,)),
    ("timestamp", (date, np.datetime64)),
    (SPATIAL, (Region, Point, Circle, Line, bytes)),
    ("array", (list, tuple, np.ndarray)),
)


def kinds_by_attribute(
    slots: Iterable[Sequence[Any]], spatial: Iterable[Sequence[Any]], others: Iterable[str] = ()
) -> dict[str, list[str]]:
    """Return, by attribute, the kinds of values that subscriptions ask for.

    `slots` holds pairs of an attribute and a scalar form, `spatial` pairs of an attribute and a type name, `others`
    attributes whose kind is unknown.

    >>> kinds_by_attribute([("severity", 0), ("severity", 8)], [("area", "region")])
    {'area': ['region or point'], 'severity': ['number', 'text']}
    """
    found: dict[str, set[str]] = defaultdict(set)
    for attribute, form in slots:
        found[attribute].add(ANYTHING if form == PRESENT else "text" if form >= TEXT else KIND_NAMES[form])
    for attribute, kind in spatial:
        is_spatial = kind in LINE_KINDS or shape_kind(kind) in ("region", "point", "line")
        found[attribute].add(SPATIAL if is_spatial else ANYTHING)
    for attribute in others:
        if attribute not in found:
            found[attribute].add(ANYTHING)
    return {attribute: sorted(found[attribute]) for attribute in sorted(found)}


def kind_of_type(kind: type) -> str:
    """Return the kind of values of a Python or NumPy type; the name of the type if no operator takes such values.

    >>> kind_of_type(float), kind_of_type(bool), kind_of_type(Region), kind_of_type(set)
    ('number', 'boolean', 'region or point', 'set')
    """
    for name, types in _KINDS:
        if issubclass(kind, types):
            return name
    return kind.__name__


def kind_of_column(values: Any) -> str:
    """Return the kind of values in an Arrow column.

    >>> import pyarrow as pa
    >>> kind_of_column(pa.array([1.5])), kind_of_column(pa.array(["a"])), kind_of_column(pa.array([[1]]))
    ('number', 'text', 'array')
    """
    import pyarrow as pa

    kind, types = values.type, pa.types
    if is_spatial(values):
        return SPATIAL
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_timestamp(kind) or types.is_date(kind):
        return "timestamp"
    return "array" if types.is_nested(kind) else str(kind)


class Census:
    """Count the messages that have each attribute subscriptions ask about, by kind of value.

    >>> census = Census({"level": ["number"], "severity": ["number"]})
    >>> census.add([{"severity": "3"}, {"severity": 4}])
    >>> print("\\n".join(census.lines()))
    missing:       level, which subscriptions ask for, is in no message
    other type:    severity is text in 1 message; subscriptions ask for a number
    """

    def __init__(self, asked: Mapping[str, Sequence[str]] | None = None) -> None:
        self.asked: dict[str, list[str]] = {}
        self.seen: dict[str, Counter[str]] = {}
        self.messages = 0
        self.ask(asked or {})

    def ask(self, asked: Mapping[str, Sequence[str]]) -> None:
        """Add attributes and the kinds of values that subscriptions ask for."""
        for attribute, kinds in asked.items():
            self.asked[attribute] = sorted({*self.asked.get(attribute, ()), *kinds})
            self.seen.setdefault(attribute, Counter())

    def add(self, messages: Any) -> None:
        """Count the attributes of a list of plain messages, or of the rows of an Arrow table."""
        if not isinstance(messages, list):
            self._add_columns(messages)
        elif messages:
            self.messages += len(messages)
            is_narrow = len(self.asked) <= sum(map(len, messages[:16])) // len(messages[:16])
            (self._add_by_attribute if is_narrow else self._add_by_message)(messages)

    def _add_by_attribute(self, messages: list[Mapping[str, Any]]) -> None:
        for attribute, seen in self.seen.items():
            for kind, count in Counter(map(type, [message.get(attribute) for message in messages])).items():
                if kind is not type(None):
                    seen[kind_of_type(kind)] += count

    def _add_by_message(self, messages: list[Mapping[str, Any]]) -> None:
        asked = self.seen
        counts = Counter(
            (name, type(value)) for message in messages for name, value in message.items() if name in asked
        )
        for (attribute, kind), count in counts.items():
            if kind is not type(None):
                asked[attribute][kind_of_type(kind)] += count

    def _add_columns(self, table: Any) -> None:
        self.messages += table.num_rows
        plain = attributes_of(table, self.seen)
        for attribute in plain.column_names:
            column = plain.column(attribute)
            if attribute in self.seen and column.null_count < len(column):
                self.seen[attribute][kind_of_column(column)] += len(column) - column.null_count

    def add_counts(self, attribute: str, kind: str, count: int) -> None:
        """Count `count` messages that have `attribute` with values of `kind`."""
        if count and attribute in self.seen:
            self.seen[attribute][kind] += count

    def to_json(self) -> str:
        """Return the census as JSON, for `merge` in another process."""
        return json.dumps({"asked": self.asked, "seen": self.seen, "messages": self.messages})

    def merge(self, text: str) -> None:
        """Add a census that `to_json` returned in another process."""
        other = json.loads(text)
        self.ask(other["asked"])
        self.messages += other["messages"]
        for attribute, kinds in other["seen"].items():
            self.seen[attribute].update(kinds)

    @property
    def missing(self) -> list[str]:
        """Attributes that subscriptions ask about and no message has."""
        return [name for name, seen in self.seen.items() if not seen] if self.messages else []

    @property
    def mistyped(self) -> dict[str, dict[str, int]]:
        """By attribute, the kinds of values in messages that no subscription asks for, with counts of messages."""
        found = {}
        for name, seen in self.seen.items():
            asked = self.asked[name]
            other = {kind: count for kind, count in sorted(seen.items()) if kind not in asked}
            if other and ANYTHING not in asked:
                found[name] = other
        return found

    def lines(self) -> list[str]:
        """Return the lines of a summary; none if every attribute has a type that subscriptions ask for."""
        lines = []
        if self.missing:
            names, verb = _listed(self.missing), "is" if len(self.missing) == 1 else "are"
            lines.append(f"missing:       {names}, which subscriptions ask for, {verb} in no message")
        for name, kinds in list(self.mistyped.items())[:MAX_LISTED_ATTRIBUTES]:
            was = ", ".join(f"{kind} in {count:,} message{'s' * (count != 1)}" for kind, count in kinds.items())
            asked = " or ".join(kind if kind == "text" else f"a {kind}" for kind in self.asked[name])
            lines.append(f"other type:    {name} is {was}; subscriptions ask for {asked}")
        if len(self.mistyped) > MAX_LISTED_ATTRIBUTES:
            lines.append(f"other type:    and {len(self.mistyped) - MAX_LISTED_ATTRIBUTES:,} more attributes")
        return lines

    def short(self) -> str:
        """Return the summary for a progress line; empty if no attribute is missing or always of another type."""
        parts = [f"no message has {_listed(self.missing, 3)}"] if self.missing else []
        never = [name for name in self.mistyped if not set(self.seen[name]) & set(self.asked[name])]
        return "; ".join(parts + ([f"{_listed(never, 3)} of another type than asked"] if never else []))


def _listed(names: list[str], most: int = MAX_LISTED_ATTRIBUTES) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
