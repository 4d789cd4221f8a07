"""Tables of mixed filters: every operator, kind of value and null, against plain evaluation in Python."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from effort import examples
from generators.scalars import messages, predicates
from oracles.plain import predicate_holds

SHAPES = ("buffered", "packed", "both", "opened")


def subscribed(table, given_predicates, first=0):
    """Subscribe under the numbers of the predicates; a number too close to another one is refused."""
    kept = {}
    for key, predicate in enumerate(given_predicates, first):
        try:
            table.subscribe(key % 5, predicate, key=key)
        except ct.FilterError as error:
            if "cannot be told apart" not in str(error):
                raise
        else:
            kept[key] = predicate
    return kept


def right_answer(model, message):
    return {key for key, predicate in model.items() if predicate_holds(predicate, message)}


def check(table, model, asked):
    table.check()
    for message in asked:
        right = right_answer(model, message)
        assert set(table.match_keys(message)) == right
        assert set(table.match(message)) == {key % 5 for key in right}
    many = table.match_many(asked, by="subscription")
    rows = [set(many.rows[a:b].tolist()) for a, b in zip(many.offsets[:-1], many.offsets[1:], strict=True)]
    assert rows == [set(table.match_keys(message).rows.tolist()) for message in asked]


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
            check(table, model, asked)
            model.update(subscribed(table, later, 100))
            check(table, model, asked)
            return
    if shape == "both":
        model.update(subscribed(table, later, 100))
    for key in gone & model.keys():
        table.unsubscribe(key)
        del model[key]
    check(table, model, asked)
    table.pack()
    check(table, model, asked)
