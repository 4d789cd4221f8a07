"""Fixes: a batch of states of tracked objects, read from messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.cql2.queries import Asked
from contrada.errors import ContradaError, FormatError
from contrada.formats.message_values import read_message
from contrada.formats.spatial import Spatial
from contrada.formats.tables.rows import attributes_of, rows_of, table_of, values_of
from contrada.formats.times import instant_of
from contrada.geometry import Circle, FaultCode, Point, Region, Rejection
from contrada.geometry.arrow.mixed import is_geometry
from contrada.geometry.globe import globes_of
from contrada.matching import ForwardingTable
from contrada.matching.batch import SpatialColumn, spatial_of_objects
from contrada.matching.batch_reading import as_table, checked_column, is_arrow
from contrada.shown import short
from contrada.tracking.transitions import ObjectId

Integers = NDArray[np.int64]
NO_INTEGERS: Integers = np.empty(0, np.int64)
NO_CIRCLES = "objects are not tracked by circles; give a point or a polygon"
MAX_TIME = 1 << 60  # milliseconds from 1970, either way
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
THREAD, ALERT, CANCEL = "thread", "alert", "msgType = 'Cancel'"  # attributes of CAP alerts (contrada.formats.cap)


class Fixes(NamedTuple):
    """A batch of states of tracked objects, by row, and the subscriptions that each matches.

    `ids` are text or whole numbers, None for rows that are not tracked; `times` are in milliseconds since 1970. The
    message of `rows[k]` matches the subscription `numbers[k]`; pairs may come in any order, and with numbers that
    nobody watches. `ends` marks rows that end their track. `aliases` are further ids of the same objects, for later
    fixes. `message` returns the attributes of a row, for filters with more than a spatial constraint that ask for
    `cross`.
    """

    ids: Sequence[ObjectId | None]
    times: Integers
    geometry: SpatialColumn
    rows: Integers = NO_INTEGERS
    numbers: Integers = NO_INTEGERS
    ends: NDArray[np.bool_] | None = None
    aliases: Sequence[ObjectId | None] | None = None
    message: Callable[[int], Mapping[str, Any]] | None = None

    def without(self, rows: Iterable[int]) -> Fixes:
        """Return the fixes with some rows not tracked."""
        ids = list(self.ids)
        for row in rows:
            ids[row] = None
        return self._replace(ids=ids)


class FixReader:
    """Reads fixes from messages: the attributes with the id and the time, and which message ends a track.

    Tracks of CAP alerts, by the attribute `thread`, have the alert's own id as alias and end with its cancellation.
    `wrap` says by attribute how regions and points are wrapped.
    """

    def __init__(
        self,
        track: str,
        *,
        time: str | None = None,
        alias: str | None = None,
        end: Asked | None = None,
        wrap: Mapping[str, str] | None = None,
    ) -> None:
        self._track, self._time = track, time
        self._alias = alias if alias is not None or track != THREAD else ALERT
        ending = end if end is not None or track != THREAD else CANCEL
        self._ending = None if ending is None else ForwardingTable(wrap=wrap)
        self._spatial = Spatial(globes=globes_of(wrap))
        if self._ending is not None and ending is not None:
            self._ending.subscribe("end", ending)

    def read(self, messages: Any, geometry: str | None, arrival: int) -> tuple[Fixes, list[Rejection]]:
        """Return the fixes of a list of messages or of an Arrow table, without pairs, and the rows not tracked.

        `arrival` is the time of all rows if no attribute holds it. A row that is rejected has the id None.
        """
        if is_arrow(messages):
            columns, shapes, bad = self._of_table(messages, geometry)
            size = len(columns[self._track])
        else:
            columns, shapes, bad = self._of_list(messages, geometry)
            size = len(messages)
        ids = _checked_ids(columns[self._track], self._track, bad)
        times = np.full(size, arrival, np.int64)
        if self._time is not None:
            times = _checked_times(columns[self._time], self._time, bad)
        for row in bad:
            ids[row] = None
        ends = None
        if self._ending is not None:
            ends = np.diff(self._ending.match_many(messages).offsets) > 0
        aliases = None if self._alias is None else [_alias(value) for value in columns[self._alias]]
        message = _row_reader(messages, self._spatial)
        fixes = Fixes(ids, times, shapes, ends=ends, aliases=aliases, message=message)
        return fixes, [Rejection(row, bad[row], FaultCode.VALUE) for row in sorted(bad)]

    @property
    def _names(self) -> list[str]:
        """The attributes other than the geometry."""
        return [name for name in dict.fromkeys((self._track, self._time, self._alias)) if name is not None]

    def _of_table(
        self, messages: Any, geometry: str | None
    ) -> tuple[dict[str, list[Any]], SpatialColumn, dict[int, str]]:
        table = as_table(messages, {*self._names, geometry or self._track})
        size = table.num_rows
        bad: dict[int, str] = {}
        shapes = SpatialColumn.of_parts([], size)
        if geometry is not None and geometry in table.column_names and is_geometry(table.column(geometry)):
            globe = self._spatial.globes.get(geometry)
            parts, rejected = checked_column(table, geometry, None, globe, circles=False)
            shapes = SpatialColumn.of_parts(parts, size)
            bad |= {item.row: item.reason for item in rejected}
        columns = {name: _column(table, name, size) for name in self._names}
        return columns, shapes, bad

    def _of_list(
        self, messages: Any, geometry: str | None
    ) -> tuple[dict[str, list[Any]], SpatialColumn, dict[int, str]]:
        names = {*self._names, geometry or self._track}
        bad: dict[int, str] = {}
        plain: list[Mapping[str, Any]] = []
        found: dict[int, Region | Point] = {}
        for row, message in enumerate(messages):
            try:
                plain.append(read_message(message, names.__contains__, self._spatial))
            except ContradaError as error:
                bad[row] = str(error)
                plain.append({})
            value = None if geometry is None else plain[-1].get(geometry)
            if isinstance(value, Circle):
                bad[row] = f"attribute {geometry!r}: {NO_CIRCLES}"
            elif isinstance(value, Region | Point):
                found[row] = value
        columns = {name: [message.get(name) for message in plain] for name in self._names}
        return columns, spatial_of_objects(found, len(plain)), bad


def read_fixes(
    messages: Any,
    track: str,
    geometry: str | None,
    *,
    time: str | None = None,
    alias: str | None = None,
    end: Asked | None = None,
    arrival: int,
) -> tuple[Fixes, list[Rejection]]:
    """Return the fixes of messages, without pairs, and the rows that are not tracked; see `FixReader`.

    >>> fixes, rejected = read_fixes([{"bus": 7}, {"bus": None}], "bus", "at", arrival=1000)
    >>> fixes.ids, fixes.times.tolist(), rejected[0].reason
    ([7, None], [1000, 1000], "attribute 'bus': need text or a whole number to track by, got None")
    """
    return FixReader(track, time=time, alias=alias, end=end).read(messages, geometry, arrival)


def _column(table: Any, name: str, size: int) -> list[Any]:
    return values_of(table.column(name)) if name in table.column_names else [None] * size


def _row_reader(messages: Any, spatial: Spatial) -> Callable[[int], Mapping[str, Any]]:
    """Return a function that reads the attributes of one row."""
    if not is_arrow(messages):
        return lambda row: read_message(messages[row], lambda _: True, spatial)

    def read(row: int) -> Mapping[str, Any]:
        found, _ = rows_of(attributes_of(table_of(messages).slice(row, 1)), None, spatial)
        return found[0]

    return read


def _checked_ids(values: list[Any], name: str, bad: dict[int, str]) -> list[ObjectId | None]:
    """Return ids; note the rows whose value is neither text nor a whole number."""
    kinds = set(map(type, values))
    if kinds <= {str} or kinds <= {int}:
        return values
    ids: list[ObjectId | None] = []
    for row, value in enumerate(values):
        own = _alias(value)
        if own is None:
            bad.setdefault(row, f"attribute {name!r}: need text or a whole number to track by, got {_shown(value)}")
        ids.append(own)
    return ids


def _alias(value: Any) -> ObjectId | None:
    if isinstance(value, np.integer):
        return int(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _shown(value: Any) -> str:
    return value.reason if isinstance(value, Rejection) else short(value)


def _checked_times(values: list[Any], name: str, bad: dict[int, str]) -> Integers:
    """Return times in milliseconds; note the rows without one."""
    times = np.zeros(len(values), np.int64)
    for row, value in enumerate(values):
        found = _time_of(value)
        if found is None or abs(found) > MAX_TIME:
            bad.setdefault(row, f"attribute {name!r}: need a timestamp, got {_shown(value)}")
        else:
            times[row] = found
    return times


def _time_of(value: Any) -> int | None:
    """Return a time in milliseconds: a timestamp, its text, or a number of milliseconds since 1970."""
    if isinstance(value, str):
        try:
            value = instant_of(value)
        except FormatError:
            return None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else int(value.astype("datetime64[ms]").astype(np.int64))
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        passed = aware - EARLIEST
        return passed.days * 86_400_000 + passed.seconds * 1_000 + passed.microseconds // 1_000
    if isinstance(value, date):
        return (value - EARLIEST.date()).days * 86_400_000
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value == value and abs(value) <= MAX_TIME:
        return int(value // 1)
    return None
