"""Streams: every message once, with the version that its batch has; changes while it runs; replay; removal."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streams import AVAILABLE, uncommit, written

import contrada as ct
from console import read_lines, write_lines
from contrada import pipeline
from contrada.pipeline.artifact_cache import cache_home

SCHEMA = "message_id long, size long, area binary"


class Home:
    """A directory with everything that a stream has."""

    def __init__(self, place, spark):
        self.spark, self.messages, self.changes = spark, place / "messages", place / "changes"
        self.output, self.checkpoint = place / "output", place / "checkpoint"
        self.messages.mkdir()
        self.changes.mkdir()

    def write(self, name, *rows):
        """A file of messages."""
        kinds = pa.schema({"message_id": pa.int64(), "size": pa.int64(), "area": pa.binary()})
        table = pa.Table.from_pylist([dict(zip(kinds.names, row, strict=True)) for row in rows], kinds)
        pq.write_table(table, self.messages / name)

    def stream(self, subscriptions=None, **options):
        frame = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(self.messages))
        given = {"sink": self.output, "checkpoint": self.checkpoint, "changes": self.changes, "trigger": AVAILABLE}
        return pipeline.match_stream(frame, subscriptions, **{**given, **options})

    def run(self, subscriptions=None, **options):
        stream = self.stream(subscriptions, **options)
        stream.wait(120)
        stream.versions.wait()
        return stream

    def matches(self):
        return written(self.output / "matches", ["batch", "message_id", "subscriber", "key", "version"])


@pytest.fixture
def home(tmp_path, spark):
    return Home(tmp_path, spark)


def rows_of(spark, filters):
    """Subscriptions that have one subscriber, and another one that no message of these tests matches."""
    rows = [(key, "ops", text) for key, text in {**filters, "never": "size < -5"}.items()]
    return spark.createDataFrame(rows, "key string, subscriber string, filter string")


SQUARE = ct.Region.box(0, 0, 4, 4).to_wkb()


def test_messages_match_and_a_replayed_batch_is_what_it_was(spark, home, tmp_path):
    home.write("1.parquet", (1, 5, None), (2, 1, SQUARE), (3, 1, b"\0"))
    filters = {"big": "size >= 3", "here": "S_INTERSECTS(area, POINT(1 1))"}
    stream = home.run(rows_of(spark, filters))
    before = home.matches()
    assert before == [(0, 1, "ops", "big", 0), (0, 2, "ops", "here", 0)]
    ((*names, reason),) = written(home.output / "rejected", ["batch", "message_id", "version", "reason"])
    assert names == [0, 3, 0]
    assert "area" in reason
    last = stream.progress()
    assert (last.messages, last.matches, last.rejected, last.subscriptions) == (3, 2, 1, 3)
    # As if the driver had ended after it wrote its version, and before Spark committed the batch.
    uncommit(home.checkpoint, 0)
    files = set(home.output.glob("matches/batch=0/*.parquet"))
    for name in (".new-0-abc", ".old-0-abc"):
        (home.output / "matches" / name).mkdir()
    write_lines(home.changes / "1.ndjson", [{"action": "unsubscribe", "key": key} for key in filters])
    home.write("2.parquet", (4, 5, None))
    home.run()
    assert home.matches() == before, "batch 0 with its version, batch 1 without the subscriptions"
    assert files.isdisjoint(home.output.glob("matches/batch=0/*.parquet")), "it was written again"
    assert sorted(os.listdir(home.output / "matches")) == ["batch=0", "batch=1"], "nothing is left half written"
    with pytest.raises(ct.ContradaError, match="another checkpoint"):
        home.stream(checkpoint=tmp_path / "other")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ct.ContradaError, match="not the output of a stream"):
        home.stream(checkpoint=tmp_path / "other", sink=tmp_path / "full")


def test_a_batch_has_one_version_and_rows_name_it(spark, home):
    home.write("1.parquet", (1, 5, None))
    home.run(rows_of(spark, {"a": "size >= 3"}))
    home.write("2.parquet", (2, 5, None))
    write_lines(
        home.changes / "1.ndjson",
        [{"key": "b", "filter": "size = 5"}, {"action": "unsubscribe", "key": "a"}, {"key": "c", "filter": "size <"},
         {"action": "unsubscribe", "key": "nobody"}, {"action": "forget", "key": "b"}, {"filter": "size = 5"}],
    )  # fmt: skip
    stream = home.run()
    assert home.matches() == [(0, 1, "ops", "a", 0), (1, 2, "b", "b", 1)]
    reasons = read_lines(home.checkpoint / "contrada" / "rejected_changes" / "1.ndjson")
    assert [item["number"] for item in reasons] == [3, 4, 5, 6]
    assert "nobody" in reasons[1]["reason"]
    assert stream.versions.rejected == 4


@pytest.mark.slow
def test_compacted_tables_take_over_and_copies_go(spark, home):
    """One run over several batches: a compaction in between is taken up, and its predecessor is removed."""
    home.run()
    seen = []
    counted = iter(range(100))

    def change(progress):
        number = next(counted)
        write_lines(home.changes / f"{number:03}.ndjson", [{"key": f"k{number}", "filter": "size > 1"}])
        stream = running[0] if running else None
        if stream is not None:
            stream.versions.wait()
            seen.append(stream.versions.current.artifact.digest)

    running = []
    for number in range(8):
        home.write(f"{number}.parquet", (number, 5, None))
    running.append(home.stream(compact_after=1, progress=change, trigger={"processingTime": "0 seconds"}))
    running[0].query.processAllAvailable()
    running[0].stop()
    assert running[0].versions.compactions > 2
    assert len(set(seen)) > 2
    assert len([row for row in home.matches() if row[0] == 7]) == 7
    kept = os.listdir(home.checkpoint / "contrada" / "artifacts")
    assert len(kept) <= 3
    # Asked of a worker: Java may have been started by another test, with other settings.
    cache = Path(spark.sparkContext.parallelize([0], 1).map(lambda _: str(cache_home())).first())
    copies = {path.name for path in (cache / "tables").iterdir() if path.is_dir()}
    retired = set(running[0].versions.retired)
    assert copies & (retired | {running[0].versions.current.artifact.digest}), "workers have copies of tables"
    assert len(retired) > 2
    assert len(copies & retired) <= 2, "workers hold what they had last"


def test_a_change_of_what_messages_cannot_have_is_refused(spark, home):
    rate = spark.readStream.format("rate").load()
    frame = rate.selectExpr("value AS message_id", "value AS size", "make_interval(1) AS span")
    write_lines(home.changes / "1.ndjson", [{"key": "a", "filter": "span = 3"}, {"key": "b", "filter": "size >= 0"}])
    rows = []

    def keep(matches, rejected, batch):
        rows.extend(matches.collect())

    stream = pipeline.match_stream(frame, changes=home.changes, sink=keep, checkpoint=home.checkpoint)
    try:
        for _ in range(100):
            if rows or stream.wait(0.2):
                break
    finally:
        stream.stop()
    assert {row.key for row in rows} == {"b"}
    assert stream.versions.rejected == 1


def test_changes_of_a_table_are_read_by_their_numbers(spark, home):
    spark.sql("CREATE TABLE stream_changes (sequence BIGINT, action STRING, key STRING, filter STRING) USING parquet")
    rounds = ["(1, 'subscribe', 'a', 'size > 1'), (2, NULL, 'b', 'size > 1')", "(3, 'unsubscribe', 'a', NULL)"]
    try:
        for number, rows in enumerate(rounds, 1):
            spark.sql(f"INSERT INTO stream_changes VALUES {rows}")
            home.write(f"{number}.parquet", (number, 5, None))
            home.run(changes=pipeline.ChangeTable(spark, "stream_changes"))
    finally:
        spark.sql("DROP TABLE stream_changes")
    assert [(row[0], row[3], row[4]) for row in home.matches()] == [(0, "a", 1), (0, "b", 1), (1, "b", 2)]


def test_what_is_no_stream_is_refused(spark, home):
    rate = spark.readStream.format("rate").load()
    named = rate.selectExpr("value AS message_id")
    for frame, trigger, reason in (
        (spark.range(3), None, "needs a stream"), (rate, None, "message_id"),
        (named, {"realTime": "5 seconds"}, "foreachBatch"), (named, {"continuous": "1 second"}, "foreachBatch"),
    ):  # fmt: skip
        with pytest.raises(ct.ContradaError, match=reason):
            pipeline.match_stream(frame, sink=home.output, checkpoint=home.checkpoint, trigger=trigger)
