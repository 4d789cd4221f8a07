"""Read messages from files and standard input in batches, full ones or, if input is slow, smaller ones."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from contrada.errors import ContradaError, FormatError
from contrada.formats import records
from contrada.formats.reading import read_messages
from contrada.formats.records import IDENTIFIERS, TABLE_FORMATS, OpenFile, Rejected
from contrada.formats.tables.row_files import read_batches, row_text
from contrada.formats.tables.rows import attributes_of, values_of
from contrada.geometry import Rejection
from contrada.matching.explain import plain_value

BATCH_MESSAGES = 2048  # messages in a batch
IDLE_SECONDS = 0.005  # seconds without input before a batch that is not full is processed
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


class Intake:
    """Reads messages; passes batches to `take` and rejections to `reject`.

    `pause` is called when all messages read so far are passed on, before waiting for more.
    """

    def __init__(
        self,
        reading: MessageOptions,
        take: Callable[[MessageBatch], None],
        reject: Callable[[Rejected], None],
        by_rows: bool = True,
        several: bool = False,
        pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._reading, self._take, self._reject, self._pause = reading, take, reject, pause
        # Geometry that is reprojected or buffered, and text that is a time, are read value by value.
        self._by_rows = by_rows and not any(value for name, value in reading.options.items() if name != "zones")
        self._id_names = IDENTIFIERS if reading.id is None else (reading.id,)
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
                _stream(Path(file), self._before_waiting) as stream,
                records.opened(records.unpacked(stream, file), format) as ready,
            ):
                self.position = _position(stream)
                if self._by_rows and ready.format in TABLE_FORMATS:
                    self._read_rows(ready)
                else:
                    self._read_each(ready)
                self._before_waiting()
            self.position = None

    def _before_waiting(self) -> None:
        self.flush()
        self._pause()

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
            place = (ready.name, item.unit, item.number)
            try:
                self._pending.append((item.message, self._identifier(item.message.get, place), place))
            except FormatError as error:
                self._reject(Rejected(*place, str(error), message_text(item.message)))
            if len(self._pending) >= BATCH_MESSAGES:
                self.flush()

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
