"""Syntax tree of CQL2 text and JSON: operations, attributes and values, each with its position in the source."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias


class Pointer:
    """A JSON pointer as a linked list: a string for each nested value would take quadratic memory.

    >>> str(Pointer().to("args").to(1))
    '/args/1'
    """

    __slots__ = ("above", "step")

    def __init__(self, above: Pointer | None = None, step: str | int = "") -> None:
        self.above, self.step = above, step

    def to(self, step: str | int) -> Pointer:
        """Return the pointer to a member or an item of this value."""
        return Pointer(self, step)

    def __str__(self) -> str:
        steps: list[str] = []
        at: Pointer = self
        while at.above is not None:
            steps.append(f"/{at.step}")
            at = at.above
        return "".join(reversed(steps))


Place: TypeAlias = tuple[int, int] | Pointer  # start and end in text, or a pointer into JSON


class Value(NamedTuple):
    """A literal: text, number, boolean, None for NULL, a Region or Point, or a Column of a template."""

    value: Any
    at: Place


class Attribute(NamedTuple):
    """An attribute of messages, by its name."""

    name: str
    at: Place


class Operation(NamedTuple):
    """An operator or function, named in lower case as in CQL2 JSON, with its arguments.

    `at` is the position of the whole operation, `sign` that of the operator.
    """

    name: str
    arguments: tuple[Node, ...]
    at: Place
    sign: Place


Node: TypeAlias = Value | Attribute | Operation


# Faults for which hints.py has hints: an unexpected token or character, two attributes where one is possible.
FaultKind: TypeAlias = Literal["token", "character", "two attributes", "other"]


class Fault(Exception):
    """An error at a position; the caller that has the source turns it into a LanguageError."""

    def __init__(self, at: Place, message: str, expected: tuple[str, ...] = (), kind: FaultKind = "other") -> None:
        super().__init__(message)
        self.at, self.message, self.expected, self.kind = at, message, expected, kind
