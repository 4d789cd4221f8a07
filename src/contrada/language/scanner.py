"""Text to tokens. A geometry literal is one token, and so is a list of plain literals: most of a long text is these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from contrada.language.nodes import Fault

LARGEST_NESTING = 200
KEYWORDS = {"AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS", "NULL", "TRUE", "FALSE", "DIV"}
TEXTUAL = {"PREFIX", "SUFFIX", "CONTAINS"}  # operators where an operator can stand, else names like any other
OPERANDS = {"NAME", "NUMBER", "STRING", "COLUMN", "GEOMETRY", "RPAR", "TRUE", "FALSE", "NULL"}  # what ends one
GEOMETRIES = {"POINT", "POLYGON", "MULTIPOLYGON"}
OTHER_GEOMETRIES = {"LINESTRING", "MULTILINESTRING", "MULTIPOINT", "GEOMETRYCOLLECTION"}
SIGNS = {
    "(": "LPAR", ")": "RPAR", ",": "COMMA", "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "SLASH", "%": "PERCENT",
    "^": "CARET", "=": "COMPARE", "<": "COMPARE", "<=": "COMPARE", ">": "COMPARE", ">=": "COMPARE", "<>": "COMPARE",
    "!=": "COMPARE",
}  # fmt: skip

# Quantifiers are possessive: no place is looked at twice, whatever the text.
_WORD = r"(?:[^\W\d]|:)[\w.:]*+"
_QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
_STRING = r"'[^']*+(?:''[^']*+)*+'"
_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_LITERAL = rf"\s*+(?:{_STRING}|[+-]?+{_NUMBER})\s*+"
TOKEN = re.compile(
    rf"\s++|(?P<WORD>{_WORD})|(?P<NUMBER>{_NUMBER})|(?P<STRING>{_STRING})|(?P<QUOTED>{_QUOTED})"
    rf"|(?P<COLUMN>\$(?:{_WORD}|{_QUOTED}))|(?P<SIGN><>|<=|>=|!=|[=<>(),+\-*/%^])"
)
LITERALS = re.compile(rf"\((?:{_LITERAL},)*+{_LITERAL}\)")
LITERAL = re.compile(_LITERAL)
_DIMENSIONS = re.compile(r"\s*+(?:(?:ZM?|M)\b)?\s*+(?:\(|(EMPTY)\b)", re.IGNORECASE)
_COORDINATES = re.compile(r"[0-9eE.,+\-\s()]*+")
_BRACKET = re.compile(r"[()]")


class Scanned(NamedTuple):
    """A token: its type, as the grammar calls it, its text, and where it begins and ends."""

    type: str
    text: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Scanned]:
    """The tokens of a text; a Fault where there is none, and where brackets or NOTs are nested too deeply.

    >>> [token.type for token in tokens("a IN (1, 2) AND inside(b, POINT(1 2))")]
    ['NAME', 'IN', 'LITERALS', 'AND', 'NAME', 'LPAR', 'NAME', 'COMMA', 'GEOMETRY', 'RPAR']
    """
    place, depth, negations, last, before = 0, 0, 0, "", ""
    while place < len(text):
        token = _token(text, place, last)
        place = token.end
        if not token.type:
            continue
        if token.text.upper() in TEXTUAL and (before if last == "NOT" else last) in OPERANDS:
            token = token._replace(type="TEXTUAL")
        before, last = last, token.type
        depth += (last == "LPAR") - (last == "RPAR")
        negations = negations + 1 if last == "NOT" else 0
        if max(depth, negations) > LARGEST_NESTING:
            raise Fault((token.start, token.end), f"nested more than {LARGEST_NESTING} deep")
        yield token


def _token(text: str, place: int, last: str) -> Scanned:
    """The token at a place; white space has no kind."""
    if last == "IN" and (listed := LITERALS.match(text, place)):
        return Scanned("LITERALS", listed.group(), place, listed.end())
    match = TOKEN.match(text, place)
    if match is None:
        raise Fault((place, place + 1), _reason(text, place))
    kind, found, end = match.lastgroup or "", match.group(), match.end()
    if kind == "SIGN":
        kind = SIGNS[found]
    elif kind == "WORD":
        upper = found.upper()
        if upper in KEYWORDS:
            kind = upper
        elif upper in GEOMETRIES | OTHER_GEOMETRIES and (opened := _DIMENSIONS.match(text, end)):
            return _geometry(text, upper, place, opened)
        else:
            kind = "NAME"
    return Scanned("NAME" if kind == "QUOTED" else kind, found, place, end)


def _geometry(text: str, kind: str, start: int, opened: re.Match[str]) -> Scanned:
    """A whole geometry literal, up to the bracket that closes it."""
    if kind in OTHER_GEOMETRIES:
        message = f"{kind} is no value here: write a POLYGON, MULTIPOLYGON, POINT or BBOX"
        raise Fault((start, opened.end()), message)
    if opened.group(1):
        return Scanned("GEOMETRY", text[start : opened.end()], start, opened.end())
    depth = 1
    stop = _COORDINATES.match(text, opened.end()).end()  # type: ignore[union-attr]  # matches the empty text too
    for bracket in _BRACKET.finditer(text, opened.end(), stop):
        depth += 1 if bracket.group() == "(" else -1
        if depth == 0:
            return Scanned("GEOMETRY", text[start : bracket.end()], start, bracket.end())
    if stop < len(text):
        raise Fault((stop, stop + 1), f"{text[stop]!r} does not belong into the coordinates of a {kind}")
    raise Fault((start, start + len(kind)), f"the brackets of this {kind} are not closed")


def _reason(text: str, place: int) -> str:
    """Why there is no token at a place."""
    character = text[place]
    if character == "'":
        return "this text is not closed: it needs another ' (and within text a ' is written '')"
    if character == '"':
        return 'this name is not closed: it needs another " (and within a name a " is written "")'
    if character == "$":
        return "after $ comes the name of a column"
    return f"{character!r} is not part of the language"
