"""Use the pipeline over Spark Connect and compare its results with those of one process.

`connect_driver.py REMOTE HOME quick|batch|streams`; REMOTE is sc://127.0.0.1:15002 or local[2]. Prints a line for each
part.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from connect_streams import check_stream, check_streams
from pyspark.sql import SparkSession
from sample_tables import every_operator

import contrada as ct
from contrada import pipeline
from generators.filters_of_every_kind import expected, random_messages, rows_of
from report_pages import read_report

NAMES = "key string, subscriber string, filter string"
TEMPLATE = "S_INTERSECTS(area, $geometry) AND size >= $least"


def regions():
    """Rows of a template, of which two are bad."""
    rng = np.random.default_rng(5)
    corners = rng.integers(0, 5, (60, 2)).tolist()
    places = [shapely.to_wkb(shapely.box(x, y, x + 2, y + 1)) for x, y in corners]
    return pa.table(
        {
            "key": [f"k{number}" for number in range(60)] + [None, "bad"],
            "subscriber": [f"s{number % 7}" for number in range(62)],
            "geometry": [*places, places[0], b"odd"],
            "least": [float(number % 2) for number in range(62)],
        }
    )


def awkward_messages():
    """Messages with bad rows, and with ids that repeat or are null."""
    table = random_messages(90, seed=4)
    ids = pa.array([None if row % 9 == 0 else f"m{row % 40}" for row in range(90)])
    return table.set_column(0, "message_id", ids)


def by_text(found):
    matches, rejected = found
    return sorted(matches, key=repr), sorted(rejected, key=repr)


def check_plans(spark, home):
    """Every plan and both kinds of subscriptions answer as a table of this process does."""
    messages, rows = awkward_messages(), regions()
    table = ct.ForwardingTable()
    good = rows.slice(0, 60)
    table.subscribe_many(good, ct.parse(TEMPLATE))
    sent, frame = spark.createDataFrame(messages), spark.createDataFrame(rows)
    for plan, partitions in (("auto", None), ("broadcast", None), ("partitioned", 3), ("scan", None)):
        for by in ("subscription", "subscriber"):
            matched = pipeline.match(
                sent, frame, plan, by, template=TEMPLATE, artifacts=home / "tables", partitions=partitions
            )
            assert by_text(rows_of(matched)) == by_text(expected(table, messages, by)), (plan, by)
            assert sorted(row.key or "" for row in matched.compiled.rejected.collect()) == ["", "bad"]
            assert matched.plan in matched.explain()
            assert matched.census().messages == 90
            matched.unpersist()
        print("plan", plan)
    everything, whole = every_operator()
    compiled = pipeline.compile(spark.createDataFrame(everything), home / "tables")
    assert by_text(rows_of(pipeline.match(sent, compiled))) == by_text(expected(whole, messages))
    empty = pipeline.match(sent.limit(0), compiled)
    assert rows_of(empty) == ([], [])
    carried = pipeline.match(sent, frame, "broadcast", template=TEMPLATE, artifacts=home / "tables",
                             keep=["wind"], keep_subscription=["least"])  # fmt: skip
    assert carried.matches.columns == ["message_id", "wind", "subscriber", "key", "least"]
    assert carried.matches.count() == len(expected(table, messages)[0])
    print("operators, empty frames, kept columns")


def check_systems(spark, home):
    """A CRS reaches the matching from metadata, from files and from EWKB, and differing ones reject messages."""
    box = shapely.to_wkb(shapely.box(0, 0, 2, 2))
    rows = spark.createDataFrame([("k", bytearray(box))], "key string, geometry binary")
    messages = spark.createDataFrame([(1, bytearray(box))], "message_id int, area binary")
    options = {"template": "S_INTERSECTS(area, $geometry)", "artifacts": home / "tables"}
    compiled = pipeline.compile(
        pipeline.with_crs(rows, "geometry", "EPSG:3035"), **{**options, "artifacts": home / "tables"}
    )
    assert compiled.artifact.crs == {"area": "EPSG:3035"}
    other = pipeline.with_crs(messages, "area", "EPSG:4326").where("message_id > 0")
    assert [row.message_id for row in pipeline.match(other, compiled).rejected.collect()] == [1]
    same = pipeline.with_crs(messages, "area", "EPSG:3035")
    assert pipeline.match(same, compiled).matches.count() == 1
    place = json.loads(shapely.to_geojson(shapely.box(0, 0, 1, 1)))
    feature = {"type": "Feature", "properties": {"message_id": 5}, "geometry": place}
    (home / "in.geojsonl").write_text(json.dumps(feature) + "\nhalf a")
    found = pipeline.ingest(spark, home / "in.geojsonl")
    assert found.counts()[:3] == (2, 1, 1)
    found.write(home / "places")
    plain = spark.read.parquet(str(home / "places" / "rows")).withColumnRenamed("geometry", "area")
    files = pipeline.match(
        pipeline.read_dataset(spark, home / "places").rows.withColumnRenamed("geometry", "area"), compiled
    )
    assert files.rejected.count() == 1
    assert pipeline.match(plain, compiled).rejected.count() == 1
    pipeline.register(spark)
    read = spark.read.format("contrada").load(str(home / "places")).withColumnRenamed("geometry", "area")
    assert pipeline.match(read, compiled).rejected.count() == 1
    print("coordinate systems, ingest")
    matched = pipeline.match(same, compiled)
    filters = spark.createDataFrame([("k", "k", f"S_INTERSECTS(area, {shapely.from_wkb(box).wkt})")], NAMES)
    page = pipeline.write_report(
        home / "report.html", messages=same, subscriptions=filters, matches=matched.matches, rejected=matched.rejected,
        title="Connect", quarantine=found.quarantine,
    )  # fmt: skip
    data = read_report(page)
    assert data.matches(0) == {"k": "equals"}
    assert data.header["plain"] is False, "the CRS is known"
    print("report")


def check_functions(spark, home):
    """Relations, nulls, coordinate systems and artifacts in SQL."""
    rows = spark.createDataFrame([("big", "ops", "size >= 2")], NAMES)
    path = pipeline.compile(rows, home / "tables").artifact.path
    one, other = (f"unhex('{shapely.to_wkb(shapely.box(0, 0, x, 2), hex=True)}')" for x in (2, 4))
    row = spark.sql(f"""
        SELECT ct_relates({one}, {other}, 'covered_by|meets') AS some, ct_relate({one}, NULL) AS nothing,
            ct_match('{path}', struct(3 AS size)) AS who
    """).collect()[0]
    assert tuple(row) == (True, None, ["ops"])
    with pytest.raises(Exception, match="EPSG:3035 and EPSG:4326"):
        spark.sql(
            f"SELECT ct_relate(ct_with_crs({one}, 'EPSG:3035'), ct_with_crs({other}, 'EPSG:4326')) AS relation"
        ).collect()


def check_rest(spark, home):
    """SQL functions, the data source, tracking, simplifying."""
    pipeline.register(spark)
    row = spark.sql("""
        SELECT ct_relate(st_geomfromwkb(a), st_geomfromwkb(a)) AS same, ct_valid(unhex('00')) AS valid
        FROM (SELECT unhex('010100000000000000000024400000000000000840') AS a)
    """).collect()[0]
    assert (row.same, row.valid) == ("equals", False)
    check_functions(spark, home)
    assert spark.read.format("contrada").option("table", "quarantine").load(str(home / "places")).count() == 1
    rows = spark.createDataFrame([("a", "x", "size >= 1 OR size >= 2")], "key string, subscriber string, filter string")
    simple = pipeline.simplify(rows)
    assert [one["filter"] for one in simple.subscriptions.collect()] == ["size >= 1"]
    fixes = spark.sql("""SELECT 1 AS message_id, 7 AS bus, timestamp'2024-05-01 12:00:00' AS at,
        unhex('010100000000000000000024400000000000000840') AS area""")
    inside = spark.createDataFrame(
        [("h", "S_INTERSECTS(area, POLYGON((9 1, 14 1, 14 5, 9 5, 9 1)))")], "key string, filter string"
    )
    tracked = pipeline.track(fixes, inside, on="enter", track="bus", time="at", artifacts=home / "tables")
    assert [event.event for event in tracked.events.collect()] == ["enter"]
    print("SQL, data source, simplify, track")


def check_quick(spark, home):
    """A table in one task and few messages answer as in one process, and so does a stream."""
    everything, whole = every_operator()
    messages = awkward_messages()
    matched = pipeline.match(spark.createDataFrame(messages), spark.createDataFrame(everything), artifacts=home / "t")
    assert by_text(rows_of(matched)) == by_text(expected(whole, messages))
    check_stream(spark, home / "stream", everything, whole)
    print("quick")


def main(remote, home, parts):
    """Run some checks."""
    spark = SparkSession.builder.remote(remote).config("spark.sql.session.timeZone", "UTC").getOrCreate()
    try:
        quick, batch, streams = (check_quick,), (check_plans, check_systems, check_rest), (check_streams,)
        for check in {"quick": quick, "batch": batch, "streams": streams}[parts]:
            check(spark, home)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
