"""Mutations of inputs: bits, bytes, numbers and structure. The choices come from a Random."""

from __future__ import annotations

import re
from random import Random
from typing import Any

NUMBERS = (
    "0", "-0", "1", "-1", "255", "65536", "2147483647", "2147483648", "-2147483649", "4294967296", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "1e308", "1e309", "-1e309", "1e-400", "5e-324", "0.1", "1e400000",
    "9" * 400, "1" + "0" * 5000, "NaN", "Infinity", "-Infinity", "null", "true", '"1"', "[]", "0x10", "1_0",
)  # fmt: skip
PIECES = (
    "'", '"', "\\", "\\u0000", "\\ud800", "\ud800", "\x00", "\x1e", "\n", "\r\n", "\ufeff", "é", "\u0660",
    "(", ")", "[", "]", "{", "}", "((((((((", "[[[[[[[[", "{\"a\":", ",", ";", ":", ".", "%", "_", "$", "<", ">",
    "<!--",
    "<![CDATA[",
    "<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "&#0;", "&#x10FFFF;", "EMPTY", "NULL", "null", "SRID=4326;",
    "SRID=99999999999;",
    "POINT(1 2)", "CURVEPOLYGON", "NOT ", " AND ", " OR ", "9999-12-31T23:59:60Z", "10000-01-01",
    "-0001-01-01T00:00:00Z",
    "EPSG:4326", "../..", "=cmd()", "NaN", "Infinity",
)  # fmt: skip
WORDS = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40,
         (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
SCALARS = (None, True, False, 0, 1, -1, 1 << 31, 1 << 63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "",
           "a",           "\ud800", "\x00", b"", b"\xff", [], {}, [[]], {"": None})  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
LONGEST = 900_000  # bytes of an input that grew by repetition


def mutated(rng: Random, case: Any, others: list[Any]) -> Any:
    """The input with one change somewhere in it; pieces may come from `others`."""
    if isinstance(case, bytes):
        return mutated_bytes(rng, case, [other for other in others if isinstance(other, bytes)])
    if isinstance(case, str):
        texts = [_encoded(other) for other in others if isinstance(other, str)]
        return mutated_bytes(rng, _encoded(case), texts).decode("utf-8", "surrogateescape")
    if isinstance(case, list):
        return _mutated_list(rng, case, others)
    if isinstance(case, dict):
        return _mutated_dict(rng, case, others)
    return rng.choice(SCALARS)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass" if any("\ud800" <= c <= "\udbff" for c in text) else "surrogateescape")


def mutated_bytes(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    """Bytes with one change."""
    ways = (_flip, _flip, _set, _word, _word, _cut, _truncate, _repeat, _insert, _number, _number, _splice, _swap)
    changed = rng.choice(ways)(rng, bytearray(data), others)
    return bytes(changed[:LONGEST])


def _place(rng: Random, data: bytearray) -> int:
    return rng.randrange(len(data)) if data else 0


def _flip(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    if data:
        data[_place(rng, data)] ^= 1 << rng.randrange(8)
    return data


def _set(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    if data:
        data[_place(rng, data)] = rng.choice((0, 1, 0x20, 0x7F, 0x80, 0xC0, 0xED, 0xFE, 0xFF))
    return data


def _word(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    """An integer of 4 or 8 bytes at a place that such an integer may have."""
    width = rng.choice((4, 4, 8))
    place = _place(rng, data)
    place -= place % rng.choice((1, 1, 4))
    word = rng.choice(WORDS) & ((1 << 8 * width) - 1)
    data[place : place + width] = word.to_bytes(width, rng.choice(("little", "little", "big")))
    return data


def _cut(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    place = _place(rng, data)
    del data[place : place + rng.choice((1, 2, 4, 8, 16, 64))]
    return data


def _truncate(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    del data[_place(rng, data) :]
    return data


def _repeat(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    place = _place(rng, data)
    piece = data[place : place + rng.choice((1, 2, 8, 30, 200))]
    data[place:place] = piece * rng.choice((1, 1, 2, 10, 100, 1000))
    return data


def _insert(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    place = _place(rng, data)
    data[place : place + rng.choice((0, 0, 1))] = rng.choice(PIECES).encode("utf-8", "surrogatepass")
    return data


def _number(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    """Another number in place of one that is written in digits."""
    found = [match.span() for match in _NUMBER.finditer(data[:20_000])]
    if not found:
        return _flip(rng, data, others)
    start, stop = rng.choice(found)
    data[start:stop] = rng.choice(NUMBERS).encode()
    return data


def _splice(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    other = rng.choice(others) if others else b""
    start = rng.randrange(len(other)) if other else 0
    place = _place(rng, data)
    if rng.random() < 0.3:
        return data[:place] + other[start:]
    data[place:place] = other[start : start + rng.choice((4, 16, 64, 256))]
    return data


def _swap(rng: Random, data: bytearray, others: list[bytes]) -> bytearray:
    width = rng.choice((1, 2, 4, 8, 16))
    a, b = _place(rng, data), _place(rng, data)
    if abs(a - b) >= width and max(a, b) + width <= len(data):
        data[a : a + width], data[b : b + width] = data[b : b + width], data[a : a + width]
    return data


def _mutated_list(rng: Random, case: list[Any], others: list[Any]) -> list[Any]:
    made = list(case)
    at = rng.randrange(len(made)) if made else 0
    way = rng.randrange(8)
    if not made or way == 0:
        made.insert(at, rng.choice(SCALARS))
    elif way == 1:
        del made[at]
    elif way == 2:
        made.insert(at, made[rng.randrange(len(made))])
    else:
        inner = [other for one in others if isinstance(one, list) for other in one]
        made[at] = mutated(rng, made[at], inner)
    return made


def _mutated_dict(rng: Random, case: dict[str, Any], others: list[Any]) -> dict[str, Any]:
    made = dict(case)
    key = rng.choice(list(made)) if made else ""
    way = rng.randrange(10)
    if not made or way == 0:
        made[rng.choice(("", "a", "type", "crs", "\ud800"))] = rng.choice(SCALARS)
    elif way == 1:
        del made[key]
    elif way == 2 and others:
        other = rng.choice(others)
        if isinstance(other, dict) and other:
            made[key] = rng.choice(list(other.values()))
    else:
        inner = [other[key] for other in others if isinstance(other, dict) and key in other]
        made[key] = mutated(rng, made[key], inner)
    return made
