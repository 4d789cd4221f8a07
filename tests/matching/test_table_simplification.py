"""Tables that were simplified answer as before: by subscription within, by subscriber across."""

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint, Filter, ForwardingTable, Predicate, Region, Relation
from contrada.matching.decompile import Recollection, predicate_of
from effort import examples
from generators.scalars import messages, predicates
from oracles.plain import predicate_holds

BOX, INNER = Region.box(0, 0, 8, 8), Region.box(2, 2, 4, 4)


def subscribed(given_predicates, subscribers=3):
    """A table and what it was given, by key; numbers that a table cannot tell apart are left out."""
    table, model = ForwardingTable(), {}
    for key, predicate in enumerate(given_predicates):
        try:
            table.subscribe(f"s{key % subscribers}", predicate, key=key)
            model[key] = predicate
        except ct.FilterError as error:
            if "cannot be told apart" not in str(error):
                raise
    return table, model


LISTS = st.lists(predicates(), min_size=1, max_size=9)


@settings(max_examples=examples(60))
@given(LISTS, st.lists(messages(), max_size=6), st.sets(st.integers(0, 8), max_size=3), st.booleans())
def test_answers_stay_within_subscriptions(given_predicates, asked, gone, is_saved):
    table, model = subscribed(given_predicates)
    for key in gone & model.keys():
        table.unsubscribe(key)
        del model[key]
    report = table.simplify()
    table.check()
    assert report.filters_before == sum(map(len, model.values()))
    assert report.filters_after <= report.filters_before
    if is_saved:
        with TemporaryDirectory() as directory:
            table.save(Path(directory) / "table")
            table = ForwardingTable.open(Path(directory) / "table")
            assert_answers(table, model, asked)
    assert_answers(table, model, asked)
    for key in list(model):
        table.unsubscribe(key)
    assert len(table) == 0


def assert_answers(table, model, asked):
    assert set(table) == model.keys()
    for message in asked:
        expected = {key for key, predicate in model.items() if predicate_holds(predicate, message)}
        assert set(table.match_keys(message)) == expected
        assert set(table.match(message)) == {f"s{key % 3}" for key in expected}


@settings(max_examples=examples(60))
@given(LISTS, st.lists(messages(), min_size=1, max_size=6))
def test_subscribers_stay_across_subscriptions(given_predicates, asked):
    table, model = subscribed(given_predicates)
    table.simplify(across=True)
    table.check()
    answers = table.match_many(asked, by="subscriber")
    for k, message in enumerate(asked):
        expected = {f"s{key % 3}" for key, predicate in model.items() if predicate_holds(predicate, message)}
        assert set(table.match(message)) == expected
        rows = answers.rows[answers.offsets[k] : answers.offsets[k + 1]]
        assert set(table.subscribers_of(rows, "subscriber")) == expected


@settings(max_examples=examples(60))
@given(LISTS)
def test_bulk_recall_is_recall(given_predicates):
    table, model = subscribed(given_predicates)
    table.pack()
    snapshot, places = table._store.snapshot, table._store.places
    filters = Recollection(snapshot.levels[0], places, table._crs).filters(np.arange(snapshot.filters))
    expected = [part for row in range(snapshot.rows) for part in predicate_of(snapshot, places, row, table._crs)]
    assert filters == expected
    assert len(filters) == sum(map(len, model.values()))


def across():
    table = ForwardingTable()
    table.subscribe("a", Constraint("area", Relation.INSIDE, BOX), key="wide")
    table.subscribe("a", Filter([Constraint("area", Relation.INSIDE, INNER), Constraint("x", ">", 3)]), key="narrow")
    table.subscribe("b", Constraint("x", ">", 3), key="other")
    report = table.simplify(across=True)
    assert (report.filters_before, report.filters_after, report.rules["covered"]) == (3, 2, 1)
    return table


MESSAGE = {"area": Region.box(2.5, 2.5, 3, 3), "x": 5}


@pytest.mark.parametrize(
    "asks",
    [
        lambda table: table.match_keys(MESSAGE),
        lambda table: table.match_many([MESSAGE]),
        lambda table: table.explain(MESSAGE, "wide"),
        lambda table: table.unsubscribe("wide"),
        lambda table: table.subscribe("c", "x > 1"),
        lambda table: table.subscribe_many(pa.table({"x": [1]}), "x > $x"),
        lambda table: table.simplify(),
        lambda table: list(table),
        lambda table: "wide" in table,
        lambda table: table.keys_of(table.match(MESSAGE).rows),
    ],
)
@pytest.mark.parametrize("is_saved", [False, True])
def test_keys_are_gone_and_whoever_asks_is_told(asks, is_saved, tmp_path):
    table = across()
    if is_saved:
        table.save(tmp_path / "table")
        table = ForwardingTable.open(tmp_path / "table")
    assert set(table.match(MESSAGE)) == {"a", "b"}
    with pytest.raises(ct.KeysGoneError, match=r"simplify\(across=True\)"):
        asks(table)


def test_a_subscription_that_never_matches_stays_and_can_leave():
    table = ForwardingTable()
    never = Filter([Constraint("x", ">", 3), Constraint("x", "<", 2), Constraint("y", "=", 1)])
    table.subscribe("a", Predicate([never, never]), key="never")
    report = table.simplify()
    assert (report.filters_after, report.constraints_after, report.rules["false"]) == (1, 2, 1)
    assert not table.match({"x": 1, "y": 1})
    table.unsubscribe("never")
    assert len(table) == 0


def test_an_empty_table_and_progress():
    assert ForwardingTable().simplify().filters_before == 0
    assert ForwardingTable().simplify(across=True).filters_after == 0
    table, seen = ForwardingTable(), []
    for n in range(5):
        table.subscribe(n % 2, f"x > {n} OR x > {n + 1}")
    table.simplify(progress=lambda done, all_of_them: seen.append((done, all_of_them)))
    assert seen == [(n, 5) for n in range(1, 6)]


def test_readers_go_on_while_a_table_is_simplified():
    table, wrong = ForwardingTable(), []
    for n in range(400):
        table.subscribe(n % 20, f"x > {n} OR x > {n + 1} AND y = 1 OR x = {n}", key=n)
    done = threading.Event()

    def read():
        while not done.is_set():
            try:
                if set(table.match({"x": 399})) != set(range(20)) or len(set(table.match_keys({"x": 399}))) != 400:
                    wrong.append("answers differ")
            except ct.KeysGoneError:
                break

    reader = threading.Thread(target=read)
    reader.start()
    table.simplify()
    table.simplify(across=True)
    done.set()
    reader.join()
    assert not wrong
