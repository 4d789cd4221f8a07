"""Tables of mixed filters, few and thousands: every operator, kind of value and null, against plain evaluation."""

import copy
import pickle

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.affinity import translate

import contrada as ct
from contrada.matching.encoding import MessageEncoder
from contrada.matching.store.storage import open_table
from contrada.matching.store.tuning import Tuning
from contrada.papers.spatial.counting import CountingMatcher
from effort import examples, slow
from generators.filters_of_every_kind import FILTERS, expected, random_messages, subscription_rows, table_of
from generators.messy import messy_regions
from generators.scalars import messages, predicates
from oracles.plain import predicate_holds
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
    made, known = WAYS[way](table), dict(model)
    check(made, known, asked)
    known |= subscribed(made, later, 100)
    unsubscribe(made, known, gone)
    check(made, known, asked)
    if made is not table:  # no update of one shows in the other
        check(table, model, asked)
        unsubscribe(table, model, list(model))
    made.pack()
    check(made, known, asked)
    check(WAYS[way](made), known, asked)


def value_of(data):
    """The region, point or line of WKB, as Shapely reads it; None if it is none of them."""
    shape = shapely.from_wkb(data, on_invalid="ignore")
    kinds = {"Point": ct.Point, "Polygon": ct.Region, "MultiPolygon": ct.Region, "LineString": ct.Line}
    return kinds[shape.geom_type].from_shapely(shape) if getattr(shape, "geom_type", "") in kinds else None


def test_a_single_process_answers_as_plain_evaluation_does():
    rows, messages, sent = subscription_rows(FILTERS), random_messages(300), {}
    for row in messages.flatten().to_pylist():
        area = row.pop("area")
        value = None if area is None else value_of(area)
        if area is None or value is not None:
            sent[row.pop("message_id")] = {**row, "area": value}
    table, bad = table_of(rows)
    assert bad == []
    matches, rejected = expected(table, messages)
    assert {name for name, _ in rejected} == set(messages["message_id"].to_pylist()) - sent.keys()
    asked = [(row["subscriber"], row["key"], ct.parse(row["filter"])) for row in rows.to_pylist()]
    right = [
        (name, subscriber, key)
        for name, message in sent.items()
        for subscriber, key, predicate in asked
        if predicate_holds(predicate, message)
    ]
    assert matches == sorted(right, key=repr)
    by_subscriber, _ = expected(table, messages, "subscriber")
    assert by_subscriber == sorted({(name, subscriber) for name, subscriber, _ in right}, key=repr)


MANY, MESSAGES = 3000, 60
OPERATORS = ("<", "<=", ">", ">=", "=", "!=")


def filters(rng):
    """A relation to a region at `area`, at most three scalars, and for some filters a second region."""
    made = messy_regions(rng, 600)
    shapes = made[shapely.is_valid(made)]
    masks = rng.integers(1, 256, MANY)
    masks[rng.random(MANY) < 0.8] &= 0b11111110  # disjoint is another matter
    masks[masks == 0] = 254
    for mask, shape in zip(masks.tolist(), rng.choice(shapes, MANY), strict=True):
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


@pytest.mark.parametrize("seed", [0, slow(1), slow(2)])
def test_answers_of_thousands_are_those_of_plain_evaluation(seed):
    rng = np.random.default_rng(seed)
    asked = list(filters(rng))
    table = ct.ForwardingTable()
    model = subscribed(table, (ct.Predicate([one]) for one in asked))
    messages = [message(rng, asked, k) for k in range(MESSAGES)]

    def rows(matcher):
        return [matcher.match_keys(one).rows.tolist() for one in messages]

    before = rows(table)  # partly in the buffer
    table.pack()  # now with what was learnt from these messages
    check_answers(table, model, messages)
    assert before == rows(table) == rows(CountingMatcher(table))
    assert sum(map(len, before)) > MESSAGES  # or nothing is tested


def test_filters_are_reached_in_another_way_when_messages_change(tmp_path):
    """Packed for messages of many names, a table of filters by name is packed anew when all ask for one."""
    table = ct.ForwardingTable(tuning=Tuning(relearn_after_messages=300 + 4096))
    size = 4000

    def reach(path):
        """The filters that later messages reach, as the table is packed now."""
        table.save(path)
        saved = open_table(path)
        usual = [{"name": "usual", "size": size - 1 - k} for k in range(3)]
        return saved.level.scalars.reach(MessageEncoder.of_saved(saved.encoder).encode(usual))

    for k in range(size):  # all ask for one name, and each for a size of its own
        table.subscribe("someone", ct.Filter([ct.Constraint("name", "=", "usual"), ct.Constraint("size", "<", k + 1)]))
    for k in range(300):
        table.match_keys({"name": f"rare{k}", "size": k})
    table.pack()
    before = reach(tmp_path / "before")
    for k in range(4096 + 1):
        assert len(table.match_keys({"name": "usual", "size": size - 1 - k % 3})) == k % 3 + 1
    table.wait_for_compaction()
    assert reach(tmp_path / "after") < before / 10
    assert len(table.match_keys({"name": "usual", "size": size - 2})) == 2
