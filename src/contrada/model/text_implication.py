"""Implication between patterns of one folding: prefixes, suffixes, contains and LIKE.

A pattern matches all texts that another one matches if it matches the other letter by letter, where each wildcard of
the other is a letter that only wildcards match: complete for patterns without `_` if there are enough letters, and
sound for all. Whether no text matches both is decided by the beginnings and the ends of the patterns, and by how long
texts can be.

>>> from contrada.model.text import parse_like
>>> tokens_match(tokens_of(parse_like("%b%")), tokens_of(parse_like("a_b%c")))
True
>>> tokens_match(tokens_of(parse_like("a_")), tokens_of(parse_like("a%")))
False
"""

from __future__ import annotations

from contrada.model.constraint import Constraint
from contrada.model.operators import TEXTUAL, is_negation
from contrada.model.text import ANY_ONE, ANY_RUN, Token, fold, like_of, tokens_match, tokens_of


def text_covers(first: Constraint, second: Constraint, is_negated: bool) -> bool:
    """Return True if every text that satisfies `second` satisfies the pattern of `first`, or its negation.

    False if that is not known.
    """
    one, other = _tokens(first), _tokens(second)
    if one is None or other is None or (first.casei, first.accenti) != (second.casei, second.accenti):
        return False
    if not is_negation(str(second.operator)):
        return are_apart(one, other) if is_negated else tokens_match(one, other)
    return is_negated and tokens_match(other, one)


def _tokens(constraint: Constraint) -> list[Token] | None:
    """Return the pattern of a constraint on text, ignoring its negation; None if it is no pattern."""
    operator, value = str(constraint.operator), constraint.value
    casei, accenti = constraint.casei, constraint.accenti
    if operator in ("=", "!="):
        return list(fold(value, casei, accenti))
    if operator not in TEXTUAL:
        return None
    return tokens_of(like_of(operator, value).folded(casei, accenti))


def are_apart(one: list[Token], other: list[Token]) -> bool:
    """Return True if beginnings, ends or lengths show that no text matches both patterns.

    >>> from contrada.model.text import parse_like
    >>> are_apart(tokens_of(parse_like("ab%")), tokens_of(parse_like("a_c%d")))
    False
    >>> are_apart(tokens_of(parse_like("ab%")), tokens_of(parse_like("_c%")))
    True
    """
    if _differ(one, other) or _differ(one[::-1], other[::-1]):
        return True
    least = [sum(token is not ANY_RUN for token in tokens) for tokens in (one, other)]
    is_fixed = [ANY_RUN not in tokens for tokens in (one, other)]
    return (is_fixed[0] and least[0] < least[1]) or (is_fixed[1] and least[1] < least[0])


def _differ(one: list[Token], other: list[Token]) -> bool:
    """Return True if two patterns have different letters at some position before any run."""
    for a, b in zip(one, other, strict=False):
        if a is ANY_RUN or b is ANY_RUN:
            return False
        if a != b and ANY_ONE not in (a, b):
            return True
    return False
