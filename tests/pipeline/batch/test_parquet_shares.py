"""Shares of Parquet files have the rows and numbers that Spark sends; other frames have no shares."""

import datetime as dt
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from contrada import pipeline
from contrada.cql2 import parse
from contrada.pipeline.batch.compiling import subscription_rows
from contrada.pipeline.batch.numbering import sent_rows
from contrada.pipeline.batch.parquet_shares import GroupOfRows, UnreadableShareError, parquet_shares, share_batches
from effort import slow
from generators.filters_of_every_kind import random_messages, rows_of

TEMPLATE = "S_INTERSECTS(area, $geometry) AND size >= $least"


def some_rows(count, first=0, seed=1):
    """Rows with keys that count from `first`; some have no geometry, no number or a region that crosses itself."""
    rng = np.random.default_rng(seed + first)
    corners = rng.integers(0, 40, (count, 2))
    wkb = shapely.to_wkb(shapely.box(*corners.T, *(corners + rng.integers(1, 4, (count, 1))).T)).tolist()
    for row in range(3, count, 17):
        wkb[row] = None if row % 2 else shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))
    least = [None if row % 23 == 5 else float(row % 3) for row in range(count)]
    names = {"key": pa.array(range(first, first + count)), "subscriber": [f"s{row % 7}" for row in range(count)]}
    return pa.table({**names, "geometry": pa.array(wkb, pa.binary()), "least": least, "other": list(range(count))})


def spark_rows(frame, template=TEMPLATE):
    """What Spark sends to Python for a template."""
    return sent_rows(subscription_rows(frame, parse(template))).toArrow().to_pylist()


def shares_of(frame, template=TEMPLATE):
    rows = subscription_rows(frame, parse(template))
    return parquet_shares(frame.select(*rows.columns.values()))


def read_shares(shares):
    batches = [batch for share in shares.shares for batch in share_batches(share, shares.columns)]
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three files in a directory whose name has characters that URIs escape; row groups are of several sizes."""
    directory = tmp_path_factory.mktemp("sub scriptions %20+ä")
    first = 0
    for number, (rows, per_group) in enumerate([(300, 40), (90, 100), (200, 7)]):
        pq.write_table(some_rows(rows, first), directory / f"part {number}%.parquet", row_group_size=per_group)
        first += rows
    return directory


@pytest.fixture
def small_splits(spark):
    """Spark cuts files into pieces of 3,000 bytes, far smaller than these files."""
    sizes = {"spark.sql.files.maxPartitionBytes": "3000", "spark.sql.files.openCostInBytes": "100"}
    for name, value in sizes.items():
        spark.conf.set(name, value)
    yield
    for name in sizes:
        spark.conf.unset(name)


def check(frame, template=TEMPLATE):
    shares = shares_of(frame, template)
    assert shares is not None
    right = spark_rows(frame, template)
    assert read_shares(shares) == right
    assert shares.rows == len(right)
    return shares


def test_rows_and_numbers_are_those_of_spark(spark, files):
    check(spark.read.parquet(str(files)))


def test_pieces_of_files_have_the_row_groups_that_spark_reads(spark, files, small_splits):
    shares = check(spark.read.parquet(str(files)))
    assert len(shares.offsets) > 3
    assert [share[0].first for share in shares.shares] == sorted(share[0].first for share in shares.shares)


@pytest.mark.parametrize(("tasks", "task_rows"), [(1, 10_000), (2, 10_000), (3, 50), (500, 10_000)])
def test_tasks_have_every_share_once_and_about_as_many_rows(spark, files, small_splits, tasks, task_rows):
    shares = shares_of(spark.read.parquet(str(files)))
    dealt = shares.dealt(tasks, task_rows)
    assert sorted(share for task in dealt for share in task) == sorted(shares.shares)
    assert len(dealt) == min(len(shares.shares), max(tasks, -(-shares.rows // task_rows)))
    sizes = [sum(group.rows for share in task for group in share) for task in dealt]
    assert max(sizes) - min(sizes) <= max(sum(group.rows for group in share) for share in shares.shares)


def test_chosen_and_renamed_columns_are_read_by_their_stored_names(spark, files):
    frame = spark.read.parquet(*map(str, sorted(files.iterdir(), reverse=True)))
    check(frame.selectExpr("other AS key", "geometry", "least", "key AS kept"))
    check(pipeline.with_crs(frame, "geometry", "EPSG:4326"))
    frame.createOrReplaceTempView("files_of_subscriptions")
    check(spark.sql("SELECT * FROM files_of_subscriptions"))


def test_directories_of_partitions_and_an_empty_file(spark, tmp_path):
    for number in range(3):
        (tmp_path / f"region={number}").mkdir()
        rows = some_rows(60, 100 * number).slice(0, 20 * number)
        pq.write_table(rows, tmp_path / f"region={number}" / "a.parquet")
    frame = spark.read.parquet(str(tmp_path))
    check(frame)
    assert shares_of(frame.withColumnRenamed("other", "x").withColumnRenamed("region", "other")) is not None
    assert shares_of(frame.drop("least").withColumnRenamed("region", "least")) is None


def other_frames(spark, files, tmp_path):
    """Yield frames that only Spark can read as asked."""
    frame = spark.read.parquet(str(files))
    yield "filter", frame.where("key > 3")
    yield "limit", frame.limit(50)
    yield "union", frame.union(frame)
    yield "repartition", frame.repartition(3)
    yield "computed", frame.withColumn("least", frame.least + 1)
    yield "twice", spark.read.parquet(str(files), str(files))
    yield "options", spark.read.option("mergeSchema", "true").parquet(str(files))
    yield (
        "schema",
        spark.read.schema("geometry BINARY, least DOUBLE, key LONG, LEAST2 INT")
        .parquet(str(files))[["geometry", "key", "LEAST2"]]
        .withColumnRenamed("LEAST2", "least"),
    )
    yield (
        "case",
        spark.read.schema("GEOMETRY BINARY, least DOUBLE")
        .parquet(str(files))
        .withColumnRenamed("GEOMETRY", "geometry"),
    )
    yield (
        "wider",
        spark.read.schema("geometry BINARY, least DOUBLE, other DECIMAL(20, 0)")
        .parquet(str(files))
        .select("geometry", "other")
        .withColumnRenamed("other", "least"),
    )
    frame.write.json(str(tmp_path / "json"))
    yield "json", spark.read.schema("geometry BINARY, least DOUBLE").json(str(tmp_path / "json"))
    frame.write.orc(str(tmp_path / "orc"))
    yield "orc", spark.read.orc(str(tmp_path / "orc"))
    times = pa.table({"geometry": [b"x"], "least": [dt.datetime(2024, 1, 1)]})
    pq.write_table(times, tmp_path / "times.parquet")
    yield "times", spark.read.parquet(str(tmp_path / "times.parquet"))
    (tmp_path / "mixed").mkdir()
    for number, names in enumerate((["geometry", "least"], ["geometry", "key"])):
        pq.write_table(some_rows(5).select(names), tmp_path / "mixed" / f"{number}.parquet")
    yield "missing", spark.read.schema("geometry BINARY, least DOUBLE").parquet(str(tmp_path / "mixed"))
    kept = frame.select("*").persist()
    yield "persisted", kept
    kept.unpersist()


def test_other_frames_have_no_shares(spark, files, tmp_path):
    for name, frame in other_frames(spark, files, tmp_path):
        assert shares_of(frame) is None, name


@pytest.mark.parametrize("name", ["spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"])
def test_settings_that_leave_out_files_have_no_shares(spark, files, name):
    spark.conf.set(name, "true")
    try:
        assert shares_of(spark.read.parquet(str(files))) is None
    finally:
        spark.conf.unset(name)


def test_a_damaged_footer_is_left_to_spark(spark, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(some_rows(30), path)
    frame = spark.read.parquet(str(path))
    data = path.read_bytes()
    path.write_bytes(data[:-8] + struct.pack("<i", 2**30) + b"PAR1")
    assert shares_of(frame) is None


@pytest.mark.parametrize("names", [["key", "subscriber", "geometry", "least"], slow(["geometry", "least"])])
@pytest.mark.parametrize("by", [slow("subscription"), "subscriber"])
def test_a_scan_of_files_finds_what_compiling_finds(spark, files, small_splits, place, names, by):
    messages = spark.createDataFrame(random_messages(60))
    frame = spark.read.parquet(str(files)).select(*names)
    scanned, compiled = (
        pipeline.match(messages, frame, plan, by, template=TEMPLATE, artifacts=place) for plan in ("scan", "broadcast")
    )
    assert (scanned.plan, compiled.plan) == ("scan", "broadcast")
    assert "read Parquet files in Python" in scanned.explain()
    bad = [sorted(map(tuple, one.compiled.rejected.collect())) for one in (scanned, compiled)]
    assert bad[0] == bad[1]
    assert len(bad[0]) > 50
    assert scanned.compiled.count == compiled.compiled.count
    found = rows_of(scanned)
    assert found == rows_of(compiled)
    assert all(found)


def test_messages_in_files_are_those_of_spark(spark, files, tmp_path, place):
    made = random_messages(70)
    pq.write_table(made, tmp_path / "messages.parquet", row_group_size=20)
    rows, template = spark.read.parquet(str(files)), TEMPLATE
    frames = spark.read.parquet(str(tmp_path / "messages.parquet")), spark.createDataFrame(made)
    read, sent = (pipeline.match(frame, rows, "scan", template=template, artifacts=place) for frame in frames)
    assert rows_of(read) == rows_of(sent)


def test_a_file_that_changed_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(some_rows(50), path)
    share = GroupOfRows(str(path), 0, 49, 0)
    for wrong in (share, share._replace(rows=50, group=1), share._replace(path=str(tmp_path / "none"))):
        with pytest.raises(UnreadableShareError):
            list(share_batches([wrong], ["geometry", "least"]))


def test_damaged_pages_are_left_to_spark(spark, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(some_rows(3000), path)
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(5000) + data[5100:])
    frame, messages = spark.read.parquet(str(path)), spark.createDataFrame(random_messages(9))
    assert shares_of(frame) is not None
    with pytest.raises((PySparkException, Py4JError), match="FAILED_READ_FILE"):
        pipeline.match(messages, frame, "scan", template=TEMPLATE)
