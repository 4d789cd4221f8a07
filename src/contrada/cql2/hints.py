"""Hints for habits from other languages: `==`, `&&`, text in double quotes. Added to the parser's message."""

from __future__ import annotations

import re

_QUOTED_BEFORE = re.compile(r'"((?:[^"]|"")*)"\s*(?:[=<>!]+|LIKE|BETWEEN|IN\s*\()\s*\Z', re.IGNORECASE)
_CHARACTERS = {
    "&": "conditions are joined by AND",
    "|": "conditions are joined by OR",
    "!": "a condition is negated by NOT, and unequal is written <>",
    "`": 'a name that is not plain stands in double quotes, "..."',
    ";": "a filter is one condition, without a semicolon",
} | dict.fromkeys("‘’‚“”„", "text is written in straight single quotes, '...'")  # noqa: RUF001 - typed by editors
_SIGNS = {"==": "equality is written with one =", "=<": "at most is written <=", "=>": "at least is written >="}


def hint_at(text: str, start: int, end: int, message: str) -> str:
    """Return what to write instead, for a fault in CQL2 text from `start` to `end`; empty if no hint is known.

    >>> hint_at("a == 5", 3, 4, "unexpected '='")
    'equality is written with one ='
    >>> hint_at('kind = "storm"', 7, 14, "two attributes cannot be compared with each other")
    "text is written in single quotes, 'storm'; double quotes are for names"
    """
    if message.startswith("two attributes"):
        return _quotes(text, start, end)
    if message.startswith("unexpected"):
        sign = text[start - 1 : start + 1] if start else ""
        return _SIGNS.get(sign, "")
    return _CHARACTERS.get(text[start : start + 1], "") if "not part of the language" in message else ""


def _quotes(text: str, start: int, end: int) -> str:
    """Return the hint for a comparison of two attributes: one is probably text, in double quotes or on the right."""
    found = text[start:end]
    before = _QUOTED_BEFORE.search(text[max(0, start - 200) : start])
    if not found.startswith('"') and before is not None:
        found = before.group(0)[: before.end(1) - before.start() + 1]
    if not found.startswith('"'):
        return f"if {found[:40]} is text, write '{found[:40]}'"
    plain = found[1:-1].replace('""', '"').replace("'", "''")
    return f"text is written in single quotes, '{plain[:40]}'; double quotes are for names"
