"""What text and JSON are read into: operations, attributes and values, as CQL2 JSON nests them, each with its place."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias


class Pointer:
    """A JSON pointer as a chain: one string for each value below many levels would take the square of the input.

    >>> str(Pointer().to("args").to(1))
    '/args/1'
    """

    __slots__ = ("above", "step")

    def __init__(self, above: Pointer | None = None, step: str | int = "") -> None:
        self.above, self.step = above, step

    def to(self, step: str | int) -> Pointer:
        """The pointer to a member or an item of what this points to."""
        return Pointer(self, step)

    def __str__(self) -> str:
        steps: list[str] = []
        at: Pointer = self
        while at.above is not None:
            steps.append(f"/{at.step}")
            at = at.above
        return "".join(reversed(steps))


Place: TypeAlias = tuple[int, int] | Pointer  # where text begins and ends, or where JSON does


class Value(NamedTuple):
    """A literal: text, number, boolean, None for NULL, a Region or Point, or a Column of a template."""

    value: Any
    at: Place


class Attribute(NamedTuple):
    """An attribute of messages, by its name."""

    name: str
    at: Place


class Operation(NamedTuple):
    """An operator or function, named as in CQL2 JSON and in lower case, and what it is applied to.

    `at` is the place of the whole, `sign` that of the operator.
    """

    name: str
    arguments: tuple[Node, ...]
    at: Place
    sign: Place


Node: TypeAlias = Value | Attribute | Operation


class Fault(Exception):
    """Something is wrong at a place; whoever knows the source makes a LanguageError of it."""

    def __init__(self, at: Place, message: str, expected: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.expected = expected
