"""Split CQL2 text into tokens. A geometry literal, or a list of plain literals, is one token: they fill long texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from contrada.cql2.syntax import Fault
from contrada.limits import limit, variable

KEYWORDS = {word: word for word in ("AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS", "NULL", "TRUE", "FALSE")}
# Operators only where an operator can stand, after the end of an operand; otherwise ordinary names.
KEYWORDS |= {"DIV": "ARITHMETIC", "PREFIX": "TEXTUAL", "SUFFIX": "TEXTUAL", "CONTAINS": "TEXTUAL"}
OPERANDS = {"NAME", "NUMBER", "STRING", "COLUMN", "GEOMETRY", "RPAR", "TRUE", "FALSE", "NULL"}
OTHER_GEOMETRIES = {"MULTIPOINT", "GEOMETRYCOLLECTION"}
GEOMETRIES = {"POINT", "POLYGON", "MULTIPOLYGON", "LINESTRING", "MULTILINESTRING", *OTHER_GEOMETRIES}
SYMBOLS = {"(": "LPAR", ")": "RPAR", ",": "COMMA"}
SYMBOLS |= dict.fromkeys("+-", "SIGN") | dict.fromkeys("*/%^", "ARITHMETIC")
SYMBOLS |= dict.fromkeys(("=", "<", "<=", ">", ">=", "<>", "!="), "COMPARE")

# Quantifiers are possessive, so no text makes the scanner backtrack.
_WORD = r"(?:[^\W\d]|:)[\w.:]*+"
QUOTED = r'"[^"]*+(?:""[^"]*+)*+"'
STRING = r"'[^']*+(?:''[^']*+)*+'"
NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_LITERAL = rf"\s*+(?:{STRING}|[+-]?+{NUMBER})\s*+"
TOKEN = re.compile(
    rf"\s*+(?:(?P<WORD>{_WORD})|(?P<NUMBER>{NUMBER})|(?P<STRING>{STRING})|(?P<QUOTED>{QUOTED})"
    rf"|(?P<COLUMN>\$(?:{_WORD}|{QUOTED}))|(?P<SYMBOL><>|<=|>=|!=|[=<>(),+\-*/%^])|\Z)"
)
LITERALS = re.compile(rf"\s*+(\((?:{_LITERAL},)*+{_LITERAL}\))")
LITERAL = re.compile(_LITERAL)
_DIMENSIONS = re.compile(r"\s*+(?:(?:ZM?|M)\b)?\s*+(?:\(|(EMPTY)\b)", re.IGNORECASE)
_COORDINATES = re.compile(r"[0-9eE.,+\-\s()]*+")
_PLAIN_BOX = re.compile(rf"\s*+\((?:\s*+[+-]?+{NUMBER}\s*+,){{3}}\s*+[+-]?+{NUMBER}\s*+\)")
_SPACE = re.compile(r"\s*+")
_BRACKET = re.compile(r"[()]")


class Token(NamedTuple):
    """A token: its type in the grammar, its text, its start and end."""

    type: str
    text: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text; raise a Fault at an invalid character, or beyond the limits of nesting and terms.

    >>> [token.type for token in tokens("a IN (1, 2) AND inside(b, POINT(1 2))")]
    ['NAME', 'IN', 'LITERALS', 'AND', 'NAME', 'LPAR', 'NAME', 'COMMA', 'GEOMETRY', 'RPAR']
    """
    place, depth, negations, joints, last, before = 0, 0, 0, 0, "", ""
    deepest, most = limit("filter_nesting"), limit("terms")
    while (token := _token(text, place, last, before)) is not None:
        yield token
        place, before, last = token.end, last, token.type
        if last == "LPAR":
            depth += 1
        elif last == "RPAR":
            depth -= 1
        negations = negations + 1 if last == "NOT" else 0
        if depth > deepest or negations > deepest:
            raise Fault((token.start, token.end), nested_too_deeply())
        if last in ("AND", "OR"):
            joints += 1
            if joints >= most:  # checked here, because the parser takes 0.1 ms for each
                raise Fault((token.start, token.end), too_many_terms())


def nested_too_deeply() -> str:
    """Return the message for a filter nested beyond the limit."""
    return f"nested more than {limit('filter_nesting')} deep ({variable('filter_nesting')})"


def too_many_terms() -> str:
    """Return the message for a filter that joins more terms than the limit."""
    return f"more than {limit('terms'):,} terms joined by AND and OR ({variable('terms')})"


def _token(text: str, place: int, last: str, before: str) -> Token | None:
    """Return the token after white space at `place`, given the types of the two tokens before; None at the end."""
    if last == "IN" and (listed := LITERALS.match(text, place)):
        return Token("LITERALS", listed.group(1), *listed.span(1))
    match = TOKEN.match(text, place)
    if match is None:
        place = _SPACE.match(text, place).end()  # type: ignore[union-attr]  # matches the empty text too
        raise Fault((place, place + 1), _reason(text, place), kind="character")
    kind = match.lastgroup
    if kind is None:
        return None
    found = match.group(kind)
    start, end = match.span(kind)
    if kind == "SYMBOL":
        kind = SYMBOLS[found]
    elif kind == "WORD":
        upper = found.upper() if found.isascii() else ""  # the upper case of a dotless i is a plain I
        if upper in GEOMETRIES and (opened := _DIMENSIONS.match(text, end)):
            return _geometry(text, upper, start, opened)
        if upper == "BBOX" and (box := _PLAIN_BOX.match(text, end)):
            return Token("GEOMETRY", text[start : box.end()], start, box.end())
        kind = KEYWORDS.get(upper, "NAME")
        if kind == "TEXTUAL" and (before if last == "NOT" else last) not in OPERANDS:
            kind = "NAME"
    elif kind == "QUOTED":
        kind = "NAME"
    return Token(kind, found, start, end)


def _geometry(text: str, kind: str, start: int, opened: re.Match[str]) -> Token:
    """Return a whole geometry literal, up to its closing bracket."""
    if kind in OTHER_GEOMETRIES:
        message = f"{kind} is not supported; write a POLYGON, MULTIPOLYGON, POINT, LINESTRING, MULTILINESTRING or BBOX"
        raise Fault((start, opened.end()), message)
    if opened.group(1):
        return Token("GEOMETRY", text[start : opened.end()], start, opened.end())
    depth = 1
    stop = _COORDINATES.match(text, opened.end()).end()  # type: ignore[union-attr]  # matches the empty text too
    for bracket in _BRACKET.finditer(text, opened.end(), stop):
        depth += 1 if bracket.group() == "(" else -1
        if depth == 0:
            return Token("GEOMETRY", text[start : bracket.end()], start, bracket.end())
    if stop < len(text):
        raise Fault((stop, stop + 1), f"unexpected {text[stop]!r} in the coordinates of a {kind}")
    raise Fault((start, start + len(kind)), f"the brackets of this {kind} are not closed")


def _reason(text: str, place: int) -> str:
    """Return why there is no token at `place`."""
    character = text[place]
    if character == "'":
        return "text is not closed: add a closing ' (inside text write '' for ')"
    if character == '"':
        return 'name is not closed: add a closing " (inside a name write "" for ")'
    if character == "$":
        return "need the name of a column after $"
    return f"unexpected character {character!r}"
