"""Tables that were simplified answer as before: by subscription within, by subscriber across."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import Constraint, Filter, ForwardingTable, Predicate, Region, Relation
from effort import examples
from generators.scalars import messages, predicates
from oracles.subscriptions import check_answers, matching_keys, saved_and_opened, subscribed, unsubscribe
from threads import repeating

BOX, INNER = Region.box(0, 0, 8, 8), Region.box(2, 2, 4, 4)


LISTS = st.lists(predicates(), min_size=1, max_size=9)


@settings(max_examples=examples(60))
@given(LISTS, st.lists(messages(), max_size=6), st.sets(st.integers(0, 8), max_size=3), st.booleans())
def test_answers_stay_within_subscriptions(given_predicates, asked, gone, is_saved):
    table = ForwardingTable()
    model = subscribed(table, given_predicates)
    unsubscribe(table, model, gone)
    report = table.simplify()
    assert report.filters_before == sum(len(predicate) for _, predicate in model.values())
    assert report.filters_after <= report.filters_before
    if is_saved:
        table = saved_and_opened(table)
    check_answers(table, model, asked)
    for key in list(model):
        table.unsubscribe(key)
    assert len(table) == 0


@settings(max_examples=examples(60))
@given(LISTS, st.lists(messages(), min_size=1, max_size=6))
def test_subscribers_stay_across_subscriptions(given_predicates, asked):
    table = ForwardingTable()
    model = subscribed(table, given_predicates)
    shorter = table.simplified(by="subscriber")
    shorter.check()
    answers = shorter.match_many(asked)
    for k, message in enumerate(asked):
        expected = {model[key][0] for key in matching_keys(model, message)}
        assert set(shorter.match(message)) == expected
        assert set(answers[k]) == set(answers.subscribers(k)) == expected
    check_answers(table, model, asked)


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_table_by_subscriber_has_no_keys_and_says_so(is_saved, tmp_path):
    table = ForwardingTable()
    table.subscribe("a", Constraint("area", Relation.INSIDE, BOX), key="wide")
    table.subscribe("a", Filter([Constraint("area", Relation.INSIDE, INNER), Constraint("x", ">", 3)]), key="narrow")
    table.subscribe("b", Constraint("x", ">", 3), key="other")
    table = table.simplified(by="subscriber")
    report = table.report
    assert (report.filters_before, report.filters_after, report.rules["covered"]) == (3, 2, 1)
    if is_saved:
        table.save(tmp_path / "table")
        ForwardingTable().save(tmp_path / "with keys")
        table = ct.SubscriberTable.open(tmp_path / "table")
        with pytest.raises(ct.TableError, match=r"SubscriberTable\.open"):
            ForwardingTable.open(tmp_path / "table")
        with pytest.raises(ct.TableError, match=r"ForwardingTable\.open"):
            ct.SubscriberTable.open(tmp_path / "with keys")
    message = {"area": Region.box(2.5, 2.5, 3, 3), "x": 5}
    assert set(table.match(message)) == {"a", "b"}
    assert len(table) == 2
    answer = table.match_many([message, {}])
    assert answer.to_arrow().to_pydict() == {"message": [0, 0], "subscriber": ["a", "b"]}
    for ask in (
        lambda: table.match(message, by="subscription"),
        lambda: table.match_many([message], by="subscription"),
        lambda: answer.keys(0),
    ):
        with pytest.raises(ct.ArgumentError, match="no keys"):
            ask()
    for name in ("subscribe", "subscribe_many", "unsubscribe", "match_keys", "explain", "keys_of"):
        assert not hasattr(table, name)


def test_the_table_that_was_simplified_stays_and_goes_its_own_way():
    table = ForwardingTable()
    table.subscribe("a", "x > 1", key="k")
    shorter = table.simplified()
    table.unsubscribe("k")
    table.subscribe("b", "x > 1")
    assert shorter.match({"x": 2}) == {"a"}
    assert table.match({"x": 2}) == {"b"}


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
    assert ForwardingTable().simplified().report.filters_after == 0
    table = ForwardingTable()
    for n in range(5):
        table.subscribe(n % 2, f"x > {n} OR x > {n + 1}")
    for run, expected in ((table.simplify, [(n, 5) for n in range(1, 6)]), (table.simplified, [(3, 5), (5, 5)])):
        seen = []
        run(progress=lambda *done, seen=seen: seen.append(done))
        assert seen == expected


def test_readers_go_on_while_a_table_is_simplified():
    table = ForwardingTable()
    for n in range(400):
        table.subscribe(n % 20, f"x > {n} OR x > {n + 1} AND y = 1 OR x = {n}", key=n)

    def read():
        assert set(table.match({"x": 399})) == set(range(20))
        assert len(set(table.match_keys({"x": 399}))) == 400

    with repeating(read, threads=1):
        table.simplify()
        table.simplified()
