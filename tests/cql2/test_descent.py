"""The parser by recursive descent builds the trees of the grammar's own parser, and refuses the same texts."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contrada.cql2 import descent, grammar
from contrada.cql2.syntax import Fault

WORDS = [
    "a", '"b c"', "1", "-", "+", "2.5", "'x'", "TRUE", "NULL", "$c", "POINT(1 2)", "BBOX(0, 0, 1, 1)", "(", ")", ",",
    "=", "<>", "<=", "AND", "OR", "NOT", "LIKE", "BETWEEN", "IN", "IS", "IS NULL", "IS NOT NULL", "PREFIX", "CONTAINS",
    "*", "div", "casei(", "S_INTERSECTS(a,", "IN ('x', 1)", "BETWEEN 1 AND 2", "a = 1", "(a = 1)",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


def tree_of(parse, text):
    """The tree, or None where the text is refused."""
    try:
        return parse(text)
    except (descent.NoMatchError, Fault):
        return None


@given(TEXTS)
@example("NOT a = 1 AND b NOT LIKE 'x' OR (c IN (1, 2), d)")
@example("a NOT BETWEEN 1 + 2 AND -3 AND b IS NOT NULL")
@example("f() AND g(a OR b, (1)) * 2 > h")
def test_both_parsers_agree(text):
    assert tree_of(lambda each: descent.Descent(each).whole(), text) == tree_of(grammar.syntax_of, text)


@pytest.mark.parametrize("depth", [10, 199])
def test_nesting_beyond_the_stack_is_left_to_the_grammar(depth):
    text = "(" * depth + "a = 1" + ")" * depth
    assert descent.syntax_of(text) == grammar.syntax_of(text)
