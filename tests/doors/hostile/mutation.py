"""Mutations of inputs: bits, bytes, numbers and structure. The choices come from a Random."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random
from typing import Any, AnyStr

NUMBERS = (
    "0", "-0", "1", "-1", "255", "65536", "2147483647", "2147483648", "-2147483649", "4294967296", "9007199254740993",
    "9223372036854775807", "9223372036854775808", "1e308", "1e309", "-1e309", "1e-400", "5e-324", "0.1", "1e400000",
    "9" * 400, "1" + "0" * 5000, "NaN", "Infinity", "-Infinity", "null", "true", '"1"', "[]", "0x10", "1_0",
)  # fmt: skip
PIECES = (
    "'", '"', "\\", "\\u0000", "\\ud800", "\ud800", "\x00", "\x1e", "\n", "\r\n", "\ufeff", "é", "\u0660",
    "(", ")", "[", "]", "{", "}", "((((((((", "[[[[[[[[", "{\"a\":", ",", ";", ":", ".", "%", "_", "$", "<", ">",
    "<!--", "<![CDATA[", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "&#0;", "&#x10FFFF;", "EMPTY", "NULL", "null",
    "SRID=4326;", "SRID=99999999999;", "POINT(1 2)", "CURVEPOLYGON", "NOT ", " AND ", " OR ", "9999-12-31T23:59:60Z",
    "10000-01-01", "-0001-01-01T00:00:00Z", "EPSG:4326", "../..", "=cmd()", "NaN", "Infinity",
)  # fmt: skip
DATES = (
    "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "-0001-01-01", "9999-12-31T23:59:59-12:00",
    "0001-01-01T00:00:00+12:00", "2016-12-31T23:59:60Z",
)  # fmt: skip
WORDS = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40,
         (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
SCALARS = (None, True, False, 0, 1, -1, 1 << 31, 1 << 63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "",
           "a",           "\ud800", "\x00", b"", b"\xff", [], {}, [[]], {"": None})  # fmt: skip
WAYS = ("flip", "set", "word", "cut", "truncate", "repeat", "insert", "number", "splice", "swap")
OFTEN = ("flip", "word", "number")  # twice as often as the others
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
LONGEST = 900_000  # bytes of an input that grew by repetition


def replaced(good: AnyStr, old: AnyStr, others: Iterable[str]) -> dict[str, AnyStr]:
    """A good input with each of several odd values in the place of a good one."""
    found: dict[str, AnyStr] = {}
    for other in others:
        new: Any = other if isinstance(good, str) else encoded(other)
        found[f"{other[:40]!a} for {old!a}"] = good.replace(old, new)
    return found


def mutated(rng: Random, case: Any, others: list[Any]) -> Any:
    """The input with one change somewhere in it; pieces may come from `others`."""
    if isinstance(case, bytes):
        return mutated_bytes(rng, case, [other for other in others if isinstance(other, bytes)])
    if isinstance(case, str):
        texts = [encoded(other) for other in others if isinstance(other, str)]
        return mutated_bytes(rng, encoded(case), texts).decode("utf-8", "surrogateescape")
    if isinstance(case, list):
        return _mutated_list(rng, case, others)
    if isinstance(case, dict):
        return _mutated_dict(rng, case, others)
    return rng.choice(SCALARS)


def encoded(text: str) -> bytes:
    """The bytes of a text with lone surrogates, or with bytes that were not UTF-8."""
    return text.encode("utf-8", "surrogatepass" if any("\ud800" <= c <= "\udbff" for c in text) else "surrogateescape")


def mutated_bytes(rng: Random, data: bytes, others: list[bytes]) -> bytes:
    """Bytes with one change: those from `place` to `stop` become `piece`."""
    place = stop = rng.randrange(len(data) or 1)
    piece, way = b"", rng.choice((*WAYS, *OFTEN))
    numbers = list(_NUMBER.finditer(data, 0, 20_000)) if way == "number" else []
    match way:
        case "set":
            stop, piece = place + 1, bytes([rng.choice((0, 1, 0x20, 0x7F, 0x80, 0xC0, 0xED, 0xFE, 0xFF))])
        case "word":  # an integer of 4 or 8 bytes at a place that such an integer may have
            width = rng.choice((4, 4, 8))
            place -= place % rng.choice((1, 1, 4))
            word = rng.choice(WORDS) & ((1 << 8 * width) - 1)
            stop, piece = place + width, word.to_bytes(width, rng.choice(("little", "little", "big")))
        case "cut":
            stop += rng.choice((1, 2, 4, 8, 16, 64))
        case "truncate":
            stop = len(data)
        case "repeat":
            piece = data[place : place + rng.choice((1, 2, 8, 30, 200))] * rng.choice((1, 1, 2, 10, 100, 1000))
        case "insert":
            stop, piece = place + rng.choice((0, 0, 1)), rng.choice(PIECES).encode("utf-8", "surrogatepass")
        case "number" if numbers:  # another number in place of one that is written in digits
            (place, stop), piece = rng.choice(numbers).span(), rng.choice(NUMBERS).encode()
        case "splice":
            other = rng.choice(others or [b""])
            piece = other[rng.randrange(len(other) or 1) :]
            if rng.random() < 0.3:
                stop = len(data)
            else:
                piece = piece[: rng.choice((4, 16, 64, 256))]
        case "swap":
            width = rng.choice((1, 2, 4, 8, 16))
            place, later = sorted((place, rng.randrange(len(data) or 1)))
            middle, stop = place + width, later + width
            if middle > later or stop > len(data):
                return data
            piece = data[later:stop] + data[middle:later] + data[place:middle]
        case _:
            stop = place + 1
            piece = bytes(byte ^ 1 << rng.randrange(8) for byte in data[place:stop])
    return (data[:place] + piece + data[stop:])[:LONGEST]


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
