"""Validate manifests (`artifact.json`, `partitions.json`, versions of a stream) before they are used.

A manifest may come from an untrusted source. Its digest becomes the name of a directory that is replaced or removed,
and its files are written there, so both are checked by form, and every other field by type and range.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from contrada.errors import FormatError, TableError
from contrada.formats.json import decode

DIGEST = re.compile(r"[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")
NAME_TYPES = ("string", "tinyint", "smallint", "int", "bigint")  # Spark types of keys and subscribers
MAX_FLOAT = sys.float_info.max
Check = Callable[[Any], Any]


def is_digest(value: Any) -> bool:
    """Return True for a text of exactly 64 lower-case hexadecimal digits.

    >>> is_digest("0f" * 32), is_digest("../../x"), is_digest("0F" * 32)
    (True, False, False)
    """
    return isinstance(value, str) and DIGEST.fullmatch(value) is not None


def _check(what: str, is_good: Callable[[Any], bool]) -> Check:
    """Return a check that returns a good value, and raises a TableError for any other.

    >>> plain_name("keys-text.npy"), count(0)
    ('keys-text.npy', 0)
    >>> plain_name("../header.json")
    Traceback (most recent call last):
    contrada.errors.TableError: need a file name of letters, digits, '.', '_' and '-', got '../header.json'
    """

    def checked(value: Any) -> Any:
        if not is_good(value):
            raise TableError(f"need {what}, got {value!r:.100}")
        return value

    return checked


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


anything = _check("any value", lambda value: True)
text = _check("text", lambda value: isinstance(value, str))
optional_text = _check("text or null", lambda value: isinstance(value, str | None))
boolean = _check("true or false", lambda value: isinstance(value, bool))
digest = _check("a digest of 64 hexadecimal digits", is_digest)
name_type = _check(f"one of {', '.join(NAME_TYPES)}", lambda value: value in NAME_TYPES)  # of keys and subscribers
location = _check("a path or URI", lambda value: isinstance(value, str) and value != "" and "\0" not in value)
# The name of a file: no separator, no leading dot.
plain_name = _check(
    "a file name of letters, digits, '.', '_' and '-'",
    lambda value: isinstance(value, str) and NAME.fullmatch(value) is not None,
)
count = _check("a whole number of at least 0", lambda value: _is_number(value, int) and 0 <= value < 1 << 63)
number = _check("a finite number", lambda value: _is_number(value, int | float) and abs(value) <= MAX_FLOAT)


def list_of(check: Check) -> Check:
    """Return a check of lists: every item passes `check`."""

    def checked(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise TableError(f"need a list, got {value!r:.100}")
        return tuple(check(item) for item in value)

    return checked


def map_of(check: Check) -> Check:
    """Return a check of objects: every member passes `check`."""

    def checked(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise TableError(f"need an object, got {value!r:.100}")
        return {name: check(item) for name, item in value.items()}

    return checked


def fields(about: Any, checks: Mapping[str, Check], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of an object, each checked; a missing, unknown or bad one is a TableError that names it.

    >>> fields({"filters": -1}, {"filters": count})
    Traceback (most recent call last):
    contrada.errors.TableError: filters: need a whole number of at least 0, got -1
    """
    if not isinstance(about, Mapping):
        raise TableError(f"need an object with {', '.join(checks)}, got {about!r:.100}")
    for name in about:
        if name not in checks:
            raise TableError(f"unknown field {name!r:.100}; fields: {', '.join(checks)}")
    found = {}
    for name, check in checks.items():
        if name not in about:
            if name in optional:
                continue
            raise TableError(f"{name} is missing")
        try:
            found[name] = check(about[name])
        except TableError as error:
            raise TableError(f"{name}: {error}") from error
    return found


def parsed(data: bytes) -> Any:
    """Return the value of a manifest's JSON; bad JSON is a TableError."""
    try:
        return decode(data)
    except FormatError as error:
        raise TableError(str(error)) from error


def is_below(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Return True if a path lies below a directory after links of both are resolved.

    >>> is_below("/cache/tables/x", "/cache"), is_below("/cache/../etc", "/cache"), is_below("/cache", "/cache")
    (True, False, False)
    """
    inner, outer = os.path.realpath(path), os.path.realpath(root)
    return inner != outer and os.path.commonpath([inner, outer]) == outer
