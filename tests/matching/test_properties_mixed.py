"""Tables of mixed filters: every operator, kind of value and null, against plain evaluation in Python."""

import copy
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from effort import examples
from generators.scalars import messages, predicates
from oracles.subscriptions import check_answers, recalled, saved_and_opened, subscribed, unsubscribe

WAYS = {  # what becomes of a table before it is asked
    "as it is": lambda table: table,
    "saved and opened": saved_and_opened,
    "pickled": lambda table: pickle.loads(pickle.dumps(table)),
    "copied": copy.copy,
    "deeply copied": copy.deepcopy,
}


def check(table, model, asked):
    """A table answers as plain evaluation does, and gives back the predicates that it was given."""
    check_answers(table, model, asked)
    assert list(table) == list(model)
    assert {key: recalled(table, key) for key in table} == {key: predicate for key, (_, predicate) in model.items()}


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=examples(24))
@given(
    given_predicates=st.lists(predicates(), max_size=25),
    later=st.lists(predicates(), max_size=5),
    asked=st.lists(messages(), min_size=1, max_size=12),
    gone=st.sets(st.integers(0, 24), max_size=8),
)
def test_answers_are_those_of_plain_evaluation(way, is_packed, given_predicates, later, asked, gone):
    table = ct.ForwardingTable()
    model = subscribed(table, given_predicates)
    if is_packed:
        for message in asked:  # what was seen decides how filters are reached
            table.match(message)
        table.pack()
    table = WAYS[way](table)
    check(table, model, asked)
    model |= subscribed(table, later, 100)
    unsubscribe(table, model, gone)
    check(table, model, asked)
    other = WAYS[way](table)
    table.pack()
    for one in (table, other):
        check(one, model, asked)
