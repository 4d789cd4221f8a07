"""`pipeline.track`: the events of a Tracker in one process, however messages are spread over partitions."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada import pipeline
from contrada.errors import ContradaError, FormatError
from effort import slow

START = datetime(2026, 5, 1, tzinfo=UTC)
ON = ["enter", "exit", "change", {"dwell": "3m"}]
TEMPLATE = "S_INTERSECTS(at, $geometry) AND speed >= $least"


def fences(names=str):
    """Boxes in rows and columns that share edges; two to a subscriber."""
    corners = [(x, y) for x in range(0, 8, 2) for y in range(0, 8, 2)]
    return pa.table(
        {
            "key": [names(place) for place in range(len(corners))],
            "subscriber": [names(place // 2) for place in range(len(corners))],
            "geometry": [shapely.to_wkb(shapely.box(x, y, x + 2, y + 2)) for x, y in corners],
            "least": [place % 3 for place in range(len(corners))],
        }
    )


def journeys(count, objects=6, seed=3, named=str):
    """Fixes on whole numbers, so that many touch; some without an id, a time or a good geometry, some at one time."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, objects, count)
    owners = [named(one) for one in numbers.tolist()]
    ends = np.where(numbers == 0, 1200, 3600)  # the first object is heard of for a while only
    times = [START + timedelta(seconds=int(one)) for one in rng.integers(0, ends)]
    shapes = [
        shapely.Point(x, y) if kind else shapely.box(x, y, x + 1, y + 2)
        for x, y, kind in zip(*rng.integers(0, 9, (2, count)), rng.random(count) < 0.6, strict=True)
    ]
    wkb = [shapely.to_wkb(shape) for shape in shapes]
    for row in range(0, count - 3, 17):
        owners[row], times[row + 1], wkb[row + 2], wkb[row + 3] = None, None, b"\x01damaged", None
    kind = pa.string() if named is str else pa.int32()
    return pa.table(
        {
            "message_id": [f"m{place:04}" for place in range(count)],
            "at": pa.array(wkb, pa.binary()),
            "speed": pa.array(rng.integers(0, 4, count), pa.float64()),
            "bus": pa.array(owners, kind),
            "when": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def in_one_process(rows, messages, on=ON, template=TEMPLATE, **options):
    """The events of a Tracker that takes the messages in order of time, as rows of `Tracked.events`."""
    expiry = options.pop("expire_after", None)
    tracker = ct.Tracker(track="bus", time="when", expire_after=expiry)
    tracker.subscribe_many(rows, template, on, **options)
    ordered = messages.sort_by([("when", "ascending"), ("message_id", "ascending")])
    ids = ordered.column("message_id").to_pylist()
    told = tracker.publish(ordered.drop_columns("message_id"), now=0)
    newest = max(one for one in messages.column("when").to_pylist() if one is not None)
    late = tracker.advance(round(newest.timestamp() * 1000))
    owners = dict(zip(rows.column("key").to_pylist(), rows.column("subscriber").to_pylist(), strict=True))
    events = [
        (
            None if event.row is None else ids[event.row], event.kind, owners[event.key], event.key, event.object,
            *(None if one is None else str(one) for one in (event.before, event.after)), event.time, event.reason,
        )
        for event in (*told, *late)
    ]  # fmt: skip
    return sorted(events, key=repr), {ids[item.row]: item.reason for item in told.rejected}


def found_by(tracked):
    """The events of Spark, with times in milliseconds."""
    events = []
    for row in tracked.events.collect():
        *first, when, reason = row
        events.append((*first, round(when.timestamp() * 1000), reason))
    return sorted(events, key=repr)


@pytest.fixture(scope="module")
def utc(spark):
    """A session whose times are collected as they are."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize("partitions", [None, slow(1), slow(7)])
def test_events_are_those_of_a_single_process_however_messages_are_spread(utc, place, partitions):
    rows, messages = fences(), journeys(600)
    options = {"exit_buffer": 0.5, "exit_after": "30s", "expire_after": "10m"}
    right, rejected = in_one_process(rows, messages, **options)
    assert {event[1] for event in right} == {"enter", "exit", "change", "dwell"}
    assert {event[-1] for event in right} >= {"fix", "time", "expired"}
    assert len(right) > 500
    assert len(rejected) > 80
    frame = utc.createDataFrame(messages).repartition(5)
    tracked = pipeline.track(
        frame, utc.createDataFrame(rows), ON, track="bus", time="when", template=TEMPLATE, artifacts=place,
        partitions=partitions, **options,
    )  # fmt: skip
    assert tracked.events.schema["message_id"].nullable, "of events that time makes"
    assert found_by(tracked) == right
    assert {row.message_id: row.reason for row in tracked.rejected.collect()} == rejected
    assert tracked.unwatched.collect() == []


def test_names_of_whole_numbers_stay_numbers(utc, place):
    rows, messages = fences(int), journeys(200, named=int)
    compiled = pipeline.compile(utc.createDataFrame(rows), place, template=TEMPLATE)
    tracked = pipeline.track(utc.createDataFrame(messages), compiled, "enter", track="bus", time="when")
    right, _ = in_one_process(rows, messages, "enter")
    assert len(right) > 20
    assert found_by(tracked) == right
    assert dict(tracked.events.dtypes)["object"] == "int"
    assert tracked.events.columns == [
        "message_id", "event", "subscriber", "key", "object", "before", "after", "time", "reason",
    ]  # fmt: skip


def test_a_subscription_without_one_region_is_told_and_the_others_are_watched(utc, place):
    filters = [("a", "S_WITHIN(at, BBOX(0, 0, 4, 4))"), ("b", "speed > 1"), ("c", "S_WITHIN(there, BBOX(0, 0, 4, 4))")]
    rows = utc.createDataFrame(
        [(key, "ann", text) for key, text in filters], "key string, subscriber string, filter string"
    )
    tracked = pipeline.track(
        utc.createDataFrame(journeys(100)), rows, "enter", track="bus", time="when", artifacts=place
    )
    assert {row.key for row in tracked.events.collect()} == {"a"}
    reasons = {row.key: row.reason for row in tracked.unwatched.collect()}
    assert set(reasons) == {"b", "c"}
    assert "need exactly one spatial constraint" in reasons["b"]
    assert "ask about 'at', this one about 'there'" in reasons["c"]


def test_messages_of_another_crs_are_rejected(utc, place):
    rows = pipeline.with_crs(utc.createDataFrame(fences()), "geometry", "EPSG:25832")
    compiled = pipeline.compile(rows, place, template=TEMPLATE)
    messages = pipeline.with_crs(utc.createDataFrame(journeys(40)), "at", "EPSG:4326")
    tracked = pipeline.track(messages, compiled, "enter", track="bus", time="when")
    assert tracked.events.collect() == []
    assert "EPSG:25832" in tracked.rejected.collect()[-1].reason


def test_bad_arguments_name_the_column(utc, place):
    messages = utc.createDataFrame(journeys(40))
    compiled = pipeline.compile(utc.createDataFrame(fences()), place, template=TEMPLATE)
    for wrong, told in (
        ({"track": "tram"}, "need column 'tram'"),
        ({"time": "speed"}, "column 'speed': need timestamps, got double"),
        ({"track": "speed"}, "column 'speed': need text or whole numbers, got double"),
    ):
        with pytest.raises(FormatError, match=told):
            pipeline.track(messages, compiled, "enter", **{"track": "bus", "time": "when", **wrong})
    with pytest.raises(ContradaError, match="on: need"):
        pipeline.track(messages, compiled, "leave", track="bus", time="when")
    with pytest.raises(ContradaError, match="partitions: need"):
        pipeline.track(messages, compiled, "enter", track="bus", time="when", partitions=0)
    with pytest.raises(FormatError, match="need column 'message_id'"):
        pipeline.track(messages.drop("message_id"), compiled, "enter", track="bus", time="when")
    parts = pipeline.compile(utc.createDataFrame(fences()), place, template=TEMPLATE, plan="partitioned", partitions=2)
    with pytest.raises(ContradaError, match="whole table in each task"):
        pipeline.track(messages, parts, "enter", track="bus", time="when")
