"""Tests: what constraints on scalars and text come down to, each on one form of an attribute's value.

A form is what a value is turned into before it is looked up: itself, its text folded, its text read backwards, or the
mere fact that it is there. On every form but patterns a test asks whether the value lies in an interval or a set.
"""

from __future__ import annotations

from typing import NamedTuple

from contrada.model.values import BOOLEAN, NUMBER, TIME

# Forms: a kind of scalar; whether there is a value; text, text backwards and patterns, each with its folding added.
PRESENT = 3
TEXT, BACKWARDS, PATTERN = 8, 16, 24
CASEI, ACCENTI = 1, 2
INTERVAL, SET, LIKE = 0, 2, 4  # what a test asks
NOT = 1  # or the contrary, added to it; unknown if the value is
SCALARS = (NUMBER, TIME, BOOLEAN, PRESENT)

Operand = tuple[int, int] | bytes  # (key, rest) of a scalar, or UTF-8
Place = tuple[str, int]  # an attribute and a form of it: where constraints are looked up


class Bound(NamedTuple):
    """An end of an interval, which may not belong to it."""

    operand: Operand
    is_open: bool


class Test(NamedTuple):
    """One question about one form of an attribute's value: `asks` is INTERVAL, SET or LIKE, and NOT may be added."""

    form: int
    asks: int
    low: Bound | None = None
    high: Bound | None = None
    members: tuple[Operand, ...] = ()
    pattern: bytes = b""


def is_text(form: int) -> bool:
    """True if the operands of a form are text, in any direction."""
    return form >= TEXT


def folding(form: int) -> int:
    """CASEI and ACCENTI of a form of text."""
    return form & 3
