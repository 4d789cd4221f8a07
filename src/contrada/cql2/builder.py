"""Build the syntax tree of CQL2 text: a method for each rule of the grammar, called by both parsers."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from contrada.cql2.literals import number_of
from contrada.cql2.scanner import LITERAL, NUMBER, Token
from contrada.cql2.syntax import Attribute, Fault, Node, Operation, Value
from contrada.errors import ContradaError
from contrada.geometry import Line, Point, Region
from contrada.model import Column

OPERATOR_NAMES = {"!=": "<>", "CONTAINS": "contains text", "PREFIX": "prefix text", "SUFFIX": "suffix text"}
CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_PLAIN_POINT = re.compile(rf"POINT\s*+\(\s*+([+-]?{NUMBER})\s++([+-]?{NUMBER})\s*+\)\Z", re.IGNORECASE)
_LINE = re.compile("(?:MULTI)?LINE", re.IGNORECASE)
Child: TypeAlias = Any  # a token, a node, or a list of nodes


def span(children: list[Child]) -> tuple[int, int]:
    """Return the span from the start of the first child to the end of the last."""
    first, last = children[0], children[-1]
    start = first.start if isinstance(first, Token) else first.at[0]
    return start, last.end if isinstance(last, Token) else last.at[1]


def place(token: Token) -> tuple[int, int]:
    """Return the start and end of a token."""
    return token.start, token.end


class Builder:
    """A method for each rule of the grammar; children are tokens and nodes."""

    def joined(self, children: list[Child]) -> Node:
        """Build conditions joined by AND or OR."""
        return Operation(children[1].type.lower(), tuple(children[::2]), span(children), place(children[1]))

    def negate(self, children: list[Child]) -> Node:
        """Build the negation of a condition."""
        return Operation("not", (children[1],), span(children), place(children[0]))

    def operation(self, children: list[Child]) -> Node:
        """Build an operation with an operator, or NOT and an operator, after the first operand."""
        left, *rest = children
        is_negated = rest[0].type == "NOT"
        sign, *others = rest[is_negated:]
        name = OPERATOR_NAMES.get(sign.text.upper(), sign.text.lower())
        made = Operation(name, (left, *others[::2]), span(children), place(sign))  # between others stands an AND
        return _contrary(made) if is_negated else made

    def is_null(self, children: list[Child]) -> Node:
        """Build IS NULL and IS NOT NULL."""
        made = Operation("isnull", (children[0],), span(children), place(children[1]))
        return _contrary(made) if len(children) > 3 else made

    def literals(self, children: list[Child]) -> Node:
        """Build a list of plain literals, which are one token."""
        (token,) = children
        values = [_literal(match.group().strip(), match.start() + token.start, match.end() + token.start)
                  for match in LITERAL.finditer(token.text, 1)]  # fmt: skip
        return Operation("array", tuple(values), place(token), place(token))

    def array(self, children: list[Child]) -> Node:
        """Build a list of operands."""
        return Operation("array", tuple(children[1::2]), span(children), span(children))

    def group(self, children: list[Child]) -> Node:
        """Return the expression in brackets."""
        inside: Node = children[1]
        return inside

    def call(self, children: list[Child]) -> Node:
        """Build a function call."""
        name, _, *arguments, _ = children
        return Operation(_name(name.text).lower(), tuple(arguments[::2]), span(children), place(name))

    def sign(self, children: list[Child]) -> Node:
        """Build a signed number; a sign before anything else is arithmetic."""
        sign, operand = children
        if isinstance(operand, Value) and type(operand.value) in (int, float):
            return Value(-operand.value if sign.text == "-" else operand.value, span(children))
        return Operation(sign.text, (operand,), span(children), place(sign))

    def number(self, children: list[Child]) -> Node:
        """Build a number or text."""
        (token,) = children
        return _literal(token.text, token.start, token.end)

    text = number

    def constant(self, children: list[Child]) -> Node:
        """Build TRUE, FALSE or NULL."""
        return Value(CONSTANTS[children[0].type], place(children[0]))

    def column(self, children: list[Child]) -> Node:
        """Build a column of a template."""
        (token,) = children
        return Value(Column(_name(token.text[1:])), place(token))

    def attribute(self, children: list[Child]) -> Node:
        """Build an attribute of messages."""
        (token,) = children
        return Attribute(_name(token.text), place(token))

    def geometry(self, children: list[Child]) -> Node:
        """Build a geometry from well-known text or BBOX."""
        (token,) = children
        try:
            if point := _PLAIN_POINT.match(token.text):  # faster than Shapely
                return Value(Point(float(point[1]), float(point[2])), place(token))
            if token.text[:4].upper() == "BBOX":
                corners = token.text[token.text.index("(") + 1 : -1].split(",")
                return Value(Region.box(*map(float, corners)), place(token))
            kind: type[Point | Line | Region] = Point if token.text[:5].upper() == "POINT" else Region
            if _LINE.match(token.text):
                kind = Line
            return Value(kind.from_wkt(token.text), place(token))
        except ContradaError as error:
            reason = str(error).removeprefix("row 0: ").replace("no geometry (null)", "malformed geometry")
            raise Fault(place(token), reason) from error


def _contrary(node: Operation) -> Node:
    return Operation("not", (node,), node.at, node.sign)


def _name(text: str) -> str:
    """Return a name without its quotes."""
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _literal(text: str, start: int, end: int) -> Value:
    """Return the value of a text or number literal."""
    if text.startswith("'"):
        return Value(text[1:-1].replace("''", "'"), (start, end))
    try:
        return Value(number_of(text), (start, end))
    except ContradaError as error:
        raise Fault((start, end), str(error)) from error
