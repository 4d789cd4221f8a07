"""`pipeline.simplify`: the rows of a single process, however subscriptions are spread over partitions."""

from functools import reduce

import pytest
import shapely
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sample_tables import BOW_TIE, BOX, POINT, TEMPLATE, WIDE, template_rows

import contrada as ct
from contrada import pipeline
from contrada.matching.building import TableBuilder
from contrada.simplification.simplifying import Simplification, simplified_groups
from effort import slow, thorough
from generators.filters_of_every_kind import plain_text, rows_of
from generators.scalars import OPERATORS, predicates

ROWS = "key string, subscriber string, filter string"
ACROSS = pytest.mark.parametrize("across", [slow(False), True])
SPREAD = pytest.mark.parametrize("partitions", [thorough(1), 3])


def in_process(rows, across):
    """What a single process makes of good rows of key, subscriber and predicate, and its report."""
    if across:
        asked = {}
        for _, subscriber, predicate in sorted(rows, key=lambda row: row[0]):
            asked.setdefault(subscriber, []).extend(ct.parse(str(predicate)).filters)
        names, groups = [(name,) for name in asked], list(asked.values())
    else:
        names, groups = [row[:2] for row in rows], [ct.parse(str(row[2])).filters for row in rows]
    found = list(simplified_groups(groups))
    report = reduce(Simplification.plus, (one.report for one in found), Simplification())
    return {name: ct.Predicate(one.filters) for name, one in zip(names, found, strict=True)}, report


def answer(simplified, read=ct.parse):
    """Rows by their names, with predicates; rejected rows; the report."""
    rows = [tuple(row) for row in simplified.subscriptions.collect()]
    rejected = sorted(tuple(row) for row in simplified.rejected.collect())
    simplified.unpersist()
    named = {row[:-1]: read(row[-1]) for row in rows}
    assert len(named) == len(rows)
    return named, rejected, simplified.report


def drawn(count):
    """Predicates of every operator and type that Spark's text can hold."""
    found = []

    @settings(
        max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck), deadline=None
    )
    @given(st.lists(predicates(), min_size=3, max_size=3))
    def draw(those):
        found.extend(one for one in those if plain_text(one))

    draw()
    return found


@pytest.fixture(scope="module")
def generated():
    shapes = ("prefix", "suffix", "contains", "like")
    rare = [ct.Constraint("name", f"{negation}{shape}", "a") for shape in shapes for negation in ("", "not ")]
    asked = [*drawn(120), *(ct.Predicate([ct.Filter([one])]) for one in rare)]
    operators = {str(one.operator) for predicate in asked for part in predicate for one in part}
    assert {*(name for names in OPERATORS.values() for name in names), "is null", "is not null"} - operators <= {"<>"}
    return [(f"k{k:04}", f"s{k * 7 % 11}", predicate) for k, predicate in enumerate(asked)]


@pytest.mark.parametrize(("partitions", "is_reversed"), [thorough(1, False), slow(3, False), (7, True)])
@ACROSS
def test_generated_predicates_become_what_one_process_makes_of_them(spark, generated, partitions, is_reversed, across):
    """To the letter, wherever rows are and whatever their order is."""
    rows = [(key, subscriber, str(predicate)) for key, subscriber, predicate in generated]
    bad = [("typo", "s1", "size >="), (None, "s2", "size = 1"), ("empty", "s3", None)]
    rows = [*bad, *rows[::-1]] if is_reversed else [*bad, *rows]
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, partitions), ROWS)
    named, rejected, report = answer(pipeline.simplify(frame, across=across), str)
    expected, told = in_process(generated, across)
    assert named == {name: str(predicate) for name, predicate in expected.items()}
    assert [(row, key) for row, key, _ in rejected] == [(0, "typo"), (1, None), (2, "empty")]
    assert report == told
    assert report.filters_after < report.filters_before


@ACROSS
def test_what_comes_out_can_be_matched(spark, tmp_path, across):
    rows = [("a", "ops", "size >= 1 AND size >= 3"), ("b", "ops", "size < 1 OR size < 0"), ("c", None, "size = 1")]
    simplified = pipeline.simplify(spark.createDataFrame(rows, ROWS), across=across)
    assert simplified.subscriptions.columns == (["subscriber", "filter"] if across else ["key", "subscriber", "filter"])
    messages = spark.range(-1, 5).selectExpr("id AS message_id", "id AS size")
    found = {}
    for name, subscriptions in (("before", spark.createDataFrame(rows, ROWS)), ("after", simplified.subscriptions)):
        found[name], _ = rows_of(pipeline.match(messages, subscriptions, by="subscriber", artifacts=tmp_path))
    assert found["before"] == found["after"]
    assert len(found["after"]) == 5


@ACROSS
def test_of_rows_with_one_key_the_first_good_one_is_taken(spark, across):
    rows = [
        ("a", "x", "size >="), ("a", "x", "size = 1"), ("b", "y", "size = 5"), ("a", "y", "size = 2"),
        ("a", "x", "size = 3 AND"), ("a", "x", "size = 4"),
    ]  # fmt: skip
    frame = spark.createDataFrame(rows, ROWS).coalesce(1)
    named, rejected, _ = answer(pipeline.simplify(frame, across=across))
    names = [("x",), ("y",)] if across else [("a", "x"), ("b", "y")]
    assert named == {names[0]: ct.parse("size = 1"), names[1]: ct.parse("size = 5")}
    assert [(row, key) for row, key, _ in rejected] == [(0, "a"), (3, "a"), (4, "a"), (5, "a")]
    assert [reason for row, _, reason in rejected if row in (3, 5)] == ["duplicate key 'a'"] * 2
    bad = TableBuilder().add(frame.toArrow())
    assert [item.row for item in bad] == [row for row, _, _ in rejected], "as compile has it"


@SPREAD
@ACROSS
def test_names_default_to_numbers(spark, partitions, across):
    filters = spark.range(0, 20, 1, partitions).selectExpr("concat('size = ', id, ' AND size >= 0') AS filter")
    named, _, _ = answer(pipeline.simplify(filters, across=across))
    assert named == {((k,) if across else (k, k)): ct.parse(f"size = {k}") for k in range(20)}
    some = filters.selectExpr("filter", "CASE WHEN filter LIKE '%1%' THEN 7Y END AS subscriber")
    simplified = pipeline.simplify(some, across=True)
    assert simplified.subscriptions.count() == 20 - len([k for k in range(20) if "1" in str(k)]) + 1
    assert dict(simplified.subscriptions.dtypes)["subscriber"] == "bigint"


@pytest.mark.parametrize(
    ("types", "rows", "kinds", "subscribers"),
    [
        (("int", "string"), [(1, "a"), (2, None)], ("int", "string"), ["a", "2"]),
        slow(("string", "smallint"), [("a", 1)], ("string", "smallint"), [1]),
        slow(("string", "int"), [("a", 1), ("b", None)], ("string", "string"), ["1", "b"]),
        slow(("tinyint", "bigint"), [(1, None)], ("tinyint", "bigint"), [1]),
    ],
)
def test_names_keep_their_types(spark, types, rows, kinds, subscribers):
    schema = f"key {types[0]}, subscriber {types[1]}, filter string"
    rows = [(*names, "x = 1") for names in rows]
    simplified = pipeline.simplify(spark.createDataFrame(rows, schema))
    assert simplified.subscriptions.dtypes == [("key", kinds[0]), ("subscriber", kinds[1]), ("filter", "string")]
    assert [row.subscriber for row in simplified.subscriptions.orderBy("key").collect()] == subscribers
    across = pipeline.simplify(spark.createDataFrame(rows, schema), across=True)
    assert sorted(row.subscriber for row in across.subscriptions.collect()) == sorted(subscribers)


@ACROSS
def test_no_rows(spark, across):
    simplified = pipeline.simplify(spark.createDataFrame([], ROWS), across=across)
    assert answer(simplified) == ({}, [], Simplification())
    bad = pipeline.simplify(spark.createDataFrame([("a", "b", "x >")], ROWS), across=across)
    assert [len(part) for part in answer(bad)[:2]] == [0, 1]


@SPREAD
@ACROSS
def test_rows_of_a_template(spark, partitions, across):
    frame, bad = template_rows(spark, partitions)
    named, rejected, report = answer(pipeline.simplify(frame, across=across, template=TEMPLATE))
    assert [(row, key) for row, key, _ in rejected] == bad
    box, wide = (f"S_INTERSECTS(area, {shapely.from_wkb(one).wkt}) AND size >= 1" for one in (BOX, WIDE))
    if across:
        assert named == {("x",): ct.parse(wide)}
    else:
        assert named == {(1, "x"): ct.parse(box), (9, "x"): ct.parse(wide)}
    assert report.constraints_before == 6


def test_a_template_of_points_whose_first_rows_are_bad_and_one_without_columns(spark):
    rows = [(k, bytearray(one)) for k, one in enumerate([BOW_TIE, b"odd", POINT, BOX, POINT])]
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), "key int, geometry binary")
    named, rejected, _ = answer(pipeline.simplify(frame, template="S_INTERSECTS(area, $geometry)"))
    assert sorted(named) == [(2, 2), (4, 4)]
    assert [row for row, _, _ in rejected] == [0, 1, 3]
    assert "regions, points and lines are mixed" in rejected[-1][2]
    named, _, _ = answer(pipeline.simplify(spark.range(0, 3, 1, 2), template="size > 1 AND size > 2"))
    assert named == {(k, k): ct.parse("size > 2") for k in range(3)}


@ACROSS
def test_coordinate_systems(spark, across):
    def simplified(*srids):
        boxes = [shapely.set_srid(shapely.box(0, 0, 1, 1), srid) for srid in srids]
        rows = [(key, bytearray(shapely.to_wkb(one, include_srid=True))) for key, one in enumerate(boxes)]
        frame = spark.createDataFrame(rows, "key int, geometry binary").coalesce(1)
        return pipeline.simplify(frame, across=across, template="S_INTERSECTS(area, $geometry)")

    same = simplified(4326, 0)
    assert same.crs == {"area": "EPSG:4326"}
    assert same.subscriptions.count() == 2
    with pytest.raises(ct.CrsError, match=r"attribute 'area'.*EPSG:"):
        simplified(4326, 3857, 4326)


def test_streams_are_refused(spark):
    with pytest.raises(ct.ContradaError, match="stream"):
        pipeline.simplify(spark.readStream.format("rate").load().selectExpr("'x = 1' AS filter"))


def test_nothing_is_read_twice(spark):
    """Rows and report come from one pass over the input; later actions read what it made."""
    seen = spark.sparkContext.accumulator(0)

    def count(row):
        seen.add(1)
        return row

    rows = spark.sparkContext.parallelize([(f"k{k}", "s", f"x >= {k} AND x >= 0") for k in range(30)], 3).map(count)
    simplified = pipeline.simplify(spark.createDataFrame(rows, ROWS))
    for _ in range(2):
        assert simplified.subscriptions.count() == 30
        assert simplified.rejected.count() == 0
    assert seen.value == 30
