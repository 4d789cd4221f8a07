"""The SQL functions: the answers of `relate` and of a ForwardingTable, for WKB, EWKB and GEOMETRY."""

import pyarrow as pa
import pytest
import shapely
from pyspark.errors import PySparkException
from sample_tables import every_operator

import contrada as ct
from contrada import pipeline
from contrada.pipeline.sql import columns
from generators.filters_of_every_kind import random_messages

SHAPES = [
    shapely.box(0, 0, 4, 4), shapely.box(4, 0, 8, 4), shapely.box(2, 2, 6, 6), shapely.box(1, 1, 2, 2),
    shapely.box(0, 0, 2, 2), shapely.box(0, 0, 9, 9) - shapely.box(0, 0, 4, 4), shapely.Point(4, 4),
    shapely.Point(1, 1), shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(4, 4, 5, 5)]),
]  # fmt: skip
WKB = [*map(shapely.to_wkb, SHAPES)]
BOW_TIE = shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))


@pytest.fixture(scope="module")
def sql(spark, place):
    """A session with the functions, and a view of all pairs of shapes and null."""
    pipeline.register(spark)
    shapes = [*map(bytearray, WKB), None]
    rows = [(k, m, a, b) for k, a in enumerate(shapes) for m, b in enumerate(shapes)]
    spark.createDataFrame(rows, "k int, m int, a binary, b binary").createOrReplaceTempView("pairs")
    return spark


def right(k, m):
    if max(k, m) == len(WKB):
        return None
    one, other = (
        ct.PointArray if shapely.from_wkb(w).geom_type == "Point" else ct.RegionArray for w in (WKB[k], WKB[m])
    )
    return ct.relate(one.from_wkb([WKB[k]]), other.from_wkb([WKB[m]]))[0]


def test_relations_of_binary_geometry_and_literals(sql):
    found = sql.sql("""
        SELECT k, m, ct_relate(a, b) AS bytes, ct_relate(st_geomfromwkb(a), st_geomfromwkb(b)) AS geometries,
            ct_relates(a, b, 'meets|S_WITHIN') AS some, ct_valid(a) AS valid,
            ct_relate(a, CAST(NULL AS BINARY)) AS nothing
        FROM pairs
    """).collect()
    assert len(found) == 100
    for row in found:
        code = right(row.k, row.m)
        name = None if code is None else ct.Relation(int(code)).name.lower()
        assert (row.bytes, row.geometries) == (name, name)
        words = ct.RelationSet(ct.Relation.MEETS) | ct.RelationSet.S_WITHIN
        assert row.some == (None if code is None else int(code) in words)
        assert row.valid == (None if row.k == len(WKB) else True)
        assert row.nothing is None


def test_messages_match_an_artifact_as_a_table_does(sql, place):
    rows, table = every_operator()
    artifact = pipeline.compile(sql.createDataFrame(rows), place, plan="broadcast").artifact
    messages = random_messages(200)
    sql.createDataFrame(messages).repartition(3).createOrReplaceTempView("messages")
    found = sql.sql(f"SELECT message_id, ct_match('{artifact.path}', struct(*)) AS who FROM messages").collect()
    answer = table.match_many(messages)
    bad = {item.row for item in answer.rejected}
    assert bad
    for row in found:
        number = int(row.message_id[1:])
        assert (None if row.who is None else sorted(row.who)) == (None if number in bad else sorted(answer[number]))


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("ct_relate(bad, a)", "ct_relate: first argument: self-intersection"),
        ("ct_relates(a, bad, 'meets')", "ct_relates: second argument: self-intersection"),
        ("ct_relates(a, a, 'meets|near')", "ct_relates: unknown relation 'near'"),
        ("ct_relate(st_geomfromwkb(a, 4326), st_geomfromwkb(a, 3857))", "EPSG:4326 and EPSG:3857"),
        ("ct_relate(a, 'POINT(1 2)')", "ct_relate: second argument is string; need BINARY with WKB, or GEOMETRY"),
        ("ct_relate(line, a)", "ct_relate: first argument: a line; the eight relations are between regions and points"),
        ("ct_relates(a, line, 'S_WITHIN|meets')", "ct_relates: 'meets' is between regions and points, and a value is"),
        ("ct_within_distance(a, line, -1)", "ct_within_distance: distance in row 0: need a finite number"),
        ("ct_within_distance(bad, line, 1)", "ct_within_distance: first argument: self-intersection"),
        ("ct_within_metres(a, line, 1)", "ct_within_metres: distances in metres take no lines"),
        ("ct_within_metres(a, far, 1)", "ct_within_metres: .*longitude"),
        ("ct_match('/nowhere', struct(*))", "ct_match: /nowhere is not an artifact"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_a_clear_error(sql, call, reason):
    given = WKB[0], BOW_TIE, ct.Line([(0, 0), (4, 4)]).to_wkb(), ct.Point(0, 91).to_wkb()
    rows = sql.createDataFrame([tuple(map(bytearray, given))], "a binary, bad binary, line binary, far binary")
    assert rows.selectExpr("CAST(NULL AS BINARY) AS n", "*").selectExpr("1").count() == 1
    with pytest.raises(PySparkException, match=reason.replace("(", r"\(")):
        rows.selectExpr(call).collect()


LINES = [
    shapely.LineString([(0, 0), (4, 4)]), shapely.LineString([(4, 0), (4, 8)]), shapely.LineString([(1, 1), (2, 2)]),
    shapely.MultiLineString([[(0, 9), (9, 9)], [(5, 5), (6, 6)]]),
]  # fmt: skip
OGC = {
    "S_INTERSECTS": shapely.intersects, "S_CROSSES": shapely.crosses, "S_TOUCHES": shapely.touches,
    "S_WITHIN": shapely.covered_by, "S_CONTAINS": shapely.covers, "S_DISJOINT": shapely.disjoint,
}  # fmt: skip


@pytest.fixture(scope="module")
def shapes_and_lines(sql):
    """Rows of all pairs of shapes and lines, on Spark and as Shapely's."""
    every = [*SHAPES, *LINES]
    rows = [(k, m, *(bytearray(shapely.to_wkb(shape)) for shape in (a, b)))
            for k, a in enumerate(every) for m, b in enumerate(every)]  # fmt: skip
    return sql.createDataFrame(rows, "k int, m int, a binary, b binary").repartition(2), every


@pytest.mark.slow
def test_words_for_lines_are_those_of_ogc(shapes_and_lines):
    frame, every = shapes_and_lines
    frame = frame.where("NOT (k < 9 AND m < 9)")
    for row in frame.selectExpr("k", "m", *(f"ct_relates(a, b, '{word}') AS {word}" for word in OGC)).collect():
        a, b = every[row.k], every[row.m]
        for word, right in OGC.items():
            if word in ("S_WITHIN", "S_CONTAINS"):  # where only boundaries meet, nothing is within
                right = {"S_WITHIN": shapely.within, "S_CONTAINS": shapely.contains}[word]
            assert row[word] == bool(right(a, b)), (a, b, word)
    assert frame.where("ct_relates(a, b, 's_crosses|S_TOUCHES')").count() > 20
    assert frame.where("ct_valid(a)").count() == frame.count()


@pytest.mark.slow
def test_distances_of_all_shapes(shapes_and_lines):
    frame, every = shapes_and_lines
    found = frame.selectExpr(
        "k", "m", "ct_within_distance(a, b, 1) AS one", "ct_within_distance(a, b, 0.5 * m) AS some",
        "ct_within_distance(a, b, IF(m = 3, NULL, 0.0)) AS zero",
    )  # fmt: skip
    for row in found.collect():
        a, b = every[row.k], every[row.m]
        far = shapely.distance(a, b)
        assert (row.one, row.some) == (far <= 1, far <= 0.5 * row.m), (a, b)
        assert row.zero == (None if row.m == 3 else bool(shapely.intersects(a, b)))
    assert {row.one for row in found.collect()} == {True, False}


def test_metres_between_regions_and_points(sql):
    far = [ct.Point(179.999, 0), ct.Region.box(-180, 0, -179.999, 1)]
    rows = [(bytearray(a.to_wkb()), bytearray(b.to_wkb()), metres) for a in far for b in far for metres in (100, 112)]
    frame = sql.createDataFrame(rows, "a binary, b binary, metres int")
    found = frame.selectExpr("ct_within_metres(a, b, metres) AS near").collect()
    expected = [bool(ct.within_distance(a, b, metres, "m")) for a in far for b in far for metres in (100, 112)]
    assert [row.near for row in found] == expected == [True, True, False, True, False, True, True, True]


def test_a_place_beyond_the_globe_harms_no_null():
    far, near = ct.Point(0, 91).to_wkb(), ct.Point(0, 1).to_wkb()
    sent = pa.array([near, far, far]), pa.array([near, None, near]), pa.array([1.0, 1.0, None])
    assert columns.are_near(*sent, "ct_within_metres", "m").to_pylist() == [True, None, None]
    with pytest.raises(ct.ArgumentError, match=r"ct_within_metres: .*POINT"):
        columns.are_near(sent[0], pa.array([near] * 3), pa.array([1.0] * 3), "ct_within_metres", "m")


def test_invalid_values_are_told_and_harm_no_null():
    bad, none = pa.array([BOW_TIE, None, b"x", WKB[0]]), pa.array([None] * 4, pa.binary())
    assert columns.are_valid(bad).to_pylist() == [False, None, False, True]
    assert columns.relations(bad, none).to_pylist() == [None] * 4
    assert columns.relations(none.slice(0, 0), none.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize("order", [0, 1])
def test_a_crs_is_set_for_rows_that_have_none(order):
    own = shapely.to_wkb(shapely.set_srid(SHAPES[0], 3857), include_srid=True)
    plain, high = (shapely.to_wkb(shape, byte_order=order) for shape in (SHAPES[0], shapely.Point(1, 2, 3)))
    given = pa.array([plain, own, None, b"x", high])
    made = columns.with_crs(given, pa.array(["EPSG:3035"] * 4 + ["EPSG:4326"])).to_pylist()
    assert made[1:4] == [own, None, b"x"]
    assert [shapely.get_srid(shapely.from_wkb(made[k])) for k in (0, 4)] == [3035, 4326]
    assert shapely.from_wkb(made[0]).equals(SHAPES[0])
    with pytest.raises(ct.CrsError, match="EPSG:3035 and EPSG:3857"):
        columns.relations(pa.array(made[:1]), pa.array([own]))


def test_rows_of_one_column_may_be_in_several_systems():
    one = [shapely.to_wkb(shapely.set_srid(SHAPES[0], srid), include_srid=bool(srid)) for srid in (4326, 3857, 0)]
    assert columns.relations(pa.array(one), pa.array(one)).to_pylist() == ["equals"] * 3
    with pytest.raises(ct.CrsError, match="EPSG:4326 and EPSG:3857"):
        columns.relations(pa.array(one[:1]), pa.array(one[1:2]))
