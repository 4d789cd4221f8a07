"""Compute the decoded sizes of Parquet columns from the headers of their pages.

The footer of a Parquet file states sizes of columns, but nothing checks them: Arrow allocates the size that each page
header declares. This module walks these headers without decompressing anything. As in Arrow's reader, a column ends
with its last value or its last byte.

Headers are structs in Thrift's compact protocol, read into dicts by field number and type. Reading follows the C++
library in Arrow, so that both find the same numbers in hostile bytes: a field of an unexpected type has another entry,
the last of repeated fields counts, and numbers are truncated to their bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from contrada.errors import FormatError

_FIRST_HEADER_BYTES, _MAX_HEADER_BYTES = 512, 1 << 24  # bytes read for a header at first, and at most, as in Arrow
_DATA_PAGES, _DICTIONARY_PAGE = {0: 5, 3: 8}, 2  # page types; for data pages, the field that describes them
_PREFIXED, _DELTAS = 7, (5, 6, 7)  # DELTA_BYTE_ARRAY; encodings that decode a whole page at once
_DELTA_BYTES, _ENTRY_BYTES = 8, 16  # allocated by Arrow per value of such a page, and per dictionary entry
_TAIL_BYTES = 8  # bytes: the length of the footer, and "PAR1"

TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
MAX_DEPTH = 16  # nested structs, lists and maps; Parquet's own take 8
_BITS = {INT16: 16, INT32: 32, INT64: 64}
_BYTES = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}  # size of values that are returned as bytes

Fields = dict[tuple[int, int], Any]  # by field number and type: an int, bytes, a list or Fields; else None


class Chunk(NamedTuple):
    """A column in one row group, from the footer: its place among the columns, number of values, start and size."""

    place: int
    values: int
    start: int
    bytes: int


class RowGroup(NamedTuple):
    """A row group, from the footer."""

    rows: int
    chunks: list[Chunk]


def row_groups(stream: BinaryIO, size: int, span: tuple[int, int] | None = None) -> Iterator[RowGroup]:
    """Yield the row groups of a Parquet file of `size` bytes, or those with rows of `span` (first, stop).

    The footer is parsed here: pyarrow crashes when asked for the metadata of a damaged column.
    """
    stream.seek(max(0, size - _TAIL_BYTES))
    length = int.from_bytes(stream.read(4), "little")
    if length > size - _TAIL_BYTES:
        raise FormatError(f"the Parquet footer is damaged: {length} bytes in a file of {size} bytes")
    stream.seek(size - _TAIL_BYTES - length)
    footer: Fields = {}
    try:
        read_struct(stream.read(length), 0, footer)
    except IndexError:
        raise FormatError("the Parquet footer is damaged: it is truncated") from None
    first = 0
    for group in footer.get((4, LIST), []):
        rows = max(0, _number(group, 3, INT64))
        if span is None or (first < span[1] and first + rows > span[0]):
            yield RowGroup(rows, [_chunk(k, each) for k, each in enumerate(group.get((1, LIST), []))])
        first += rows


def _chunk(place: int, fields: Any) -> Chunk:
    about = fields.get((3, STRUCT), {}) if isinstance(fields, dict) else {}
    start, dictionary = _number(about, 9, INT64), _number(about, 11, INT64)
    values, size = (max(0, _number(about, field, INT64)) for field in (5, 7))
    return Chunk(place, values, dictionary if 0 < dictionary < start else start, size)


def _number(fields: Any, field: int, kind: int) -> int:
    if not isinstance(fields, dict):
        raise FormatError("the Parquet footer is damaged: a list item is not a struct")
    return int(fields.get((field, kind), 0))


@dataclass
class ColumnPages:
    """Sizes of the pages of one column in one row group, in bytes."""

    bytes: int = 0  # memory for decoding, besides the values
    dictionary: int = 0  # size of the dictionary, an upper bound for the length of a value
    prefixed: int = 0  # size of the largest page whose values share prefixes


def column_pages(stream: BinaryIO, chunk: Chunk, check: Callable[[int], None]) -> ColumnPages:
    """Walk the pages of a column chunk; `check` is called with the size of every page before the next.

    Raises FormatError for a header that cannot be read. Takes about 20 microseconds per page.
    """
    found = ColumnPages()
    seen, at, end = 0, chunk.start, chunk.start + chunk.bytes
    while seen < chunk.values and 0 <= at < end:
        header, length = _header_at(stream, at, end - at)
        if not header:
            break
        packed, whole = _number(header, 3, INT32), _number(header, 2, INT32)
        if packed < 0 or whole < 0:
            raise FormatError(f"the Parquet page at byte {at} is damaged: a size of {min(packed, whole)} bytes")
        if (described := _DATA_PAGES.get(_number(header, 1, INT32))) is not None:
            seen += _values(header.get((described, STRUCT), {}))
        size = _note(found, header, max(packed, whole))
        found.bytes += size
        check(size)
        at += length + packed
    return found


def _note(found: ColumnPages, header: Fields, size: int) -> int:
    """Record dictionary and prefix sizes of a page; return the bytes that decoding it takes."""
    dictionary, plain, newer = (header.get((number, STRUCT), {}) for number in (7, 5, 8))
    if header.get((1, INT32)) == _DICTIONARY_PAGE:
        found.dictionary = max(found.dictionary, size)
        return size + _ENTRY_BYTES * _values(dictionary)
    encodings = plain.get((2, INT32)), newer.get((4, INT32))
    if _PREFIXED in encodings:
        found.prefixed = max(found.prefixed, size)
    if any(encoding in _DELTAS for encoding in encodings):
        return size + _DELTA_BYTES * max(_values(plain), _values(newer))
    return size


def _values(about: Fields) -> int:
    """Return the number of values that a page header declares."""
    return max(0, int(about.get((1, INT32), 0)))


def _header_at(stream: BinaryIO, at: int, most: int) -> tuple[Fields, int]:
    """Return the fields and length of the page header at a position; empty at the end of the file or column."""
    window = _FIRST_HEADER_BYTES
    while True:
        stream.seek(at)
        data = stream.read(min(window, most))
        if not data:
            return {}, 0
        try:
            fields: Fields = {}
            return fields, read_struct(data, 0, fields)
        except IndexError:
            if window > min(most, _MAX_HEADER_BYTES) or len(data) < min(window, most):
                raise FormatError(f"the header of the Parquet page at byte {at} is truncated") from None
            window *= 8


def read_struct(data: bytes, at: int, fields: Fields, depth: int = MAX_DEPTH) -> int:
    """Read the struct at `at` into `fields` and return its end; IndexError if the data end before it.

    >>> fields = {}
    >>> read_struct(bytes([0x15, 6, 0x1C, 0x25, 1, 0, 0]), 0, fields), fields
    (7, {(1, 5): 3, (2, 12): {(2, 5): -1}})
    """
    if depth <= 0:
        raise FormatError("Parquet metadata is nested too deeply")
    number = 0
    while byte := data[at]:
        step, kind = byte >> 4, byte & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _signed(data, at, INT16)
        number = _cut(number, 16)
        if kind == STRUCT:
            at = read_struct(data, at, fields.setdefault((number, kind), {}), depth - 1)
        elif kind > FALSE:  # the type of a boolean is its value
            fields[number, kind], at = _read(data, at, kind, depth - 1)
    return at + 1


def _read(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return a value and its end."""
    if kind in _BITS:
        return _signed(data, at, kind)
    if kind == BINARY or kind in _BYTES:
        length, at = _varint(data, at) if kind == BINARY else (_BYTES[kind], at)
        if at + length > len(data):
            raise IndexError(at + length)
        return data[at : at + length], at + length
    if kind in (LIST, SET):
        count, element = data[at] >> 4, data[at] & 15
        count, at = _varint(data, at + 1) if count == 15 else (count, at + 1)
        return _read_all(data, at, count, (element,), depth)
    if kind == STRUCT:
        fields: Fields = {}
        return fields, read_struct(data, at, fields, depth)
    if kind == MAP:
        count, at = _varint(data, at)
        return _read_all(data, at + 1, count, (data[at] >> 4, data[at] & 15), depth) if count else (None, at)
    raise FormatError(f"Parquet metadata has a value of unknown type {kind}")


def _read_all(data: bytes, at: int, count: int, kinds: tuple[int, ...], depth: int) -> tuple[list[Any], int]:
    """Return the elements of a list, or the keys and values of a map, and their end."""
    if depth <= 0:
        raise FormatError("Parquet metadata is nested too deeply")
    if count > len(data):  # an element takes at least one byte
        raise IndexError(count)
    found = []
    for _ in range(count):
        for kind in kinds:
            value, at = _read(data, at, kind, depth - 1)
            found.append(value)
    return found, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, and its end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise FormatError("Parquet metadata has a number of more than 64 bits")


def _signed(data: bytes, at: int, kind: int) -> tuple[int, int]:
    """Return a number whose lowest bit is its sign, and its end."""
    value, at = _varint(data, at)
    value &= (1 << (64 if kind == INT64 else 32)) - 1
    return _cut((value >> 1) ^ -(value & 1), _BITS[kind]), at


def _cut(number: int, bits: int) -> int:
    """Truncate a number to `bits` bits, as C++ does."""
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
