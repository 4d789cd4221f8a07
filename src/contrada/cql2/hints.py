"""Hints for habits from other languages: `==`, `&&`, text in double quotes. Added to the parser's message."""

from __future__ import annotations

import re

from contrada.cql2.syntax import FaultKind

_QUOTED_BEFORE = re.compile(r'"((?:[^"]|"")*)"\s*(?:[=<>!]+|LIKE|BETWEEN|IN\s*\()\s*\Z', re.IGNORECASE)
_CHARACTERS = {
    "&": "use AND to join conditions",
    "|": "use OR to join conditions",
    "!": "use NOT to negate a condition, and <> for unequal",
    "`": 'quote a name with double quotes, "..."',
    ";": "remove the semicolon",
} | dict.fromkeys("‘’‚“”„", "use straight single quotes for text, '...'")  # noqa: RUF001 - typed by editors
_SIGNS = {"==": "use a single = for equality", "=<": "use <= for at most", "=>": "use >= for at least"}


def hint_at(text: str, start: int, end: int, kind: FaultKind) -> str:
    """Return what to write instead, for a fault in CQL2 text from `start` to `end`; empty if no hint is known.

    >>> hint_at("a == 5", 3, 4, "token")
    'use a single = for equality'
    >>> hint_at('kind = "storm"', 7, 14, "two attributes")
    "use single quotes for text, 'storm'; double quotes are for names"
    """
    if kind == "two attributes":
        return _quotes(text, start, end)
    if kind == "token":
        sign = text[start - 1 : start + 1] if start else ""
        return _SIGNS.get(sign, "")
    return _CHARACTERS.get(text[start : start + 1], "") if kind == "character" else ""


def _quotes(text: str, start: int, end: int) -> str:
    """Return the hint for a comparison of two attributes: one is probably text, in double quotes or on the right."""
    found = text[start:end]
    before = _QUOTED_BEFORE.search(text[max(0, start - 200) : start])
    if not found.startswith('"') and before is not None:
        found = before.group(0)[: before.end(1) - before.start() + 1]
    if not found.startswith('"'):
        return f"if {found[:40]} is text, write '{found[:40]}'"
    plain = found[1:-1].replace('""', '"').replace("'", "''")
    return f"use single quotes for text, '{plain[:40]}'; double quotes are for names"
