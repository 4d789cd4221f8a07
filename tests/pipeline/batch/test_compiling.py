"""`pipeline.compile`: rows in, an artifact and the bad rows out."""

from functools import partial
from types import SimpleNamespace

import pyarrow as pa
import pytest
import shapely
from sample_tables import BOX, POINT, TEMPLATE, template_rows

import contrada as ct
from contrada import pipeline
from contrada.matching.building import TableBuilder
from contrada.pipeline import artifact_cache as tables
from contrada.pipeline.batch import building
from contrada.pipeline.spark_types import ARTIFACTS, artifacts_place
from effort import slow


def rejections(compiled):
    return sorted(map(tuple, compiled.rejected.collect()))


def test_bad_filters_are_set_aside_with_reasons(spark, tmp_path):
    rows = [
        ("a", "ops", "size >= 1"), ("b", "ops", "size >="), (None, "ops", "size >= 1"), ("a", "ops", "size < 1"),
        ("c", "ops", None), ("d", None, "size < 5"), ("e", "ops", "inside(area, POLYGON((0 0, 2 2, 2 0, 0 2, 0 0)))"),
    ]  # fmt: skip
    compiled = pipeline.compile(spark.createDataFrame(rows, "key string, subscriber string, filter string"), tmp_path)
    assert compiled.count == compiled.artifact.subscriptions == 2
    found = rejections(compiled)
    assert [(row, key) for row, key, _ in found] == [(1, "b"), (2, None), (3, "a"), (4, "c"), (6, "e")]
    parts = ("line 1, column", "no key", "'a' already exists", "no filter", "intersect")
    for (_, _, reason), part in zip(found, parts, strict=True):
        assert part in reason
    table = ct.ForwardingTable.open(compiled.artifact.path)
    assert set(table) == {"a", "d"}
    assert set(table.match({"size": 3})) == {"ops", "d"}
    assert [path.name for path in (tmp_path / "rejected").iterdir()] == [compiled.rejected_path.split("/")[-1]]


def test_bad_rows_of_a_template_are_set_aside_and_the_rest_compile(spark, tmp_path):
    frame, bad = template_rows(spark, 1)
    compiled = pipeline.compile(frame, tmp_path, template=TEMPLATE)
    assert compiled.count == 2
    assert [(row, key) for row, key, _ in rejections(compiled)] == bad
    assert sorted(ct.ForwardingTable.open(compiled.artifact.path)) == [1, 9]


def test_keys_in_several_parts_of_a_large_input_are_told_apart():
    builder = TableBuilder(ct.parse("size >= $least"))
    assert builder.add(pa.table({"key": ["a", "b"], "least": [1, 2]})) == []
    (again,) = builder.add(pa.table({"key": ["c", "a", "d"], "least": [1, 2, 3]}))
    assert (again.row, again.key) == (3, "a")
    assert "duplicate key" in again.reason
    assert set(builder.table) == {"a", "b", "c", "d"}


def test_what_only_the_table_refuses_costs_no_other_row():
    tagged = [shapely.to_wkb(shapely.set_srid(shapely.box(0, 0, k, 1), s), include_srid=True)
              for k, s in enumerate([4326, 4326, 3857, 4326, 3857, 4326], 1)]  # fmt: skip
    builder = TableBuilder(ct.parse("S_INTERSECTS(area, $geometry)"))
    assert builder.add(pa.table({"geometry": tagged[:2]})) == []
    rejected = builder.add(pa.table({"geometry": [tagged[2], tagged[4]]}))
    assert [(item.row, item.key) for item in rejected] == [(2, "2"), (3, "3")]
    assert all("EPSG:3857" in item.reason for item in rejected)
    assert len(builder.table) == 2


def test_points_and_regions_in_one_column_of_a_template_are_as_the_command_line_has_them():
    builder = TableBuilder(ct.parse("S_INTERSECTS(area, $geometry)"))
    assert builder.add(pa.table({"geometry": [BOX]})) == []
    assert [item.row for item in builder.add(pa.table({"geometry": [POINT, BOX]}))] == [1]


@pytest.mark.parametrize("partitions", [slow(1), 3])
def test_default_keys_run_over_the_partitions_in_order_and_the_same_rows_are_one_artifact(spark, tmp_path, partitions):
    filters = spark.range(0, 40, 1, partitions).selectExpr("concat('size = ', id) AS filter")
    first, second = (pipeline.compile(filters, tmp_path).artifact for _ in range(2))
    assert first == second == pipeline.Artifact.read(first.path)
    assert [path.name for path in tmp_path.iterdir()] == [first.digest]
    table = ct.ForwardingTable.open(first.path)
    assert [set(table.match_keys({"size": k})) for k in range(40)] == [{k} for k in range(40)]


def test_many_batches_and_parts_give_the_same_table(spark, tmp_path):
    rows = spark.range(0, 5000, 1, 3).selectExpr("id AS key", "cast(id % 50 as double) AS least")
    whole = pipeline.compile(rows, tmp_path / "whole", template="size >= $least")
    parts = list(building.chunks(iter([pa.record_batch([pa.array(range(300))], ["key"])] * 5), 700))
    assert [part.num_rows for part in parts] == [900, 600]
    table = ct.ForwardingTable.open(whole.artifact.path)
    assert len(table.match_keys({"size": 10})) == 1100


@pytest.mark.parametrize(
    ("schema", "template", "error", "reason"),
    [
        ("key string, asked string", None, ct.FilterError, "column 'filter'"),
        ("key double, filter string", None, ct.FormatError, "column 'key': need text or integers"),
        ("subscriber binary, filter string", None, ct.FormatError, "column 'subscriber': need text or integers"),
        ("key int, filter int", None, ct.FormatError, "column 'filter': need CQL2 text"),
        ("key int, geometry binary", TEMPLATE, ct.FilterError, "column 'least'"),
        ("key int, least double", "size >=", ct.LanguageError, "line 1"),
    ],
)
def test_what_fits_no_row_is_an_error_before_a_job_runs(spark, tmp_path, schema, template, error, reason):
    frame = spark.createDataFrame([], schema)
    for job in (partial(pipeline.compile, artifacts=tmp_path), pipeline.simplify):
        with pytest.raises(error, match=reason):
            job(frame, template=template)
    assert not any(tmp_path.iterdir())


def test_where_artifacts_go(tmp_path):
    local, yarn = (SimpleNamespace(conf={"spark.master": master}) for master in ("local[2]", "yarn"))
    assert artifacts_place(local, None) == str(tables.cache_home() / "artifacts")
    local.conf[ARTIFACTS] = "s3://bucket/x"
    assert artifacts_place(local, None) == "s3://bucket/x"
    assert artifacts_place(yarn, tmp_path) == str(tmp_path)
    with pytest.raises(ct.ContradaError, match=ARTIFACTS):
        artifacts_place(yarn, None)
