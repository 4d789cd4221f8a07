"""The shortcut: with it a table answers by subscriber as without it, whatever changes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from contrada import Constraint, Filter, ForwardingTable, Predicate, Region, Relation, parse
from contrada.matching.shortcut import chosen_filters
from contrada.matching.store.tuning import Tuning
from oracles.subscriptions import matching_keys, unsubscribe

SIDE = 100
SOONER = Tuning(
    shortcut_min_filters=200,
    shortcut_min_filters_per_subscriber=8,
    shortcut_learn_from_messages=16,
    shortcut_refresh_after_messages=4,
)


def region(rng, size):
    x, y = rng.integers(0, SIDE, 2).tolist()
    return Region.box(x, y, x + int(rng.integers(1, size)), y + int(rng.integers(1, size)))


def predicate(rng, count=60):
    """Two regions and a number for each filter, many of them `disjoint`, which nearly every message satisfies."""

    def spatial(other):
        return Constraint("area", Relation(int(rng.choice([0, other]))), region(rng, 20))

    return Predicate(
        Filter([spatial(2), spatial(5), Constraint("x", "<", int(rng.integers(1, 12)))]) for _ in range(count)
    )


def packed(rng, subscribers=6, each=1):
    """A packed table and its model."""
    table, model = ForwardingTable(tuning=SOONER), {}
    for key in range(subscribers * each):
        model[key] = f"s{key % subscribers}", predicate(rng, 60 // each)
        table.subscribe(*model[key], key=key)
    table.pack()
    return table, model


def expected(model, message):
    return {model[key][0] for key in matching_keys(model, message)}


def message(rng):
    return {"area": region(rng, 40), "x": int(rng.integers(0, 12))}


@pytest.mark.parametrize("each", [1, 4])
def test_answers_are_those_of_single_predicates(each):
    rng = np.random.default_rng(each)
    table, model = packed(rng, each=each)
    for _ in range(150):
        asked = message(rng)
        assert set(table.match(asked)) == expected(model, asked)
    stats = table.stats()
    assert stats.shortcut_decided > 50
    assert 0 < stats.shortcut_filters < 60


def test_who_comes_and_who_leaves_is_noticed():
    rng = np.random.default_rng(2)
    table, model = packed(rng)
    for step in range(300):
        asked = message(rng)
        assert set(table.match(asked)) == expected(model, asked), step
        if step % 40 == 30:
            model[f"new{step}"] = f"new{step}", parse("x > 20" if step % 80 == 30 else "x >= 0")
            table.subscribe(*model[f"new{step}"], key=f"new{step}")
        if step % 70 == 60:
            unsubscribe(table, model, [step // 70])
        if step == 200:
            table.pack()
            assert table.stats().shortcut_decided > 0


def test_where_nothing_is_gained_nothing_is_kept():
    rng = np.random.default_rng(3)
    table = ForwardingTable(tuning=SOONER)
    for k in range(5):  # few messages satisfy anything
        table.subscribe(k, Predicate(Filter([Constraint("x", "=", int(n))]) for n in rng.integers(0, 10**6, 80)))
    table.pack()
    for _ in range(40):
        table.match({"x": int(rng.integers(0, 10**6))})
    assert table.stats().shortcut_filters == 0


def test_a_shortcut_that_stops_deciding_is_given_up():
    rng = np.random.default_rng(4)
    table, _ = packed(rng)
    for _ in range(60):
        table.match(message(rng))
    assert table.stats().shortcut_filters
    for _ in range(2000):
        if not table.stats().shortcut_filters:
            break
        assert table.match({"area": region(rng, 40), "x": 50}).rows.tolist() == []
    assert not table.stats().shortcut_filters


def test_readers_in_many_threads():
    rng = np.random.default_rng(5)
    table, model = packed(rng)
    asked = [message(rng) for _ in range(40)]
    right = [expected(model, one) for one in asked]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(16):
            assert list(pool.map(set, pool.map(table.match, asked))) == right


def test_filters_are_chosen_one_after_another():
    filters = np.array([1, 1, 1, 2, 2, 3, 9])
    messages = np.array([0, 1, 2, 2, 3, 3, 0])
    subscribers = np.array([0, 0, 0, 0, 0, 0, 5])
    chosen, decided = chosen_filters(filters, messages, subscribers, 5)
    assert chosen.tolist() == [1, 2, 9]  # the second for message 3 alone
    assert decided == {0: 1, 1: 3, 2: 1}
