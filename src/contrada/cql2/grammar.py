"""The grammar of CQL2 text, for Lark's LALR(1) parser, and what its rules are read into.

It takes more than can be asked: arithmetic (whose precedence does not matter then) and arrays are read, so that what
refuses them can say where and why. Every level of the grammar costs time at every operand, so there are few.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from contrada.cql2.literals import number_of
from contrada.cql2.scanner import LITERAL, NUMBER, Token, tokens
from contrada.cql2.syntax import Attribute, Fault, Node, Operation, Value
from contrada.errors import ContradaError
from contrada.geometry import Point, Region
from contrada.model import Column

if TYPE_CHECKING:
    from lark import Lark

GRAMMAR = """
?start: expression
?expression: conjunction | conjunction (OR conjunction)+ -> any_of
?conjunction: condition | condition (AND condition)+ -> all_of
?condition: sum
    | NOT condition -> negate
    | sum COMPARE sum -> binary
    | sum LIKE sum -> binary
    | sum NOT LIKE sum -> not_binary
    | sum TEXTUAL sum -> binary
    | sum NOT TEXTUAL sum -> not_binary
    | sum BETWEEN sum AND sum -> between
    | sum NOT BETWEEN sum AND sum -> not_between
    | sum IN items -> among
    | sum NOT IN items -> not_among
    | sum IS NULL -> is_null
    | sum IS NOT NULL -> is_not_null
items: LITERALS -> literals | LPAR sum (COMMA sum)* RPAR -> array
?sum: operand | sum ARITHMETIC operand -> binary | sum SIGN operand -> binary
?operand: NUMBER -> number
    | SIGN operand -> sign
    | STRING -> text
    | TRUE -> true
    | FALSE -> false
    | NULL -> null
    | GEOMETRY -> geometry
    | COLUMN -> column
    | NAME -> attribute
    | NAME LPAR RPAR -> call
    | NAME LPAR expression (COMMA expression)* RPAR -> call
    | LPAR expression RPAR -> group
    | LPAR expression (COMMA expression)+ RPAR -> array
%declare OR AND NOT COMPARE LIKE TEXTUAL BETWEEN IN IS NULL NAME LITERALS LPAR RPAR COMMA
%declare ARITHMETIC SIGN NUMBER STRING TRUE FALSE GEOMETRY COLUMN
"""
# What could stand at a place, in the words of those who write it; arithmetic and NULL lead nowhere.
WORDS = {
    "NAME": "an attribute or function", "NUMBER": "a number", "STRING": "text in '...'", "GEOMETRY": "a geometry",
    "COLUMN": "a $column", "LPAR": "(", "RPAR": ")", "COMMA": ",", "COMPARE": "a comparison", "LITERALS": "(",
    "$END": "the end",
}  # fmt: skip
NAMES = {"!=": "<>", "CONTAINS": "contains text", "PREFIX": "prefix text", "SUFFIX": "suffix text"}
UNTOLD = {"ARITHMETIC", "SIGN", "TEXTUAL"}
_PLAIN_POINT = re.compile(rf"POINT\s*+\(\s*+([+-]?{NUMBER})\s++([+-]?{NUMBER})\s*+\)\Z", re.IGNORECASE)
Child: TypeAlias = Any  # a Scanned token, a Node, or a list of nodes


def span(children: list[Child]) -> tuple[int, int]:
    """From where the first child begins to where the last one ends."""
    first, last = children[0], children[-1]
    start = first.start if isinstance(first, Token) else first.at[0]
    return start, last.end if isinstance(last, Token) else last.at[1]


def place(token: Token) -> tuple[int, int]:
    """Where a token stands."""
    return token.start, token.end


class Builder:
    """A method for each rule, which Lark calls while it parses: its children, tokens too, become a node."""

    def any_of(self, children: list[Child]) -> Node:
        """Conditions joined by OR."""
        return Operation("or", tuple(children[::2]), span(children), place(children[1]))

    def all_of(self, children: list[Child]) -> Node:
        """Conditions joined by AND."""
        return Operation("and", tuple(children[::2]), span(children), place(children[1]))

    def negate(self, children: list[Child]) -> Node:
        """The negation of a condition."""
        return Operation("not", (children[1],), span(children), place(children[0]))

    def binary(self, children: list[Child]) -> Operation:
        """Two operands with an operator between them."""
        left, sign, right = children
        name = NAMES.get(sign.text.upper(), sign.text.lower())
        return Operation(name, (left, right), span(children), place(sign))

    def between(self, children: list[Child]) -> Operation:
        """An operand between two."""
        value, sign, low, _, high = children
        return Operation("between", (value, low, high), span(children), place(sign))

    def among(self, children: list[Child]) -> Operation:
        """An operand in a list."""
        value, sign, items = children
        return Operation("in", (value, items), span(children), place(sign))

    def is_null(self, children: list[Child]) -> Node:
        """An operand that is absent."""
        return Operation("isnull", (children[0],), span(children), place(children[1]))

    def is_not_null(self, children: list[Child]) -> Node:
        """An operand that is there."""
        value, sign, *_ = children
        return _contrary(Operation("isnull", (value,), span(children), place(sign)))

    def not_binary(self, children: list[Child]) -> Node:
        """An operator after NOT."""
        return _contrary(self.binary(_without_not(children)))

    def not_between(self, children: list[Child]) -> Node:
        """BETWEEN after NOT."""
        return _contrary(self.between(_without_not(children)))

    def not_among(self, children: list[Child]) -> Node:
        """IN after NOT."""
        return _contrary(self.among(_without_not(children)))

    def literals(self, children: list[Child]) -> Node:
        """A list of plain literals, which are one token."""
        (token,) = children
        values = [_literal(match.group().strip(), match.start() + token.start, match.end() + token.start)
                  for match in LITERAL.finditer(token.text, 1)]  # fmt: skip
        return Operation("array", tuple(values), place(token), place(token))

    def array(self, children: list[Child]) -> Node:
        """A list of operands."""
        return Operation("array", tuple(children[1::2]), span(children), span(children))

    def group(self, children: list[Child]) -> Node:
        """What stands in brackets."""
        inside: Node = children[1]
        return inside

    def call(self, children: list[Child]) -> Node:
        """A function of operands."""
        name, _, *arguments, _ = children
        return Operation(_name(name.text).lower(), tuple(arguments[::2]), span(children), place(name))

    def sign(self, children: list[Child]) -> Node:
        """A number with a sign; of anything else it is arithmetic."""
        sign, operand = children
        if isinstance(operand, Value) and type(operand.value) in (int, float):
            return Value(-operand.value if sign.text == "-" else operand.value, span(children))
        return Operation(sign.text, (operand,), span(children), place(sign))

    def number(self, children: list[Child]) -> Node:
        """A number."""
        (token,) = children
        return _literal(token.text, token.start, token.end)

    text = number

    def true(self, children: list[Child]) -> Node:
        """TRUE."""
        return Value(True, place(children[0]))

    def false(self, children: list[Child]) -> Node:
        """FALSE."""
        return Value(False, place(children[0]))

    def null(self, children: list[Child]) -> Node:
        """NULL."""
        return Value(None, place(children[0]))

    def column(self, children: list[Child]) -> Node:
        """A column of a template."""
        (token,) = children
        return Value(Column(_name(token.text[1:])), place(token))

    def attribute(self, children: list[Child]) -> Node:
        """An attribute of messages."""
        (token,) = children
        return Attribute(_name(token.text), place(token))

    def geometry(self, children: list[Child]) -> Node:
        """A geometry in well-known text."""
        (token,) = children
        try:
            if point := _PLAIN_POINT.match(token.text):  # quicker than by Shapely
                return Value(Point(float(point[1]), float(point[2])), place(token))
            if token.text[:4].upper() == "BBOX":
                corners = token.text[token.text.index("(") + 1 : -1].split(",")
                return Value(Region.box(*map(float, corners)), place(token))
            read = Point.from_wkt if token.text[:5].upper() == "POINT" else Region.from_wkt
            return Value(read(token.text), place(token))
        except ContradaError as error:
            reason = str(error).removeprefix("row 0: ").replace("no geometry (null)", "malformed geometry")
            raise Fault(place(token), reason) from error


def _contrary(node: Operation) -> Node:
    return Operation("not", (node,), node.at, node.sign)


def _without_not(children: list[Child]) -> list[Child]:
    return [children[0], *children[2:]]


def _name(text: str) -> str:
    """A name without its quotes."""
    return text[1:-1].replace('""', '"') if text.startswith('"') else text


def _literal(text: str, start: int, end: int) -> Value:
    """Text or a number."""
    if text.startswith("'"):
        return Value(text[1:-1].replace("''", "'"), (start, end))
    try:
        return Value(number_of(text), (start, end))
    except ContradaError as error:
        raise Fault((start, end), str(error)) from error


# A parser that meets what it does not expect has gone on a little: a copy reads again what came since it was made.
TOKENS_BETWEEN_COPIES = 1000


@cache
def _parser() -> Lark:
    from lark import Lark

    made: Any = Lark  # whose transformers need not be what it says
    parser: Lark = made(GRAMMAR, parser="lalr", lexer="basic", transformer=Builder(), keep_all_tokens=True)
    return parser


def syntax_of(text: str) -> Node:
    """What a text says; a Fault where it does not follow the grammar.

    >>> syntax_of("5 < price").name
    '<'
    """
    from lark import UnexpectedToken

    parsing: Any = _parser().parse_interactive()
    end = Token("$END", "", len(text), len(text))
    copy, fed = parsing.copy(deepcopy_values=False), list[Token]()
    try:
        for number, token in enumerate(tokens(text)):
            if number and number % TOKENS_BETWEEN_COPIES == 0:
                copy, fed = parsing.copy(deepcopy_values=False), []
            fed.append(token)
            parsing.feed_token(token)  # of a token it needs the type alone
        fed.append(end)
        node: Node = parsing.feed_token(end)
    except UnexpectedToken:
        *before, token = fed
        for one in before:
            copy.feed_token(one)
        raise _unexpected(text, token, copy) from None
    return node


def _unexpected(text: str, token: Token, parsing: Any) -> Fault:
    """What was found, and what could stand there, told by a parser that has read up to there and no further."""
    accepted: set[str] = parsing.accepts() - UNTOLD
    if "NUMBER" in accepted:
        accepted -= {"NULL"}  # which compares with nothing
    expected = tuple(sorted({WORDS.get(name, name) for name in accepted}))
    found = "the text ends" if token.type == "$END" else f"unexpected {token.text[:40]!r}"
    hint = r"; within text a ' is written '', not \'" if text[: token.start].endswith("\\'") else ""
    return Fault(place(token), f"{found}; here could stand {', '.join(expected)}{hint}", expected)
