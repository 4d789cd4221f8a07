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


def digest(value: Any) -> str:
    """Return a digest; anything else is a TableError."""
    if not is_digest(value):
        raise TableError(f"a digest is 64 hexadecimal digits, not {value!r:.100}")
    return str(value)


def plain_name(value: Any) -> str:
    """Return the name of a file; one with a separator, a leading dot or other signs is a TableError.

    >>> plain_name("keys-text.npy")
    'keys-text.npy'
    >>> plain_name("../header.json")
    Traceback (most recent call last):
    contrada.errors.TableError: a file has a plain name of letters, digits, '.', '_' and '-', not '../header.json'
    """
    if not isinstance(value, str) or NAME.fullmatch(value) is None:
        raise TableError(f"a file has a plain name of letters, digits, '.', '_' and '-', not {value!r:.100}")
    return value


def count(value: Any) -> int:
    """Return a whole number of 0 or more that 63 bits hold; anything else is a TableError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise TableError(f"a whole number of 0 or more, not {value!r:.100}")
    return value


def number(value: Any) -> float:
    """Return a finite number as a float; anything else is a TableError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MAX_FLOAT <= value <= MAX_FLOAT:
        raise TableError(f"a finite number, not {value!r:.100}")
    return float(value)


def text(value: Any) -> str:
    """Return a text; anything else is a TableError."""
    if not isinstance(value, str):
        raise TableError(f"a text, not {value!r:.100}")
    return value


def location(value: Any) -> str:
    """Return a path or URI; anything else is a TableError."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise TableError(f"a path or URI, not {value!r:.100}")
    return value


def boolean(value: Any) -> bool:
    """Return true or false; anything else is a TableError."""
    if not isinstance(value, bool):
        raise TableError(f"true or false, not {value!r:.100}")
    return value


def anything(value: Any) -> Any:
    """Return any value unchecked."""
    return value


def name_type(value: Any) -> str:
    """Return the type of keys or subscribers; anything else is a TableError."""
    if value not in NAME_TYPES:
        raise TableError(f"one of {', '.join(NAME_TYPES)}, not {value!r:.100}")
    return str(value)


def list_of(check: Check) -> Check:
    """Return a check of lists: every item passes `check`."""

    def checked(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise TableError(f"a list, not {value!r:.100}")
        return tuple(check(item) for item in value)

    return checked


def map_of(check: Check) -> Check:
    """Return a check of objects: every member passes `check`."""

    def checked(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise TableError(f"an object, not {value!r:.100}")
        return {name: check(item) for name, item in value.items()}

    return checked


def optional_text(value: Any) -> str | None:
    """Return a text or None; anything else is a TableError."""
    return None if value is None else text(value)


def fields(about: Any, checks: Mapping[str, Check], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of an object, each checked; a missing, unknown or bad one is a TableError that names it.

    >>> fields({"filters": -1}, {"filters": count})
    Traceback (most recent call last):
    contrada.errors.TableError: filters: a whole number of 0 or more, not -1
    """
    if not isinstance(about, Mapping):
        raise TableError(f"an object with {', '.join(checks)}, not {about!r:.100}")
    for name in about:
        if name not in checks:
            raise TableError(f"{name!r:.100} is no field; there are {', '.join(checks)}")
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
