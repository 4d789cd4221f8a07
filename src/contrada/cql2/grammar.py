"""The grammar of CQL2 text, for Lark's LALR(1) parser: it says what is wrong with a text, and what could stand there.

Texts that follow the grammar are parsed by recursive descent (descent.py), which is several times as fast. The grammar
accepts more than constraints can express: arithmetic (whose precedence then does not matter) and arrays are parsed, so
that a later error can say where and why they are not supported.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from contrada.cql2.builder import Builder, place
from contrada.cql2.scanner import Token, tokens
from contrada.cql2.syntax import Fault, Node

if TYPE_CHECKING:
    from lark import Lark

GRAMMAR = """
?start: expression
?expression: conjunction | conjunction (OR conjunction)+ -> joined
?conjunction: condition | condition (AND condition)+ -> joined
?condition: sum
    | NOT condition -> negate
    | sum COMPARE sum -> operation
    | sum NOT? (LIKE | TEXTUAL) sum -> operation
    | sum NOT? BETWEEN sum AND sum -> operation
    | sum NOT? IN items -> operation
    | sum IS NOT? NULL -> is_null
items: LITERALS -> literals | LPAR sum (COMMA sum)* RPAR -> array
?sum: operand | sum (ARITHMETIC | SIGN) operand -> operation
?operand: NUMBER -> number
    | SIGN operand -> sign
    | STRING -> text
    | (TRUE | FALSE | NULL) -> constant
    | GEOMETRY -> geometry
    | COLUMN -> column
    | NAME -> attribute
    | NAME LPAR (expression (COMMA expression)*)? RPAR -> call
    | LPAR expression RPAR -> group
    | LPAR expression (COMMA expression)+ RPAR -> array
%declare OR AND NOT COMPARE LIKE TEXTUAL BETWEEN IN IS NULL NAME LITERALS LPAR RPAR COMMA
%declare ARITHMETIC SIGN NUMBER STRING TRUE FALSE GEOMETRY COLUMN
"""
# Terminals as error messages name them. UNLISTED_TERMINALS are never suggested, because they lead to another error.
EXPECTED_WORDS = {
    "NAME": "an attribute or function", "NUMBER": "a number", "STRING": "text in '...'", "GEOMETRY": "a geometry",
    "COLUMN": "a $column", "LPAR": "(", "RPAR": ")", "COMMA": ",", "COMPARE": "a comparison", "LITERALS": "(",
    "$END": "the end",
}  # fmt: skip
UNLISTED_TERMINALS = {"ARITHMETIC", "SIGN", "TEXTUAL"}


# After an unexpected token the parser has already changed its state. A copy, made every 1,000 tokens, reads the tokens
# since then again, to list what could stand there.
TOKENS_BETWEEN_COPIES = 1000


@cache
def _parser() -> Lark:
    from lark import Lark

    made: Any = Lark  # Lark's type hints do not allow Builder as a transformer
    parser: Lark = made(GRAMMAR, parser="lalr", lexer="basic", transformer=Builder(), keep_all_tokens=True)
    return parser


def syntax_of(text: str) -> Node:
    """Return the syntax tree of a text; raise a Fault where it does not follow the grammar.

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
            parsing.feed_token(token)  # Lark reads only the type of a token
        fed.append(end)
        node: Node = parsing.feed_token(end)
    except UnexpectedToken:
        *before, token = fed
        for one in before:
            copy.feed_token(one)
        raise _unexpected(text, token, copy) from None
    return node


def _unexpected(text: str, token: Token, parsing: Any) -> Fault:
    """Return the fault at an unexpected token; `parsing` has read the tokens before it and lists what could follow."""
    accepted: set[str] = parsing.accepts() - UNLISTED_TERMINALS
    if "NUMBER" in accepted:
        accepted -= {"NULL"}  # nothing compares with NULL
    expected = tuple(sorted({EXPECTED_WORDS.get(name, name) for name in accepted}))
    found = "unexpected end of text" if token.type == "$END" else f"unexpected {token.text[:40]!r}"
    hint = r"; inside text write '' for ', not \'" if text[: token.start].endswith("\\'") else ""
    return Fault(place(token), f"{found}; expected one of {', '.join(expected)}{hint}", expected, "token")
