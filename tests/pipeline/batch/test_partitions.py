"""The plan "partitioned": the rows of the plan "broadcast", however filters and messages are spread."""

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely
from pyspark.sql import functions as F
from sample_tables import every_operator, square

import contrada as ct
from contrada import pipeline
from contrada.errors import TableError
from contrada.pipeline.partitioned.matching import task_counts
from effort import slow
from generators.filters_of_every_kind import expected, random_messages, rows_of, subscription_rows, table_of

TEMPLATE = "S_INTERSECTS(area, $geometry)"


def town(count, seed=1, spread=100.0):
    """Regions of many sizes, most of them small, some in a crowd, as rows of a template."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, spread, (count, 2))
    corners[: count // 3] = 10 + rng.uniform(0, 2, (count // 3, 2))
    sizes = 10 ** rng.uniform(-1, 1, count)
    return pa.table(
        {
            "key": pa.array([f"k{k}" for k in range(count)]),
            "subscriber": pa.array((np.arange(count) % 11).astype(np.int32)),
            "geometry": [square(*corner, size) for corner, size in zip(corners.tolist(), sizes.tolist(), strict=True)],
            "least": rng.integers(0, 3, count),
        }
    )


def news(count, seed=2, spread=100.0):
    """Messages over the same ground: regions, points, nulls, and some that are bad; ids repeat."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-5, spread, (count, 2)).tolist()
    areas = [square(*corner, 10 ** rng.uniform(-1, 1.3)) for corner in corners]
    for k in range(0, count, 9):
        areas[k] = [None, shapely.to_wkb(shapely.Point(corners[k])), b"no geometry"][k // 9 % 3]
    return pa.table(
        {
            "message_id": pa.array(np.arange(count) // 2),
            "area": pa.array(areas, pa.binary()),
            "size": pa.array(rng.integers(0, 4, count), mask=rng.random(count) < 0.1),
        }
    )


def table_over(rows, template=TEMPLATE):
    """A table of the rows of a template, in a single process."""
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    return table


def compiled_parts(frame, place, partitions, template=TEMPLATE, **options):
    return pipeline.compile(frame, place, template=template, plan="partitioned", partitions=partitions, **options)


def check(spark, messages, rows, table, place, by, partitions=4, template=None):
    """The answer of the partitioned plan is that of a single process."""
    compiled = compiled_parts(spark.createDataFrame(rows).repartition(2), place, partitions, template)
    matched = pipeline.match(spark.createDataFrame(messages).repartition(3), compiled, by=by)
    assert matched.plan == "partitioned"
    right = expected(table, messages, by)
    assert rows_of(matched) == right
    return matched, right


SUBSCRIPTIONS = pytest.mark.parametrize("by", ["subscription", slow("subscriber")])
SUBSCRIBERS = pytest.mark.parametrize("by", [slow("subscription"), "subscriber"])


@SUBSCRIBERS
def test_every_operator(spark, place, by):
    matched, right = check(spark, random_messages(300), *every_operator(), place, by)
    assert len(right[0]) > 1000
    assert right[1]
    assert {part.is_wide for part in matched.artifact.partitions} == {True, False}


@SUBSCRIPTIONS
def test_a_template_of_regions_alone(spark, place, by):
    rows, messages = town(3000), news(400)
    matched, right = check(spark, messages, rows, table_over(rows), place, by, 6, TEMPLATE)
    assert len(right[0]) > 500
    parts = matched.artifact.partitions
    assert len(parts) == 6
    assert sum(part.artifact.filters for part in parts) == 3000
    assert max(part.artifact.filters for part in parts) < 1.1 * 3000 / 6
    assert not any(part.is_wide for part in parts)
    assert all(part.first_shared == part.artifact.subscriptions for part in parts)
    assert 0 < matched.routed.replication < 3


@pytest.mark.slow
@SUBSCRIBERS
def test_a_template_whose_filters_lie_apart(spark, place, by):
    rows = town(600)
    moved = shapely.to_wkb(shapely.transform(shapely.from_wkb(rows["geometry"].to_pylist()), lambda xy: 100 - xy))
    rows = rows.append_column("other", pa.array(list(moved), pa.binary()))
    template = "S_INTERSECTS(area, $geometry) OR size >= $least AND overlaps(area, $other) OR disjoint(area, $other)"
    matched, _ = check(spark, news(150), rows, table_over(rows, template), place, by, 5, template)
    artifact = matched.artifact
    assert artifact.has_shared
    assert artifact.filters == 1800
    assert artifact.subscriptions == 600


@pytest.mark.slow
@SUBSCRIPTIONS
def test_several_spatial_attributes(spark, place, by):
    rng = np.random.default_rng(8)
    asked = []
    for x, y in rng.uniform(0, 60, (120, 2)).tolist():
        first, second = f"POLYGON(({x} {y}, {x + 9} {y}, {x} {y + 9}, {x} {y}))", f"POINT({y} {x})"
        asked += [
            f"S_INTERSECTS(area, {first})",
            f"S_INTERSECTS(area, {first}) AND S_INTERSECTS(home, {second})",
            f"overlaps(area, {first}) OR S_INTERSECTS(home, {first})",
            f"disjoint(home, {first})",
        ]
    rows = subscription_rows(asked)
    messages = news(200, spread=70)
    homes = [square(*corner, 8) for corner in rng.uniform(0, 60, (200, 2)).tolist()]
    messages = messages.append_column("home", pa.array([b"bad", None, *homes[2:]], pa.binary()))
    matched, _ = check(spark, messages, rows, table_of(rows)[0], place, by, 5)
    assert {name for part in matched.artifact.partitions for name in part.boxes} == {"area", "home"}


@pytest.mark.slow
@SUBSCRIBERS
def test_no_spatial_attribute_at_all(spark, place, by):
    asked = [f"size >= {k % 5} AND name <> 'n{k}'" for k in range(60)]
    sizes = [None if k % 8 == 3 else k % 6 for k in range(40)]
    names = [None if k % 9 == 4 else f"n{k}" for k in range(40)]
    messages = pa.table({"message_id": [f"m{k % 7}" for k in range(40)], "size": sizes, "name": names})
    rows = subscription_rows(asked)
    matched, _ = check(spark, messages, rows, table_of(rows)[0], place, by, 3)
    assert [part.artifact.filters for part in matched.artifact.partitions] == [20, 20, 20]
    assert matched.routed.replication == 3


def check_both_plans(messages, rows, place, partitions, count, bad, template=None):
    """Both plans give the same rows, and set aside the same rows; what the partitioned plan gave."""
    broadcast, partitioned = (
        pipeline.match(messages, rows, plan, template=template, artifacts=place, partitions=given)
        for plan, given in (("broadcast", None), ("partitioned", partitions))
    )
    for one in (broadcast, partitioned):
        assert sorted((row.row, row.key) for row in one.compiled.rejected.collect()) == bad
        assert one.compiled.count == count
    assert broadcast.artifact.crs == partitioned.artifact.crs
    assert rows_of(broadcast) == rows_of(partitioned)
    return partitioned


def test_bad_rows_and_repeated_keys_are_those_of_broadcast(spark, place):
    good = [f"S_INTERSECTS(area, POLYGON(({k} 0, {k + 3} 0, {k} 3, {k} 0)))" for k in range(20)]
    asked = ["size <", *good, "size >= 2", good[3], None, "", "size >= 1 OR " + good[4]]
    keys = ["first", *(f"k{k}" for k in range(20)), "first", "k3", "none", "empty", None]
    rows = spark.createDataFrame(subscription_rows(asked, keys)).repartition(1)
    bad = [(0, "first"), (22, "k3"), (23, "none"), (24, "empty"), (25, None)]
    check_both_plans(spark.createDataFrame(news(60, spread=20)), rows, place, 4, 21, bad)


@pytest.mark.slow
def test_bad_geometry_points_and_other_systems_in_a_template(spark, place):
    boxes = [shapely.box(k, 0, k + 2, 2) for k in range(30)]
    values = [shapely.to_wkb(shape) for shape in boxes]
    values[3], values[4], values[5] = b"x", None, shapely.to_wkb(shapely.Point(1, 1))
    for k, srid in ((1, 4326), (7, 3857), (8, 4326)):
        values[k] = shapely.to_wkb(shapely.set_srid(boxes[k], srid), include_srid=True)
    rows = spark.createDataFrame(pa.table({"geometry": values})).coalesce(1)
    bad = [(k, str(k)) for k in (3, 4, 5, 7)]
    found = check_both_plans(spark.createDataFrame(news(60, spread=30)), rows, place, 3, 26, bad, TEMPLATE)
    assert found.artifact.crs == {"area": "EPSG:4326"}


@pytest.mark.slow
def test_a_crowd_at_one_point_is_spread_and_a_filter_that_matches_everything_is_no_straggler(spark, place):
    wkb = [square(5, 5, 1)] * 400 + [square(k % 20, k // 20, 0.5) for k in range(400)] + [square(-50, -50, 200)]
    rows = pa.table({"geometry": wkb})
    table = table_over(rows)
    messages = news(3000, spread=20)
    compiled = compiled_parts(spark.createDataFrame(rows), place, 8)
    filters = [part.artifact.filters for part in compiled.artifact.partitions]
    assert sum(filters) == 801
    assert max(filters) <= 2 * 801 / 8
    matched = pipeline.match(spark.createDataFrame(messages), compiled)
    everywhere = np.argmax(matched.routed.counts)
    assert matched.routed.counts[everywhere] > 2500
    tasks = task_counts(matched.routed.counts, 16)  # as many as a session of eight cores has
    assert tasks[everywhere] == 3
    assert rows_of(matched) == expected(table, messages)


@pytest.mark.slow
def test_expected_messages_move_the_cuts(spark, place):
    rows = pa.table({"geometry": [square(k % 40, k // 40, 0.5) for k in range(1600)]})
    crowd = pa.table({"message_id": range(500), "area": [square(1 + k / 1000, 1, 0.1) for k in range(500)]})
    sizes = []
    for messages in (None, spark.createDataFrame(crowd)):
        compiled = compiled_parts(spark.createDataFrame(rows), place, 4, messages=messages)
        sizes.append(sorted(part.artifact.filters for part in compiled.artifact.partitions))
    assert sizes[0] == [400] * 4
    assert sizes[1][0] < 200


@pytest.mark.slow
def test_partitions_are_read_again_and_messages_once_and_plans_are_not_mixed_up(spark, place):
    rows, messages = town(300), news(50)
    compiled = compiled_parts(spark.createDataFrame(rows), place, 3)
    again = pipeline.PartitionedArtifact.read(compiled.artifact.path)
    assert again == compiled.artifact
    assert json.loads((place / again.digest / "partitions.json").read_text())["subscriptions"] == 300
    passes = spark.sparkContext.accumulator(0)

    @F.udf("binary")
    def counted(area):
        passes.add(1)
        return area

    table = table_over(rows)
    frame = spark.createDataFrame(messages).withColumn("area", counted.asNondeterministic()("area"))
    matches, rejected = rows_of(pipeline.match(frame, again))
    assert (matches, rejected) == expected(table, messages)
    assert matches
    assert rejected
    assert passes.value == 50
    none = pipeline.match(spark.createDataFrame(messages).limit(0), again)
    assert rows_of(none) == ([], []), "nothing in, nothing out"
    with pytest.raises(ct.ContradaError, match='compiled with plan="partitioned"'):
        pipeline.match(spark.createDataFrame(messages), again, "broadcast")
    with pytest.raises(ct.ContradaError, match='compiled with plan="broadcast"'):
        pipeline.match(spark.createDataFrame(messages), pipeline.publish(table, place), "partitioned")
    with pytest.raises(ct.ContradaError, match="1 to 65535"):
        pipeline.compile(spark.createDataFrame(rows), place, template=TEMPLATE, partitions=0)
    with pytest.raises(TableError, match="is not a partitioned artifact"):
        pipeline.PartitionedArtifact.read(place)


def test_auto_chooses_by_size_and_says_why(spark, place):
    rows, messages = spark.createDataFrame(town(300)), spark.createDataFrame(news(30))
    options = {"template": TEMPLATE, "artifacts": place}
    small = pipeline.match(messages, rows, **options)
    assert small.plan == "broadcast"
    assert "why: 300 rows" in small.explain()
    spark.conf.set("spark.contrada.broadcast.bytes", "10k")
    spark.conf.set("spark.contrada.partition.bytes", "20k")
    try:
        large = pipeline.match(messages, rows, **options)
        spark.conf.set("spark.contrada.partition.bytes", "many")
        with pytest.raises(ct.ContradaError, match="such as 512m or 2g, got 'many'"):
            pipeline.match(messages, rows, **options)
    finally:
        spark.conf.unset("spark.contrada.broadcast.bytes")
        spark.conf.unset("spark.contrada.partition.bytes")
    assert large.plan == "partitioned"
    text = large.explain()
    count = len(large.artifact.partitions)
    assert count == 3
    for part in ("a worker can hold no more than ", f"partitions: {count}", "replication: 30 messages", "balance:"):
        assert part in text
    assert rows_of(small) == rows_of(large)
