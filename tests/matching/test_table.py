"""ForwardingTable: what its answers hold, what it refuses, and what readers see beside updates."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada.matching.store.tuning import Tuning
from oracles.subscriptions import saved_and_opened
from threads import repeating

AREA, OTHER = ct.Region.box(0, 0, 4, 4), ct.Region.box(2, 2, 6, 6)


# Levels so small that updates pass through all of them.
SMALL = Tuning(buffer_filters=3, small_filters=7, buffer_capacity=2, buffer_vertices_per_region=1, min_column_names=3)


def overlapping(value=AREA):
    return ct.Filter([ct.Constraint("area", ct.Relation.OVERLAPS, value)])


def subscribing(**columns):
    return lambda table: table.subscribe_many(pa.table(columns), "meets(a, $g)")


def test_answers_pin_what_they_saw():
    table = ct.ForwardingTable(tuning=SMALL)
    for who in ("x", "y", "z"):
        table.subscribe(who, overlapping(), key=f"key of {who}")
    answer = table.match_keys({"area": OTHER})
    table.unsubscribe("key of y")
    assert answer == {"key of x", "key of y", "key of z"}
    assert "key of y" in answer
    assert "nobody" not in answer
    assert answer & {"key of x"} == {"key of x"}
    assert answer.rows.tolist() == [0, 1, 2]
    assert table.match_keys({"area": OTHER}) == {"key of x", "key of z"}
    with pytest.raises(ValueError, match="read-only"):
        answer.rows[0] = 7
    assert repr(answer) == "{'key of x', 'key of y', 'key of z'}"


def test_readers_never_see_half_an_update():
    """A subscription is replaced over and over: every reader finds it exactly once."""
    table = ct.ForwardingTable(tuning=SMALL)
    table.subscribe("other", overlapping(ct.Region.box(100, 100, 104, 104)))
    table.subscribe("a", overlapping(), key="k")

    def read():
        assert len(table.match({"area": OTHER})) == 1

    with repeating(read):
        for k in range(200):
            table.subscribe("ab"[k % 2], overlapping(), key="k", replace=True)
    table.wait_for_compaction()
    table.check()
    assert table.stats().levels[1] == 0


def test_several_readers_beside_a_writer():
    """Each finds the ten or eleven latest subscriptions, whatever level they are in."""
    table = ct.ForwardingTable(tuning=SMALL)

    def read():
        found = table.match_keys({"area": OTHER}).rows.tolist()
        assert found == list(range(found[0], found[-1] + 1))
        assert 10 <= len(found) <= 11 <= found[-1]

    for _ in range(12):
        table.subscribe("x", overlapping())
    for key in range(2):
        table.unsubscribe(key)
    with repeating(read):
        for _ in range(300):
            table.unsubscribe(table.subscribe("x", overlapping()) - 10)
    table.wait_for_compaction()
    table.check()
    assert len(table) == 10


def test_large_regions_wait_in_the_buffer_with_their_edge_indexes():
    """Regions with holes and hundreds of vertices, appended one by one, answer as they do when packed."""
    rng = np.random.default_rng(5)
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    table = ct.ForwardingTable(tuning=SMALL._replace(buffer_filters=1000))
    asked = []
    for k in range(40):
        x, y = rng.integers(0, 20, 2).tolist()
        turn = angles[:: 1 + 10 * (k % 3)]  # 200, 19 or 10 vertices
        ring = np.column_stack([x + 4 * np.cos(turn), y + 4 * np.sin(turn)])
        hole = np.column_stack([x + 2 * np.cos(turn), y + 2 * np.sin(turn)])
        value = ct.Region(ring, [hole]) if k % 2 else ct.Region(ring)
        mask = ct.RelationSet.from_mask(int(rng.integers(1, 256)))
        asked.append((mask, value if k % 5 else ct.Point(x, y)))
        table.subscribe("x", ct.Constraint("area", *asked[-1]))
    assert table.stats().levels == (0, 0, 0, 0, 0, 40)
    circle = ct.Region(np.column_stack([9 + 5 * np.cos(angles), 9 + 5 * np.sin(angles)]))
    for _ in range(2):
        for message in (circle, ct.Region.box(3, 3, 15, 16), ct.Region.box(0, 0, 1, 1), ct.Point(9, 9), asked[1][1]):
            right = {k for k, (mask, value) in enumerate(asked) if ct.relate(message, value) in mask}
            assert table.match_keys({"area": message}) == right
        table.pack()


def test_keys_given_and_given_by_default_do_not_clash():
    """Keys are given by default from the row number on, or from beyond all numbers that were keys before."""
    table = ct.ForwardingTable(tuning=SMALL)

    def subscribe_four(**columns):
        return table.subscribe_many(pa.table({**columns, "g": [AREA.to_wkb()] * 4}), "overlaps(area, $g)")

    assert table.subscribe("a", overlapping(), key=3) == 3
    assert subscribe_four() == [4, 5, 6, 7]
    assert set(table) == {3, 4, 5, 6, 7}
    table.unsubscribe(3)
    with pytest.raises(ct.KeyInUseError, match="the key 5 already exists"):
        subscribe_four(key=pa.array([19, 5, 18, 17], pa.uint8()))
    assert len(table) == 4
    subscribe_four(key=["1", "2", "3", "4"])
    assert table.subscribe("b", overlapping()) == 9
    assert set(table) == {4, 5, 6, 7, "1", "2", "3", "4", 9}
    assert table.match({"area": OTHER}) == {4, 5, 6, 7, "1", "2", "3", "4", "b"}
    subscribe_four(key=pa.array([2**64 - 1, 2**63, 30, 31], pa.uint64()))
    opened = saved_and_opened(table)
    assert list(opened) == list(table)
    assert set(opened.match({"area": OTHER})) == set(table.match({"area": OTHER})) >= {2**64 - 1, 2**63, 30, 31}
    assert table.subscribe("b", overlapping(), key=2**70) == 2**70
    assert table.subscribe("b", overlapping()) == 32


@pytest.mark.parametrize(
    ("column", "counts"),
    [
        (pa.array([1, 2]), [0, 0]),
        (pa.array(["POINT (1 1)", None]), [0, 0]),
        (pa.StructArray.from_arrays([pa.array([1.0, 9.0]), pa.array([1.0, 9.0])], ["x", "y"]), [1, 0]),
        (pa.array([[1.0, 1.0], [9.0, 9.0]], pa.list_(pa.float64(), 2)), [1, 0]),
        (ct.PointArray([(1, 1), (9, 9)]).to_arrow(), [1, 0]),
    ],
)
def test_columns_are_read_alike_whatever_filters_ask(column, counts):
    """Points in GeoArrow, and columns that are no geometry, with filters of one constraint and of two."""
    table = ct.ForwardingTable(tuning=SMALL)
    table.subscribe("x", ct.Constraint("area", ct.Relation.INSIDE, AREA))
    messages = pa.table({"area": column})
    assert np.diff(table.match_many(messages, by="subscription").offsets).tolist() == counts
    table.subscribe("y", ct.Filter([ct.Constraint("area", ct.Relation.INSIDE, AREA)] * 2))
    found = table.match_many(messages, by="subscription")
    assert np.diff(found.offsets).tolist() == [2 * count for count in counts]
    assert found.rejected == ()


def test_rows_have_names():
    table = ct.ForwardingTable(tuning=SMALL)
    for k, who in enumerate(("x", "y", "x")):
        table.subscribe(who, ct.Constraint("n", ">=", k), key=f"key {k}")
    rows = pa.table({"key": [7, 8, 9, 10], "subscriber": ["y", "z", "z", "w"], "least": [0, 1, 2, 3]})
    table.subscribe_many(rows, "n >= $least")
    by_subscription = table.match_many([{"n": 1}], by="subscription").rows
    assert table.keys_of(by_subscription) == ["key 0", "key 1", 7, 8]
    assert table.subscribers_of(by_subscription, "subscription") == ["x", "y", "y", "z"]
    by_subscriber = table.match_many([{"n": 1}], by="subscriber").rows
    assert table.subscribers_of(by_subscriber, "subscriber") == ["x", "y", "z"]
    numbered = ct.ForwardingTable(tuning=SMALL)
    numbered.subscribe_many(rows.select(["least"]), "n >= $least")
    assert numbered.keys_of(np.array([3, 1])) == numbered.subscribers_of(np.array([3, 1]), "subscription") == [3, 1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.subscribe("a", 5), ct.FilterError, "got int"),
        (lambda t: t.subscribe(1.5, overlapping()), ct.FilterError, "subscriber: need a str or int"),
        (lambda t: t.subscribe("a", overlapping(), key=True), ct.FilterError, "key: need a str or int"),
        (lambda t: t.subscribe("a", overlapping(ct.Column("x"))), ct.FilterError, "use subscribe_many"),
        (lambda t: t.subscribe("\ud800", overlapping()), ct.ContradaError, "UTF-8"),
        (lambda t: t.unsubscribe("nobody"), ct.UnknownKeyError, "no subscription has the key 'nobody'"),
        (lambda t: t.match_many([], by="key"), ValueError, 'by: need "subscriber" or "subscription"'),
        (subscribing(x=[1]), ct.FilterError, "needs column 'g'"),
        (subscribing(g=[AREA.to_wkb(), b"x"]), ct.RegionError, "column 'g', row 1: malformed"),
        (subscribing(g=[AREA.to_wkb()] * 2, key=["k", "k"]), ct.FilterError, "duplicate key 'k'"),
    ],
)
def test_errors_name_what_is_wrong_and_nothing_is_added(call, error, message):
    table = ct.ForwardingTable(tuning=SMALL)
    with pytest.raises(error, match=message):
        call(table)
    assert len(table) == 0
    table.check()
    table.subscribe("a", overlapping())
    table.check()


@pytest.mark.jitless
def test_regions_and_points_against_a_scan_with_many_candidates():
    """Enough subscriptions for nodes above nodes, and for a grid over the message; equal regions share one item."""
    rng = np.random.default_rng(8)
    corners = rng.integers(0, 24, (330, 2)).tolist()
    boxes = [ct.Region.box(x, y, x + 1 + k % 3, y + 2) for k, (x, y) in enumerate(corners)]
    values = [*boxes, *(ct.Point(x, y) for x, y in corners)]
    masks = [ct.RelationSet.from_mask(int(mask)) for mask in rng.integers(1, 256, 330)] * 2
    table = ct.ForwardingTable(tuning=SMALL)
    for mask, kind in {(mask, type(value)) for mask, value in zip(masks, values, strict=True)}:
        rows = [k for k in range(660) if masks[k] == mask and type(values[k]) is kind]
        data = pa.table({"geometry": [values[k].to_wkb() for k in rows], "key": rows})
        table.subscribe_many(data, ct.Constraint("a", mask, ct.Column("geometry")))
    ring = ct.Region([(2, 2), (20, 2), (20, 20), (2, 20)], [[(6, 6), (16, 6), (16, 16), (6, 16)]])
    star = ct.Region([(11 + r * np.cos(t), 11 + r * np.sin(t)) for t, r in zip(np.linspace(0, 6, 31), [9, 4] * 16)])  # noqa: B905
    asked = [ring, star, ct.Region.box(3, 3, 19, 21), ct.Region.box(5, 5, 6, 6), ct.Point(5, 5), ct.Point(-1, 0)]
    many = table.match_many(pa.table({"a": [message.to_wkb() for message in asked]}), by="subscription", threads=1)
    for number, message in enumerate(asked):
        right = {k for k in range(660) if ct.relate(message, values[k]) in masks[k]}
        assert table.match_keys({"a": message}) == set(many.keys(number)) == right


@pytest.mark.parametrize("by", ["key", None, [10**5000], np.array(["subscriber", "subscription"])], ids=type)
def test_a_wrong_choice_is_an_error_whatever_it_is(by):
    table = ct.ForwardingTable()
    for call in (partial(table.match, {}), partial(table.match_many, []), table.simplified):
        with pytest.raises(ct.ArgumentError, match="by: need"):
            call(by=by)
