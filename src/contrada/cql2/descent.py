"""Parse CQL2 text by recursive descent, as the grammar of grammar.py says.

A text that does not follow the grammar is given to that grammar's parser, whose faults say what could stand there.
"""

from __future__ import annotations

from contrada.cql2.builder import Builder, Child
from contrada.cql2.scanner import Token, tokens
from contrada.cql2.syntax import Fault, Node

BUILD = Builder()
SINGLE = {
    "NUMBER": BUILD.number, "STRING": BUILD.text, "TRUE": BUILD.constant, "FALSE": BUILD.constant,
    "NULL": BUILD.constant, "GEOMETRY": BUILD.geometry, "COLUMN": BUILD.column,
}  # fmt: skip
BINARY = ("COMPARE", "LIKE", "TEXTUAL")


class NoMatchError(Exception):
    """The text does not follow the grammar."""


def syntax_of(text: str) -> Node:
    """Return the syntax tree of a text; raise a Fault where it does not follow the grammar.

    >>> syntax_of("5 < price").name
    '<'
    """
    try:
        return Descent(text).whole()
    except (NoMatchError, Fault, RecursionError):  # the first fault of the text may be another one
        from contrada.cql2 import grammar

        return grammar.syntax_of(text)


class Descent:
    """The tokens of a text, and the place of the next one; every method reads one rule of the grammar."""

    def __init__(self, text: str) -> None:
        self._tokens = [*tokens(text), Token("$END", "", len(text), len(text))]
        self._next = 0

    def whole(self) -> Node:
        """Read the whole text."""
        node = self._joined("OR")
        self._take("$END")
        return node

    @property
    def _type(self) -> str:
        return self._tokens[self._next].type

    def _any(self) -> Token:
        self._next += 1
        return self._tokens[self._next - 1]

    def _take(self, kind: str) -> Token:
        """Read the next token, which must have this type."""
        token = self._tokens[self._next]
        if token.type != kind:
            raise NoMatchError
        self._next += 1
        return token

    def _joined(self, joint: str) -> Node:
        """Read conjunctions joined by OR, or conditions joined by AND."""
        parts: list[Child] = [self._joined("AND") if joint == "OR" else self._condition()]
        while self._type == joint:
            parts.append(self._any())
            parts.append(self._joined("AND") if joint == "OR" else self._condition())
        return parts[0] if len(parts) == 1 else BUILD.joined(parts)

    def _condition(self) -> Node:
        if self._type == "NOT":
            return BUILD.negate([self._any(), self._condition()])
        left = self._sum()
        kind = self._type
        if kind in BINARY:
            return BUILD.operation([left, self._any(), self._sum()])
        if kind == "NOT":
            return self._negated(left, self._any())
        if kind == "BETWEEN":
            return BUILD.operation([left, self._any(), self._sum(), self._take("AND"), self._sum()])
        if kind == "IN":
            return BUILD.operation([left, self._any(), self._items()])
        return self._null(left) if kind == "IS" else left

    def _negated(self, left: Node, sign: Token) -> Node:
        """Read what follows NOT behind an operand."""
        kind = self._type
        if kind in ("LIKE", "TEXTUAL"):
            return BUILD.operation([left, sign, self._any(), self._sum()])
        if kind == "BETWEEN":
            return BUILD.operation([left, sign, self._any(), self._sum(), self._take("AND"), self._sum()])
        return BUILD.operation([left, sign, self._take("IN"), self._items()])

    def _null(self, left: Node) -> Node:
        children: list[Child] = [left, self._take("IS")]
        if self._type == "NOT":
            return BUILD.is_null([*children, self._any(), self._take("NULL")])
        return BUILD.is_null([*children, self._take("NULL")])

    def _items(self) -> Node:
        if self._type == "LITERALS":
            return BUILD.literals([self._any()])
        children: list[Child] = [self._take("LPAR"), self._sum()]
        while self._type == "COMMA":
            children += [self._any(), self._sum()]
        return BUILD.array([*children, self._take("RPAR")])

    def _sum(self) -> Node:
        left = self._operand()
        while self._type in ("SIGN", "ARITHMETIC"):
            left = BUILD.operation([left, self._any(), self._operand()])
        return left

    def _operand(self) -> Node:
        token = self._any()
        single = SINGLE.get(token.type)
        if single is not None:
            return single([token])
        if token.type == "NAME":
            return self._named(token)
        if token.type == "SIGN":
            return BUILD.sign([token, self._operand()])
        if token.type != "LPAR":
            raise NoMatchError
        children = [token, *self._list()]
        return BUILD.group(children) if len(children) == 3 else BUILD.array(children)

    def _named(self, name: Token) -> Node:
        """Read an attribute, or the call of a function."""
        if self._type != "LPAR":
            return BUILD.attribute([name])
        opened = self._any()
        if self._type == "RPAR":
            return BUILD.call([name, opened, self._any()])
        return BUILD.call([name, opened, *self._list()])

    def _list(self) -> list[Child]:
        """Read expressions with commas between, and the closing bracket."""
        children: list[Child] = [self._joined("OR")]
        while self._type == "COMMA":
            children += [self._any(), self._joined("OR")]
        return [*children, self._take("RPAR")]
