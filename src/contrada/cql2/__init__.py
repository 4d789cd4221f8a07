"""Parse CQL2 (OGC 21-065), text and JSON, into predicates; write predicates as CQL2 JSON.

`str(predicate)` writes CQL2 text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from contrada.cql2 import descent, json_form
from contrada.cql2.hints import hint_at
from contrada.cql2.json_form import to_json
from contrada.cql2.normal_form import predicate_of
from contrada.cql2.syntax import Fault
from contrada.doors import door
from contrada.errors import LanguageError
from contrada.model import Predicate

__all__ = ["LanguageError", "parse", "parse_json", "parse_text", "to_json"]

SHOWN_CHARACTERS = 60  # of the source, on each side of a fault


@door(LanguageError)
def parse(what: str | Mapping[str, Any]) -> Predicate:
    """Parse CQL2 text, or CQL2 JSON (a dict, or text that begins with `{`), into a predicate.

    >>> print(parse("overlaps(cloud, POLYGON((10 5, 7 12, 1 1, 10 5))) AND NOT pressure >= 1000"))
    S_OVERLAPS(cloud, POLYGON ((10 5, 7 12, 1 1, 10 5))) AND pressure < 1000
    >>> print(parse({"op": "in", "args": [{"property": "kind"}, ["storm", "flood"]]}))
    kind IN ('storm', 'flood')
    """
    if isinstance(what, str):
        return _parse_json_text(what) if what.lstrip().startswith("{") else parse_text(what)
    return parse_json(what)


@door(LanguageError)
def parse_text(text: str) -> Predicate:
    """Parse CQL2 text into a predicate; a LanguageError says what is wrong, and where.

    >>> print(parse_text("5 < x OR is_open"))
    x > 5 OR is_open = TRUE
    >>> parse_text("x > 5 AND")
    Traceback (most recent call last):
    contrada.errors.LanguageError: line 1, column 10: unexpected end of text; expected one of (, FALSE, NOT, TRUE, ...
      x > 5 AND
               ^
    """
    if not isinstance(text, str):
        raise LanguageError(f"CQL2 text: need str, got {type(text).__name__}")
    try:
        return predicate_of(descent.syntax_of(text))
    except Fault as fault:
        raise _shown(text, fault) from fault.__cause__


@door(LanguageError)
def parse_json(value: Mapping[str, Any]) -> Predicate:
    """Parse CQL2 JSON into a predicate; a LanguageError says what is wrong, and where.

    >>> parse_json({"op": "and", "args": [{"property": "a"}, {"op": "s_covers", "args": []}]})
    Traceback (most recent call last):
    contrada.errors.LanguageError: /args/1/op: ...
    """
    if not isinstance(value, Mapping):
        raise LanguageError(f"CQL2 JSON: need an object, got {type(value).__name__}", path="")
    try:
        return predicate_of(json_form.syntax_of(value))
    except Fault as fault:
        path = str(fault.at)
        raise LanguageError(f"{path or 'CQL2 JSON'}: {fault.message}", path=path) from fault.__cause__
    except RecursionError as error:
        raise LanguageError("CQL2 JSON is nested too deeply for the remaining stack", path="") from error


def _parse_json_text(text: str) -> Predicate:
    """Parse CQL2 JSON as text; repeated keys, NaN and Infinity raise LanguageError."""

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise LanguageError(f"duplicate key {twice[:60]!r} in one object")
        return found

    def refused(name: str) -> Any:
        raise LanguageError(f"{name} is not a JSON number")

    try:
        value = json.loads(text, object_pairs_hook=checked, parse_constant=refused)
    except json.JSONDecodeError as error:
        raise _shown(text, Fault((error.pos, error.pos), error.msg)) from error
    except RecursionError as error:
        raise LanguageError("CQL2 JSON is nested too deeply") from error
    except ValueError as error:
        if isinstance(error, LanguageError):
            raise
        raise LanguageError(f"CQL2 JSON cannot be read: {error}") from error
    return parse_json(value)


def _shown(text: str, fault: Fault) -> LanguageError:
    """Return the error for a fault in a text, with a hint if one is known, the source line and a mark below it."""
    assert isinstance(fault.at, tuple)
    hint = hint_at(text, *fault.at, fault.kind)
    place = min(fault.at[0], len(text))
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    end = len(text) if end < 0 else end
    line, column = text.count("\n", 0, place) + 1, place - start + 1
    left, right = max(start, place - SHOWN_CHARACTERS), min(end, place + SHOWN_CHARACTERS)
    before = "..." * (left > start) + _plain(text[left:place])
    source = before + _plain(text[place:right]) + "..." * (right < end)
    mark = "^" + "~" * (min(fault.at[1], right) - place - 1)
    message = "; ".join(filter(None, (fault.message, hint)))
    message = f"line {line}, column {column}: {message}\n  {source}\n  {' ' * len(before)}{mark}"
    return LanguageError(message, line=line, column=column, expected=fault.expected)


def _plain(text: str) -> str:
    """Replace unprintable characters by spaces, so that the mark stays aligned."""
    return "".join(each if each.isprintable() else " " for each in text)
