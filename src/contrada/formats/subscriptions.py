"""Read subscriptions from files: rows of key, subscriber and filter, or a table for a template."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError, LimitError
from contrada.formats import records
from contrada.formats.reading import read_messages
from contrada.formats.records import OpenFile, Read, Record, Rejected, Source
from contrada.formats.tables.subscription_rows import SubscriptionTable, whole_table
from contrada.formats.templates import column_of, misfits, pattern_columns, template_columns
from contrada.formats.wrapping import column_globes
from contrada.geometry import Line, Point, Region, RegionArray
from contrada.geometry.arrow import lazy_pyarrow as pa
from contrada.geometry.crs import Crs
from contrada.geometry.globe import Globe, globes_of, wraps_of
from contrada.limits import check_limit
from contrada.model import Constraint, Filter, Predicate
from contrada.model.filter import as_predicate
from contrada.model.text import encode_text
from contrada.model.values import KIND_NAMES, scalar_of

__all__ = ["Subscription", "SubscriptionTable", "read_subscription_table", "read_subscriptions", "template_columns"]

Name = str | int
Row = tuple[Read, dict[str, Any]]  # a message, and its values for the columns of a template


class Subscription(NamedTuple):
    """A subscription and its origin; the filter is CQL2 text or JSON, `row` is everything that the file says of it.

    Without a key, `key` is None and the subscriber is required; without a subscriber, the key is the subscriber.
    """

    source: str
    unit: str
    number: int
    key: Name | None
    subscriber: Name
    filter: str | dict[str, Any]
    row: Mapping[str, Any]


def read_subscriptions(source: Source, format: str | None = None) -> Iterator[Subscription | Rejected]:
    """Yield the subscriptions of newline JSON, JSON, Parquet, Arrow or CSV with key, subscriber and filter.

    >>> import io
    >>> (found,) = read_subscriptions(io.BytesIO(b'{"key": 7, "filter": "severity >= 3", "note": "x"}'))
    >>> found.key, found.subscriber, found.filter
    (7, 7, 'severity >= 3')
    """
    for file in records.files_of(source):
        with records.opened(file, format) as ready:
            if ready.format == "cap":
                raise FormatError(f"{ready.name}: CAP alerts are messages, not subscriptions")
            yield from records.until_damage(_read_file(ready), ready.name)


def _read_file(ready: OpenFile) -> Iterator[Subscription | Rejected]:
    is_json = ready.format in ("ndjson", "json", "geojsonseq")
    read: Callable[[BinaryIO, str], Iterator[Any]] = records.json_records if is_json else read_messages
    for item in read(ready.stream, ready.format):
        if isinstance(item, Rejected):
            yield item._replace(source=ready.name)
            continue
        try:
            value = item.value() if isinstance(item, Record) else item.message
            found = _subscription(value, ready.name, item.unit, item.number)
        except input_errors() as error:
            found = reason_of(error)
        yield item.rejected(ready.name, found) if isinstance(found, str) else found


def _subscription(value: Any, source: str, unit: str, number: int) -> Subscription | str:
    """Return the subscription of an object, or why there is none: exceptions are slow for many rows."""
    if type(value) is not dict and not isinstance(value, Mapping):
        return "need an object with the members key, subscriber and filter"
    if value.get("type") == "Feature":
        return "a GeoJSON feature needs a template to be a subscription"
    key, asked = value.get("key"), value.get("filter")
    subscriber = key if value.get("subscriber") is None else value["subscriber"]
    if subscriber is None:
        return "a subscription needs a key or a subscriber"
    for what, name in (("key", key), ("subscriber", subscriber)):
        if name is not None and (isinstance(name, bool) or not isinstance(name, str | int)):
            return f"{what}: need text or an integer, got {name!r:.60}"
    if not isinstance(asked, str | dict) or not asked:
        return "no filter" if not asked else f"filter: need CQL2 text or JSON, got {type(asked).__name__}"
    return Subscription(source, unit, number, key, subscriber, asked, value)


def read_subscription_table(
    source: Source,
    template: Constraint | Filter | Predicate,
    format: str | None = None,
    *,
    key: str = "key",
    subscriber: str = "subscriber",
    times: Collection[str] = (),
    crs: Any = None,
    to_crs: Any = None,
    buffer: float | None = None,
    wrap: Mapping[str, str] | None = None,
) -> SubscriptionTable:
    """Read the rows of a GeoJSON collection, GeoParquet, Parquet or any other format for a template.

    `key` and `subscriber` name the attributes of keys and subscribers; they may be absent. A row is rejected if a
    column of the template has no value, a bad one, one of another kind than earlier rows, or a pattern that is too
    long; if it lacks a key that other rows have; or if an earlier row has its key. `wrap` says by attribute how regions
    and points are wrapped at the date line.
    """
    globes = column_globes(as_predicate(template), globes_of(wrap))
    columns, patterns = template_columns(template), pattern_columns(template)
    if crs is None and buffer is None and not times:
        found = _read_columns(source, format, columns, patterns, key, subscriber, Crs.of(to_crs), globes)
        if found is not None:
            return found
    rows: list[Row] = []
    rejected: list[Rejected] = []
    for item in read_messages(
        source, format, times=times, crs=crs, to_crs=to_crs, buffer=buffer, wrap=wraps_of(globes)
    ):
        if isinstance(item, Rejected):
            rejected.append(item)
            continue
        values = item.message.get
        row = {name: values(name) for name in columns}
        rows.append((item, row | {"key": values(key), "subscriber": values(subscriber)}))
    columns += [name for name in ("key", "subscriber") if any(row[name] is not None for _, row in rows)]
    return _table_of(_sifted(rows, columns, patterns, rejected), columns, rejected)


def _read_columns(
    source: Source,
    format: str | None,
    columns: list[str],
    patterns: set[str],
    key: str,
    subscriber: str,
    to_crs: Crs | None,
    globes: Mapping[str, Globe],
) -> SubscriptionTable | None:
    """Read a table column by column; return None if rows must be read one by one.

    With `to_crs`, that is so for rows that are rejected, regions in another CRS, and points.
    """
    start = source.tell() if isinstance(source, io.BytesIO) else 0
    try:
        found = whole_table(source, format, columns, patterns, key, subscriber, globes)
    except FormatError:
        if to_crs is None:
            raise
        found = None
    if isinstance(source, io.BytesIO):
        source.seek(start)
    if to_crs is None:
        return found
    if found is None or found.rejected:
        return None
    read = [part.column for parts in found.read.values() for part in parts]
    is_there = all(isinstance(column, RegionArray) and column.crs == to_crs for column in read)
    return found if is_there else None


def _sifted(rows: list[Row], columns: list[str], patterns: set[str], rejected: list[Rejected]) -> list[Row]:
    """Return the rows with all columns, of one kind each, and a unique key; reject the others."""
    kinds: dict[str, str] = {}
    keys: set[Any] = set()
    kept = []
    for item, row in rows:
        empty = next((name for name in columns if row[name] is None), None)
        if empty is not None:  # raising an exception takes longer
            rejected.append(item.rejected(item.source, f"column {empty!r}: no value"))
            continue
        try:
            found = {name: _kind_of(name, row[name]) for name in columns}
            for name, kind in found.items():
                if kinds.get(name, kind) != kind:
                    raise FormatError(f"column {name!r}: need {kinds[name]}, as in earlier rows, got {kind}")
            for name in patterns:
                if isinstance(row[name], str):
                    check_limit("pattern_bytes", len(encode_text(row[name])), f"column {name!r}: the pattern")
            if "key" in found and row["key"] in keys:
                raise FormatError(f"duplicate key {row['key']!r:.60}")
        except (FormatError, LimitError) as error:
            rejected.append(item.rejected(item.source, error))
            continue
        kinds |= found
        keys.add(row["key"])
        kept.append((item, row))
    return kept


def _kind_of(name: str, value: Any) -> str:
    """Return the kind of a value in a template's column."""
    if name in ("key", "subscriber"):
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise FormatError(f"{name}: need text or an integer, got {value!r:.60}")
        return "text" if isinstance(value, str) else "an integer"
    if isinstance(value, Region | Point | Line):
        kind = f"a {type(value).__name__.lower()}"
        return kind if value.crs is None else f"{kind} in {value.crs.label}"
    scalar = scalar_of(value)
    if not isinstance(value, str) and scalar is None:
        raise FormatError(f"column {name!r}: {str(value)[:40]} cannot be compared")
    return "text" if scalar is None else KIND_NAMES[scalar.kind]


def _table_of(rows: list[Row], columns: list[str], rejected: list[Rejected]) -> SubscriptionTable:
    """Return the rows as an Arrow table; numbers that no column type holds with the others are rejected."""
    for name in columns:
        misfitting = set(misfits([row[name] for _, row in rows]))
        for k in sorted(misfitting):
            item, row = rows[k]
            reason = f"column {name!r}: {row[name]} does not fit exactly into a column with the values of other rows"
            rejected.append(item.rejected(item.source, reason))
        rows = [pair for k, pair in enumerate(rows) if k not in misfitting]
    made = {name: column_of([row[name] for _, row in rows]) for name in columns}
    rejected.sort(key=lambda item: (item.source, item.number))
    return SubscriptionTable(pa.table(made), [item[:3] for item, _ in rows], rejected)
