"""`pipeline.track_stream` on Spark: the events of a Tracker, through restarts, replays, changes and damaged files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streams import AVAILABLE, rows_in, uncommit
from tracked_fixes import FENCES, ON, START, Right, event_of, fixes

import contrada as ct
from console import write_lines
from contrada import pipeline


@pytest.mark.slow
def test_events_are_those_of_a_tracker_through_restarts_and_changes(spark, tmp_path):
    """Lines of JSON; each start has one more file; a batch comes again; a subscription comes and goes."""
    folder = tmp_path / "in"
    rows = spark.createDataFrame(
        [(key, "ops", text) for key, text in FENCES.items()], "key string, subscriber string, filter string"
    )
    right = Right(expire_after=100)
    records = {
        1: [{"key": "d", "subscriber": "ops", "filter": "S_INTERSECTS(place, BBOX(5, 0, 9, 3))"},
            {"key": "e", "filter": "speed = 1"}],
        3: [{"action": "unsubscribe", "key": "a"}],
    }  # fmt: skip
    (tmp_path / "changes").mkdir()

    def run(**options):
        stream = pipeline.track_stream(
            pipeline.MessageFiles(spark, folder, maxFilesPerTrigger=1), rows, tmp_path / "changes", on=ON, track="who",
            time="at", expire_after="100s", buckets=3, sink=tmp_path / "out", checkpoint=tmp_path / "state",
            trigger=AVAILABLE, **options,
        )  # fmt: skip
        stream.wait(400)
        return stream

    for number in range(4):
        messages = fixes(number)
        text = "".join(json.dumps(message) + "\n" for message in messages)
        write_lines(folder / f"{number}.ndjson", [])
        (folder / f"{number}.ndjson").write_text(text + '{"id": "cut\n')
        write_lines(tmp_path / "changes" / f"{number}.ndjson", records.get(number, []))
        if number == 1:
            right.tracker.subscribe("d", records[1][0]["filter"], ON, subscriber="ops")
        if number == 3:
            right.watermark = right.newest
            told = right.tracker.unsubscribe("a")
            right.events += [
                (None, one.kind, "ops", "a", str(one.object), str(one.before), None, one.time, one.reason)
                for one in told
            ]  # fmt: skip
        stream = run()
        right.take(messages)
        right.finish()
        if number == 2:
            last = stream.progress().batch
            uncommit(tmp_path / "state", last)
    assert stream.unwatched.keys() == {"c"}
    assert stream.versions.rejected == 0
    found = rows_in(tmp_path / "out" / "events")
    assert sorted(map(event_of, found), key=repr) == sorted(right.events, key=repr)
    assert {one[8] for one in right.events} >= {"fix", "time", "unsubscribed"}
    rejected = rows_in(tmp_path / "out" / "rejected")
    assert len(rejected) == right.rejected + 4
    assert '{"id": "cut' in [row["raw"] for row in rejected]
    reasons = (tmp_path / "state" / "contrada" / "rejected_changes" / "1.ndjson").read_text()
    assert "exactly one spatial constraint" in reasons
    with pytest.raises(ct.ContradaError, match=r"buckets: the stream of this checkpoint began with 3, got 4"):
        pipeline.track_stream(
            pipeline.MessageFiles(spark, folder), on=ON, track="who", time="at", expire_after="100s", buckets=4,
            sink=tmp_path / "out", checkpoint=tmp_path / "state",
        )  # fmt: skip


@pytest.mark.slow
def test_columns_and_damaged_files(spark, tmp_path):
    """Parquet: ids keep their type; of a damaged file the stream tells, and goes on."""
    (tmp_path / "in").mkdir()
    rows = spark.createDataFrame([(1, "S_INTERSECTS(place, BBOX(0, 0, 4, 4))")], "key int, filter string")
    table = pa.table(
        {
            "message_id": [1, 2, 3, 4],
            "who": pa.array([5, 5, None, 6], pa.int64()),
            "at": pa.array([START * 1000 + k * 1_000_000 for k in range(4)]).cast(pa.timestamp("us", "UTC")),
            "place": [ct.Point(x, 1).to_wkb() for x in (1, 9, 1, 2)],
        }
    )
    pq.write_table(table, tmp_path / "in" / "1.parquet")
    (tmp_path / "in" / "2.parquet").write_bytes(b"PAR1 and no more PAR1")
    told = []
    stream = pipeline.track_stream(
        pipeline.MessageFiles(spark, tmp_path / "in", "parquet"), rows, on="enter, exit", track="who", time="at",
        buckets=2, sink=lambda events, rejected, batch: told.append((events.collect(), rejected.collect())),
        checkpoint=tmp_path / "state", trigger=AVAILABLE,
    )  # fmt: skip
    stream.wait(400)
    events = sorted((row.message_id, row.event, row.key, row.object) for some, _ in told for row in some)
    assert events == [(1, "enter", 1, 5), (2, "exit", 1, 5), (4, "enter", 1, 6)]
    bad = sorted(((row.message_id, row.reason) for _, some in told for row in some), key=repr)
    assert bad[0] == (3, "attribute 'who': need text or a whole number to track by, got None")
    assert "2.parquet: the file is damaged" in bad[1][1]


def test_what_cannot_be_tracked_is_refused(spark, tmp_path):
    rate = spark.readStream.format("rate").load().selectExpr("value AS message_id", "value AS who", "timestamp AS at")
    given = {"on": "enter", "track": "who", "time": "at", "sink": tmp_path / "out", "checkpoint": tmp_path / "state"}
    parts = pipeline.compile(
        spark.createDataFrame([("size > 1",)], "filter string"), tmp_path / "parts", plan="partitioned", partitions=1
    )
    for options, reason in (
        ({"on": "leave"}, "on: need"), ({"buckets": 0}, "buckets: need"), ({"late": "never"}, "late: need"),
        ({"track": ""}, "track: need"), ({"track": "thread"}, "one bucket"), ({"delay": "soon"}, "delay: need"),
        ({"exit_buffer": -1}, "exit_buffer"), ({"first": "loud"}, "first: need"),
        ({"track": "bus"}, "need column 'bus'"),
        ({"time": "who"}, "need timestamps"), ({"subscriptions": parts}, "plan"),
    ):  # fmt: skip
        with pytest.raises(ct.ContradaError, match=reason):
            pipeline.track_stream(rate, **{**given, **options})
