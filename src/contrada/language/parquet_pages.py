"""The sizes of Parquet pages, read from the pages themselves.

The footer of a Parquet file says how large its columns become, and nothing checks that it is right: Arrow allocates
the size that the header of each page declares. This module walks these headers without decompressing anything. It
follows Arrow's reader: fields of the wrong Thrift type are skipped, of a repeated field the last one counts, and a
column ends with its last value or its last byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from contrada.errors import FormatError

_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _MAP, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 11, 12
_INT32 = 5
_MOST_DEPTH = 16  # of structs in a page header; Parquet's own take 4
_WINDOW, _MOST_HEADER = 512, 1 << 24  # bytes read for a header at first, and at most, as in Arrow
_DATA_PAGES, _DICTIONARY_PAGE = {0: 5, 3: 8}, 2  # types of pages; of data pages, the field that describes them
_PREFIXED, _DELTAS = 7, (5, 6, 7)  # DELTA_BYTE_ARRAY; encodings that decode a whole page at once
_DICTIONARY_ENCODINGS = (2, 8)
_DELTA_BYTES, _ENTRY_BYTES = 8, 16  # that Arrow allocates for each value of such a page, and of a dictionary


@dataclass
class ColumnPages:
    """The pages of one column in one row group: all of them, and the largest whose values may share bytes."""

    bytes: int = 0  # of memory that decoding takes, beside the values
    dictionary: int = 0  # bytes in the dictionary, an upper bound for the length of a value
    prefixed: int = 0  # bytes in the largest page whose values share prefixes


Fields = dict[tuple[int, int], Any]  # number and Thrift type of a field: its number, or the fields of a struct


def column_pages(stream: BinaryIO, column: Any, check: Callable[[int], None]) -> ColumnPages:
    """Walk the pages of a column chunk, as its metadata place it; `check` sees the bytes of every page before the next.

    Raises FormatError for a header that cannot be read. Takes about 20 microseconds a page.
    """
    found = ColumnPages()
    at = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
        at = column.dictionary_page_offset
    seen, end = 0, at + column.total_compressed_size
    while seen < column.num_values and at < end:
        header, length = _header_at(stream, at, end - at)
        if not header:
            break
        packed, whole = header.get((3, _INT32), 0), header.get((2, _INT32), 0)
        if packed < 0 or whole < 0:
            raise FormatError(f"column {column.path_in_schema!r}: a page has {min(packed, whole)} bytes")
        if header.get((1, _INT32)) in _DATA_PAGES:
            seen += _values(header.get((_DATA_PAGES[header[1, _INT32]], _STRUCT), {}))
        size = _note(found, header, max(packed, whole))
        found.bytes += size
        check(size)
        at += length + packed
    return found


def _note(found: ColumnPages, header: Fields, size: int) -> int:
    """Note dictionaries and prefixes of a page; return the bytes that decoding it takes."""
    dictionary, plain, newer = (header.get((number, _STRUCT), {}) for number in (7, 5, 8))
    if header.get((1, _INT32)) == _DICTIONARY_PAGE:
        found.dictionary = max(found.dictionary, size)
        return size + _ENTRY_BYTES * _values(dictionary)
    encodings = plain.get((2, _INT32)), newer.get((4, _INT32))
    if _PREFIXED in encodings:
        found.prefixed = max(found.prefixed, size)
    if any(encoding in _DELTAS for encoding in encodings):
        return size + _DELTA_BYTES * max(_values(plain), _values(newer))
    return size


def _values(about: Fields) -> int:
    """How many values the header of one kind of pages declares."""
    return max(0, int(about.get((1, _INT32), 0)))


def _header_at(stream: BinaryIO, at: int, most: int) -> tuple[Fields, int]:
    """The fields of the page header at a place and its length; none where the file or the column ends."""
    window = _WINDOW
    while True:
        stream.seek(at)
        data = stream.read(min(window, most))
        if not data:
            return {}, 0
        try:
            fields: Fields = {}
            return fields, _read_struct(data, 0, fields, _MOST_DEPTH)
        except IndexError:
            if window > min(most, _MOST_HEADER) or len(data) < min(window, most):
                raise FormatError(f"the header of the Parquet page at byte {at} has no end") from None
            window *= 8


def _read_struct(data: bytes, at: int, fields: Fields, depth: int) -> int:
    """Read a struct of Thrift's compact protocol into `fields`; return where it ends. IndexError: data end before."""
    if depth == 0:
        raise FormatError("a Parquet page header is nested too deeply")
    number = 0
    while kind := data[at]:
        step, kind = kind >> 4, kind & 15
        at += 1
        if step:
            number += step
        else:
            number, at = _signed(data, at)
        number = (number + (1 << 15)) % (1 << 16) - (1 << 15)  # of 16 bits, as in Arrow's reader
        if kind in _INTEGERS:
            fields[number, kind], at = _signed(data, at)
        elif kind == _STRUCT:
            at = _read_struct(data, at, fields.setdefault((number, kind), {}), depth - 1)
        elif kind not in _BOOLEANS:
            at = _skip(data, at, kind, depth - 1)
    return at + 1


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return where a value ends that is of no interest."""
    if kind in (_BYTE, *_BOOLEANS):
        return at + 1
    if kind in _INTEGERS:
        return _varint(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        return _inside(data, at + length)
    if kind == _STRUCT:
        return _read_struct(data, at, {}, depth)
    if kind in _LISTS and depth:
        return _skip_all(data, at + 1, data[at] >> 4, (data[at] & 15,), depth)
    if kind == _MAP and depth:
        length, at = _varint(data, at)
        return _skip_all(data, at + 1, length, (data[at] >> 4, data[at] & 15), depth) if length else at
    raise FormatError(f"a Parquet page header has a value of unknown type {kind}")


def _skip_all(data: bytes, at: int, count: int, kinds: tuple[int, ...], depth: int) -> int:
    """Return where the elements of a list or a map end; a count of 15 says that the true one follows."""
    if len(kinds) == 1 and count == 15:
        count, at = _varint(data, at)
    for _ in range(count):
        for kind in kinds:
            at = _inside(data, _skip(data, at, kind, depth - 1))
    return at


def _inside(data: bytes, at: int) -> int:
    """Return `at` if it is no further than the end of data."""
    if at > len(data):
        raise IndexError(at)
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise FormatError("a Parquet page header has a number of more than 64 bits")


def _signed(data: bytes, at: int) -> tuple[int, int]:
    """A number whose lowest bit is its sign, cut to 32 bits as Arrow's reader does, and where it ends."""
    value, at = _varint(data, at)
    value &= 0xFFFFFFFF
    return (value >> 1) ^ -(value & 1), at


def row_groups(metadata: Any, span: tuple[int, int] | None = None) -> Iterator[Any]:
    """Row groups of a file, or those that hold rows of `span`: first and stop."""
    first = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        stop = first + group.num_rows
        if span is None or (first < span[1] and stop > span[0]):
            yield group
        first = stop
