"""Coordinate reference systems in Spark: however messages and subscriptions come, a mismatch is rejected by name.

Every case has messages of which one meets the one subscription in raw numbers: in one system it must match, in two
it must be rejected with both names, and never match or vanish.
"""

import json

import duckdb
import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from streams import AVAILABLE, written

import contrada as ct
from console import read_lines
from contrada import pipeline
from contrada.pipeline.systems import frame_systems
from effort import slow

TEMPLATE = "S_INTERSECTS(geometry, $geometry)"
SHAPES = [shapely.box(0, 0, 4, 4), shapely.box(10, 10, 11, 11), shapely.Point(2, 2)]
HERE, THERE = 4326, 25832
BOTH = ("EPSG:25832 and EPSG:4326", "EPSG:4326 and EPSG:25832")
CUSTOM = 'LOCAL_CS["Town grid",UNIT["metre",1]]'


def write_geo(path, crs, shapes=SHAPES, **columns):
    """GeoParquet as GeoPandas writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = {"id": [f"m{k}" for k in range(len(shapes))], **columns}
    geopandas.GeoDataFrame(rows, geometry=shapes, crs=crs).to_parquet(path)
    return path


def ewkb(srid, shape):
    return bytearray(shapely.to_wkb(shapely.set_srid(shape, srid), include_srid=True))


def numbered(spark, name, srids):
    """Rows of a number with this name and of the same region with each of these SRIDs."""
    rows = [(k, ewkb(srid, SHAPES[0])) for k, srid in enumerate(srids)]
    return spark.createDataFrame(rows, f"{name} int, geometry binary").coalesce(1)


def rows_in(spark, way, crs, folder):
    """Rows of id and geometry in a system, as users get them."""
    if way == "two files":
        write_geo(folder / f"{crs}" / "1.parquet", crs, SHAPES[:1])
        write_geo(folder / f"{crs}" / "2.parquet", crs, SHAPES[1:], id=["m1", "m2"])
        return spark.read.parquet(str(folder / f"{crs}"))
    if way in ("geoparquet", "renamed"):
        frame = spark.read.parquet(str(write_geo(folder / f"{crs}.parquet", crs)))
        if way == "geoparquet":
            return frame
        return frame.withColumnRenamed("geometry", "g").where("id IS NOT NULL").withColumnRenamed("g", "geometry")
    if way in ("ingested rows", "ingested files", "dataset"):
        ingested = pipeline.ingest(spark, write_geo(folder / f"{crs}.parquet", crs))
        if way == "ingested rows":
            return ingested.rows
        ingested.write(folder / f"out{crs}")
        if way == "dataset":
            return pipeline.read_dataset(spark, folder / f"out{crs}").rows
        return spark.read.parquet(str(folder / f"out{crs}" / "rows"))
    values = [ewkb(crs if way == "ewkb" else 0, shape) for shape in SHAPES]
    frame = spark.createDataFrame([(f"m{k}", data) for k, data in enumerate(values)], "id string, geometry binary")
    return frame if way == "ewkb" else pipeline.with_crs(frame, "geometry", crs)


WAYS = ["geoparquet", "two files", "renamed", "ingested rows", "ingested files", "dataset", "named", "ewkb"]


def outcome(found):
    matches = {row["message_id"] for row in found.matches.collect()}
    return matches, {row["message_id"]: row["reason"] for row in found.rejected.collect()}


QUICK = [("geoparquet", "broadcast"), ("named", "partitioned")]
ALL = [*((way, "broadcast") for way in WAYS), *((way, "partitioned") for way in WAYS[::2])]


@pytest.mark.parametrize(("way", "plan"), [case if case in QUICK else slow(*case) for case in ALL])
def test_messages_and_subscriptions_are_compared_however_they_come(spark, tmp_path, way, plan):
    asked = rows_in(spark, way, THERE, tmp_path / "asked").where("id = 'm0'").withColumnRenamed("id", "key")
    options = {"template": TEMPLATE, "plan": plan, "partitions": 2 if plan == "partitioned" else None}
    compiled = pipeline.compile(asked, tmp_path / "artifacts", **options)
    assert compiled.artifact.crs == {"geometry": "EPSG:25832"}
    for crs in (HERE, THERE):
        messages = rows_in(spark, way, crs, tmp_path / "messages").withColumnRenamed("id", "message_id")
        matches, rejected = outcome(pipeline.match(messages, compiled, by="subscriber"))
        if crs == THERE:
            assert (matches, rejected) == ({"m0", "m2"}, {})
        else:
            assert (matches, set(rejected)) == (set(), {"m0", "m1", "m2"})
            assert all(any(pair in reason for pair in BOTH) for reason in rejected.values())


def test_ways_mix_and_a_column_that_was_changed_is_unknown(spark, tmp_path):
    asked = rows_in(spark, "geoparquet", THERE, tmp_path).withColumnRenamed("id", "key").where("key = 'm0'")
    compiled = pipeline.compile(asked, tmp_path / "artifacts", template=TEMPLATE, plan="broadcast")
    here = rows_in(spark, "geoparquet", HERE, tmp_path).withColumnRenamed("id", "message_id")
    changed = here.selectExpr("message_id", "unhex(hex(geometry)) AS geometry")
    assert frame_systems(changed, ["geometry"]) == {}
    assert outcome(pipeline.match(changed, compiled))[0] == {"m0", "m2"}, "an unknown system fits any"
    named = pipeline.with_crs(changed, "geometry", HERE)
    assert set(outcome(pipeline.match(named, compiled))[1]) == {"m0", "m1", "m2"}
    again = pipeline.with_crs(here, "geometry", THERE)  # what a file says wrongly can be said right
    assert outcome(pipeline.match(again, compiled)) == ({"m0", "m2"}, {})
    with pytest.raises(ct.CrsError, match="bananas"):
        pipeline.with_crs(here, "geometry", "bananas")


@pytest.mark.parametrize("way", ["geoparquet", slow("ingested files"), "named"])
def test_frames_of_two_systems_put_together_are_refused(spark, tmp_path, way):
    both = rows_in(spark, way, THERE, tmp_path).union(rows_in(spark, way, HERE, tmp_path))
    with pytest.raises(ct.CrsError, match=r"column 'geometry': .* EPSG:25832 and EPSG:4326"):
        pipeline.compile(both.withColumnRenamed("id", "key"), tmp_path / "a", template=TEMPLATE)


@pytest.mark.parametrize("plan", ["broadcast", slow("partitioned")])
def test_a_bad_srid_loses_no_other_subscription_and_no_other_message(spark, tmp_path, plan):
    asked = numbered(spark, "key", [-1, HERE, THERE, HERE])
    compiled = pipeline.compile(asked, tmp_path / "artifacts", template=TEMPLATE, plan=plan)
    assert compiled.count == 2
    assert {row["key"] for row in compiled.rejected.collect()} == {"0", "2"}
    messages = numbered(spark, "message_id", [HERE, 0, THERE, -1, 2**31 - 1, 999999, HERE])
    matches, rejected = outcome(pipeline.match(messages, compiled))
    assert matches == {0, 1, 6}
    assert {k: rejected[k].split(": ", 1)[1] for k in (3, 4, 5)} == {
        3: "SRID 4294967295 is not a known coordinate reference system",
        4: "SRID 2147483647 is not a known coordinate reference system",
        5: "SRID 999999 is not a known coordinate reference system",
    }
    assert BOTH[1] in rejected[2]


# The command line


@pytest.mark.parametrize("systems", [slow((HERE,)), slow((THERE,)), slow((THERE, HERE)), (None, THERE, HERE)])
def test_match_on_spark_rejects_what_match_rejects(command, tmp_path, systems):
    asked = write_geo(tmp_path / "asked.parquet", THERE, SHAPES[:1])
    folder = tmp_path / "messages"
    for k, crs in enumerate(systems):
        write_geo(folder / f"{k}.parquet", crs)
    found = {}
    for plan in (["--spark", "--plan", "broadcast"], ["--spark", "--plan", "partitioned"], []):
        out, bad = tmp_path / f"out{len(found)}.csv", tmp_path / f"bad{len(found)}.ndjson"
        options = ["--template", TEMPLATE, "--key", "id", "--output", out, "--reject", bad, *plan]
        command("match", folder, asked, *options, code=1 if systems == (HERE,) else 0)
        lines = [line for path in (out.glob("*.csv") if out.is_dir() else [out]) for line in path.read_text().split()]
        reasons = sorted((item["row"], item["reason"]) for item in read_lines(bad))
        found[" ".join(plan)] = sorted(line for line in lines if "," in line and "message" not in line), reasons
    matches, rejected = found[""]
    assert all(one == (matches, rejected) for one in found.values()), found
    assert len(rejected) == 3 * systems.count(HERE)
    assert len(matches) == 2 * (len(systems) - systems.count(HERE))
    assert all("EPSG:25832 and EPSG:4326" in reason for _, reason in rejected)


def test_a_stream_of_files_compares_each(command, tmp_path):
    asked = write_geo(tmp_path / "asked.parquet", THERE, SHAPES[:1])
    for k, crs in enumerate((HERE, THERE, None)):
        write_geo(tmp_path / "in" / f"{k}.parquet", crs, id=[f"{k}-{row}" for row in range(3)])
    places = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out"]
    options = ["--template", TEMPLATE, "--format", "parquet", "--once", *places]
    command("stream", tmp_path / "in", asked, *options, code=0)
    matches = written(tmp_path / "out" / "matches", ["message_id"])
    assert matches == [("1-0",), ("1-2",), ("2-0",), ("2-2",)]
    rejected = written(tmp_path / "out" / "rejected", ["message_id", "reason"])
    assert [name for name, _ in rejected] == ["0-0", "0-1", "0-2"]
    assert all("EPSG:25832 and EPSG:4326" in reason for _, reason in rejected)


@pytest.mark.slow
def test_a_stream_compares_what_its_fields_name(spark, tmp_path):
    write_geo(tmp_path / "in" / "1.parquet", None)
    box = ct.Region.box(0, 0, 4, 4, crs=THERE)
    table = ct.ForwardingTable()
    table.subscribe("x", ct.Constraint("geometry", ct.RelationSet.S_INTERSECTS, box))
    for crs, wanted in ((HERE, (0, 3)), (THERE, (2, 0))):
        frame = spark.readStream.schema("id string, geometry binary").parquet(str(tmp_path / "in"))
        named = pipeline.with_crs(frame.withColumnRenamed("id", "message_id"), "geometry", crs)
        out, state = tmp_path / f"out{crs}", tmp_path / f"state{crs}"
        pipeline.match_stream(named, table, sink=out, checkpoint=state, trigger=AVAILABLE).wait(120)
        assert tuple(len(written(out / name, [])) for name in ("matches", "rejected")) == wanted


# GeoParquet from ingest


def check_geoparquet(path, crs, count):
    """Files that GeoPandas and DuckDB open, all together and each alone, with the CRS."""
    files = sorted(path.glob("*.parquet"))
    whole = geopandas.read_parquet(path)
    assert len(whole) == count
    parts = [geopandas.read_parquet(file) for file in files]
    assert sum(map(len, parts)) == count
    for frame in (whole, *parts):
        assert (frame.crs is None) if crs is None else (frame.crs == crs)
    for file in files:
        about = json.loads(pq.read_schema(file).metadata[b"geo"])
        assert about["columns"]["geometry"]["encoding"] == "WKB"
    read = duckdb.sql(f"SELECT geometry FROM '{path}/*.parquet'")
    assert len(read.fetchall()) == count
    assert str(read.types[0]).startswith("GEOMETRY"), "DuckDB knows what the column holds"


@pytest.mark.parametrize("crs", [slow(HERE), THERE, slow(CUSTOM), slow(None)])
def test_ingest_writes_geoparquet(spark, tmp_path, crs):
    for k in range(3):
        write_geo(tmp_path / "in" / f"{k}.parquet", crs)
    pipeline.ingest(spark, tmp_path / "in").write(tmp_path / "out")
    check_geoparquet(tmp_path / "out" / "rows", crs, 9)
    frame = geopandas.read_parquet(tmp_path / "out" / "rows")
    assert ct.RegionArray.from_shapely(frame[frame.geom_type != "Point"].geometry).crs == ct.geometry.Crs.of(frame.crs)
    kinds = json.loads(pq.read_schema(next((tmp_path / "out" / "rows").glob("*.parquet"))).metadata[b"geo"])
    assert kinds["columns"]["geometry"]["geometry_types"] == ["Point", "Polygon"]
    again = pipeline.ingest(spark, tmp_path / "out" / "rows")
    assert again.crs == ct.geometry.Crs.of(crs)
    assert again.counts().kept == 9


def test_ingest_of_nothing_and_of_bad_rows_alone_is_geoparquet_too(spark, command, tmp_path):
    write_geo(tmp_path / "bad.parquet", THERE, [shapely.MultiPoint([(0, 0), (1, 1)])])
    command("ingest", tmp_path / "bad.parquet", tmp_path / "out", code=1)
    check_geoparquet(tmp_path / "out" / "rows", THERE, 0)
    assert spark.read.parquet(str(tmp_path / "out" / "rows")).count() == 0


def test_ingested_columns_of_every_type_come_back_from_spark(spark, tmp_path):
    path = write_geo(tmp_path / "in.parquet", THERE, size=[1, None, 3], when=pa.array([0, 1, None], pa.timestamp("us")),
                     of=[[1.5], [], None], about=[{"a": "x"}, None, {"a": None}], yes=[True, None, False])  # fmt: skip
    found = pipeline.ingest(spark, path)
    expected = sorted(map(str, found.rows.collect()))
    found.write(tmp_path / "out")
    written = spark.read.parquet(str(tmp_path / "out" / "rows"))
    assert {*written.columns} - {*found.rows.columns} == {"bbox"}, "for readers that select rows by it"
    read = written.drop("bbox")
    assert read.schema == found.rows.schema
    assert read.schema["geometry"].metadata == {"crs": "EPSG:25832"}
    assert sorted(map(str, read.collect())) == expected


def test_a_frame_of_ewkb_keeps_its_crs_through_ingest(spark):
    frame = numbered(spark, "id", (THERE, THERE, HERE, -1))
    found = pipeline.ingest(spark, frame)
    assert found.crs == "EPSG:25832"
    assert (found.counts().kept, found.counts().quarantined) == (2, 2)
    assert {row["row"]: row["reason"] for row in found.quarantine.collect()} == {
        2: "coordinate reference systems differ: EPSG:4326 and EPSG:25832 (the column's)",
        3: "SRID 4294967295 is not a known coordinate reference system",
    }
    moved = pipeline.ingest(spark, frame, to_crs=3857)
    assert (moved.crs, moved.counts().kept) == ("EPSG:3857", 3)
