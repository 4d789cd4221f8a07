"""Streams over partitions: the rows of one table while changes are merged into partitions, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from sample_tables import square
from streams import AVAILABLE, uncommit, written

import contrada as ct
from console import read_lines, write_lines
from contrada import pipeline
from contrada.pipeline.stream.changes import Change
from contrada.pipeline.stream.partitioned_changes import spread_changes
from generators.filters_of_every_kind import expected

TEMPLATE = "S_INTERSECTS(area, $geometry) OR covers(area, $other) AND size >= $least"
CRS = "EPSG:32632"


def corners(count, seed):
    return np.random.default_rng(seed).integers(0, 40, (count, 2)).tolist()


def rows_of_town(count=60):
    """Regions on whole numbers, so that many share edges; two to a subscriber; the two parts of a filter lie apart."""

    def shapes(seed):
        boxes = [shapely.set_srid(shapely.box(x, y, x + 4, y + 3), 32632) for x, y in corners(count, seed)]
        return shapely.to_wkb(boxes, include_srid=True).tolist()

    return pa.table(
        {
            "key": [f"k{k}" for k in range(count)],
            "subscriber": [f"s{k // 2}" for k in range(count)],
            "geometry": shapes(1),
            "other": shapes(2),
            "least": [k % 3 for k in range(count)],
        }
    )


def messages_of_town(count, seed):
    """Regions over the same ground, with nulls, no geometry, another CRS and repeated ids."""
    shapes = [square(x, y, 6) for x, y in corners(count, seed)]
    for k in range(0, count, 7):
        foreign = shapely.to_wkb(shapely.set_srid(shapely.box(0, 0, 9, 9), 4326), include_srid=True)
        shapes[k] = [None, b"no geometry", foreign][k // 7 % 3]
    sizes = [None if k % 5 == 0 else k % 4 for k in range(count)]
    return pa.table(
        {"message_id": [k // 2 for k in range(count)], "area": pa.array(shapes, pa.binary()), "size": sizes}
    )


def change(table, record):
    """Make a change in the table of a single process."""
    if record.get("action") == "unsubscribe":
        table.unsubscribe(record["key"])
    else:
        table.subscribe(record["subscriber"], record["filter"], record["key"], replace=True)


def subscribe(key, subscriber, x, y, also=""):
    box = f"POLYGON(({x} {y}, {x + 5} {y}, {x + 5} {y + 5}, {x} {y + 5}, {x} {y}))"
    return {"key": key, "subscriber": subscriber, "filter": f"S_INTERSECTS(area, {box}){also}"}


ROUNDS = [
    [subscribe("k3", "s9", 1, 1), {"action": "unsubscribe", "key": "k4"}, subscribe("n1", "s1", 20, 20)],
    [
        subscribe("n2", "new", 60, 60, " OR size = 3"), subscribe("n3", "s1", 39, 0),
        {"action": "unsubscribe", "key": "k3"},
    ],
    [subscribe("k4", "s2", 5, 5), {"action": "unsubscribe", "key": "n1"}, subscribe("n3", "s1", 0, 39)],
    [{"action": "unsubscribe", "key": f"k{k}"} for k in range(5, 50)],
    [],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("by", ["subscription", "subscriber"])
def test_changes_are_merged_into_partitions_while_batches_go_on(spark, tmp_path, by):
    folder, changes = tmp_path / "messages", tmp_path / "changes"
    folder.mkdir()
    changes.mkdir()
    rows, table, right = rows_of_town(), ct.ForwardingTable(), []
    table.subscribe_many(rows, TEMPLATE)
    batches = [messages_of_town(40, seed) for seed in range(len(ROUNDS) + 1)]
    running = []

    def put(number):
        pq.write_table(batches[number], folder / f"{number}.parquet")

    def after(progress):
        """Changes and messages for the next batch, once the last changes are merged."""
        number = progress.batch
        right.append((expected(table, batches[number], by), len(table)))
        assert progress.subscriptions == len(table)
        assert progress.matches == len(right[-1][0][0])
        if running:
            running[0].versions.wait()
        if number < len(ROUNDS):
            write_lines(changes / f"{number}.ndjson", ROUNDS[number])
            for record in ROUNDS[number]:
                change(table, record)
            put(number + 1)

    put(0)
    stream = pipeline.match_stream(
        pipeline.MessageFiles(spark, folder, "parquet"), spark.createDataFrame(rows), changes, template=TEMPLATE,
        plan="partitioned", partitions=5, by=by, compact_after=1, sink=tmp_path / "out",
        checkpoint=tmp_path / "state", progress=after, trigger={"processingTime": "0 seconds"},
    )  # fmt: skip
    running.append(stream)
    try:
        for _ in range(len(batches)):
            stream.query.processAllAvailable()
    finally:
        stream.stop()
    names = ("message_id", "subscriber", "key") if by == "subscription" else ("message_id", "subscriber")
    for name, wanted, place in (("matches", names, 0), ("rejected", ("message_id", "reason"), 1)):
        found = written(tmp_path / "out" / name, ("batch", *wanted))
        for number, (answers, _) in enumerate(right):
            assert answers[place]
            assert [row[1:] for row in found if row[0] == number] == answers[place], (name, number)
    assert len(right) == len(batches)
    assert stream.versions.compactions > 2
    assert stream.versions.failed_compactions == 0
    made = stream.versions.current.artifact
    assert made.crs == {"area": CRS}
    assert any(part.is_wide for part in made.partitions), "of the filter that may match anywhere"
    assert sum(part.artifact.subscriptions for part in made.partitions) >= len(table)
    kept = {path.name for path in (tmp_path / "state" / "contrada" / "artifacts").iterdir()}
    assert {part.artifact.digest for part in made.partitions} <= kept
    assert len(kept) < 30, "tables of earlier versions are removed"


@pytest.fixture
def town(spark, tmp_path):
    """Runs a stream over partitions until no message is left."""
    (tmp_path / "in").mkdir()
    (tmp_path / "changes").mkdir()

    def run(messages, number, subscriptions=None, **options):
        pq.write_table(messages, tmp_path / "in" / f"{number}.parquet")
        given = {"sink": tmp_path / "out", "checkpoint": tmp_path / "state", "trigger": AVAILABLE}
        files = pipeline.MessageFiles(spark, tmp_path / "in", "parquet")
        stream = pipeline.match_stream(files, subscriptions, tmp_path / "changes", **{**given, **options})
        stream.wait(300)
        stream.versions.wait()
        return stream

    return run


def test_a_stream_begins_without_subscriptions_and_a_replay_is_what_it_was(town, tmp_path):
    """Bad changes are those of one table; a batch that comes again has the version that it had."""
    messages = pa.table({"message_id": [1, 2], "area": [square(0, 0, 2), square(50, 50, 2)], "size": [1, 7]})
    records = [
        subscribe("a", "ops", 0, 0), subscribe("b", "ops", 50, 50), {"action": "unsubscribe", "key": "nobody"},
        {"key": "c", "subscriber": "ops", "filter": "size >"}, {"action": "unsubscribe", "key": "b"},
        {"action": "unsubscribe", "key": "b"}, {"key": "d", "subscriber": "ops", "filter": "size > 5"},
    ]  # fmt: skip
    write_lines(tmp_path / "changes" / "1.ndjson", records)
    stream = town(messages, 0, plan="partitioned")
    wanted = ["batch", "message_id", "key", "version"]
    before = written(tmp_path / "out" / "matches", wanted)
    assert before == [(0, 1, "a", 1), (0, 2, "d", 1)]
    assert stream.versions.rejected == 3
    reasons = read_lines(tmp_path / "state" / "contrada" / "rejected_changes" / "1.ndjson")
    assert [item["number"] for item in reasons] == [3, 4, 6]
    assert len(stream.versions.current.artifact.partitions) == 0
    uncommit(tmp_path / "state", 0)
    write_lines(tmp_path / "changes" / "2.ndjson", [{"action": "unsubscribe", "key": "a"}])
    stream = town(messages, 1, compact_after=1)
    assert written(tmp_path / "out" / "matches", wanted) == [*before, (1, 2, "d", 2)]
    with pytest.raises(ct.ContradaError, match="keeps the plan it began with"):
        town(messages, 2, plan="broadcast")


@pytest.mark.slow
def test_very_many_changes_and_damaged_files(town, tmp_path, spark):
    """More changes than are applied before a batch become new partitions at once; damage is set aside as before."""
    rows, table = rows_of_town(), ct.ForwardingTable()
    table.subscribe_many(rows, TEMPLATE)
    messages = messages_of_town(30, 5)
    (tmp_path / "in" / "damaged.parquet").write_bytes(b"PAR1 and no more PAR1")
    records = [subscribe(f"m{k}", f"s{k % 9}", x, y) for k, (x, y) in enumerate(corners(600, 8))]
    records += [{"action": "unsubscribe", "key": f"k{k}"} for k in range(9)]
    for record in records:
        change(table, record)
    write_lines(tmp_path / "changes" / "1.ndjson", records)
    spark.conf.set("spark.contrada.partition.bytes", "12k")
    try:
        stream = town(messages, 0, spark.createDataFrame(rows), template=TEMPLATE, plan="partitioned", partitions=3)
    finally:
        spark.conf.unset("spark.contrada.partition.bytes")
    matches, rejected = expected(table, messages)
    assert written(tmp_path / "out" / "matches", ["message_id", "subscriber", "key"]) == matches
    found = written(tmp_path / "out" / "rejected", ["message_id", "reason"])
    assert [row for row in found if row[0] is not None] == rejected
    ((_, reason),) = [row for row in found if row[0] is None]
    assert "damaged.parquet" in reason
    version = stream.versions.current
    assert (version.segments, version.subscriptions) == ((), len(table))
    assert len(version.artifact.partitions) == 4, "what full partitions do not take is a new one"


def test_subscriptions_go_where_boxes_grow_least(spark, tmp_path):
    rows = pa.table({"geometry": [square(x, 0, 1) for x in (0, 1, 50, 51)]})
    compiled = pipeline.compile(
        spark.createDataFrame(rows),
        tmp_path,
        template="S_INTERSECTS(area, $geometry)",
        plan="partitioned",
        partitions=2,
    )
    whole = compiled.artifact

    def changed(key, query):
        return Change("subscribe", key, key, query)

    def box(x):
        return f"S_INTERSECTS(area, BBOX({x}, 0, {x + 1}, 1))"

    wanted = {
        "a": box(2),
        "b": box(45),
        "c": "size > 3",
        "d": f"{box(3)} OR size = 1",
        "e": box(1).replace("area", "home"),
    }
    changes = [*(changed(*one) for one in wanted.items()), Change("unsubscribe", "x", "x", None)]
    found = spread_changes(whole, changes, 1 << 30)
    keys = {number: [one.key for one in some] for number, some in found.subscriptions.items()}
    assert keys == {0: ["a"], 1: ["b"], 3: ["c", "d"], 2: ["e"]}
    assert found.boxes[3] == {}, "sees every message"
    assert found.boxes[2].keys() == {"home"}
    assert min(one[0] for one in found.boxes[1]["area"]) == 45
    full = spread_changes(whole, changes, 1)
    assert {number: len(some) for number, some in full.subscriptions.items()} == {2: 3, 3: 2}


def test_what_is_no_plan_is_refused(spark, tmp_path):
    rate = spark.readStream.format("rate").load().selectExpr("value AS message_id")
    places = {"sink": tmp_path / "out", "checkpoint": tmp_path / "state"}
    for given, options, reason in (
        (None, {"plan": "scan"}, "plan: need"),
        (ct.ForwardingTable(), {"plan": "partitioned"}, "is one table"),
        (pipeline.publish(ct.ForwardingTable(), tmp_path), {"plan": "partitioned"}, 'plan="broadcast"'),
        (pipeline.publish(ct.ForwardingTable(), tmp_path), {"partitions": 3}, "pass them to compile"),
    ):
        with pytest.raises(ct.ContradaError, match=reason):
            pipeline.match_stream(rate, given, **places, **options)
