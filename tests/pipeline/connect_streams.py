"""Streams over Spark Connect, compared with tables and trackers of one process."""

import json
import threading

import pyarrow.parquet as pq
import pytest
import shapely
from streams import AVAILABLE, rows_in, uncommit, written
from tracked_fixes import FENCES, ON, Right, event_of, fixes

import contrada as ct
from console import write_lines
from contrada import pipeline
from generators.filters_of_every_kind import expected, random_messages

ROUNDS = [
    [{"key": "k3", "subscriber": "s1", "filter": "size >= 0"}, {"action": "unsubscribe", "key": "k1"},
     {"key": "new-1", "subscriber": "s0", "filter": "name LIKE 'a%'"}, {"key": "bad", "filter": "size <"}],
    [{"key": "new-2", "subscriber": "late", "filter": "flag IS NULL"}, {"action": "unsubscribe", "key": "new-1"}],
]  # fmt: skip


def change(table, records):
    for record in records:
        if record["key"] == "bad":
            continue
        if record.get("action") == "unsubscribe":
            table.unsubscribe(record["key"])
        else:
            table.subscribe(record["subscriber"], record["filter"], record["key"], replace=True)


def check_stream(spark, home, everything, table, plan="broadcast", by="subscription", rounds=0):
    """Batches of a stream have the rows of a table that takes the same changes, and one that is repeated has its own.

    `progress` makes the changes and messages of the next batch, so it is called in this process after each batch.
    """
    (home / "in").mkdir(parents=True)
    (home / "changes").mkdir()
    right, lines = [], []

    def put(number):
        messages = random_messages(40, seed=number)
        right.append((expected(table, messages, by), len(table)))
        pq.write_table(messages, home / "in" / f"{number}.parquet")

    def after(progress):
        lines.append(progress.line())
        assert (progress.messages, progress.matches) == (40, len(right[-1][0][0]))
        assert progress.subscriptions == right[-1][1]
        if progress.batch < rounds:
            write_lines(home / "changes" / f"{progress.batch}.ndjson", ROUNDS[progress.batch])
            change(table, ROUNDS[progress.batch])
            put(progress.batch + 1)

    def start(**options):
        return pipeline.match_stream(
            pipeline.MessageFiles(spark, home / "in", "parquet"), spark.createDataFrame(everything), home / "changes",
            sink=home / "out", checkpoint=home / "state", by=by, plan=plan, compact_after=1, **options,
            partitions=3 if plan == "partitioned" else None,
        )  # fmt: skip

    put(0)
    stream = start(progress=after, trigger={"processingTime": "0 seconds"} if rounds else AVAILABLE)
    while len(lines) <= rounds:
        assert not stream.wait(1) or len(lines) > rounds
    stream.stop()
    assert stream.versions.rejected == (1 if rounds else 0)
    assert stream.census.messages == 40 * (rounds + 1)
    uncommit(home / "state", rounds)
    assert start(trigger=AVAILABLE).wait(300), "the last batch comes again"
    names = ("message_id", "subscriber", "key")[: 3 if by == "subscription" else 2]
    for place, (name, columns) in enumerate((("matches", names), ("rejected", ("message_id", "reason")))):
        found = written(home / "out" / name, ("batch", *columns))
        for number, (answers, _) in enumerate(right):
            assert [row[1:] for row in found if row[0] == number] == answers[place], (name, number)
    assert pipeline.read_output(home / "out" / "matches" / f"batch={rounds}", verify=True).counts["matches"]


def check_systems_in_files(spark, home):
    """The CRS of each file reaches the matching; damage is a rejection; columns are kept; functions are sinks."""
    box = shapely.to_wkb(shapely.box(0, 0, 2, 2))
    place = json.loads(shapely.to_geojson(shapely.box(0, 0, 1, 1)))
    (home / "in").mkdir()
    for number, system in enumerate(("EPSG:4326", "EPSG:3035")):
        lines = [{"type": "Feature", "properties": {"message_id": number, "title": f"t{number}"}, "geometry": place}]
        write_lines(home / "one.geojsonl", lines)
        found = pipeline.ingest(spark, home / "one.geojsonl", crs=system)
        found.write(home / f"set{number}")
        (file,) = (home / f"set{number}" / "rows").glob("*.parquet")
        file.rename(home / "in" / f"{number}.parquet")
    (home / "in" / "2.parquet").write_bytes(b"PAR1 and no more PAR1")
    (home / "in" / "3.parquet").write_bytes(b"")
    rows = spark.createDataFrame([("k", bytearray(box))], "key string, geometry binary")

    def count(matches, rejected, batch):
        """Called in the process of the server."""
        told = [[row.message_id, row.title] for row in matches.collect()], [row.reason for row in rejected.collect()]
        (home / f"told{batch.number}.json").write_text(json.dumps(told))

    stream = pipeline.match_stream(
        pipeline.MessageFiles(spark, home / "in", "parquet"), pipeline.with_crs(rows, "geometry", "EPSG:3035"),
        template="S_INTERSECTS(geometry, $geometry)", sink=count, checkpoint=home / "state", trigger=AVAILABLE,
        keep=["title"],
    )  # fmt: skip
    assert stream.wait(300)
    assert (stream.progress().messages, stream.progress().matches, stream.progress().rejected) == (4, 1, 3)
    matches, reasons = json.loads((home / "told0.json").read_text())
    assert matches == [[1, "t1"]]
    assert ["4326" in reasons[0], "2.parquet: the file is damaged" in reasons[1], "0 bytes" in reasons[2]] == [True] * 3
    print("stream of files with systems, kept columns, functions")


def check_tracked(spark, home):
    """Events are those of a Tracker, over a restart and a batch that is repeated."""
    rows = spark.createDataFrame(
        [(key, "ops", text) for key, text in FENCES.items()], "key string, subscriber string, filter string"
    )
    right = Right(expire_after=100)
    (home / "in").mkdir()
    for number in range(2):
        messages = fixes(number)
        text = "".join(json.dumps(message) + "\n" for message in messages)
        (home / "in" / f"{number}.ndjson").write_text(text + '{"id": "cut\n')
        stream = pipeline.track_stream(
            pipeline.MessageFiles(spark, home / "in"), rows, on=ON, track="who", time="at", expire_after="100s",
            buckets=3, sink=home / "out", checkpoint=home / "state", trigger=AVAILABLE,
        )  # fmt: skip
        assert stream.wait(300)
        right.take(messages)
        right.finish()
        if number == 0:
            uncommit(home / "state", stream.progress().batch)
    assert stream.unwatched.keys() == {"c"}
    found = sorted(map(event_of, rows_in(home / "out" / "events")), key=repr)
    assert found == sorted(right.events, key=repr)
    assert len(rows_in(home / "out" / "rejected")) == right.rejected + 2
    print("stream of tracked objects")


def check_endings(spark, home):
    """A stream ends after its batch, or with the error of a function; what a server cannot do is refused."""
    rate = spark.readStream.format("rate").load().selectExpr("value AS message_id", "value AS size")
    rows = spark.createDataFrame([("k", "size >= 0")], "key string, filter string")

    def start(name, **options):
        given = {"sink": home / f"out-{name}", "checkpoint": home / name}
        return pipeline.match_stream(rate, rows, **{**given, **options})

    seen = threading.Event()
    stream = start("finished", progress=lambda progress: seen.set())
    assert seen.wait(300)
    stream.stop(finish=True)
    assert stream.query.isActive is False
    batches = {path.name for path in (home / "out-finished" / "matches").iterdir()}
    assert batches == {f"batch={number}" for number in range(stream.progress().batch + 1)}, "none is half done"

    def fail(progress):
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        start("raised", progress=fail).wait(300)

    def raise_there(matches, rejected, batch):
        raise ValueError("not here")

    with pytest.raises(Exception, match="not here"):
        start("failed", sink=raise_there).wait(300)
    held = threading.Lock()
    for sink, reason in (
        (pipeline.ConsoleSink(), "the log of the server"),
        (lambda *rows: held.acquire(), "one of them cannot be"),
    ):
        with pytest.raises(ct.ContradaError, match=reason):
            start("refused", sink=sink)
    with pytest.raises(ct.ContradaError, match="foreachBatch"):
        start("refused", trigger={"continuous": "1 second"})
    print("streams that end, and what is refused")


def check_streams(spark, home):
    """Everything about streams."""
    from sample_tables import every_operator

    for plan, by in (("broadcast", "subscription"), ("partitioned", "subscriber")):
        check_stream(spark, home / plan, *every_operator(), plan, by, rounds=2)
        print("stream", plan)
    for name, check in (("systems", check_systems_in_files), ("tracked", check_tracked), ("ends", check_endings)):
        (home / f"stream-{name}").mkdir()
        check(spark, home / f"stream-{name}")
