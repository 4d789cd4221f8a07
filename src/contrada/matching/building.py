"""Build a table from Arrow tables of subscriptions, batch by batch; bad rows are rejected, the others added."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.cql2.shapes import Shape, TextShapes, column_name
from contrada.errors import ContradaError, CrsError, FilterError, KeyInUseError
from contrada.formats.tables.rows import values_of
from contrada.formats.tables.subscription_rows import row_faults, rows_without
from contrada.formats.templates import pattern_columns
from contrada.formats.wrapping import column_globes
from contrada.geometry import Rejection
from contrada.geometry.arrow.checks import check_column
from contrada.geometry.arrow.mixed import ValueRows
from contrada.geometry.globe import globes_of
from contrada.geometry.line_relating import ShapeColumn
from contrada.halving import in_halves
from contrada.matching.table import ForwardingTable, subscribe_rows
from contrada.matching.template import asked_columns, read_columns
from contrada.model import Predicate

MIN_ALIKE = 16  # rows of one shape that are bound by columns; fewer are parsed one by one


class RejectedRow(NamedTuple):
    """A rejected row: its number among all rows, its key as text (None if it has none), and the reason."""

    row: int
    key: str | None
    reason: str


class Given(NamedTuple):
    """A row with a filter in text: its number among all rows, and its values, Rejections among them."""

    row: int
    key: Any
    subscriber: Any
    asked: Any

    @property
    def subscriber_or_key(self) -> Any:
        """The subscriber; the key by default."""
        return self.key if self.subscriber is None else self.subscriber


class TableBuilder:
    """Add subscriptions from rows: columns `key`, `subscriber` and `filter` (CQL2), or the columns of a template.

    The default key is the number of the row among all rows; the default subscriber is the key. Rows are rejected one by
    one, so a bad row does not affect the others.

    >>> import pyarrow as pa
    >>> builder = TableBuilder()
    >>> builder.add(pa.table({"key": ["a", "b"], "filter": ["price < 100", "price <"]}))[0].key
    'b'
    >>> sorted(builder.table.match_keys({"price": 7}))
    ['a']
    """

    def __init__(self, template: Predicate | None = None, table: ForwardingTable | None = None) -> None:
        self.table = ForwardingTable() if table is None else table
        self.rows = 0  # rows read so far
        self._template = template
        self._kinds: dict[str, type] = {}
        self._shapes = TextShapes()

    def add(self, rows: Any) -> list[RejectedRow]:
        """Subscribe the rows of an Arrow table; return the rejected rows, sorted."""
        numbers = np.arange(self.rows, self.rows + rows.num_rows)
        self.rows += rows.num_rows
        if self._template is None:
            return self._add_filters(rows, numbers)
        return sorted(self._add_bound(asked_columns(rows, self._template), numbers, self._template))

    def _add_filters(self, rows: Any, numbers: NDArray[np.int64]) -> list[RejectedRow]:
        if "filter" not in rows.column_names:
            raise FilterError(
                f"subscriptions without a template need column 'filter'; columns: {', '.join(rows.column_names)}"
            )
        names = [name for name in ("key", "subscriber", "filter") if name in rows.column_names]
        values = {name: values_of(check_column(rows.column(name), f"column {name!r}")) for name in names}
        filters = values["filter"]
        keys = values.get("key", numbers.tolist())
        subscribers = values.get("subscriber", [None] * len(filters))
        given = [Given(*each) for each in zip(numbers.tolist(), keys, subscribers, filters, strict=True)]
        rejected = []
        for each in self._add_by_shape(given):
            try:
                self._add_one(each)
            except ContradaError as error:
                key = str(each.key) if isinstance(each.key, str | int) else None
                rejected.append(RejectedRow(each.row, key, str(error)))
        return rejected

    def _add_one(self, given: Given) -> None:
        for name, value in zip(("key", "subscriber", "filter"), given[1:], strict=True):
            if isinstance(value, Rejection):
                raise FilterError(f"column {name!r}: {value.reason}")
        if given.key is None:
            raise FilterError("no key")
        if not given.asked:
            raise FilterError("no filter")
        self.table.subscribe(given.subscriber_or_key, given.asked, given.key)

    def _add_by_shape(self, given: list[Given]) -> list[Given]:
        """Subscribe rows whose texts have a shape in common, column by column; return all others, in order."""
        counts = Counter(each.key for each in given if isinstance(each.key, str | int))
        groups: dict[tuple[Shape, type], list[tuple[Given, list[str]]]] = defaultdict(list)
        others: list[Given] = []
        for each in given:
            found = self._shapes.find(each.asked) if isinstance(each.asked, str) else None
            is_plain = type(each.key) in (str, int) and type(each.subscriber) in (type(None), type(each.key))
            if found is None or not is_plain or counts[each.key] > 1 or found[0].has_twins(found[1]):
                others.append(each)
            else:
                groups[found[0], type(each.key)].append((each, found[1]))
        for (shape, _), group in groups.items():
            alike, literals = [each for each, _ in group], [own for _, own in group]
            others += alike if len(alike) < MIN_ALIKE else self._add_alike(shape, alike, literals)
        return sorted(others, key=lambda each: each.row)

    def _add_alike(self, shape: Shape, given: list[Given], literals: list[list[str]]) -> list[Given]:
        """Subscribe rows of one shape; return those that cannot be, to be read one by one for the reason."""
        import pyarrow as pa

        assert shape.template is not None
        columns = {"key": pa.array([each.key for each in given])}
        columns["subscriber"] = pa.array([each.subscriber_or_key for each in given])
        for number, column in enumerate(zip(*literals, strict=True)):
            bound = shape.column(number, column)
            if bound is None:
                return given
            columns[column_name(number)] = bound
        rows, template = pa.table(columns), shape.template

        def subscribe(start: int, stop: int) -> bool:
            written = [each.asked for each in given[start:stop]]
            subscribe_rows(self.table, rows.slice(start, stop - start), template, written=written)
            return True

        parts = in_halves(len(given), subscribe, ContradaError)
        return [given[part.start] for part in parts if part.error is not None]

    def _add_bound(self, rows: Any, numbers: NDArray[np.int64], template: Predicate) -> list[RejectedRow]:
        import pyarrow as pa

        patterns, read = pattern_columns(template), dict[str, list[ValueRows]]()
        globes = column_globes(template, globes_of(self.table.wrap))

        def faults(start: int, stop: int) -> dict[int, str]:
            return row_faults(rows.slice(start, stop - start), self._kinds, patterns, read, globes)

        if "key" not in rows.column_names:
            rows = rows.append_column("key", pa.array(numbers))
        rejected: list[RejectedRow] = []
        for part in in_halves(len(numbers), faults, CrsError):  # several CRS in one column; one row has one
            reasons = part.result
            assert reasons is not None
            some, places = rows.slice(part.start, part.stop - part.start), numbers[part.start : part.stop]
            rejected += [RejectedRow(int(places[row]), _text(some, row), reason) for row, reason in reasons.items()]
            good = rows_without(len(places), reasons)
            columns = read_columns(read, good, len(places))
            if reasons:
                some, places = some.take(good), places[good]
            rejected += self._subscribe(some, places, template, columns)
        return rejected

    def _subscribe(
        self, rows: Any, numbers: NDArray[np.int64], template: Predicate, read: Mapping[str, ShapeColumn]
    ) -> list[RejectedRow]:
        """Subscribe rows, with geometry columns that are `read`; reject keys in use and rows that raise an error."""
        rejected: list[RejectedRow] = []

        def subscribe(start: int, stop: int) -> bool:
            some = rows.slice(start, stop - start)
            try:
                subscribe_rows(self.table, some, template, read=read if len(some) == len(rows) else {})
            except KeyInUseError:
                used = np.array([key in self.table for key in some.column("key").to_pylist()])
                for row in np.flatnonzero(used).tolist():
                    key = _text(some, row)
                    rejected.append(RejectedRow(int(numbers[start + row]), key, f"duplicate key {key!r:.60}"))
                free = np.flatnonzero(~used)
                rejected.extend(self._subscribe(some.take(free), numbers[start + free], template, {}))
            return True

        for part in in_halves(rows.num_rows, subscribe, ContradaError):
            if part.error is not None:
                place = int(numbers[part.start])
                rejected.append(RejectedRow(place, _text(rows, part.start), str(part.error)))
        return rejected


def _text(rows: Any, row: int) -> str | None:
    """Return the key of a row as text."""
    key = rows.column("key")[row].as_py()
    return None if key is None else str(key)
