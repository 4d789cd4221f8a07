"""Read messages from files and standard input in batches, full ones or, if input is slow, smaller ones."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from contrada.collecting import collections_paused
from contrada.doors import input_errors, reason_of
from contrada.errors import ContradaError, FormatError
from contrada.formats import records
from contrada.formats.json import decode
from contrada.formats.json_columns import JsonLines
from contrada.formats.messages import message_from, not_an_object
from contrada.formats.reading import read_messages
from contrada.formats.records import IDENTIFIERS, TABLE_FORMATS, Lines, OpenFile, Record, Rejected
from contrada.formats.spatial import Spatial
from contrada.formats.tables.row_files import read_batches, row_text
from contrada.formats.tables.rows import attributes_of, values_of
from contrada.geometry import Rejection
from contrada.geometry.globe import globes_of
from contrada.geometry.pool import PREFIX, cores
from contrada.matching.explain import plain_value

BATCH_MESSAGES = 2048  # messages in a batch
IDLE_SECONDS = 0.005  # seconds without input before a batch that is not full is processed
BY_COLUMN = ("zones", "wrap")  # options of messages that are read by columns
Place = tuple[str, str, int]  # source, unit, number


class MessageOptions(NamedTuple):
    """How messages are read: the arguments of `read_messages`, and the attribute that identifies a message."""

    format: str | None
    options: dict[str, Any]
    id: str | None


class MessageBatch(NamedTuple):
    """A list or Arrow table of messages, with the identifier and place of each, and the faults of bad ones."""

    messages: Any
    ids: Sequence[str | int]
    places: Sequence[Place]
    raw: Callable[[int], str]
    bad: dict[int, str]


class LinePlaces(Sequence[Place]):
    """The places of lines with the given numbers."""

    def __init__(self, name: str, numbers: Sequence[int]) -> None:
        self._name, self._numbers = name, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, row: Any) -> Any:
        return self._name, "line", self._numbers[row]


class _Ahead:
    """Calls functions in threads, a few ahead, and passes on their results in order."""

    def __init__(self, threads: int | None) -> None:
        self._most = threads or cores()
        self._pool = ThreadPoolExecutor(self._most, thread_name_prefix=PREFIX) if self._most > 1 else None
        self._begun: deque[tuple[Future[Any], Callable[[Any], None]]] = deque()

    def __enter__(self) -> _Ahead:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.drain()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def add(self, work: Callable[[], Any], take: Callable[[Any], None]) -> None:
        """Begin some work; `take` gets its result, after the results of earlier work."""
        if self._pool is None:
            take(work())
            return
        self._begun.append((self._pool.submit(work), take))
        while len(self._begun) > self._most:
            self._take_first()

    def drain(self) -> None:
        """Wait for all results, and pass them on."""
        while self._begun:
            self._take_first()

    def _take_first(self) -> None:
        future, take = self._begun.popleft()
        take(future.result())


class Intake:
    """Reads messages; passes batches to `take` and rejections to `reject`.

    `pause` is called when all messages read so far are passed on, before waiting for more; `waits` before waiting for
    input of a pipe that has not arrived yet.
    """

    def __init__(
        self,
        reading: MessageOptions,
        take: Callable[[MessageBatch], None],
        reject: Callable[[Rejected], None],
        by_rows: bool = True,
        several: bool = False,
        pause: Callable[[], None] = lambda: None,
        waits: Callable[[], None] = lambda: None,
        threads: int | None = 1,
    ) -> None:
        self._threads, self._waits = threads, waits
        self._reading, self._take, self._reject, self._pause = reading, take, reject, pause
        # Geometry that is reprojected or buffered, and text that is a time, are read value by value.
        self._by_rows = by_rows and not any(value for name, value in reading.options.items() if name not in BY_COLUMN)
        self._spatial = Spatial(globes=globes_of(reading.options.get("wrap")))
        self._id_names = IDENTIFIERS if reading.id is None else (reading.id,)
        self._schema, self._ahead = JsonLines(), _Ahead(1)
        self._pending: list[tuple[dict[str, Any], str | int, Place]] = []  # messages, identifiers and places
        self._several = several  # several files: a number alone does not identify a message
        self.position: Callable[[], tuple[int, int]] | None = None  # returns bytes read and in total

    def run(self, source: Path) -> None:
        """Read a file, the files of a directory, or standard input ("-")."""
        files = records.files_of(source)
        if not files:
            raise FormatError(f"{source}: no file has a known suffix; pass --messages-format")
        self._several = self._several or len(files) > 1
        for file in files:
            assert isinstance(file, str | os.PathLike)
            format = self._reading.format or records.suffix_format(file)
            with (
                _stream(Path(file), self._wait) as stream,
                records.opened(records.unpacked(stream, file), format) as ready,
            ):
                self.position = _position(stream)
                if self._by_rows and ready.format in TABLE_FORMATS:
                    self._read_rows(ready)
                elif self._by_rows and ready.format == "ndjson":
                    self._read_lines(ready)
                else:
                    self._read_each(ready)
                self._before_waiting()
            self.position = None

    def _before_waiting(self) -> None:
        self._ahead.drain()
        self.flush()
        self._pause()

    def _wait(self) -> None:
        self._before_waiting()
        self._waits()

    def flush(self) -> None:
        """Process the pending messages."""
        if not self._pending:
            return
        messages, ids, places = map(list, zip(*self._pending, strict=True))
        self._pending = []
        self._take(MessageBatch(messages, ids, places, lambda k: message_text(messages[k]), {}))

    def _read_each(self, ready: OpenFile) -> None:
        for item in read_messages(ready.stream, ready.format, **self._reading.options):
            if isinstance(item, Rejected):
                self._reject(item if item.source == ready.name else item._replace(source=ready.name))
                continue
            self._add(item.message, (ready.name, item.unit, item.number))
            if len(self._pending) >= BATCH_MESSAGES:
                self.flush()

    def _read_lines(self, ready: OpenFile) -> None:
        """Read newline JSON in blocks, the next ones in threads while one is matched."""
        with _Ahead(self._threads) as ahead:
            self._ahead = ahead
            for block in records.until_damage(records.line_blocks(ready.stream), ready.name):
                if isinstance(block, Rejected):
                    ahead.drain()
                    self._reject(block)
                else:
                    ahead.add(partial(self._schema.table_of, block.data), partial(self._take_block, block, ready.name))

    def _take_block(self, block: Lines, name: str, table: Any | None) -> None:
        """Process a block of lines: as a table, or without the bad lines as a table, or as messages one by one."""
        if table is not None:
            places = LinePlaces(name, range(block.before + 1, block.before + 1 + table.num_rows))
            lines = cache(partial(block.data.split, b"\n"))  # only if a message is rejected, and then once
            self._take_table(table, places, lambda k: lines()[k])
            return
        with collections_paused():  # decoded objects refer to each other in no circles
            good, values = self._decoded(block, name)
            if not good:
                return
            self._schema.learn(values)
            data = [record.data for record in good]
            table = self._schema.table_of(b"".join(line + b"\n" for line in data))
            if table is not None:
                self._take_table(table, LinePlaces(name, [record.number for record in good]), data.__getitem__)
                return
            for value, record in zip(values, good, strict=True):
                self._add_message(value, (name, "line", record.number), record.data)
            self.flush()

    def _decoded(self, block: Lines, name: str) -> tuple[list[Record], list[dict[str, Any]]]:
        """Return the lines of a block that are objects, and the objects; reject the others."""
        good, values = [], []
        for record in block.records():
            value, reason = record.decoded()
            if reason is None and type(value) is not dict:
                reason = not_an_object(value)
            if reason is None:
                good.append(record)
                values.append(value)
            else:
                self._reject(record.rejected(name, reason))
        return good, values

    def _take_table(self, table: Any, places: Sequence[Place], line: Callable[[int], bytes]) -> None:
        ids, bad = self._row_identifiers(table, places)

        def text(row: int) -> str:
            return message_text(message_from(decode(line(row)), self._spatial, ()))

        self._take(MessageBatch(table, ids, places, text, bad))

    def _add_message(self, value: dict[str, Any], place: Place, line: bytes) -> None:
        """Read the object of a line, and add it to the pending messages or reject it."""
        try:
            message = message_from(value, self._spatial, ())
        except input_errors() as error:
            self._reject(Rejected(*place, reason_of(error), line.strip(b" \t\r\n").decode("utf-8", "replace")))
        else:
            self._add(message, place)

    def _add(self, message: dict[str, Any], place: Place) -> None:
        try:
            self._pending.append((message, self._identifier(message.get, place), place))
        except FormatError as error:
            self._reject(Rejected(*place, str(error), message_text(message)))

    def _identifier(self, value_of: Callable[[str], Any], place: Place) -> str | int:
        """Return the identifier of a message: the named attribute, a usual one, or its number."""
        for name in self._id_names:
            value = value_of(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                return value
        if self._reading.id is None:
            return f"{Path(place[0]).name}:{place[2]}" if self._several else place[2]
        if value is None:
            raise FormatError(f"need attribute {name!r} to identify the message")
        return str(value)

    def _read_rows(self, ready: OpenFile) -> None:
        """Process a file of rows as tables, which is faster than row by row."""
        first = 0
        for table in self._tables(ready):
            places = [(ready.name, "row", first + row) for row in range(table.num_rows)]
            first += table.num_rows
            ids, bad = self._row_identifiers(table, places)
            self._take(MessageBatch(table, ids, places, partial(row_text, table), bad))

    def _tables(self, ready: OpenFile) -> Iterator[Any]:
        """Yield the tables of a file, up to the first damage."""
        import pyarrow as pa

        first = 0
        try:
            for table in read_batches(ready.stream, ready.format):
                first += table.num_rows
                yield table
        except (pa.ArrowException, OSError, ContradaError) as error:
            self._reject(Rejected(ready.name, "row", first, f"the file cannot be read from here on: {error}", ""))

    def _row_identifiers(self, table: Any, places: Sequence[Place]) -> tuple[list[str | int], dict[int, str]]:
        """Return the identifiers of the rows of a table, and why some have none."""
        plain = attributes_of(table, self._id_names)
        first = next((name for name in self._id_names if name in plain.column_names), None)
        if first is not None and str(plain.column(first).type) in ("int64", "string"):
            found = values_of(plain.column(first))
            if {int, str}.issuperset(map(type, found)):
                return found, {}
        columns = {name: values_of(plain.column(name)) for name in self._id_names if name in plain.column_names}
        ids: list[str | int] = []
        bad: dict[int, str] = {}
        for row, place in enumerate(places):
            own = {
                name: None if isinstance(values[row], Rejection) else values[row] for name, values in columns.items()
            }
            try:
                ids.append(self._identifier(own.get, place))
            except FormatError as error:
                ids.append(place[2])
                bad[row] = str(error)
        return ids, bad


@contextmanager
def _stream(path: Path, before_waiting: Callable[[], None]) -> Iterator[BinaryIO]:
    """Open a file; `before_waiting` is called when a pipe has no input."""
    is_stdin = str(path) == "-"
    if is_stdin and sys.stdin is None:
        raise FormatError("standard input is closed")
    opened: AbstractContextManager[BinaryIO] = nullcontext(sys.stdin.buffer) if is_stdin else path.open("rb")
    with opened as file:
        try:
            number = file.fileno()
            is_whole = not is_stdin and stat.S_ISREG(os.fstat(number).st_mode)
        except (OSError, AttributeError):  # standard input that is no file, as in tests
            is_whole = True
        if is_whole:
            yield file
        else:
            name = "standard input" if is_stdin else str(path)
            yield io.BufferedReader(_Arriving(number, name, before_waiting), 1 << 16)


class _Arriving(io.RawIOBase):
    """Bytes from a pipe, a socket or a terminal; calls `before_waiting` when no input is ready."""

    def __init__(self, number: int, name: str, before_waiting: Callable[[], None]) -> None:
        self._number, self.name, self._before_waiting = number, name, before_waiting

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not select.select([self._number], [], [], IDLE_SECONDS)[0]:
            self._before_waiting()
        return os.readv(self._number, [buffer])


def _position(stream: BinaryIO) -> Callable[[], tuple[int, int]] | None:
    """Return a function for the bytes read and the file size; None if unknown."""
    try:
        size = os.fstat(stream.fileno()).st_size
    except OSError:
        return None
    return (lambda: (stream.tell(), size)) if stream.seekable() else None


def message_text(message: dict[str, Any]) -> str:
    """Return a message as JSON for users: regions as GeoJSON, times as text."""
    return json.dumps({name: plain_value(value) for name, value in message.items()}, default=str, ensure_ascii=False)
