"""Tables of mixed filters: every operator, kind of value and null, against plain evaluation in Python."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from effort import examples
from generators.scalars import messages, predicates
from oracles.subscriptions import check_answers, subscribed, unsubscribe

SHAPES = ("buffered", "packed", "both", "opened")


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None, max_examples=examples(40))
@given(
    given_predicates=st.lists(predicates(), min_size=1, max_size=25),
    later=st.lists(predicates(), max_size=5),
    asked=st.lists(messages(), min_size=1, max_size=12),
    gone=st.sets(st.integers(0, 24), max_size=8),
)
def test_answers_are_those_of_plain_evaluation(shape, given_predicates, later, asked, gone):
    table = ct.ForwardingTable()
    model = subscribed(table, given_predicates)
    if shape != "buffered":
        for message in asked:  # what was seen decides how filters are reached
            table.match(message)
        table.pack()
    if shape == "opened":
        with TemporaryDirectory() as directory:
            path = Path(directory) / "table"
            table.save(path)
            ct.ForwardingTable.verify(path)
            table = ct.ForwardingTable.open(path)
            check_answers(table, model, asked)
            check_answers(table, model | subscribed(table, later, 100), asked)
            return
    if shape == "both":
        model |= subscribed(table, later, 100)
    unsubscribe(table, model, gone)
    check_answers(table, model, asked)
    table.pack()
    check_answers(table, model, asked)
