"""Tests that constraints on scalars and text are reduced to, each on one form of an attribute's value.

A form is what a value is converted to before look-up: itself, its text folded, its text reversed, or only the fact that
it is present. On every form but patterns, a test asks whether the value lies in an interval or a set.
"""

from __future__ import annotations

from typing import NamedTuple

from contrada.codes import PRESENT, TEXT
from contrada.model.values import BOOLEAN, NUMBER, TIME

CASEI, ACCENTI = 1, 2
SCALARS = (NUMBER, TIME, BOOLEAN, PRESENT)

Operand = tuple[int, int] | bytes  # (key, rest) of a scalar, or UTF-8
Slot = tuple[str, int]  # an attribute and a form: the key by which constraints are looked up


class Bound(NamedTuple):
    """End of an interval; an open end does not belong to it."""

    operand: Operand
    is_open: bool


class Test(NamedTuple):
    """One test of one form of an attribute's value: `asks` is INTERVAL, SET or LIKE, plus NOT for the negation."""

    form: int
    asks: int
    low: Bound | None = None
    high: Bound | None = None
    members: tuple[Operand, ...] = ()
    pattern: bytes = b""


def is_text(form: int) -> bool:
    """Return True if the operands of a form are text, in either direction."""
    return form >= TEXT


def folding(form: int) -> int:
    """Return CASEI and ACCENTI of a form of text."""
    return form & 3
