"""Put messages into Arrow tables in which each matches as it does alone.

An attribute has one type in a table. Messages whose values need different types, such as text and a number, go to
different tables; integers join doubles where they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from contrada.errors import FormatError
from contrada.geometry import Circle, Line, Point, Region
from contrada.geometry.arrow.geoarrow import with_crs
from contrada.limits import limit
from contrada.model.types import has_types, types_accepting
from contrada.model.values import EXACT_INTEGERS
from contrada.service.intake.regions import UnreadRegion, circle_column, line_column, point_column

Kind = str | tuple[str, str | None]
Message = Mapping[str, Any]
DECIMAL_DIGITS = 76  # of the longest decimal type of Arrow
TRIED_TABLES = 8  # latest tables that are tried for a message
# A table has at most this many cells for each value of its messages, plus SPARE_CELLS: messages with different
# attributes in one table must not fill the memory with nulls.
CELLS_PER_VALUE, SPARE_CELLS = 8, 4096
_KINDS: dict[type, str] = {bool: "boolean", float: "double", str: "text", list: "list", datetime: "microseconds",
                           np.datetime64: "nanoseconds"}  # fmt: skip
_WIDER = {frozenset(("integer", "long")): "long", frozenset(("integer", "double")): "double"}
_TYPES = {
    "boolean": pa.bool_(), "integer": pa.int64(), "long": pa.int64(), "double": pa.float64(), "text": pa.string(),
    "decimal": pa.decimal256(DECIMAL_DIGITS, 0), "microseconds": pa.timestamp("us", "UTC"),
    "nanoseconds": pa.timestamp("ns"),
}  # fmt: skip


class Part(NamedTuple):
    """A table of messages, or a few as mappings, and the places of its rows among all messages, in rising order."""

    table: Any
    rows: list[int]


def kinds_of(message: Message) -> tuple[Kind, ...]:
    """Return the kinds of the values of a message; a value that no table can hold is a FormatError.

    >>> kinds_of({"depth": 3, "name": "Arno", "count": 2**60})
    ('integer', 'text', 'long')
    """
    kinds = tuple(
        [
            _KINDS.get(type(value))
            or ("integer" if type(value) is int and -EXACT_INTEGERS <= value <= EXACT_INTEGERS else _kind(name, value))
            for name, value in message.items()
        ]
    )
    if has_types() and "list" in kinds:
        for name, value in message.items():
            if type(value) is list and types_accepting(value):
                raise _not_a_column(name, value)
    return kinds


def _kind(name: str, value: Any) -> Kind:
    if type(value) is int:
        if -(2**63) <= value < 2**63:
            return "long"
        if abs(value) < 10**DECIMAL_DIGITS:
            return "decimal"
        raise FormatError(f"attribute {name[:60]!r}: need an integer of at most {DECIMAL_DIGITS} digits")
    if isinstance(value, UnreadRegion | Region):
        return "region", value.crs
    if isinstance(value, Point):
        return "point", value.crs
    if isinstance(value, Circle):
        return "circle", value.crs
    if isinstance(value, Line):
        return "line", value.crs
    raise _not_a_column(name, value)


def _not_a_column(name: str, value: Any) -> FormatError:
    return FormatError(f"attribute {name[:60]!r}: a value of type {type(value).__name__!r} cannot be published")


class _Table:
    """A table that grows: the kinds of its columns, its rows, and how many values they have."""

    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}
        self.rows: list[int] = []
        self._values = 0

    def take(self, names: Sequence[str], kinds: Sequence[Kind], rows: Sequence[int]) -> bool:
        """Add messages of the same names and kinds, unless they do not fit."""
        joined = dict(self.kinds)
        for name, kind in zip(names, kinds, strict=True):
            known = joined.get(name, kind)
            if known != kind:
                wider = None if has_types() else _WIDER.get(frozenset((known, kind)))  # type: ignore[arg-type]
                if wider is None:
                    return False
                kind = wider
            joined[name] = kind
        values, size = self._values + len(names) * len(rows), len(self.rows) + len(rows)
        if self.rows and not (
            len(joined) <= limit("attributes") and len(joined) * size <= CELLS_PER_VALUE * values + SPARE_CELLS
        ):
            return False
        self.kinds, self._values = joined, values
        self.rows += rows
        return True


def parts_of(messages: Sequence[Message], kinds: Sequence[tuple[Kind, ...]], regions: Mapping[Any, Any]) -> list[Part]:
    """Return the messages, with the kinds of their values, as tables; `regions` are the columns of regions by CRS."""
    shapes: dict[tuple[tuple[str, ...], tuple[Kind, ...]], list[int]] = {}
    for row, message in enumerate(messages):
        shapes.setdefault((tuple(message), kinds[row]), []).append(row)
    tables: list[_Table] = []
    for (names, own), rows in shapes.items():
        if not any(table.take(names, own, rows) for table in tables[-TRIED_TABLES:]):
            tables.append(_Table())
            tables[-1].take(names, own, rows)
    return [_part(table, messages, regions) for table in tables]


def _part(table: _Table, messages: Sequence[Message], regions: Mapping[Any, Any]) -> Part:
    rows = sorted(table.rows)
    own = [messages[row] for row in rows]
    columns = {name: _column(name, kind, own, regions) for name, kind in table.kinds.items()}
    # A table without columns has no rows.
    return Part(pa.table(columns or {"id": pa.nulls(len(rows), pa.string())}), rows)


def _column(name: str, kind: Kind, messages: Sequence[Message], regions: Mapping[Any, Any]) -> Any:
    values = [message.get(name) for message in messages]
    if isinstance(kind, tuple):
        readers: dict[str, Callable[[list[Any]], Any]]
        readers = {"point": point_column, "circle": circle_column, "line": line_column}
        read = readers.get(kind[0]) or partial(_region_column, regions[kind[1]])
        return with_crs(pa.chunked_array([read(values)]), kind[1])
    if kind == "list":  # operators only ask whether there is one
        is_absent = pa.array([value is None for value in values])
        empty = pa.array(np.zeros(len(values) + 1, np.int32))
        return pa.ListArray.from_arrays(empty, pa.nulls(0), mask=is_absent)
    return pa.array(values, _TYPES[kind])


def _region_column(column: Any, values: Sequence[UnreadRegion | None]) -> Any:
    places = [None if value is None else value.place for value in values]
    return column if places == list(range(len(column))) else column.take(pa.array(places, pa.int64()))
