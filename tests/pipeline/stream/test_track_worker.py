"""The workers of a stream of tracked objects without Spark: events of a Tracker, whatever is cut, lost or changed."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from console import write_lines
from contrada.pipeline.artifacts import publish
from contrada.pipeline.stream import track_worker as working
from contrada.pipeline.stream import tracked_table as tables
from contrada.pipeline.stream.track_worker import BucketWork, TrackWork, answer_batches, fix_batches
from contrada.pipeline.stream.tracked_table import TrackedStreamOptions, read_version
from effort import slow

KINDS = "enter, exit, change, dwell(40s)"
RULES = {
    "plain": {},
    "late": {"late": "arrival", "expire_after": 90_000},
    "waiting": {"exit_after": 30_000, "exit_buffer": 1.0, "expire_after": 200_000},
    "silent": {"first": "silent", "on": "enter, exit, cross, dwell(10s)"},
}
NAMES = ("object", "at", "place", "speed")


class Value:
    """A state variable in memory."""

    def __init__(self):
        self.rows: list[Any] = []

    def get(self):
        return self.rows[0] if self.rows else None

    def update(self, row):
        self.rows = [row]


class Values(Value):
    """A list of Spark's, in memory."""

    def get(self):
        return iter(self.rows)

    def appendValue(self, row):
        self.rows.append(row)

    def clear(self):
        self.rows = []


class Timers:
    def __init__(self):
        self.due: set[int] = set()

    def registerTimer(self, time):
        self.due.add(time)

    def deleteTimer(self, time):
        self.due.discard(time)


class Spark:
    """What Spark does for the tasks of a stream: batches, shuffle, state, watermark and timers."""

    def __init__(self, work, monkeypatch):
        self.work, self.watermark, self.newest, self.batch = work, 0, 0, -1
        self.states = {
            key: ((Value(), Value(), Values()), Timers()) for key in range(work.options.buckets)
        }  # fmt: skip
        for module in (working, tables):
            monkeypatch.setattr(module, "version_of_batch", lambda place: (self.batch, read_version(place, self.batch)))

    def run(self, batches):
        """Run a batch with messages in some tasks; without messages only buckets with a timer run."""
        self.batch, self.watermark = self.batch + 1, self.newest
        rows = [row for task in batches for made in fix_batches(iter(task), self.work) for row in made.to_pylist()]
        answers, payloads = [], {}
        for row in rows:
            payloads.setdefault(row["bucket"], []).append(row["payload"])
            if row["newest"] is not None:
                self.newest = max(self.newest, int(row["newest"].timestamp() * 1000))
        for key, given in payloads.items():
            answers += self.call(key, given)
        for key, (_, timers) in self.states.items():
            for time in sorted(time for time in timers.due if time < self.watermark):
                timers.due.discard(time)
                answers += self.call(key, [], time)
        found = pa.record_batch([pa.array(answers, pa.binary())], ["payload"])
        return [row for made in answer_batches(iter([found])) for row in made.to_pylist()]

    def call(self, key, payloads, expired=None):
        states, timers = self.states[key]
        return list(BucketWork(self.work, key, states, timers, self.watermark, expired).run(payloads))


def forget():
    """What a new worker process knows."""
    working.BUCKETS.clear()
    tables.READY.clear()


@pytest.fixture
def make(home, tmp_path, monkeypatch):
    """Makes a stream and its driver; copies of tables are kept apart from those of other tests."""
    monkeypatch.setattr(tables, "cache_home", lambda: tmp_path / "cache")
    forget()

    def made(table, buckets=5, **rules):
        given = {"late": "ignore", "expire_after": None, "on": KINDS, "exit_buffer": 0.0, "exit_after": None,
                 "first": "enter", **rules}  # fmt: skip
        options = TrackedStreamOptions("object", "at", buckets=buckets, **given)
        work = TrackWork(str(home.kept), options, NAMES, None, {}, False, (pa.int64(), *[pa.string()] * 3))
        driver = home.driver(compact_after=10**9, segment_records=10**9)
        driver.place.remove("versions/0.json")
        types = {"key_type": "string", "subscriber_type": "string"}
        driver.begin(lambda artifacts: publish(table, artifacts, **types))
        return driver, Spark(work, monkeypatch)

    yield made
    forget()


def fences():
    table = ct.ForwardingTable()
    for k, (x, y) in enumerate((x, y) for x in range(0, 8, 2) for y in range(0, 8, 2)):
        box = f"BBOX({x}, {y}, {x + 2}, {y + 2})"
        table.subscribe(f"s{k // 2}", f"S_INTERSECTS(place, {box}) AND speed >= {k % 3}", f"f{k}")
    table.subscribe("all", "speed > 1", "unwatched")
    return table


def journeys(count, seed, start, objects=9):
    """Fixes on whole numbers, so that many touch; some without an id or a time, late, at one time, or regions."""
    rng = np.random.default_rng(seed)
    shapes = [
        shapely.Point(x, y) if kind < 0.7 else shapely.box(x, y, x + 1, y + 2)
        for x, y, kind in zip(*rng.integers(0, 9, (2, count)), rng.random(count), strict=True)
    ]
    wkb = [None if lot < 0.1 else b"\0" if lot < 0.14 else shapely.to_wkb(shape)
           for lot, shape in zip(rng.random(count), shapes, strict=True)]  # fmt: skip
    owners = [
        None if lot < 0.05 else f"o{k}"
        for lot, k in zip(rng.random(count), rng.integers(0, objects, count), strict=True)
    ]
    times = [None if lot < 0.05 else int(start + 1000 * s) * 1000
             for lot, s in zip(rng.random(count), rng.integers(0, 60, count), strict=True)]  # fmt: skip
    return pa.table(
        {
            "message_id": pa.array(rng.permutation(count)),
            "object": pa.array(owners, pa.string()),
            "at": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "place": pa.array(wkb, pa.binary()),
            "speed": rng.integers(0, 4, count),
        }
    )


CHANGES = {
    2: [{"key": "f3", "subscriber": "s9", "filter": "S_INTERSECTS(place, BBOX(0, 0, 5, 5))"},
        {"action": "unsubscribe", "key": "f5"},
        {"key": "new", "subscriber": "s1", "filter": "S_WITHIN(place, BBOX(1, 1, 7, 7)) AND speed > 0"}],
    4: [{"action": "unsubscribe", "key": "new"},
        {"key": "f5", "subscriber": "s5", "filter": "S_INTERSECTS(place, BBOX(2, 2, 9, 9))"},
        {"key": "f6", "subscriber": "x", "filter": "S_INTERSECTS(place, BBOX(2, 4, 4, 6)) AND speed >= 0"}],
}  # fmt: skip


def told_by_tracker(tracker, messages, watermark, changes, rules):
    """Events of a Tracker that is fed the same batch."""
    events = []
    for record in changes:
        if record.get("action") == "unsubscribe":
            events.append((tracker.unsubscribe(record["key"]), None))
        else:
            options = {name: rules[name] for name in ("exit_buffer", "first") if name in rules}
            if "exit_after" in rules:
                options["exit_after"] = rules["exit_after"] / 1000
            on = rules.get("on", KINDS)
            events.append((tracker.subscribe(record["key"], record["filter"], on, subscriber=record["subscriber"],
                                             replace=True, **options), None))  # fmt: skip
    late = tracker.tracks.late
    ordered = messages.sort_by([("at", "ascending"), ("message_id", "ascending")])
    told = tracker.publish(ordered, now=0, threads=1)
    ids = ordered.column("message_id").to_pylist()
    events += [(told, ids)]
    if watermark:
        events += [(tracker.advance(watermark), None)]
    rows = [
        (one.kind, one.key, one.object, str(one.before), str(one.after), one.time, one.reason,
         None if names is None or one.row is None else names[one.row])
        for some, names in events for one in some
    ]  # fmt: skip
    return sorted(rows, key=repr), sorted(ids[item.row] for item in told.rejected), tracker.tracks.late - late


@pytest.mark.parametrize("rules", [slow("plain"), "waiting", "late", slow("silent")])
@pytest.mark.parametrize("workers", ["kept", slow("lost")])
def test_events_are_those_of_a_tracker(make, home, rules, workers):
    """Batches in several tasks, messages in any order; subscriptions change; each batch may find a new worker."""
    own = RULES[rules]
    driver, spark = make(fences(), **own)
    watermark = 0
    expiry = None if own.get("expire_after") is None else own["expire_after"] / 1000
    tracker = ct.Tracker(
        fences(), "object", "at", late=own.get("late", "ignore"), expire_after=expiry, clock=lambda: watermark
    )  # fmt: skip
    options = {name: own[name] for name in ("exit_buffer", "first") if name in own}
    if "exit_after" in own:
        options["exit_after"] = own["exit_after"] / 1000
    tracker.watch_all(own.get("on", KINDS), **options)
    seen = 0
    for number in range(9):
        messages = journeys(0 if number in (5, 8) else 60, 100 + number, 1_700_000_000_000 + 40_000 * number)
        write_lines(home.changes / f"{number}.ndjson", CHANGES.get(number, []))
        version = driver.of_batch(number)
        assert version.segments == tuple(range(1, version.number + 1)), "never compacted"
        watermark = spark.newest
        tasks = [messages.slice(0, 25), messages.slice(25)] if len(messages) else []
        if number % 2:
            tasks.reverse()
        found = spark.run([task.to_batches() for task in tasks])
        if workers == "lost" or number == 6:
            forget()
        right, bad, late = told_by_tracker(tracker, messages, watermark, CHANGES.get(number, []), own)
        mine = [
            (row["event"], row["key"], row["object"], str(row["before"]), str(row["after"]),
             int(row["time"].timestamp() * 1000), row["reason"], row["message_id"])
            for row in found if row["event"] is not None
        ]  # fmt: skip
        assert sorted(mine, key=repr) == right, number
        assert sorted(row["message_id"] for row in found if row["rejection"] is not None) == bad
        assert sum(row["late"] or 0 for row in found) == late
        assert sum(row["messages"] or 0 for row in found) == len(messages)
        seen += len(right)
    assert seen > 200
    sizes = [len(states[2].rows) for states, _ in spark.states.values()]
    assert max(sizes) > 1, "deltas are kept"


def test_a_batch_that_comes_again_is_what_it_was(make, home):
    """State as before the batch, another worker, messages in another order: the same answers and the same state."""
    driver, spark = make(fences(), buckets=2)
    for number in range(3):
        driver.of_batch(number)
        messages = journeys(80, number, 1_700_000_000_000 + 30_000 * number)
        if number < 2:
            spark.run([messages.to_batches()])
            continue
        saved = {key: [list(state.rows) for state in states] for key, (states, _) in spark.states.items()}
        newest = spark.newest
        runs = []
        for order in (np.arange(80), np.arange(80)[::-1]):
            for key, (states, _) in spark.states.items():
                for state, rows in zip(states, saved[key], strict=True):
                    state.rows = list(rows)
            spark.batch, spark.newest = 1, newest
            answers = spark.run([messages.take(pa.array(order)).to_batches()])
            runs.append(sorted(json.dumps(row, default=str) for row in answers))
            forget()
        assert runs[0] == runs[1]


def test_deltas_become_a_snapshot(make, home):
    driver, spark = make(fences(), buckets=1)
    spark.work = spark.work._replace(min_snapshot=1)
    sizes = []
    for number in range(30):
        driver.of_batch(number)
        count = 9 if number else 400
        spark.run([journeys(count, number, 1_700_000_000_000 + 30_000 * number, 300).to_batches()])
        (head, _, deltas), _ = spark.states[0]
        known = working.Head(*json.loads(head.rows[0][0]))
        assert known.deltas == sum(len(row[0]) for row in deltas.rows)
        sizes.append(len(deltas.rows))
    assert 0 in sizes[1:]
    assert max(sizes) > 0
