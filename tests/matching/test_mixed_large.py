"""Thousands of filters on scalars and regions against a scan: enough for blocks of entries and for grids."""

import numpy as np
import pytest
import shapely
from shapely.affinity import translate

import contrada as ct
from contrada.papers.spatial.counting import CountingMatcher
from generators.messy import messy_regions
from oracles.subscriptions import check_answers

FILTERS, MESSAGES = 3000, 60
OPERATORS = ("<", "<=", ">", ">=", "=", "!=")


def filters(rng):
    """A relation to a region at `area`, at most three scalars, and for some filters a second region."""
    made = messy_regions(rng, 600)
    shapes = made[shapely.is_valid(made)]
    masks = rng.integers(1, 256, FILTERS)
    masks[rng.random(FILTERS) < 0.8] &= 0b11111110  # disjoint is another matter
    masks[masks == 0] = 254
    for mask, shape in zip(masks.tolist(), rng.choice(shapes, FILTERS), strict=True):
        asked = [ct.Constraint("area", ct.RelationSet.from_mask(mask), moved(rng, shape))]
        if rng.random() < 0.1:
            asked.append(ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(0, 0, 30, 30)))
        for name in rng.permutation(["name", "size", "rank"])[: rng.integers(0, 4)]:
            if name == "name":
                asked.append(ct.Constraint("name", "=", f"n{rng.integers(0, 12)}"))
            else:
                asked.append(ct.Constraint(str(name), OPERATORS[rng.integers(0, 6)], int(rng.integers(0, 8))))
        yield ct.Filter(asked)


def moved(rng, shape):
    return ct.Region.from_shapely(translate(shape, *rng.integers(0, 40, 2)))


def message(rng, asked, k):
    found = {"name": f"n{rng.integers(0, 14)}", "size": int(rng.integers(0, 8)), "rank": int(rng.integers(0, 8))}
    for name in ("name", "size", "rank"):
        if rng.random() < 0.1:
            del found[name]
    if k % 3 == 0:
        low = rng.integers(0, 40, 2)
        found["area"] = ct.Region.box(*low, *(low + rng.integers(1, 25, 2)))
    elif k % 3 == 1:
        found["area"] = moved(rng, asked[k].constraints[0].value.to_shapely())
    elif k % 9 < 8:
        found["area"] = ct.Point(*rng.integers(0, 45, 2).astype(float))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_a_scan(seed):
    rng = np.random.default_rng(seed)
    asked = list(filters(rng))
    table, model = ct.ForwardingTable(), {key: ("someone", ct.Predicate([one])) for key, one in enumerate(asked)}
    for key, one in enumerate(asked):
        table.subscribe("someone", one, key=key)
    messages = [message(rng, asked, k) for k in range(MESSAGES)]
    check_answers(table, model, messages)  # partly in the buffer
    table.pack()  # now with what was learnt from these messages
    check_answers(table, model, messages)
    counting, answers = CountingMatcher(table), [table.match_keys(one).rows.tolist() for one in messages]
    assert [counting.match_keys(one).rows.tolist() for one in messages] == answers
    assert sum(map(len, answers)) > MESSAGES  # or nothing is tested


def test_filters_are_reached_in_another_way_when_messages_change():
    """Packed for messages of many names, a table of filters by name is packed anew when all ask for one."""
    table = ct.ForwardingTable()
    size = 4000
    for k in range(size):  # all ask for one name, and each for a size of its own
        table.subscribe("someone", ct.Filter([ct.Constraint("name", "=", "usual"), ct.Constraint("size", "<", k + 1)]))
    for k in range(300):
        table.match_keys({"name": f"rare{k}", "size": k})
    table.pack()
    index = table._store.snapshot.levels[0].scalars
    table._store._next_look = table._store.sample.turn + 4096
    for k in range(4096 + 1):
        assert len(table.match_keys({"name": "usual", "size": size - 1 - k % 3})) == k % 3 + 1
    table.wait_for_compaction()
    after = table._store.snapshot.levels[0].scalars
    messages = table._store.sample.seen(table._store.encoder).messages
    assert after.reach(messages) < index.reach(messages) / 10
    assert len(table.match_keys({"name": "usual", "size": size - 2})) == 2
