r"""Fold case and accents of text, and parse and match LIKE patterns.

Folding removes accents first and case second, and folding folded text changes nothing:

- accents: canonical decomposition (NFD), without the nonspacing marks (category Mn), composed again (NFC). Characters
  that Unicode does not decompose stay: `ø` and `ł` are letters without accents.
- case: `str.casefold`, which may lengthen text: `ß` becomes `ss`. It does not normalise, so `é` as one code point and
  as two stay different.

In the other order the iota below a Greek vowel, a mark whose lower case is a letter, would survive as that letter.

Patterns and texts are made of code points, never of bytes or of what a reader sees as one character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import Enum
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from contrada.codes import ANY_ONE_BYTE, ANY_RUN_BYTE
from contrada.errors import FilterError


class Wildcard(Enum):
    """Wildcards of a pattern."""

    ANY_RUN = "%"  # any text, including the empty text
    ANY_ONE = "_"  # exactly one code point


ANY_RUN: Final = Wildcard.ANY_RUN
ANY_ONE: Final = Wildcard.ANY_ONE

Part: TypeAlias = str | Wildcard
Token: TypeAlias = str | Wildcard  # a letter, or a wildcard
Simple: TypeAlias = Literal["equals", "prefix", "suffix", "contains"]
Shape: TypeAlias = tuple[Simple, str] | tuple[Literal["pattern"], None]

# Wildcards in encoded patterns.
WILDCARD_BYTES = {ANY_RUN: bytes([ANY_RUN_BYTE]), ANY_ONE: bytes([ANY_ONE_BYTE])}
_WILDCARD, _SPECIAL = re.compile("([%_])"), re.compile(r"[%_\\]")
_WILDCARDS: dict[str, Part] = {wildcard.value: wildcard for wildcard in Wildcard}


def plain_text(text: str) -> str:
    r"""Return any kind of str as plain text; `str` of a NumPy string would lose trailing zeros.

    >>> import numpy as np
    >>> plain_text(np.str_("a\0"))
    'a\x00'
    """
    return "".join((text,))


def fold(text: str, casei: bool, accenti: bool) -> str:
    """Return the text without its accents, its case, both or neither; folding once more changes nothing.

    >>> fold("Crème BRÛLÉE", casei=True, accenti=True)
    'creme brulee'
    >>> fold("Straße", casei=True, accenti=False) == fold("STRASSE", casei=True, accenti=False)
    True
    """
    if accenti and not text.isascii():
        decomposed = unicodedata.normalize("NFD", text)
        bare = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
        text = unicodedata.normalize("NFC", bare)
    return text.casefold() if casei else text


class Like(NamedTuple):
    r"""LIKE pattern in normal form: no literal is empty, no two literals are adjacent, wildcards are between them.

    Among adjacent wildcards, every ANY_ONE comes before ANY_RUN, which occurs at most once: so equivalent sequences of
    wildcards are equal. Make a pattern with `parse_like`, `of` or `like_of`.

    >>> parse_like("a%_b").parts
    ('a', <Wildcard.ANY_ONE: '_'>, <Wildcard.ANY_RUN: '%'>, 'b')
    """

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Like:
        """Return the pattern of any sequence of literals and wildcards, in normal form.

        >>> Like.of(["a", "b", ANY_RUN, "", ANY_RUN]) == like_of("prefix", "ab")
        True
        """
        normal: list[Part] = []
        for is_wildcard, group in groupby(filter(None, parts), lambda part: isinstance(part, Wildcard)):
            alike: list[Any] = list(group)
            if is_wildcard:
                normal += [ANY_ONE] * alike.count(ANY_ONE) + [ANY_RUN] * (ANY_RUN in alike)
            else:
                normal.append("".join(alike))
        return cls(tuple(normal))

    def folded(self, casei: bool, accenti: bool) -> Like:
        """Return the pattern for folded text: literals are folded, and ANY_ONE takes one code point of the folded text.

        >>> parse_like("Stra_e %").folded(casei=True, accenti=False).to_text()
        'stra_e %'
        """
        if not casei and not accenti:
            return self
        return Like.of(fold(part, casei, accenti) if isinstance(part, str) else part for part in self.parts)

    def shape(self) -> Shape:
        """Return the simple operator that the pattern amounts to, with its literal; ("pattern", None) if there is none.

        >>> parse_like("Via %").shape(), parse_like("%a%b").shape()
        (('prefix', 'Via '), ('pattern', None))
        """
        match self.parts:
            case ():
                return "equals", ""
            case (str(literal),):
                return "equals", literal
            case (Wildcard.ANY_RUN,):
                return "prefix", ""
            case (str(literal), Wildcard.ANY_RUN):
                return "prefix", literal
            case (Wildcard.ANY_RUN, str(literal)):
                return "suffix", literal
            case (Wildcard.ANY_RUN, str(literal), Wildcard.ANY_RUN):
                return "contains", literal
        return "pattern", None

    def matches(self, text: str) -> bool:
        """Return True if the whole text, already folded if needed, has this form; at most O(n * m / 64) steps.

        >>> parse_like("%a_c").matches("abc abc"), parse_like("%a_c").matches("abcd")
        (True, False)
        """
        shape, literal = self.shape()
        if literal is None:
            return tokens_match(tokens_of(self), text)
        if shape == "contains":
            return literal in text
        if shape == "equals":
            return text == literal
        return text.startswith(literal) if shape == "prefix" else text.endswith(literal)

    def to_text(self) -> str:
        r"""Return the pattern as text, with `%`, `_` and `\` in literals escaped by `\`; parsing it gives it back.

        >>> print(like_of("contains", "100%").to_text())
        %100\%%
        """
        return "".join(_SPECIAL.sub(r"\\\g<0>", part) if isinstance(part, str) else part.value for part in self.parts)


def tokens_of(like: Like) -> list[Token]:
    """Return a pattern letter by letter.

    >>> tokens_of(parse_like("ab%"))
    ['a', 'b', <Wildcard.ANY_RUN: '%'>]
    """
    return [token for part in like.parts for token in (part if isinstance(part, str) else (part,))]


def tokens_match(tokens: Iterable[Token], letters: Iterable[Token]) -> bool:
    """Return True if a pattern matches all `letters`; a wildcard among these is a letter that only wildcards match.

    ANY_ONE matches every letter but ANY_RUN. Bit k of `states` says that the first k tokens, not counting runs, can
    have matched.

    >>> tokens_match(["a", ANY_RUN], "abc"), tokens_match(["a", ANY_ONE], ["a", ANY_RUN])
    (True, False)
    """
    size = 0
    places: dict[Token, list[int]] = {}
    runs: list[int] = []
    for token in tokens:
        if token is ANY_RUN:
            runs.append(size)
        else:
            places.setdefault(token, []).append(size)
            size += 1
    loops = _bits(runs, size)
    accepts = {token: _bits(found, size) for token, found in places.items()}
    ones = accepts.pop(ANY_ONE, 0)
    states = 1
    for letter in letters:
        taken = accepts.get(letter, 0) | (0 if letter is ANY_RUN else ones)
        states = (states & taken) << 1 | states & loops
        if not states:
            return False
    return bool(states >> size & 1)


def _bits(places: Iterable[int], size: int) -> int:
    """Return the integer of bits 0..size with the bits at `places` set; linear, unlike adding powers of 2."""
    room = bytearray(size // 8 + 1)
    for place in places:
        room[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(room, "little")


def parse_like(pattern: str, escape: str = "\\") -> Like:
    r"""Return the pattern of a text: `%` any run, `_` one code point; `escape` makes the next character literal.

    The escape is a single character; if it is `%` or `_`, that is no wildcard. A pattern that ends in it is an error
    that names the position, counted from 0.

    >>> parse_like("50!%", escape="!").shape()
    ('equals', '50%')
    >>> parse_like("50%\\")
    Traceback (most recent call last):
    contrada.errors.FilterError: LIKE pattern '50%\\': nothing follows the escape at position 3
    """
    if len(escape) != 1:
        raise FilterError(f"LIKE escape: need one character, got {escape!r:.60}")
    parts: list[Part] = []
    if escape not in pattern:  # usual case, and fast
        return Like.of(_WILDCARDS.get(part, part) for part in _WILDCARD.split(pattern))
    characters = enumerate(pattern)
    for place, character in characters:
        if character == escape:
            _, literal = next(characters, (place, ""))
            if not literal:
                raise FilterError(f"LIKE pattern {pattern!r}: nothing follows the escape at position {place}")
            parts.append(literal)
        else:
            parts.append(Wildcard(character) if character in "%_" else character)
    return Like.of(parts)


def like_of(operator: str, value: str) -> Like:
    """Return the pattern that an operator on text, or its negation, asks for.

    >>> like_of("prefix", "50%").to_text(), like_of("not suffix", ".csv").to_text(), like_of("contains", "ab").to_text()
    ('50\\\\%%', '%.csv', '%ab%')
    """
    plain = operator.removeprefix("not ")
    if plain == "like":
        return parse_like(value)
    return Like.of([ANY_RUN] * (plain != "prefix") + [value] + [ANY_RUN] * (plain != "suffix"))


def encode_text(text: str) -> bytes:
    """Return UTF-8 that also encodes lone surrogates; bytes compare like code points.

    >>> encode_text("é"), encode_text("\\ud800")
    (b'\\xc3\\xa9', b'\\xed\\xa0\\x80')
    """
    return text.encode("utf-8", "surrogatepass")


def encode_like(like: Like) -> bytes:
    """Return the pattern for compiled kernels: literals in UTF-8, byte FF for ANY_RUN and FE for ANY_ONE.

    >>> encode_like(parse_like("é_%"))
    b'\\xc3\\xa9\\xfe\\xff'
    """
    return b"".join(encode_text(part) if isinstance(part, str) else WILDCARD_BYTES[part] for part in like.parts)
