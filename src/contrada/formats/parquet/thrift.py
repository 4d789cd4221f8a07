"""Read structs in Thrift's compact protocol, as Parquet writes them, into dicts by field number and type.

Reading follows the C++ library in Arrow, so that both find the same numbers in hostile bytes: a field of an
unexpected type has another entry, the last of repeated fields counts, and numbers are truncated to their bits.
"""

from __future__ import annotations

from typing import Any

from contrada.errors import FormatError

TRUE, FALSE, BYTE, INT16, INT32, INT64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
MAX_DEPTH = 16  # nested structs, lists and maps; Parquet's own take 8
_BITS = {INT16: 16, INT32: 32, INT64: 64}
_SKIPPED_BYTES = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}  # size of values that nothing asks for

Fields = dict[tuple[int, int], Any]  # by field number and type: an int, bytes, a list or Fields; else None


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
    if kind == BINARY:
        length, at = _varint(data, at)
        return data[at : at + length], _inside(data, at + length)
    if kind in (LIST, SET):
        count, element = data[at] >> 4, data[at] & 15
        count, at = _varint(data, at + 1) if count == 15 else (count, at + 1)
        return _read_all(data, at, count, (element,), depth)
    if kind == STRUCT:
        fields: Fields = {}
        return fields, read_struct(data, at, fields, depth)
    if kind in _SKIPPED_BYTES:
        return None, _inside(data, at + _SKIPPED_BYTES[kind])
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


def _inside(data: bytes, at: int) -> int:
    """Return `at`; raise IndexError if it lies beyond the end of the data."""
    if at > len(data):
        raise IndexError(at)
    return at


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
