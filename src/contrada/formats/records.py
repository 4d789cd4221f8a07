"""Open files, decompress them up to the limit `expansion`, recognise their formats, and split JSON into records."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec

from contrada.doors import input_errors, reason_of
from contrada.errors import ContradaError, FormatError
from contrada.formats.bounded import check_expansion
from contrada.formats.json import BYTE_ORDER_MARK, decode, decoded
from contrada.geometry.arrow import lazy_pyarrow as pa

FORMATS = ("ndjson", "json", "geojsonseq", "cap", "parquet", "arrow", "csv", "gis")
TABLE_FORMATS = ("parquet", "arrow", "gis")  # read as tables
ALIASES = {"jsonl": "ndjson", "geojsonl": "ndjson", "geojson": "json", "geoparquet": "parquet", "feather": "arrow",
           "xml": "cap", "geopackage": "gis", "shapefile": "gis"}  # fmt: skip
# Other suffixes, and .json and .geojson, which are used for both kinds, are recognised by the first bytes.
SUFFIXES = {
    ".ndjson": "ndjson", ".jsonl": "ndjson", ".geojsonl": "ndjson", ".geojsons": "geojsonseq", ".xml": "cap",
    ".cap": "cap", ".parquet": "parquet", ".geoparquet": "parquet", ".arrow": "arrow", ".arrows": "arrow",
    ".feather": "arrow", ".csv": "csv", ".gpkg": "gis", ".shp": "gis", ".fgb": "gis",
}  # fmt: skip
IDENTIFIERS = ("id", "identifier", "message_id", "ce.id")  # in order of preference, attributes that identify a message
SEPARATOR = b"\x1e"  # RFC 8142
MAX_LINE_BYTES = 1 << 28  # bytes in a line
BLOCK_BYTES = 1 << 20  # read at once
PEEK_BYTES = 1 << 16
COMPRESSION_SUFFIXES = {".gz": "gzip", ".zst": "zstd"}
COMPRESSION_MAGICS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
CHUNK_BYTES = 1 << 16  # bytes decompressed at once
T = TypeVar("T")
Source = str | os.PathLike[str] | BinaryIO


class Read(NamedTuple):
    """A message and its place: lines count from 1; rows, items and alerts from 0."""

    source: str
    unit: str
    number: int
    message: dict[str, Any]

    def rejected(self, source: str, reason: object) -> Rejected:
        """Return a rejection of the message."""
        return Rejected(source, self.unit, self.number, str(reason), str(self.message))


class Rejected(NamedTuple):
    """A rejection: place, reason and text; of several from one alert only the first has the text.

    With `is_part`, only a part such as an area of an alert is lost, and the message is given without it. Apart from
    that, every record is either given or rejected, once.
    """

    source: str
    unit: str
    number: int
    reason: str
    raw: str
    is_part: bool = False

    def __str__(self) -> str:
        return f"{self.source}, {self.unit} {self.number}: {self.reason}"


class Record(NamedTuple):
    """One JSON text or line of a file, or the error in its place."""

    unit: str
    number: int
    data: bytes
    error: ContradaError | None = None
    in_collection: bool = False
    crs: Any = None  # the decoded member `crs` of this feature's collection

    def value(self) -> Any:
        """Decode the text; a feature that names no CRS gets that of its collection."""
        value, reason = self.decoded()
        if reason is not None:
            raise self.error or FormatError(reason)
        return value

    def decoded(self) -> tuple[Any, str | None]:
        """Return the value and None, or None and the reason why the text has no value."""
        if self.error is not None:
            return None, str(self.error)
        value, reason = decoded(self.data)
        if self.crs is not None and isinstance(value, dict):
            value.setdefault("crs", self.crs)
        return value, reason

    def rejected(self, source: str, reason: object) -> Rejected:
        """Return a rejection of the record."""
        raw = self.data.decode("utf-8", "replace")
        values = (source, self.unit, self.number, str(reason), raw, False)
        return tuple.__new__(Rejected, values)  # calling the class takes twice as long


class OpenFile(NamedTuple):
    """An open file, its name and its format."""

    name: str
    stream: BinaryIO
    format: str


def checked_format(format: str | None) -> str | None:
    """Return a format by its canonical name; None stays None.

    >>> checked_format("geojsonl")
    'ndjson'
    """
    name = format if format is None else ALIASES.get(format.lower(), format.lower())
    if name is not None and name not in FORMATS:
        raise FormatError(f"unknown format {format!r:.60}; formats: {', '.join((*FORMATS, *ALIASES))}")
    return name


def files_of(source: Source) -> Sequence[Source]:
    """Return the files of a source: for a directory, its files with a known suffix, in the order of their names."""
    if not isinstance(source, str | os.PathLike) or not os.path.isdir(source):
        return [source]
    known = {*SUFFIXES, ".json", ".geojson"}
    visible = (path for path in Path(source).iterdir() if not path.name.startswith((".", "_")))
    return sorted(path for path in visible if _own_suffix(path) in known)


def suffix_format(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a file's suffix, ignoring .gz and .zst; None if unknown.

    >>> suffix_format("a.csv.gz"), suffix_format("a.json")
    ('csv', None)
    """
    return SUFFIXES.get(_own_suffix(path))


def _own_suffix(path: str | os.PathLike[str]) -> str:
    plain = Path(path)
    return (Path(plain.stem) if compression_of(plain) else plain).suffix.lower()


def unpacked(stream: BinaryIO, path: str | os.PathLike[str]) -> BinaryIO:
    """Return the stream of a file, decompressed if its suffix names a compression."""
    compression = compression_of(path)
    return stream if compression is None else decompressed(stream, os.fspath(path), compression)


@contextmanager
def opened(source: Source, format: str | None) -> Iterator[OpenFile]:
    """Open a path, "-" for standard input, or a binary stream, which is left open."""
    format = checked_format(format)
    if isinstance(source, str | os.PathLike) and os.fspath(source) != "-":
        with open(source, "rb") as file:
            yield _recognised(os.fspath(source), unpacked(file, source), format or suffix_format(source))
        return
    stream = sys.stdin.buffer if isinstance(source, str | os.PathLike) else source
    name = "standard input" if stream is sys.stdin.buffer else str(getattr(stream, "name", "stream"))
    yield _recognised(name, stream, format)


def _recognised(name: str, stream: BinaryIO, format: str | None) -> OpenFile:
    """Return a stream with its format, which is guessed from the first bytes unless known."""
    if format is not None:
        return OpenFile(name, stream, format)
    head = b""
    while len(head) < PEEK_BYTES and b"\n" not in head.lstrip():  # one line is enough: a live stream may be slow
        piece = _some(stream, PEEK_BYTES - len(head))
        if not piece:
            break
        head += piece
    rest = head

    def next_piece(most: int) -> bytes:
        nonlocal rest
        piece = rest[:most] or _some(stream, most)
        rest = rest[len(piece) :]
        return piece

    joined = io.BufferedReader(PieceStream(next_piece))
    compression = compression_at(head)
    if compression is not None:
        return _recognised(name, decompressed(joined, name, compression), None)
    return OpenFile(name, joined, guess_format(head))


def _some(stream: BinaryIO, count: int) -> bytes:
    """Read up to `count` bytes that a stream has ready, without waiting for all of them."""
    read: Any = getattr(stream, "read1", None) or stream.read
    return bytes(read(count))


def compression_of(path: str | os.PathLike[str]) -> str | None:
    """Return the compression that a file's suffix names, or None.

    >>> compression_of("a.ndjson.gz"), compression_of("a.zst"), compression_of("a.csv")
    ('gzip', 'zstd', None)
    """
    return COMPRESSION_SUFFIXES.get(Path(path).suffix.lower())


def compression_at(head: bytes) -> str | None:
    """Return the compression of a file that begins with `head`, or None."""
    return next((name for magic, name in COMPRESSION_MAGICS.items() if head.startswith(magic)), None)


def decompressed(stream: BinaryIO, name: str, compression: str) -> BinaryIO:
    """Return a stream of the decompressed content; exceeding the limit `expansion` is a LimitError.

    >>> import gzip, io
    >>> decompressed(io.BytesIO(gzip.compress(b"size: 3")), "a.gz", "gzip").read()
    b'size: 3'
    """
    size, taken, given, own_name = _size_of(stream), 0, 0, Path(name).name

    def next_packed(most: int) -> bytes:
        nonlocal taken
        piece = stream.read(most)
        taken += len(piece)
        return piece

    def next_unpacked(most: int) -> bytes:
        nonlocal given
        try:
            piece = bytes(inner.read(min(most, CHUNK_BYTES)))
        except input_errors(OSError, EOFError, zlib.error) as error:
            raise FormatError(f"{own_name} cannot be decompressed: {reason_of(error)}") from error
        given += len(piece)
        check_expansion(own_name, given, max(size, taken))
        return piece

    source = PieceStream(next_packed)
    inner: Any
    if compression == "gzip":
        inner = gzip.GzipFile(fileobj=io.BufferedReader(source, CHUNK_BYTES))
    else:
        inner = pa.CompressedInputStream(pa.PythonFile(source, "r"), "zstd")
    return io.BufferedReader(PieceStream(next_unpacked, name), CHUNK_BYTES)


class PieceStream(io.RawIOBase):
    """A stream of the pieces that a function returns, which takes the largest size of a piece; b"" is the end."""

    def __init__(self, next_piece: Callable[[int], bytes], name: str | None = None) -> None:
        self._next_piece = next_piece
        if name is not None:
            self.name = name

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next piece into the buffer; return its length, 0 at the end."""
        piece = self._next_piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _size_of(stream: BinaryIO) -> int:
    """Return the size of a file, 0 if unknown."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, AttributeError):
        return 0


def guess_format(head: bytes) -> str:
    """Guess the format of a file that begins with `head`; newline JSON by default.

    >>> guess_format(b'{"a": 1}'), guess_format(b'[{"a": 1}]'), guess_format(b'{"a":'), guess_format(b"<?xml")
    ('ndjson', 'json', 'json', 'cap')
    """
    for magic, format in ((b"PAR1", "parquet"), (b"ARROW1", "arrow"), (b"\xff\xff\xff\xff", "arrow")):
        if head.startswith(magic):
            return format
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16 is never JSON
        return "cap"
    text = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    marks = {b"<": "cap", SEPARATOR: "geojsonseq", b"[": "json"}
    if text[:1] in marks:
        return marks[text[:1]]
    first, newline, _ = text.partition(b"\n")
    if not newline and len(head) >= PEEK_BYTES:  # a long line: decide by its first bytes
        return "json" if b'"FeatureCollection"' in first else "ndjson"
    try:
        members = decode(first, dict[str, msgspec.Raw])
    except FormatError as error:
        return "json" if "truncated" in str(error) and text else "ndjson"
    return "json" if _is_collection(members) else "ndjson"


def until_damage(items: Iterator[T], name: str) -> Iterator[T | Rejected]:
    """Yield the items of a file; if reading fails, one rejection stands for the rest."""
    last: Any = None
    try:
        for item in items:
            last = item
            yield item
    except input_errors() as error:
        if isinstance(last, Lines):
            last = max(last.records(), key=lambda record: record.number, default=None)
        unit, number = ("line", 0) if last is None else (last.unit, last.number + 1)
        yield Rejected(name, unit, number, f"the file cannot be read from here on: {reason_of(error)}", "")


def json_records(stream: BinaryIO, format: str) -> Iterator[Record]:
    """Yield the records of a JSON file: lines, texts of a sequence, items of an array or features of a collection."""
    return {"json": _items, "geojsonseq": _sequence}.get(format, lines)(stream)


class Overlong(bytes):
    """The beginning of a line that is too long."""


class Lines(NamedTuple):
    """A block of whole lines of a file, and how many lines come before it."""

    before: int
    data: bytes

    def records(self, longest: int = MAX_LINE_BYTES) -> Iterator[Record]:
        """Yield the lines that are not empty, numbered from 1; one of `longest` bytes or more has an error."""
        make, first = tuple.__new__, SEPARATOR[0]  # calling the class takes three times as long
        is_overlong = isinstance(self.data, Overlong)
        for number, line in enumerate(self.data.split(b"\n"), self.before + 1):
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
            if is_overlong or len(line) >= longest:
                error = FormatError(f"line is longer than {longest} bytes")
                yield Record("line", number, line[:1000], error)
                continue
            line = line.strip(b" \t\r\n")
            if line and line[0] == first:
                line = line[1:].strip()
            if line:
                yield make(Record, ("line", number, line, None, False, None))


def line_blocks(stream: BinaryIO, longest: int = MAX_LINE_BYTES) -> Iterator[Lines]:
    """Yield the lines of a file in blocks; a line of much more than `longest` bytes is a block, its beginning."""
    parts: list[bytes] = []  # of a line whose end is yet to come
    before = size = 0
    while piece := _some(stream, BLOCK_BYTES):
        end = piece.rfind(b"\n") + 1
        if end == 0:
            size += len(piece)
            parts = [*parts, piece] if size <= longest else [b"".join([*parts, piece])[:1000]]
            continue
        if size > longest:
            yield Lines(before, Overlong(parts[0]))
            before += 1
            parts, piece = [], piece[piece.find(b"\n") + 1 :]
            end = piece.rfind(b"\n") + 1
        if end:
            data = b"".join([*parts, piece[:end]])
            yield Lines(before, data)
            before += data.count(b"\n")
        parts = [piece[end:]] if len(piece) > end else []
        size = len(piece) - end
    if parts:
        yield Lines(before, b"".join(parts) if size <= longest else Overlong(parts[0]))


def lines(stream: BinaryIO, longest: int = MAX_LINE_BYTES) -> Iterator[Record]:
    """Yield the lines of a file that are not empty, numbered from 1; one of `longest` bytes or more has an error."""
    return chain.from_iterable(block.records(longest) for block in line_blocks(stream, longest))


def _sequence(stream: BinaryIO) -> Iterator[Record]:
    """Yield the texts of a sequence (RFC 8142), each numbered by its first line."""
    current, began = bytearray(), 1
    read = iter(lambda: stream.readline(MAX_LINE_BYTES), b"")
    for number, line in enumerate(chain(read, [SEPARATOR]), start=1):  # the last text ends with the file
        first, *further = line.split(SEPARATOR)
        current += first
        for piece in further:
            if current.strip():
                yield Record("line", began, bytes(current).strip())
            current, began = bytearray(piece), number


def _items(stream: BinaryIO) -> Iterator[Record]:
    """Yield the items of an array, the features of a collection, or the whole file as one object."""
    data = stream.read().removeprefix(BYTE_ORDER_MARK).strip()
    whole, crs, in_collection = Record("item", 0, data), None, not data.startswith(b"[")
    try:
        if not in_collection:
            items = decode(data, list[msgspec.Raw])
        else:
            members = decode(data, dict[str, msgspec.Raw])
            if not _is_collection(members):
                yield whole
                return
            items = decode(bytes(members["features"]), list[msgspec.Raw])
            crs = decode(bytes(members["crs"])) if "crs" in members else None
    except ContradaError as error:
        yield whole._replace(error=error)
        return
    make = tuple.__new__  # as in `lines`
    for number, item in enumerate(items):
        yield make(Record, ("item", number, bytes(item), None, in_collection, crs))


def _is_collection(members: dict[str, msgspec.Raw]) -> bool:
    return "features" in members and bytes(members.get("type", b"")).strip() == b'"FeatureCollection"'
