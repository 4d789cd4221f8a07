"""`pipeline.match`: the rows of a single process, however messages are spread over partitions."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import contrada as ct
from contrada import pipeline
from generators.filters_of_every_kind import FILTERS, expected, plain_text, random_messages, subscription_rows, table_of
from generators.scalars import predicates

BOX = shapely.to_wkb(shapely.box(0, 0, 2, 2))


def frame(spark, table):
    return spark.createDataFrame(table)


def rows_of(matched):
    answer = [sorted(map(tuple, part.collect()), key=repr) for part in (matched.matches, matched.rejected)]
    matched.unpersist()
    return answer[0], answer[1]


def subscriptions(spark, filters, keys=None):
    return spark.createDataFrame(subscription_rows(filters, keys))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="module")
def every(spark, place):
    """Subscriptions with every operator, several to a subscriber."""
    rows = subscription_rows(FILTERS, [f"k{k}" for k in range(len(FILTERS))])
    compiled = pipeline.compile(frame(spark, rows), place)
    assert compiled.rejected.collect() == []
    return compiled, table_of(rows)[0]


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_rows_are_those_of_a_single_process_however_messages_are_spread(spark, every, partitions):
    compiled, table = every
    messages = random_messages(300)
    right = expected(table, messages)
    assert len(right[0]) > 1000
    assert right[1]
    assert rows_of(pipeline.match(frame(spark, messages).repartition(partitions), compiled)) == right


def test_by_subscriber_every_subscriber_comes_once(spark, every):
    compiled, table = every
    messages = random_messages(100, seed=3)
    right = expected(table, messages, "subscriber")
    matched = pipeline.match(frame(spark, messages), compiled.artifact, by="subscriber")
    assert matched.matches.columns == ["message_id", "subscriber"]
    assert rows_of(matched) == right


@settings(max_examples=4)
@given(st.lists(predicates().filter(plain_text), min_size=30, max_size=40))
def test_generated_filters(spark, place, asked):
    filters = [str(predicate) for predicate in asked]
    messages = random_messages(60, seed=11)
    rows = subscription_rows(filters)
    compiled = pipeline.compile(frame(spark, rows), place)
    table, bad = table_of(rows)
    assert sorted(row.row for row in compiled.rejected.collect()) == bad
    for by in ("subscription", "subscriber"):
        matched = pipeline.match(frame(spark, messages), compiled, by=by)
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
        frame(spark, messages), frame(spark, rows).repartition(3), template=template, artifacts=place
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
    found = rows_of(pipeline.match(frame(spark, messages), frame(spark, rows), template=template, artifacts=place))
    assert found == expected(table, messages)


def test_mixed_names_become_text(spark, place):
    table = ct.ForwardingTable()
    table.subscribe("ops", "size >= 0", key=7)
    table.subscribe(8, "size >= 1", key="seven")
    artifact = pipeline.publish(table, place)
    found, _ = rows_of(pipeline.match(frame(spark, pa.table({"message_id": [1], "size": [1]})), artifact))
    assert found == [(1, "8", "seven"), (1, "ops", "7")]


def test_nothing_in_nothing_out(spark, place):
    messages = random_messages(20, bad=False)
    none = frame(spark, messages).limit(0)
    compiled = pipeline.compile(subscriptions(spark, ["size >= 0"], ["a"]), place)
    assert rows_of(pipeline.match(none, compiled)) == ([], [])
    for empty in (
        spark.createDataFrame([], "key string, subscriber int, filter string"),
        subscriptions(spark, ["size >= 0"], ["a"]).where("key = 'b'"),
    ):
        compiled = pipeline.compile(empty, place)
        assert compiled.count == compiled.rejected.count() == 0
        matched = pipeline.match(frame(spark, messages), compiled)
        assert dict(matched.matches.dtypes)["key"] == "string"
        assert rows_of(matched) == ([], [])


def test_one_message_that_everything_matches(spark, place):
    rows = subscription_rows(["nothing IS NULL"] * 2000)
    message = pa.table({"message_id": ["only"], "size": [1.0]})
    found, rejected = rows_of(pipeline.match(frame(spark, message), frame(spark, rows), artifacts=place))
    assert (found, rejected) == expected(table_of(rows)[0], message)
    assert len(found) == 2000


def test_ids_may_be_null_repeated_and_of_any_type(spark, place):
    compiled = pipeline.compile(subscriptions(spark, ["size >= 1"], ["a"]), place)
    for kind, value in (("struct<a:int,b:string>", (1, "x")), ("decimal(10,2)", Decimal("7.00")), ("array<int>", [1])):
        rows = [(value, 1.0), (value, 2.0), (None, 3.0), (None, 0.0)]
        messages = spark.createDataFrame(rows, f"message_id {kind}, size double")
        matched = pipeline.match(messages, compiled)
        assert sorted(row.message_id is None for row in matched.matches.collect()) == [False, False, True]
        assert matched.matches.schema["message_id"].dataType == messages.schema["message_id"].dataType
        matched.unpersist()


def test_the_id_may_be_asked_about_and_attributes_may_be_named_like_anything(spark, place):
    compiled = pipeline.compile(subscriptions(spark, ["message_id > 1 AND \"a`b.c\" = 'x'"], ["a"]), place)
    messages = spark.createDataFrame([(1, "x"), (2, "x"), (3, "y")], "message_id int, `a``b.c` string")
    assert rows_of(pipeline.match(messages, compiled))[0] == [(2, "s0", "a")]


def test_a_struct_and_a_dotted_column_that_give_one_attribute_are_refused(spark, place):
    compiled = pipeline.compile(subscriptions(spark, ["wind.speed > 1"], ["a"]), place)
    messages = spark.createDataFrame([(1, (2,), 3)], "message_id int, wind struct<speed:int>, `wind.speed` int")
    with pytest.raises(ct.FormatError, match=r"two columns give the attribute 'wind\.speed'"):
        pipeline.match(messages, compiled)


def test_only_asked_attributes_are_sent_to_python(spark, every):
    text = pipeline.match(frame(spark, random_messages(5)), every[0]).explain()
    assert "note" not in text.split("MapInArrow")[-1]
    assert all(word in text for word in ("broadcast", every[0].artifact.digest, "MapInArrow", "subscriptions"))


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
    matched = pipeline.match(messages, subscriptions(spark, filters), artifacts=place)
    matched.write(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out" / "matches")).count() == matched.matches.count() == 6
    assert [row.message_id for row in spark.read.parquet(str(tmp_path / "out" / "rejected")).collect()] == [0]
    assert passes.value == 5
    matched.unpersist()


def test_geometry_columns_carry_their_crs(spark, place):
    kept = "S_INTERSECTS(area, POLYGON((1 1, 3 1, 3 3, 1 1)))"
    plain = pipeline.compile(subscriptions(spark, [kept], ["a"]), place)
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
    from contrada.pipeline.batch import batches, matching

    compiled, table = every
    messages = random_messages(120)
    mark = tmp_path / "failed"

    def failing(parts, **options):
        for part in batches.match_batches(parts, **options):
            yield part
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                continue
            raise OSError("the first attempt fails after its first batch")

    monkeypatch.setattr(matching, "match_batches", failing)
    matched = pipeline.match(frame(spark, messages).repartition(3), compiled)
    with pytest.raises(PySparkException, match="first attempt"):  # a local master makes one attempt, then the job fails
        matched.matches.count()
    assert rows_of(matched) == expected(table, messages)
    assert mark.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"plan": "partitioned"}, "compiled for the plan"),
        ({"plan": "fast"}, '"auto", "broadcast" or "partitioned"'),
        ({"by": "key"}, '"subscription" or "subscriber"'),
        ({"template": "size > $least"}, "compiled already"),
    ],
)
def test_what_cannot_be_asked_is_a_clear_error(spark, every, options, reason):
    with pytest.raises(ct.ContradaError, match=reason):
        pipeline.match(frame(spark, random_messages(1)), every[0], **options)


def test_messages_need_an_id_and_types_that_can_be_sent(spark, every, place):
    with pytest.raises(ct.FormatError, match="message_id"):
        pipeline.match(spark.range(3), every[0])
    compiled = pipeline.compile(subscriptions(spark, ["odd IS NOT NULL"], ["a"]), place)
    with pytest.raises(ct.FormatError, match="column 'odd' is interval"):
        pipeline.match(spark.sql("SELECT 1 AS message_id, make_interval(1) AS odd"), compiled)
