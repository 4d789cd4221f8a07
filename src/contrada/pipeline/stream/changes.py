"""Changes of subscriptions: read subscribe and unsubscribe records from files, and apply them to a table. No Spark.

A record has `action` (`subscribe`, the default, or `unsubscribe`), `key`, and for a subscription `filter` (CQL2 text,
or CQL2 JSON in JSON files) and `subscriber` (default: the key). A subscription with a key in use replaces the earlier
one.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, NamedTuple, Protocol

from contrada.cql2.queries import Asked, asked_predicate
from contrada.errors import FormatError
from contrada.formats.reading import read_messages
from contrada.formats.records import SUFFIXES, Rejected, json_records, lines, opened
from contrada.matching import ForwardingTable
from contrada.model import Predicate
from contrada.pipeline import manifests
from contrada.pipeline.reasons import plain_text, reason_of
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.apart import run_apart

ACTIONS = ("subscribe", "unsubscribe")
JSON_FORMATS, TABLE_FORMATS = ("ndjson", "json", "geojsonseq"), ("parquet", "arrow")
Name = str | int


class Change(NamedTuple):
    """One record: an action on a key, and its position in its source."""

    action: str
    key: Name
    subscriber: Name
    filter: str | None
    source: str = ""
    unit: str = "record"
    number: int = 0
    raw: str = ""  # original text

    def line(self) -> str:
        """Return the record as a line of JSON, without its position."""
        return json.dumps([self.action, self.key, self.subscriber, self.filter], ensure_ascii=False)

    def rejected(self, reason: object) -> Rejected:
        """Return a rejection of the record."""
        return Rejected(self.source, self.unit, self.number, str(reason), self.raw or self.line())


class News(NamedTuple):
    """The records after a state, and the state after them, which must be JSON."""

    records: list[Change | Rejected]
    state: Any


class Changes(Protocol):
    """A source of changes; a state says which records were read, None that none were."""

    def since(self, state: Any) -> News:
        """Return the records after a state, in order."""


class DirectoryChanges:
    """The files of a directory as changes, each read once, new files in the order of their names.

    A file must be complete when it gets its name: write it under a name that starts with a dot, then rename it. A file
    that changes after it was read is not read again, but reported as a rejection. The state holds name and size of the
    files that were read and still exist.
    """

    def __init__(self, directory: str) -> None:
        self._place = Storage(directory)

    def since(self, state: Any) -> News:
        """Return the records of new files."""
        known: dict[str, int] = manifests.map_of(manifests.count)(state or {})
        sizes = self._place.sizes()
        records: list[Change | Rejected] = []
        for name, size in sizes.items():
            if name not in known:
                read = None
                with suppress(OSError):  # a directory, or unreadable
                    read = self._place.read(name)
                sizes[name] = len(read or b"")
                records += self._records(name, read)
            elif size != known[name]:
                reason = f"the file changed from {known[name]} to {size} bytes after it was read; it is not read again"
                records.append(Rejected(f"{self._place.where}/{name}", "file", 0, reason, ""))
        return News(records, sizes)

    def _records(self, name: str, data: bytes | None) -> list[Change | Rejected]:
        """Return the records of a file; if reading fails, one rejection stands for the rest."""
        source = f"{self._place.where}/{name}"
        records: list[Change | Rejected] = []
        try:
            if data is None:
                raise FormatError("the file cannot be read")
            with opened(io.BytesIO(data), SUFFIXES.get(PurePosixPath(name).suffix.lower())) as ready:
                format = ready.format
            if format in TABLE_FORMATS:
                return read_apart(data, source)
            records.extend(read_changes(io.BytesIO(data), source))
        except Exception as error:  # a bad file must not end the stream
            records.append(Rejected(source, "file", 0, reason_of(error), ""))
        return records


def read_apart(data: bytes, source: str) -> list[Change | Rejected]:
    """Return the records of a Parquet or Arrow file, read in another process.

    The C++ readers of these formats may crash on a damaged file. A driver that crashed so would crash again at every
    start. The process has the limits `reader_seconds` and `reader_memory`.
    """
    run = run_apart("contrada.pipeline.stream.change_files", [source], data)
    records: list[Change | Rejected] = []
    for line in run.output.decode(errors="replace").splitlines():
        with suppress(ValueError):  # the last line may be cut off
            kind, *fields = json.loads(line)
            records.append(Change(*fields) if kind == "change" else Rejected(*fields))
    if run.failure is not None:
        reason = f"the file cannot be read from here on: {run.failure}"
        records.append(Rejected(source, "file", 0, reason, ""))
    return records


class ChangeTable:
    """A table of Spark's catalog with the columns of a record and `sequence`; the state is the highest `sequence` read.

    Every new row needs a larger `sequence` than all before: a late row with a smaller one is not read.
    """

    def __init__(self, session: Any, name: str) -> None:
        self._session, self._name = session, name

    def since(self, state: Any) -> News:
        """Return the rows with a larger `sequence` than `state`, in order."""
        from pyspark.sql import functions as f

        last = -1 if state is None else int(state)
        self._session.catalog.refreshTable(self._name)
        table = self._session.table(self._name).where(f.col("sequence") > last).orderBy("sequence")
        rows = [row.asDict() for row in table.collect()]
        numbers = [int(row.pop("sequence")) for row in rows]
        records = [parsed_change(row, self._name, "row", number) for row, number in zip(rows, numbers, strict=True)]
        return News(records, max(numbers, default=last))


def read_changes(stream: Any, source: str) -> Iterator[Change | Rejected]:
    """Yield the records of one file, in newline JSON, JSON, Parquet, Arrow or CSV.

    >>> import io
    >>> (found,) = read_changes(io.BytesIO(b'{"key": "k1", "filter": "size > 3"}'), "one.ndjson")
    >>> found.action, found.subscriber, found.filter
    ('subscribe', 'k1', 'size > 3')
    """
    with opened(stream, SUFFIXES.get(PurePosixPath(source).suffix.lower())) as ready:
        if ready.format == "cap":
            raise FormatError("CAP alerts are messages, not changes of subscriptions")
        if ready.format not in JSON_FORMATS:
            yield from _rows(ready.stream, ready.format, source)
            return
        for record in json_records(ready.stream, ready.format):
            try:
                value = record.value()
            except Exception as error:  # the next record may be good
                yield record.rejected(source, reason_of(error))
            else:
                yield parsed_change(value, source, record.unit, record.number, record.data.decode(errors="replace"))


def _rows(stream: Any, format: str, source: str) -> Iterator[Change | Rejected]:
    """Yield the records of a file of rows; lines of CSV keep their text."""
    data = stream.read()
    texts = {record.number: record.data for record in lines(io.BytesIO(data))} if format == "csv" else {}
    for item in read_messages(io.BytesIO(data), format):
        if isinstance(item, Rejected):
            yield item._replace(source=source)
        else:
            raw = texts[item.number].decode(errors="replace") if texts else None
            yield parsed_change(item.message, source, item.unit, item.number, raw)


def parsed_change(value: Any, source: str, unit: str, number: int, raw: str | None = None) -> Change | Rejected:
    """Return the change in a record, or a rejection; `raw` is its text, None for a row."""
    if raw is None:
        raw = plain_text(json.dumps(value, default=str, ensure_ascii=False))
    try:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise FormatError("need an object with the members action, key, subscriber and filter")
        action = value.get("action") or "subscribe"
        if action not in ACTIONS:
            raise FormatError(f"action: need subscribe or unsubscribe, got {action!r:.60}")
        key: Any = value.get("key")
        if key is None:  # no exception: raising one takes longer than the rest
            return Rejected(source, unit, number, "key: need text or an integer, got None", raw)
        asked: Any = value.get("filter")
        subscriber: Any = key if value.get("subscriber") is None else value["subscriber"]
        for what, name in (("key", key), ("subscriber", subscriber)):
            if not isinstance(name, str | int) or isinstance(name, bool):
                raise FormatError(f"{what}: need text or an integer, got {name!r:.60}")
            str(name).encode()  # raises for lone surrogates and for integers of thousands of digits
        if action == "subscribe":
            if not asked or not isinstance(asked, str | Mapping):
                raise FormatError("no filter")
            asked = asked if isinstance(asked, str) else str(asked_predicate(asked))
            asked.encode()
        return Change(action, key, subscriber, asked if action == "subscribe" else None, source, unit, number, raw)
    except Exception as error:  # the next record may be good
        return Rejected(source, unit, number, reason_of(error), raw)


INTEGERS = {"tinyint": 1 << 7, "smallint": 1 << 15, "int": 1 << 31, "bigint": 1 << 63}


def _typed(name: Name, kind: str, what: str) -> Name:
    """Convert a key or subscriber to the type of the table's names; raise FormatError if impossible."""
    if kind == "string":
        return str(name)
    with suppress(ValueError):
        number = int(name)
        if -INTEGERS[kind] <= number < INTEGERS[kind]:
            return number
    raise FormatError(f"{what}: need {kind}, got {name!r:.60}")


class Applied(NamedTuple):
    """The result of records: applied changes, rejections, and the attributes that the changes test."""

    changes: list[Change]
    rejected: list[Rejected]
    attributes: set[str]


class Subscriptions(Protocol):
    """A table of subscriptions, as far as changes need it."""

    def subscribe(self, subscriber: Name, what: Asked, key: Name, replace: bool) -> Name:
        """Add a subscription, or replace the one with this key."""

    def unsubscribe(self, key: Name) -> None:
        """Remove a subscription; raise UnknownKeyError for an unknown key."""

    def __len__(self) -> int: ...


def keys_in(records: Iterable[Change | Rejected], kind: str) -> Iterator[Name]:
    """Yield the keys of good records, in the type that the table's keys have."""
    for record in records:
        if isinstance(record, Change):
            with suppress(FormatError):
                yield _typed(record.key, kind, "key")


def apply_changes(
    table: Subscriptions,
    records: Iterable[Change | Rejected],
    types: tuple[str, str],
    check: Callable[[set[str]], None] = lambda attributes: None,
    admit: Callable[[Predicate], None] = lambda predicate: None,
) -> Applied:
    """Apply records to a table in order; a bad one changes nothing.

    `check` raises for attributes it refuses, `admit` for queries.

    >>> table = ForwardingTable()
    >>> made = apply_changes(table, [Change("subscribe", 1, 1, "size > 3"), Change("unsubscribe", 2, 2, None)],
    ...     ("bigint", "bigint"))
    >>> len(table), made.rejected[0].reason, made.attributes
    (1, 'no subscription has the key 2', {'size'})
    """
    made = Applied([], [], set())
    for record in records:
        if isinstance(record, Rejected):
            made.rejected.append(record)
            continue
        try:
            key, subscriber = _typed(record.key, types[0], "key"), _typed(record.subscriber, types[1], "subscriber")
            change = record._replace(key=key, subscriber=subscriber)
            if change.filter is None:
                table.unsubscribe(change.key)
            else:
                predicate = asked_predicate(change.filter)
                attributes = {constraint.attribute for part in predicate for constraint in part}
                check(attributes)
                admit(predicate)
                table.subscribe(change.subscriber, predicate, change.key, replace=True)
                made.attributes.update(attributes)
            made.changes.append(change)
        except Exception as error:  # any error: it would end the driver again at every start
            made.rejected.append(record.rejected(reason_of(error)))
    return made


def changes_in(lines: bytes) -> Iterator[Change]:
    """Yield the changes in lines of `Change.line`."""
    for line in filter(None, lines.decode().split("\n")):
        yield Change(*json.loads(line))


def apply_segment(table: ForwardingTable, lines: bytes) -> int:
    """Apply changes that were validated before, from lines of `Change.line`; return the number of subscriptions."""
    count = 0
    for change in changes_in(lines):
        if change.filter is None:
            table.unsubscribe(change.key)
        else:
            table.subscribe(change.subscriber, change.filter, change.key, replace=True)
            count += 1
    return count
