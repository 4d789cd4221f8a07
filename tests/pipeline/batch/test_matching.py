"""`pipeline.match`: the rows of a single process, however messages are spread over partitions."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import shapely
from failing import failing_once
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import contrada as ct
from contrada import pipeline
from contrada.pipeline.batch import matching
from effort import examples, slow
from generators.filters_of_every_kind import (
    FILTERS,
    expected,
    plain_text,
    random_messages,
    rows_of,
    subscription_rows,
    table_of,
)
from generators.scalars import predicates

BOX = shapely.to_wkb(shapely.box(0, 0, 2, 2))


def published(place, text):
    """An artifact of one subscription, which has the key a."""
    return pipeline.publish(table_of(subscription_rows([text], ["a"]))[0], place)


@pytest.fixture(scope="module")
def every(spark, place):
    """Subscriptions with every operator, several to a subscriber."""
    rows = subscription_rows(FILTERS, [f"k{k}" for k in range(len(FILTERS))])
    compiled = pipeline.compile(spark.createDataFrame(rows), place)
    assert compiled.rejected.collect() == []
    return compiled, table_of(rows)[0]


@pytest.mark.parametrize("partitions", [1, slow(3), 7])
def test_rows_are_those_of_a_single_process_however_messages_are_spread(spark, every, partitions):
    compiled, table = every
    messages = random_messages(300)
    right = expected(table, messages)
    assert len(right[0]) > 1000
    assert right[1]
    assert rows_of(pipeline.match(spark.createDataFrame(messages).repartition(partitions), compiled)) == right


def test_by_subscriber_every_subscriber_comes_once(spark, every):
    compiled, table = every
    messages = random_messages(100, seed=3)
    right = expected(table, messages, "subscriber")
    matched = pipeline.match(spark.createDataFrame(messages), compiled.artifact, by="subscriber")
    assert matched.matches.columns == ["message_id", "subscriber"]
    assert rows_of(matched) == right


@pytest.mark.parametrize("plan", ["broadcast", slow("partitioned")])
@settings(max_examples=examples(8))
@given(asked=st.lists(predicates().filter(plain_text), min_size=30, max_size=40))
def test_generated_filters(spark, place, plan, asked):
    messages, rows = random_messages(60, seed=11), subscription_rows(list(map(str, asked)))
    partitions = 3 if plan == "partitioned" else None
    compiled = pipeline.compile(spark.createDataFrame(rows), place, plan=plan, partitions=partitions)
    table, bad = table_of(rows)
    assert sorted(row.row for row in compiled.rejected.collect()) == bad
    assert compiled.count == len(table)
    for by in ("subscription", "subscriber"):
        matched = pipeline.match(spark.createDataFrame(messages), compiled, by=by)
        assert rows_of(matched) == expected(table, messages, by)


def test_templates_with_integer_keys(spark, place):
    rng = np.random.default_rng(5)
    corners = rng.integers(0, 5, (200, 2))
    rows = pa.table(
        {
            "key": pa.array(np.arange(200) * 3 - 100, pa.int32()),
            "subscriber": pa.array(np.arange(200) % 7),
            "geometry": [shapely.to_wkb(shapely.box(x, y, x + 2, y + 1)) for x, y in corners.tolist()],
            "least": rng.integers(0, 3, 200).astype(float),
        }
    )
    template = "S_INTERSECTS(area, $geometry) AND size >= $least"
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    messages = random_messages(200, seed=2)
    matched = pipeline.match(
        spark.createDataFrame(messages), spark.createDataFrame(rows).repartition(3), template=template, artifacts=place
    )
    kinds = dict(matched.matches.dtypes)
    assert (kinds["key"], kinds["subscriber"]) == ("int", "bigint")
    assert matched.compiled.count == 200
    assert rows_of(matched) == expected(table, messages)


def test_a_template_of_constraints_and_default_keys(spark, place):
    rows = pa.table({"geometry": [shapely.to_wkb(shapely.box(x, 0, x + 2, 2)) for x in range(5)]})
    template = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Column("geometry"))
    messages = random_messages(50, bad=False)
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    frames = map(spark.createDataFrame, (messages, rows))
    assert rows_of(pipeline.match(*frames, template=template, artifacts=place)) == expected(table, messages)


def test_mixed_names_become_text(spark, place):
    table = ct.ForwardingTable()
    table.subscribe("ops", "size >= 0", key=7)
    table.subscribe(8, "size >= 1", key="seven")
    artifact = pipeline.publish(table, place)
    found, _ = rows_of(pipeline.match(spark.createDataFrame(pa.table({"message_id": [1], "size": [1]})), artifact))
    assert found == [(1, "8", "seven"), (1, "ops", "7")]


def test_nothing_in_nothing_out(spark, place):
    messages = random_messages(20, bad=False)
    none = spark.createDataFrame(messages).limit(0)
    assert rows_of(pipeline.match(none, published(place, "size >= 0"))) == ([], [])
    one = spark.createDataFrame(subscription_rows(["size >= 0"], ["a"]))
    for empty in (spark.createDataFrame([], "key string, subscriber int, filter string"), one.where("key = 'b'")):
        compiled = pipeline.compile(empty, place)
        assert compiled.count == compiled.rejected.count() == 0
        matched = pipeline.match(spark.createDataFrame(messages), compiled)
        assert dict(matched.matches.dtypes)["key"] == "string"
        assert rows_of(matched) == ([], [])


def test_one_message_that_everything_matches(spark, place):
    rows = subscription_rows(["nothing IS NULL"] * 2000)
    message = pa.table({"message_id": ["only"], "size": [1.0]})
    found, rejected = rows_of(pipeline.match(*map(spark.createDataFrame, (message, rows)), artifacts=place))
    assert (found, rejected) == expected(table_of(rows)[0], message)
    assert len(found) == 2000


def test_ids_may_be_null_repeated_and_of_any_type(spark, place):
    artifact = published(place, "size >= 1")
    for kind, value in (("struct<a:int,b:string>", (1, "x")), ("decimal(10,2)", Decimal("7.00")), ("array<int>", [1])):
        rows = [(value, 1.0), (value, 2.0), (None, 3.0), (None, 0.0)]
        messages = spark.createDataFrame(rows, f"message_id {kind}, size double")
        matched = pipeline.match(messages, artifact)
        assert sorted(row.message_id is None for row in matched.matches.collect()) == [False, False, True]
        assert matched.matches.schema["message_id"].dataType == messages.schema["message_id"].dataType
        matched.unpersist()


def test_the_id_may_be_asked_about_and_attributes_may_be_named_like_anything(spark, place):
    artifact = published(place, "message_id > 1 AND \"a`b.c\" = 'x'")
    messages = spark.createDataFrame([(1, "x"), (2, "x"), (3, "y")], "message_id int, `a``b.c` string")
    assert rows_of(pipeline.match(messages, artifact))[0] == [(2, "s0", "a")]


def test_a_struct_and_a_dotted_column_that_give_one_attribute_are_refused(spark, place):
    messages = spark.createDataFrame([(1, (2,), 3)], "message_id int, wind struct<speed:int>, `wind.speed` int")
    with pytest.raises(ct.FormatError, match=r"duplicate attribute 'wind\.speed'"):
        pipeline.match(messages, published(place, "wind.speed > 1"))


def test_only_asked_attributes_are_sent_to_python(spark, every):
    text = pipeline.match(spark.createDataFrame(random_messages(5)), every[0]).explain()
    assert "note" not in text.split("MapInArrow")[-1]
    assert all(word in text for word in ("broadcast", every[0].artifact.digest, "MapInArrow", "subscriptions"))


@pytest.mark.slow
def test_matches_and_rejections_come_from_one_pass_and_are_written_in_one(spark, place, tmp_path):
    passes = spark.sparkContext.accumulator(0)

    @F.udf("double")
    def counted(size):
        passes.add(1)
        return size

    rows = spark.createDataFrame(
        [(k, float(k), bytes(BOX) if k else b"x") for k in range(5)], "message_id int, s double, area binary"
    )
    messages = rows.select("message_id", "area", counted.asNondeterministic()("s").alias("size"))
    filters = ["S_INTERSECTS(area, POLYGON((1 1, 3 1, 3 3, 1 1)))", "size >= 3"]
    matched = pipeline.match(messages, spark.createDataFrame(subscription_rows(filters)), artifacts=place)
    matched.write(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out" / "matches")).count() == matched.matches.count() == 6
    assert [row.message_id for row in spark.read.parquet(str(tmp_path / "out" / "rejected")).collect()] == [0]
    assert passes.value == 5
    matched.unpersist()


@pytest.mark.slow
def test_geometry_columns_carry_their_crs(spark, place):
    kept = "S_INTERSECTS(area, POLYGON((1 1, 3 1, 3 3, 1 1)))"
    plain = published(place, kept)
    rows = spark.createDataFrame([(1, bytearray(BOX)), (2, None)], "message_id int, wkb binary")
    for srid in (0, 4326, 3857):
        messages = rows.selectExpr("message_id", f"st_geomfromwkb(wkb, {srid}) AS area")
        assert rows_of(pipeline.match(messages, plain)) == ([(1, "s0", "a")], [])
    regions = rows.limit(1).selectExpr("'k' AS key", "st_geomfromwkb(wkb, 4326) AS geometry")
    template = "S_INTERSECTS(area, $geometry)"
    compiled = pipeline.compile(regions, place, template=template)
    assert compiled.artifact.crs == {"area": "EPSG:4326"}
    good = rows.selectExpr("message_id", "st_geomfromwkb(wkb, 4326) AS area")
    assert rows_of(pipeline.match(good, compiled)) == ([(1, "k", "k")], [])
    other = rows.selectExpr("message_id", "st_geomfromwkb(wkb, 3857) AS area")
    matches, rejected = rows_of(pipeline.match(other, compiled))
    assert (matches, [row for row, _ in rejected]) == ([], [1])
    assert "EPSG:4326 and EPSG:3857" in rejected[0][1]
    with pytest.raises(ct.CrsError, match="GEOGRAPHY"):
        pipeline.match(rows.selectExpr("message_id", "st_geogfromwkb(wkb) AS area"), compiled)


def test_messages_in_another_crs_are_rejected_one_by_one(spark, place):
    shape = shapely.box(0, 0, 2, 2)
    tagged = [
        bytearray(shapely.to_wkb(shapely.set_srid(shape, srid), include_srid=True)) for srid in (4326, 3857, 4326)
    ]
    table = ct.ForwardingTable()
    box = ct.Region.from_shapely(shapely.set_srid(shape, 4326))
    table.subscribe("ops", ct.Constraint("area", ct.Relation.EQUALS, box), key="a")
    messages = spark.createDataFrame(list(enumerate(tagged)), "message_id int, area binary").coalesce(1)
    matches, rejected = rows_of(pipeline.match(messages, pipeline.publish(table, place)))
    assert matches == [(0, "ops", "a"), (2, "ops", "a")]
    assert [row for row, _ in rejected] == [1]
    assert "EPSG:3857" in rejected[0][1]


def test_a_task_that_fails_once_gives_the_same_rows(spark, every, tmp_path, monkeypatch):
    compiled, table = every
    messages = random_messages(120)
    mark = tmp_path / "failed"
    monkeypatch.setattr(matching, "match_batches", failing_once(mark))
    matched = pipeline.match(spark.createDataFrame(messages).repartition(3), compiled)
    with pytest.raises(PySparkException, match="first attempt"):  # a local master makes one attempt, then the job fails
        matched.matches.count()
    assert rows_of(matched) == expected(table, messages)
    assert mark.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"plan": "partitioned"}, 'compiled with plan="broadcast"'),
        ({"plan": "fast"}, '"auto", "broadcast" or "partitioned"'),
        ({"by": "key"}, '"subscription" or "subscriber"'),
        ({"template": "size > $least"}, "do not apply to compiled subscriptions"),
    ],
)
def test_what_cannot_be_asked_is_a_clear_error(spark, every, options, reason):
    with pytest.raises(ct.ContradaError, match=reason):
        pipeline.match(spark.createDataFrame(random_messages(1)), every[0], **options)


def test_messages_need_an_id_and_types_that_can_be_sent(spark, every, place):
    with pytest.raises(ct.FormatError, match="message_id"):
        pipeline.match(spark.range(3), every[0])
    with pytest.raises(ct.FormatError, match="column 'odd': type interval"):
        pipeline.match(
            spark.sql("SELECT 1 AS message_id, make_interval(1) AS odd"), published(place, "odd IS NOT NULL")
        )
