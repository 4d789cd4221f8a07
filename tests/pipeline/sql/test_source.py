"""The data source `contrada`: data sets, outputs of match and artifacts as tables."""

import json

import duckdb
import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from pyspark.errors import PySparkException

from contrada import pipeline
from contrada.formats.reading import read_messages
from generators.filters_of_every_kind import random_messages, subscription_rows


@pytest.fixture(scope="module")
def source(spark, tmp_path_factory):
    """A function that reads a table, and a directory with a data set, an output and artifacts."""
    pipeline.register(spark)
    home = tmp_path_factory.mktemp("source")
    lines = [
        {"type": "Feature", "properties": {"name": name}, "geometry": json.loads(shapely.to_geojson(shape))}
        for name, shape in (
            ("Lake", shapely.box(0, 0, 4, 4)), ("Bow", shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])),
            ("Tree", shapely.Point(7, 1)),
        )
    ]  # fmt: skip
    (home / "parks.geojsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pipeline.ingest(spark, home / "parks.geojsonl").write(home / "parks")

    def read(path, table=None):
        reader = spark.read.format("contrada")
        return (reader if table is None else reader.option("table", table)).load(str(path))

    return home, read


def test_a_data_set_and_its_quarantine(spark, source):
    home, read = source
    rows = read(home / "parks")
    assert rows.columns == ["name", "geometry"]
    assert rows.schema["geometry"].metadata == {"crs": "OGC:CRS84"}
    own = pipeline.read_dataset(spark, home / "parks")
    assert sorted(rows.collect()) == sorted(own.rows.collect())
    assert read(home / "parks", "quarantine").collect() == own.quarantine.collect()
    assert [row.reason for row in read(home / "parks", "quarantine").collect()] == ["self-intersection near (1.0, 1.0)"]


@pytest.mark.slow
def test_an_artifact_and_an_output_of_match(spark, source):
    home, read = source
    rows = subscription_rows(["size >= 1", "area IS NULL OR name = 'ab'"], ["a", "b"])
    rows = spark.createDataFrame(rows.append_column("label", pa.array(["one", None])))
    compiled = pipeline.compile(rows, home / "tables", keep_subscription=["label"])
    table = read(compiled.artifact.path)
    assert [tuple(row) for row in table.orderBy("key").collect()] == [
        ("a", "s0", "size >= 1", "one"), ("b", "s0", "area IS NULL OR name = 'ab'", None),
    ]  # fmt: skip
    matched = pipeline.match(spark.createDataFrame(random_messages(30)), compiled)
    matched.write(str(home / "out"))
    for name in ("matches", "rejected"):
        assert sorted(read(home / "out", name).collect()) == sorted(getattr(matched, name).collect())


@pytest.mark.parametrize(
    ("path", "table", "reason"),
    [
        ("nowhere", None, "nowhere has no table 'rows': it is no data set, artifact or output of match"),
        ("parks", "matches", "parks has no table 'matches': it has rows and quarantine"),
        ("parks", "areas", "table: need one of rows, matches, subscriptions, quarantine, rejected, got 'areas'"),
    ],
)
def test_a_table_that_is_not_there_is_an_error_with_the_path(source, path, table, reason):
    home, read = source
    with pytest.raises(PySparkException, match=reason):
        read(home / path, table).collect()


def test_ingest_writes_the_boxes_of_geometry_which_are_no_attributes(spark, source):
    home, _ = source
    (file,) = (home / "parks" / "rows").glob("*.parquet")
    geo = json.loads(pq.read_schema(file).metadata[b"geo"])["columns"]["geometry"]
    assert geo["covering"]["bbox"] == {side: ["bbox", side] for side in ("xmin", "ymin", "xmax", "ymax")}
    assert geo["bbox"] == [0, 0, 7, 4]
    boxes = {row["name"]: tuple(row["bbox"].values()) for row in pq.read_table(file).to_pylist()}
    assert boxes == {"Lake": (0, 0, 4, 4), "Tree": (7, 1, 7, 1)}
    (found,) = duckdb.sql(f"SELECT name FROM '{file}' WHERE bbox.xmax >= 6 AND bbox.ymin <= 2").fetchall()
    assert found == ("Tree",)
    assert geopandas.read_parquet(file, bbox=(6, 0, 8, 2)).name.tolist() == ["Tree"]
    (message,) = (read.message for read in read_messages(file) if read.message["name"] == "Tree")
    assert sorted(message) == ["geometry", "name"]
    assert pipeline.read_dataset(spark, home / "parks").rows.columns == ["name", "geometry"]
    again = pipeline.ingest(spark, home / "parks" / "rows")
    assert (again.rows.columns, again.counts().kept) == (["name", "geometry"], 2)
