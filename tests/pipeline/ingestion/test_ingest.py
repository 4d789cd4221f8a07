"""Ingest: every format gives the same rows, bad rows are set aside with file and row, nothing is lost."""

import json
import math
import os
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from console import collection, feature, write_lines
from contrada import pipeline
from contrada.formats.spatial import Spatial
from contrada.pipeline.ingestion.ingesting import ingest_files
from contrada.pipeline.ingestion.survey import TaskSizes
from effort import slow

pyogrio = pytest.importorskip("pyogrio")

SHAPES = [
    shapely.box(0, 0, 4, 4),
    shapely.Polygon([(10, 10), (20, 10), (20, 20), (10, 20)], [[(12, 12), (14, 12), (14, 14), (12, 14)]]),
    shapely.MultiPolygon([shapely.box(30, 0, 31, 1), shapely.box(33, 0, 34, 1)]),
    shapely.box(-5, -5, -4, -4),
]
ROWS = [{"id": k, "name": f"place {k}", "height": k + 0.5, "geometry": shape} for k, shape in enumerate(SHAPES)]
BOW_TIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
WKB = {"encoding": "WKB", "geometry_types": []}


def properties(row):
    return {name: value for name, value in row.items() if name != "geometry"}


def table_of(rows, geometry="geometry"):
    table = pa.Table.from_pylist(list(map(properties, rows)))
    return table.append_column(geometry, pa.array([_wkb(row["geometry"]) for row in rows], pa.binary()))


def _wkb(value):
    return value if value is None or isinstance(value, bytes) else shapely.to_wkb(value)


def features(rows):
    return [feature(row["geometry"], **properties(row)) for row in rows]


def write_geoparquet(rows, path, crs="unset"):
    column = WKB if crs == "unset" else {**WKB, "crs": None if crs is None else {"id": crs}}
    about = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    pq.write_table(table_of(rows).replace_schema_metadata({"geo": json.dumps(about)}), path)
    return path


def write_gis(rows, path, crs="OGC:CRS84", kind="MultiPolygon", **options):
    multi = [{**row, "geometry": shapely.MultiPolygon(shapely.get_parts(row["geometry"]).tolist())} for row in rows]
    pyogrio.write_arrow(table_of(multi), path, geometry_name="geometry", geometry_type=kind, crs=crs, **options)
    return path


def write_collection(rows, path, **members):
    path.write_text(json.dumps({**json.loads(collection(features(rows))), **members}))
    return path


def write_features(rows, path):
    return write_lines(path, features(rows))


WRITERS = {
    "a.parquet": write_geoparquet,
    "b.parquet": lambda rows, path: (pq.write_table(table_of(rows, "wkb"), path), path)[1],
    "c.geojson": write_collection,
    "d.geojsonl": write_features,
    "e.json": write_features,
    "f.gpkg": write_gis,
    "g.fgb": lambda rows, path: write_gis(rows, path, SPATIAL_INDEX="NO"),
    "h.shp": lambda rows, path: write_gis(rows, path, kind="Polygon"),
    "i.shp.zip": lambda rows, path: write_gis(rows, path, kind="Polygon"),
}


def seen(frame):
    """The rows of a DataFrame, with regions, in the order of their ids."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        data = bytes(row["geometry"])
        row["geometry"] = ct.Point.from_wkb(data) if data[1] == 1 else ct.Region.from_wkb(data)
    return sorted(rows, key=lambda row: (str(row.get("id")), str(row)))


def expected(rows=ROWS):
    return [{**row, "geometry": ct.Region.from_shapely(row["geometry"])} for row in rows]


def bad(ingested):
    return sorted(
        ((os.path.basename(row.file), row.row, row.reason) for row in ingested.quarantine.collect()),
        key=lambda item: (item[0], -1 if item[1] is None else item[1], item[2]),
    )


def summed(ingested):
    counts = ingested.counts()
    assert counts.read == counts.kept + counts.quarantined
    assert counts.kept == ingested.rows.count()
    return counts


def test_every_format_gives_the_same_rows(spark, tmp_path):
    (tmp_path / "deeper" / "k=1").mkdir(parents=True)
    for k, (name, write) in enumerate(WRITERS.items()):
        rows = [{**row, "source": name} for row in ROWS]
        write(rows, (tmp_path / "deeper" / "k=1" if k % 2 else tmp_path) / name)
    (tmp_path / "LICENSE.txt").write_text("ODbL")
    found = pipeline.ingest(spark, tmp_path)
    assert summed(found) == (4 * len(WRITERS), 4 * len(WRITERS), 0, 0)
    assert ct.geometry.crs.is_same_crs(found.crs, "OGC:CRS84")
    rows = seen(found.rows)
    for name in WRITERS:
        assert [row for row in rows if row["source"] == name] == [{**row, "source": name} for row in expected()]
    assert found.rows.columns == ["id", "name", "height", "source", "geometry"]
    assert len(found.about.files) == len(WRITERS)
    assert list(found.about.attribution.values()) == ["ODbL"]
    found.unpersist()


def write_bad(folder):
    """Files with bad rows of every kind; what is bad in them, without repair or buffer."""
    good, spots = SHAPES[0], shapely.MultiPoint([(0, 0), (5, 5)])
    with np.errstate(invalid="ignore"):
        nan = shapely.Polygon([(0, 0), (math.nan, 1), (1, 1)])
    odd = [spots, nan, b"rubbish", shapely.Point(1, 2), shapely.to_wkb(good)[:40]]
    shapes = [good, BOW_TIE, None, shapely.Polygon(), *odd]
    write_geoparquet([{"id": k, "geometry": shape} for k, shape in enumerate(shapes)], folder / "bad.parquet")
    rows = [json.dumps(feature(shape, id=10 + k)) for k, shape in enumerate([good, BOW_TIE, None, spots])]
    rows[1:1] = ['{"type": "Feature", "prop', "", '{"id": 7}', '{"type": "Feature", "properties": {}, "geometry": 5}']
    rows.append('{"type": "Feature", "properties": null, "geometry": {"type": "Polygon", "coordinates": [[0, 1]]}}')
    (folder / "bad.geojsonl").write_text("\n".join(rows))
    gis = pa.table({"id": [20, 21, 22], "geometry": [_wkb(good), _wkb(spots), None]})
    pyogrio.write_arrow(gis, folder / "bad.gpkg", geometry_name="geometry", geometry_type="Unknown", crs="OGC:CRS84")
    (folder / "torn.gpkg").write_bytes((folder / "bad.gpkg").read_bytes()[:700])
    whole = write_collection(ROWS, folder / "torn.geojson").read_bytes()
    (folder / "torn.geojson").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.geojson").write_bytes(b"")
    whole = (folder / "bad.parquet").read_bytes()
    (folder / "torn.parquet").write_bytes(whole[: len(whole) // 2])
    many = [{"id": k, "geometry": shapely.box(k, 0, k + 1, 1)} for k in range(50)]
    whole = write_geoparquet(many, folder / "damaged.parquet").read_bytes()  # behind a good footer
    (folder / "damaged.parquet").write_bytes(whole[:4] + np.random.default_rng(1).bytes(396) + whole[400:])
    return [
        ("bad.geojsonl", 2, "Input data was truncated"),
        ("bad.geojsonl", 4, "need a GeoJSON Feature"),
        ("bad.geojsonl", 5, "geometry: need a GeoJSON geometry"),
        ("bad.geojsonl", 6, "self-intersection"),
        ("bad.geojsonl", 7, "no geometry (null)"),
        ("bad.geojsonl", 8, "wrong geometry type MultiPoint"),
        ("bad.geojsonl", 9, "Polygon: coordinates"),
        ("bad.gpkg", 1, "wrong geometry type MultiPoint"),
        ("bad.gpkg", 2, "no geometry (null)"),
        ("bad.parquet", 1, "self-intersection"),
        ("bad.parquet", 2, "no geometry (null)"),
        ("bad.parquet", 3, "empty geometry"),
        ("bad.parquet", 4, "wrong geometry type MultiPoint"),
        ("bad.parquet", 5, "coordinate is not finite"),
        ("bad.parquet", 6, "malformed or truncated geometry"),
        ("bad.parquet", 8, "malformed or truncated geometry"),
        ("damaged.parquet", 0, "the file cannot be read from here on"),
        ("empty.geojson", None, "the file cannot be read"),
        ("torn.geojson", None, "the file cannot be read"),
        ("torn.gpkg", None, "the file cannot be read"),
        ("torn.parquet", None, "the file cannot be read"),
    ]  # fmt: skip


def assert_bad(found, wanted):
    got = bad(found)
    assert [item[:2] for item in got] == [item[:2] for item in wanted], got
    for (_, _, reason), (*_, start) in zip(got, wanted, strict=True):
        assert reason.startswith(start), got


def test_bad_rows_are_set_aside_with_file_and_row_and_a_dataset_is_read_again(spark, tmp_path):
    wanted = write_bad(tmp_path)
    found = pipeline.ingest(spark, tmp_path)
    assert_bad(found, wanted)
    assert summed(found) == (4 + len(wanted), 4, len(wanted), 0)
    assert [row["id"] for row in seen(found.rows)] == [0, 10, 20, 7]
    raws = {(os.path.basename(row.file), row.row): row.raw for row in found.quarantine.collect()}
    assert json.loads(raws["bad.parquet", 1])["id"] == 1
    assert json.loads(raws["bad.gpkg", 1])["id"] == 21
    assert json.loads(raws["bad.geojsonl", 6])["properties"]["id"] == 11
    assert raws["bad.geojsonl", 2].startswith('{"type": "Feature", "prop')
    assert raws["torn.gpkg", None] is None
    found.write(tmp_path / "out")
    again = pipeline.read_dataset(spark, tmp_path / "out")
    assert again.counts() == found.counts()
    assert (again.crs, again.files) == (found.crs, found.about.files)
    assert seen(again.rows) == seen(found.rows)
    assert again.quarantine.count() == found.counts().quarantined
    with pytest.raises(ct.FormatError, match="not empty"):
        found.write(tmp_path / "out")
    (tmp_path / "out" / "dataset.json").unlink()
    with pytest.raises(ct.FormatError, match="not a complete dataset"):
        pipeline.read_dataset(spark, tmp_path / "out")


def test_repair_and_buffer_and_another_crs(spark, tmp_path):
    wanted = [item for item in write_bad(tmp_path) if not item[2].startswith(("self", "wrong"))]
    found = pipeline.ingest(spark, tmp_path, repair=True, buffer=1000, to_crs="EPSG:3857")
    assert_bad(found, wanted)
    assert summed(found) == (9 + len(wanted), 9, len(wanted), 2)
    assert found.crs == "EPSG:3857"
    spatial = Spatial(to_crs="EPSG:3857", buffer=1000)
    rows = {row["id"]: row["geometry"] for row in seen(found.rows)}
    for number, shape in ((0, SHAPES[0]), (7, shapely.Point(1, 2)), (21, shapely.MultiPoint([(0, 0), (5, 5)]))):
        assert rows[number] == spatial.of_shapely(shape, "OGC:CRS84")
    assert rows[1] == rows[11]
    assert rows[1] == spatial.changed(ct.RegionArray.from_shapely([BOW_TIE], crs="OGC:CRS84", repair=True)[0])


def test_two_crs_need_a_third_word_and_old_geojson_has_one_of_its_own(spark, tmp_path):
    write_gis(ROWS, tmp_path / "web.gpkg", crs="EPSG:3857")
    write_collection(ROWS, tmp_path / "lonlat.geojson")
    with pytest.raises(ct.CrsError, match=r"differ: .* in .*lonlat.geojson; EPSG:3857 in .*web.gpkg"):
        pipeline.ingest(spark, tmp_path)
    with pytest.raises(ct.CrsError, match="degrees"):
        pipeline.ingest(spark, tmp_path / "lonlat.geojson", buffer=1)
    write_geoparquet(ROWS, tmp_path / "unknown.parquet", crs=None)
    with pytest.raises(ct.CrsError, match=r"no CRS is known for .*unknown.parquet"):
        pipeline.ingest(spark, tmp_path, to_crs="EPSG:3035")
    found = pipeline.ingest(spark, tmp_path, to_crs="EPSG:3857", crs="EPSG:4326")
    assert summed(found) == (12, 12, 0, 0)
    member = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3035"}}
    path = write_collection(ROWS, tmp_path / "old.geojson", crs=member, attribution="me")
    found = pipeline.ingest(spark, path)
    assert found.crs == "EPSG:3035"
    assert found.about.attribution == {str(path): "me"}
    assert pipeline.ingest(spark, path, crs="none").crs is None


def test_columns_are_united_by_name_and_widened(spark, tmp_path):
    write_features([{"id": 1, "d": 5, "a": 1, "b": True, "nested": {"x": 1}, "many": [1, 2], "geometry": SHAPES[0]},
                 {"id": 2, "a": 2.5, "b": None, "nested": {"y": "z"}, "many": [0.5], "geometry": SHAPES[0]}],
                tmp_path / "one.geojsonl")  # fmt: skip
    write_features(
        [{"id": 3, "A": 7, "b": "text", "c": 2**70, "many": [None], "d": None, "geometry": SHAPES[0]}],
        tmp_path / "two.geojsonl",
    )
    table = pa.table({"id": pa.array([4], pa.int8()), "geometry": ["a name"], "at": pa.array([0], pa.timestamp("ns")),
                      "kind": pa.array(["k"]).dictionary_encode(), "wkb": [_wkb(SHAPES[0])]})  # fmt: skip
    pq.write_table(table, tmp_path / "three.parquet", coerce_timestamps="us")
    found = pipeline.ingest(spark, tmp_path)
    assert summed(found) == (4, 4, 0, 0)
    rows = list(map(properties, seen(found.rows)))
    none = dict.fromkeys(rows[0])
    assert rows == [{**none, **row} for row in (
        {"id": 1, "d": 5, "a": 1.0, "b": "true", "nested": {"x": 1, "y": None}, "many": [1.0, 2.0]},
        {"id": 2, "a": 2.5, "nested": {"x": None, "y": "z"}, "many": [0.5]},
        {"id": 3, "a": 7.0, "b": "text", "c": str(2**70), "many": [None]},
        {"id": 4, "geometry_2": "a name", "at": datetime(1970, 1, 1), "kind": "k"},
    )]  # fmt: skip


@pytest.mark.slow
def test_how_files_are_cut_does_not_matter(spark, tmp_path):
    rows = [{"id": k, "geometry": BOW_TIE if k % 10 == 3 else shapely.box(k, 0, k + 1, 1)} for k in range(100)]
    write_features(rows, tmp_path / "a.geojsonl")
    write_collection(rows, tmp_path / "b.geojson")
    write_gis([{**row, "geometry": shapely.MultiPolygon([row["geometry"]])} for row in rows], tmp_path / "c.gpkg")
    sizes = TaskSizes(line_bytes=1500, features=7, document_bytes=5000)
    found = ingest_files(spark, [tmp_path], Spatial(), False, None, sizes)
    firsts = {"a.geojsonl": 4, "b.geojson": 3, "c.gpkg": 3}
    assert [item[:2] for item in bad(found)] == [(name, k + 10 * n) for name, k in firsts.items() for n in range(10)]
    assert summed(found) == (300, 270, 30, 0)
    kept = [row for row in rows if row["id"] % 10 != 3]
    assert seen(found.rows) == sorted(expected(kept) * 3, key=lambda row: str(row["id"]))


def test_geometry_columns_of_spark(spark, tmp_path):
    frame = spark.createDataFrame([(k, bytearray(_wkb(shape))) for k, shape in enumerate(SHAPES)], "id int, wkb binary")
    own = frame.selectExpr("id", "st_geomfromwkb(wkb, 3857) AS shape")
    own.write.parquet(str(tmp_path / "own"))
    wanted = [{"id": row["id"], "geometry": row["geometry"]} for row in expected()]
    frame.createOrReplaceTempView("places")
    for source, named in ((tmp_path / "own", {}), (own, {}), ("places", {"crs": "EPSG:3857"})):
        found = pipeline.ingest(spark, source, **named)
        assert found.crs == "EPSG:3857"
        assert seen(found.rows) == wanted


def test_geometry_of_any_srid(spark):
    rows = [(1, bytearray(_wkb(SHAPES[0])), 4326), (2, bytearray(_wkb(SHAPES[0])), 3857), (3, None, 3857)]
    frame = spark.createDataFrame(rows, "id int, wkb binary, srid int")
    mixed = frame.selectExpr("id", "st_geomfromwkb(wkb, srid) AS geometry")
    with pytest.raises(ct.CrsError, match="differ"):
        pipeline.ingest(spark, mixed)
    found = pipeline.ingest(spark, mixed, to_crs="EPSG:3857")
    assert summed(found) == (3, 2, 1, 0)
    by_id = {row["id"]: row["geometry"] for row in seen(found.rows)}
    assert by_id[2] == ct.Region.from_shapely(SHAPES[0])
    assert by_id[1] == Spatial(to_crs="EPSG:3857").of_shapely(SHAPES[0], "EPSG:4326")
    geography = frame.selectExpr("id", "st_geogfromwkb(wkb) AS geometry")
    with pytest.raises(ct.CrsError, match="GEOGRAPHY"):
        pipeline.ingest(spark, geography)


def test_parquet_that_spark_refuses(spark, tmp_path):
    shapes = [BOW_TIE if k % 10 == 3 else shapely.box(k, 0, k + 1, 1) for k in range(50)]
    times = pa.array(range(50), pa.timestamp("ns"))
    table = pa.table({"id": range(50), "at": times, "geometry": pa.array(shapely.to_wkb(np.array(shapes)))})
    pq.write_table(table, tmp_path / "nanoseconds.parquet", row_group_size=11)
    found = ingest_files(spark, [tmp_path], Spatial(), False, None, TaskSizes(parquet_rows=7))
    assert [item[1] for item in bad(found)] == [3, 13, 23, 33, 43]
    assert summed(found) == (50, 45, 5, 0)
    kept = [{"id": k, "at": datetime(1970, 1, 1), "geometry": shape} for k, shape in enumerate(shapes) if k % 10 != 3]
    assert seen(found.rows) == sorted(expected(kept), key=lambda row: str(row["id"]))


def test_polygons_of_geoarrow(spark, tmp_path):
    rings = [[[{"x": 0.0, "y": 0.0}, {"x": 4.0, "y": 0.0}, {"x": 4.0, "y": 4.0}, {"x": 0.0, "y": 0.0}]], None]
    kind = pa.list_(pa.list_(pa.struct([("x", pa.float64()), ("y", pa.float64())])))
    about = {"version": "1.1.0", "primary_column": "area", "columns": {"area": {"encoding": "polygon", "crs": None}}}
    table = pa.table({"id": [1, 2], "area": pa.array(rings, kind)})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(about)}), tmp_path / "a.parquet")
    found = pipeline.ingest(spark, tmp_path / "a.parquet")
    assert seen(found.rows) == [{"id": 1, "geometry": ct.Region([(0, 0), (4, 0), (4, 4)])}]
    assert bad(found) == [("a.parquet", 1, "no geometry (null)")]


def test_layers(spark, tmp_path):
    path = write_gis(ROWS, tmp_path / "two.gpkg", layer="first")
    write_gis(ROWS[:1], path, layer="second", append=True)
    found = pipeline.ingest(spark, path)
    assert summed(found) == (5, 5, 0, 0)
    assert summed(pipeline.ingest(spark, path, layer="second")) == (1, 1, 0, 0)
    assert [item[1:] for item in bad(pipeline.ingest(spark, path, layer="third"))] == [
        (None, "the file cannot be read: unknown layer 'third'; layers with geometry: first, second")
    ]


def test_nothing_to_read(spark, tmp_path):
    with pytest.raises(ct.FormatError, match="no file to read"):
        pipeline.ingest(spark, tmp_path)
    with pytest.raises(FileNotFoundError):
        pipeline.ingest(spark, tmp_path / "absent")
    write_features([], tmp_path / "empty.geojsonl")
    assert summed(pipeline.ingest(spark, tmp_path)) == (0, 0, 0, 0)


DATA = Path(os.environ.get("CONTRADA_DATA", "absent"))


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the sets of CONTRADA_DATA")
@pytest.mark.parametrize("name", ["paper_london_4170", slow("events_nws")])
def test_real_sets(spark, name):
    path = DATA / f"{name}.parquet"
    found = pipeline.ingest(spark, path)
    counts = summed(found)
    sifted = ct.read_regions(pq.read_table(path).column("geometry"), crs="EPSG:4326")
    assert counts == (len(sifted.rows) + len(sifted.rejected), len(sifted.rows), len(sifted.rejected), 0)
    assert sorted(bytes(row[0]) for row in found.rows.select("geometry").collect()) == sorted(
        sifted.regions.to_wkb().to_pylist()
    )
    assert [item[1:] for item in bad(found)] == sorted((item.row, item.reason) for item in sifted.rejected)
