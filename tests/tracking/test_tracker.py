"""Tracker: messages in every form, bad ones, subscriptions that come, go and are replaced; saved states."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada.errors import ArgumentError, CrsError, FilterError, FormatError, KeyInUseError, UnknownKeyError
from contrada.tracking import Tracks, read_fixes, watch_of

BOX = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
IN = f"S_WITHIN(at, {BOX})"


def fix(name, x, **more):
    return {"id": name, "at": ct.Point(x, 2), **more}


def told(events):
    return [(event.kind, event.key, event.object, event.row, event.reason) for event in events]


@pytest.fixture
def tracker():
    made = ct.Tracker(track="id", clock=lambda: 1000)
    made.subscribe("box", IN, "enter, exit")
    return made


@pytest.mark.jitless
def test_enter_and_exit_have_both_relations(tracker):
    events = tracker.publish([fix("a", 9), fix("a", 4), fix("a", 2), fix("b", 2), fix("a", 4)])
    assert [(event.kind, event.object, event.before, event.after, event.row) for event in events] == [
        ("enter", "a", ct.Relation.MEETS, ct.Relation.INSIDE, 2),
        ("enter", "b", None, ct.Relation.INSIDE, 3),
        ("exit", "a", ct.Relation.INSIDE, ct.Relation.MEETS, 4),
    ]
    assert events[0].to_dict() == {
        "kind": "enter", "key": "box", "object": "a", "before": "meets", "after": "inside", "time": 1000, "row": 2,
        "reason": "fix",
    }  # fmt: skip
    assert events[1:] == list(events)[1:]
    assert tracker.inside("box") == ["b"]


def test_change_tells_what_enter_and_exit_do_not(tracker):
    tracker.subscribe("any", f"S_INTERSECTS(at, {BOX})", "change")
    tracker.subscribe("all", f"S_INTERSECTS(at, {BOX})", "enter, exit, change")
    path = [{"id": 1, "at": shapely.box(x, 1, x + 1, 2)} for x in (9, 4, 3.5, 2, 2.5, 9)]
    events = tracker.publish(path)
    shown = {key: [(e.kind, str(e.before), str(e.after)) for e in events if e.key == key] for key in ("any", "all")}
    steps = [("disjoint", "meets"), ("meets", "overlaps"), ("overlaps", "inside"), ("inside", "disjoint")]
    assert shown["any"] == [("change", *step) for step in steps]
    assert shown["all"] == [
        (kind, *step) for kind, step in zip(("enter", "change", "change", "exit"), steps, strict=True)
    ]


def test_an_arrow_table_tells_what_a_list_tells(tracker):
    xs = [9.0, 2.0, 3.0, None, 2.0]
    wkb = pa.array([None if x is None else ct.Point(x, 2).to_wkb() for x in xs], pa.binary())
    table = pa.table({"id": pa.array([5, 5, 6, 5, None], pa.int32()), "at": wkb})
    events = tracker.publish(table)
    assert told(events) == [
        ("enter", "box", 5, 1, "fix"), ("enter", "box", 6, 2, "fix"), ("exit", "box", 5, 3, "fix"),
    ]  # fmt: skip
    assert events[2].after is None, "a fix without a geometry"
    assert [(item.row, item.reason) for item in events.rejected] == [
        (4, "attribute 'id': need text or a whole number to track by, got None")
    ]


def test_bad_messages_are_kept_aside(tracker):
    bad = [
        {"at": ct.Point(1, 1)},
        fix(True, 2),
        fix(1.5, 2),
        {"id": 3, "at": {1}},
        fix(3, 2, more={4}),
        7,
        fix("ok", 2),
    ]
    events = tracker.publish(bad)
    assert told(events) == [("enter", "box", 3, 4, "fix"), ("enter", "box", "ok", 6, "fix")]
    assert [item.row for item in events.rejected] == [0, 1, 2, 3, 5]
    with pytest.raises(FormatError, match="need a list of messages"):
        tracker.publish({"id": 1})


def test_a_time_that_is_none_is_a_bad_message():
    tracker = ct.Tracker(track="id", time="t")
    tracker.subscribe("box", IN, "enter")
    times = ["2024-05-01T12:00:00Z", np.datetime64("2024-05-01"), 5, 7.9, None, "soon", 2**62, True]
    events = tracker.publish([fix(row, 2, t=time) for row, time in enumerate(times)])
    assert [event.time for event in events] == [1714564800000, 1714521600000, 5, 7]
    assert [item.row for item in events.rejected] == [4, 5, 6, 7]
    assert "attribute 't': need a timestamp, got 'soon'" in events.rejected[1].reason
    assert tracker.newest == 1714564800000


def test_numbers_and_texts_are_different_objects(tracker):
    assert len(tracker.publish([fix(1, 2), fix("1", 2)])) == 2


def test_a_new_subscription_does_not_know_who_is_inside(tracker):
    tracker.publish([fix("a", 2)])
    tracker.subscribe("late", IN, "enter, exit")
    tracker.subscribe("silent", IN, "enter, exit", first="silent")
    events = tracker.publish([fix("a", 3)])
    assert [(event.key, event.before) for event in events] == [("late", None)], "its next fix is the first"
    assert [event.key for event in tracker.publish([fix("a", 9)])] == ["box", "late", "silent"]


def test_unsubscribing_lets_everything_leave(tracker):
    tracker.subscribe("quiet", IN, "enter")
    tracker.publish([fix("b", 2), fix("a", 2)])
    events = tracker.unsubscribe("box")
    assert told(events) == [("exit", "box", name, None, "unsubscribed") for name in ("a", "b")]
    assert (events[0].before, events[0].after, events[0].time) == (ct.Relation.INSIDE, None, 1000)
    assert not tracker.unsubscribe("quiet"), "it did not ask for exits"
    for call in (tracker.unsubscribe, tracker.inside):
        with pytest.raises(UnknownKeyError):
            call("box")
    assert (len(tracker), len(tracker.table), tracker.tracks.pairs) == (0, 0, 0)


def test_replacing_ends_visits_unless_nothing_changes(tracker):
    tracker.publish([fix("a", 2)])
    with pytest.raises(KeyInUseError):
        tracker.subscribe("box", IN, "enter")
    assert not tracker.subscribe("box", IN, ["exit", "enter"], replace=True), "equal: nothing changes"
    assert not tracker.publish([fix("a", 3)])
    events = tracker.subscribe("box", IN, "enter, exit", exit_buffer=1, replace=True)
    assert told(events) == [("exit", "box", "a", None, "replaced")]
    assert told(tracker.publish([fix("a", 3)])) == [("enter", "box", "a", 0, "fix")]


def test_what_is_refused_changes_nothing(tracker):
    with pytest.raises(FilterError, match="ask about 'at', this one about 'area'"):
        tracker.subscribe("other", "S_WITHIN(area, BBOX(0, 0, 1, 1))", "enter")
    region = ct.Region.box(0, 0, 1, 1, crs="EPSG:3035")
    tracker.subscribe("crs", ct.Constraint("at", ct.RelationSet.S_WITHIN, region), "enter")
    other = ct.Region.box(0, 0, 1, 1, crs="EPSG:25832")
    with pytest.raises(CrsError):
        tracker.subscribe("box", ct.Constraint("at", ct.RelationSet.S_WITHIN, other), "enter", replace=True)
    rows = pa.table({"g": [ct.Region.box(0, 0, 1, 1).to_wkb()], "key": ["new"]})
    with pytest.raises(ArgumentError):
        tracker.subscribe_many(rows, "S_WITHIN(at, $g)", "arrive")
    assert sorted(tracker.table) == ["box", "crs"]
    assert len(tracker.publish([fix("a", 2)])) == 1


def test_many_subscriptions_and_plain_ones_in_one_table():
    table = ct.ForwardingTable()
    table.subscribe("plain", "speed > 3")
    tracker = ct.Tracker(table, track="id")
    boxes = [ct.Region.box(x, 0, x + 4, 4).to_wkb() for x in (0, 2)]
    rows = pa.table({"g": pa.array(boxes, pa.binary()), "least": [1, 5], "key": ["one", "two"]})
    keys = tracker.subscribe_many(rows, "S_WITHIN(at, $g) AND speed > $least", "enter, exit")
    assert keys == ["one", "two"]
    events = tracker.publish([fix("a", 3, speed=4), fix("a", 3, speed=6)])
    assert [(event.key, event.row) for event in events] == [("one", 0), ("two", 1)]


def test_a_crossing_needs_the_other_constraints_of_the_second_fix():
    tracker = ct.Tracker(track="id")
    tracker.subscribe("trucks", f"{IN} AND kind = 'truck'", "cross")
    path = [fix(name, x, kind=kind) for name, kind in (("t", "truck"), ("c", "car")) for x in (-1, 9)]
    assert [event.object for event in tracker.publish(path)] == ["t"]
    ids, kinds = [one["id"] for one in path], [one["kind"] for one in path]
    back = pa.table({"id": ids, "kind": kinds, "at": pa.array([ct.Point(9 - x, 2).to_wkb() for x in (0, 10, 0, 10)])})
    assert [(event.object, event.row) for event in tracker.publish(back)] == [("t", 1)]


CORNERS = shapely.box(2, 2, 6, 6).difference(shapely.box(3, 3, 4, 4))


@pytest.mark.parametrize(
    ("start", "stop", "within", "touching"),
    [
        ((0, 4), (4, 0), False, True),  # through a corner only
        ((0, 0), (8, 8), True, True),  # through two corners and the interior
        ((0, 2), (8, 2), False, True),  # along an edge
        ((3.5, 3.2), (3.5, 3.8), False, False),  # within the hole
        ((3.5, 3.5), (3.5, 7), True, True),  # from the hole outwards
        ((0, 1), (8, 1), False, False),
        ((2, 0), (2, 8), False, True),
        ((1, 2), (2, 2), False, False),  # ends on the boundary, where it touches it
    ],
)
def test_crossings_are_exact_at_corners_and_edges(start, stop, within, touching):
    """S_WITHIN needs a place in the interior, S_INTERSECTS one that a fix there would match."""
    tracker = ct.Tracker(track="id")
    tracker.subscribe("within", ct.Constraint("at", ct.RelationSet.S_WITHIN, CORNERS), "cross")
    tracker.subscribe("touching", ct.Constraint("at", ct.RelationSet.S_INTERSECTS, CORNERS), "cross")
    events = tracker.publish([{"id": 1, "at": ct.Point(*start)}, {"id": 1, "at": ct.Point(*stop)}])
    assert [event.key for event in events] == [
        key for key, is_told in (("within", within), ("touching", touching)) if is_told
    ]


# Tracks: the layer below


def tracks_with(count, **options):
    made = Tracks(**options)
    made.watch(7, watch_of(IN, "enter, exit, dwell(5s)"), 0)
    apply(made, [fix(f"car {k}", 2) for k in range(count)])
    return made


def apply(tracks, messages, arrival=1000, number=7):
    fixes, _ = read_fixes(messages, "id", "at", arrival=arrival)
    inside = np.flatnonzero([0 < one["at"].x < 4 for one in messages])
    return tracks.apply(fixes._replace(rows=inside[::-1], numbers=np.full(len(inside), number)))


def test_pairs_of_numbers_that_nobody_watches_and_repeated_ones_do_nothing():
    tracks = tracks_with(2)
    fixes, _ = read_fixes([fix("car 0", 3)], "id", "at", arrival=2000)
    told = tracks.apply(fixes._replace(rows=np.array([0, 0, 0, 0]), numbers=np.array([7, 99, 7, 2**31])))
    assert (len(told), tracks.pairs, tracks.objects) == (0, 2, 2)
    assert tracks.inside(7, "car 1") == tracks.inside(object="car 1") == tracks.inside(7)[1:]
    assert tracks.inside(8) == tracks.inside(object="nobody") == []


def test_an_empty_batch_and_nothing_due_change_nothing():
    tracks = tracks_with(1)
    tracks.take_delta()
    assert len(apply(tracks, [])) == len(tracks.advance(5999)) == 0
    assert tracks.take_delta() == b""
    assert tracks.next_due == 6000
    assert [event.kind for event in tracks.advance(6000)] == ["dwell"]
    assert tracks.next_due is None


def test_expiry_may_change_while_it_runs():
    tracks = tracks_with(3)
    assert tracks.expire_after is None
    tracks.expire_after = 2000
    assert tracks.next_due == 3000
    assert [event.reason for event in tracks.advance(3000)] == ["expired"] * 3
    assert tracks.objects == 0
    with pytest.raises(ArgumentError):
        tracks.expire_after = 0


def test_slots_of_forgotten_objects_are_used_again():
    tracks = tracks_with(500, expire_after=1000)
    size = tracks.nbytes
    for turn in range(1, 20):
        now = 1000 + turn * 5000
        tracks.advance(now)
        apply(tracks, [fix(f"turn {turn} car {k}", 2) for k in range(500)], now)
        assert (tracks.objects, tracks.pairs) == (500, 500)
    assert tracks.nbytes == size


def test_blocks_grow_and_shrink_with_the_number_of_subscriptions():
    """One object is inside of up to 300 subscriptions; the state is right at every size."""
    tracks, model = Tracks(), {}
    for number in range(300):
        tracks.watch(number, watch_of(IN, "enter, exit"), 0)
    rng = np.random.default_rng(7)
    for turn in range(40):
        chosen = np.flatnonzero(rng.random(300) < rng.random() ** 2)
        fixes, _ = read_fixes([fix("one", 2)], "id", "at", arrival=turn)
        events = tracks.apply(fixes._replace(rows=np.zeros(len(chosen), int), numbers=chosen))
        before, model = set(model), {int(k): model.get(int(k), turn) for k in chosen}
        assert [(e.kind, e.number) for e in events] == sorted(
            [("enter", k) for k in set(model) - before] + [("exit", k) for k in before - set(model)], key=lambda e: e[1]
        )
        assert {one.number: one.since for one in tracks.inside()} == model
    assert Tracks.restore(tracks.snapshot()).inside() == tracks.inside()


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_damaged_bytes_are_refused(damage):
    data = tracks_with(3).snapshot()
    broken = data[:40] + bytes([data[40] ^ 1]) + data[41:] if damage is None else damage
    with pytest.raises(FormatError, match="not a saved state of tracks, or damaged"):
        Tracks.restore(broken)


def test_a_delta_of_one_fix_is_small():
    tracks = tracks_with(1000)
    tracks.take_delta()
    apply(tracks, [fix("car 5", 3)])
    assert len(tracks.take_delta()) < 250
