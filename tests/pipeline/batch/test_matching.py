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
from sample_tables import every_operator

import contrada as ct
from contrada import pipeline
from contrada.pipeline.batch import matching
from effort import examples, slow
from generators.filters_of_every_kind import expected, plain_text, random_messages, rows_of, subscription_rows, table_of
from generators.scalars import predicates

BOX = shapely.to_wkb(shapely.box(0, 0, 2, 2))


def published(place, text):
    """An artifact of one subscription, which has the key a."""
    return pipeline.publish(table_of(subscription_rows([text], ["a"]))[0], place)


@pytest.fixture(scope="module")
def every(spark, place):
    """Subscriptions with every operator, several to a subscriber."""
    rows, table = every_operator()
    compiled = pipeline.compile(spark.createDataFrame(rows), place)
    assert compiled.rejected.collect() == []
    return compiled, table


@pytest.mark.parametrize("partitions", [slow(1), slow(3), 7])
def test_rows_are_those_of_a_single_process_however_messages_are_spread(spark, every, partitions):
    compiled, table = every
    messages = random_messages(300)
    right = expected(table, messages)
    assert len(right[0]) > 1000
    assert right[1]
    assert rows_of(pipeline.match(spark.createDataFrame(messages).repartition(partitions), compiled)) == right


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
    for by, names in (("subscription", ["subscriber", "key"]), ("subscriber", ["subscriber"])):
        matched = pipeline.match(spark.createDataFrame(messages), compiled, by=by)
        assert matched.matches.columns == ["message_id", *names]
        assert rows_of(matched) == expected(table, messages, by)


@pytest.mark.parametrize("has_names", [True, slow(False)])
def test_templates_with_integer_keys_or_none(spark, place, has_names):
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
    if not has_names:
        rows = rows.select(["geometry"])
        template = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Column("geometry"))
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    messages = random_messages(200, seed=2)
    frames = spark.createDataFrame(messages), spark.createDataFrame(rows).coalesce(1)
    matched = pipeline.match(*frames, template=template, artifacts=place)
    assert [kind for _, kind in matched.matches.dtypes[1:]] == ["bigint", "int" if has_names else "bigint"]
    assert matched.compiled.count == 200
    assert rows_of(matched) == expected(table, messages)


def test_mixed_names_become_text(spark, place):
    table = ct.ForwardingTable()
    table.subscribe("ops", "size >= 0", key=7)
    table.subscribe(8, "size >= 1", key="seven")
    artifact = pipeline.publish(table, place)
    found, _ = rows_of(pipeline.match(spark.createDataFrame(pa.table({"message_id": [1], "size": [1]})), artifact))
    assert found == [(1, "8", "seven"), (1, "ops", "7")]


@pytest.mark.parametrize(("plan", "partitions"), [("broadcast", None), slow("partitioned", 3)])
def test_nothing_in_nothing_out(spark, place, plan, partitions):
    messages = spark.createDataFrame(random_messages(20, bad=False))
    one = spark.createDataFrame(subscription_rows(["size >= 0"], ["a"]))
    template, regions = "S_INTERSECTS(area, $geometry)", spark.createDataFrame([], "key string, geometry binary")
    for empty, asked in ((regions, template), (one.where("key = 'b'"), None)):
        matched = pipeline.match(messages, empty, plan, template=asked, artifacts=place, partitions=partitions)
        assert matched.compiled.count == matched.compiled.rejected.count() == 0
        assert dict(matched.matches.dtypes)["key"] == "string"
        assert rows_of(matched) == ([], [])
    assert rows_of(pipeline.match(messages.limit(0), published(place, "size >= 0"))) == ([], [])


def test_one_message_that_everything_matches(spark, place):
    rows = subscription_rows(["nothing IS NULL"] * 2000)
    message = pa.table({"message_id": ["only"], "size": [1.0]})
    found, rejected = rows_of(pipeline.match(*map(spark.createDataFrame, (message, rows)), artifacts=place))
    assert (found, rejected) == expected(table_of(rows)[0], message)
    assert len(found) == 2000


@pytest.mark.parametrize(
    ("kind", "value"),
    [("struct<a:int,b:string>", (1, "x")), slow("decimal(10,2)", Decimal("7.00")), slow("array<int>", [1])],
)
def test_ids_may_be_null_repeated_and_of_any_type(spark, place, kind, value):
    rows = [(value, 1.0), (value, 2.0), (None, 3.0), (None, 0.0)]
    messages = spark.createDataFrame(rows, f"message_id {kind}, size double")
    matches = pipeline.match(messages, published(place, "size >= 1")).matches
    assert sorted(row.message_id is None for row in matches.collect()) == [False, False, True]
    assert matches.schema["message_id"].dataType == messages.schema["message_id"].dataType


def test_attributes_may_be_the_id_and_named_like_anything_but_only_one_by_a_name(spark, place):
    artifact = published(place, "message_id > 1 AND \"a`b.c\" = 'x'")
    messages = spark.createDataFrame([(1, "x"), (2, "x"), (3, "y")], "message_id int, `a``b.c` string")
    assert rows_of(pipeline.match(messages, artifact))[0] == [(2, "s0", "a")]
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
        ({"plan": "fast"}, '"partitioned" or "scan"'),
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
