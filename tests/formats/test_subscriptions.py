"""Subscriptions from files, one by one or by a template."""

import io
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from console import collection, feature
from contrada.errors import FormatError
from contrada.formats.records import Rejected
from contrada.formats.subscriptions import Subscription, read_subscription_table, read_subscriptions
from contrada.formats.templates import Instances
from contrada.formats.times import instant_of
from contrada.geometry.arrow.geoarrow import with_crs
from generators.columnar import parquet_bytes
from oracles.subscriptions import bound

SQUARE = ct.Region.box(0, 0, 4, 4)
TEMPLATE = ct.parse("overlaps(area, $geometry) AND severity >= $least")


def read(*lines, **options):
    return list(read_subscriptions(io.BytesIO(b"\n".join(lines)), **options))


def features(*rows):
    return io.BytesIO(collection(feature(shape.to_geojson(), **properties) for shape, properties in rows).encode())


def test_newline_json():
    asked = {"op": "=", "args": [{"property": "a"}, 1]}
    found = read(
        b'{"key": "k1", "subscriber": "ops", "filter": "severity >= 3", "note": 1}',
        json.dumps({"key": 2, "filter": asked}).encode(),
        b'{"subscriber": "ops", "filter": "a = 1"}',
    )
    assert found[0].row["note"] == 1
    assert [item[3:6] for item in found] == [("k1", "ops", "severity >= 3"), (2, 2, asked), (None, "ops", "a = 1")]
    assert [item.number for item in found] == [1, 2, 3]


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'"a"', b'{"filter": "a = 1"}', b'{"key": true, "filter": "a = 1"}', b'{"key": 1.5, "filter": "a"}',
     b'{"key": 1}', b'{"key": 1, "filter": ""}', b'{"key": 1, "filter": {}}', b'{"key": 1, "filter": 7}',
     b'{"type": "Feature", "key": 1, "filter": "a = 1"}', b'{"key": 1, "subscriber": [], "filter": "a = 1"}'],
)  # fmt: skip
def test_a_bad_line_is_rejected_and_the_rest_goes_on(line):
    good = b'{"key": 1, "filter": "a = 1"}'
    found = read(good, line, good, format="ndjson")
    assert [type(item) for item in found] == [Subscription, Rejected, Subscription]
    assert found[1].number == 2
    assert found[1].raw == line.decode()


def test_parquet_and_csv(tmp_path):
    rows = pa.table({"key": [1, 2, 3], "subscriber": ["a", None, "c"], "filter": ["x = 1", "y = 2", None]})
    pq.write_table(rows, tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("key,subscriber,filter\n1,a,x = 1\n2,,y = 2\n3,c,\n")
    for name in ("a.parquet", "a.csv"):
        found = list(read_subscriptions(tmp_path / name))
        assert [item[3:6] for item in found[:2]] == [(1, "a", "x = 1"), (2, 2, "y = 2")]
        assert found[2].reason == "no filter"
        assert found[2].source.endswith(name)


def test_alerts_are_no_subscriptions():
    with pytest.raises(FormatError, match="CAP"):
        read(b"<alert/>")


def test_geojson_with_a_template():
    found = read_subscription_table(
        features((SQUARE, {"key": "a", "least": 3}), (ct.Region.box(8, 8, 9, 9), {"key": "b", "least": 2.5})), TEMPLATE
    )
    assert found.rejected == []
    assert [origin[2] for origin in found.origins] == [0, 1]
    table = ct.ForwardingTable()
    table.subscribe_many(found.table, TEMPLATE)
    assert set(table.match({"area": ct.Region.box(3, 3, 5, 5), "severity": 3})) == {"a"}
    assert set(table.match({"area": ct.Region.box(3, 3, 5, 5), "severity": 2})) == set()
    with pytest.raises(ct.CrsError):
        table.match({"area": ct.Region.box(3, 3, 5, 5, crs="EPSG:3857"), "severity": 3})


def test_a_template_of_several_filters():
    template = ct.parse("S_INTERSECTS(area, $geometry) AND severity >= 2 OR severity >= $least")
    found = read_subscription_table(features((SQUARE, {"least": 3}), (SQUARE, {}), (SQUARE, {"least": 5})), template)
    assert found.table.column_names == ["geometry", "least"]
    assert [rejected.reason for rejected in found.rejected] == ["column 'least': no value"]
    table = ct.ForwardingTable()
    table.subscribe_many(found.table, template)
    assert table.match_keys({"severity": 4}) == {0}


def test_rows_that_a_template_cannot_take():
    bad = {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [1, 0], [0, 1], [0, 0]]]}
    data = json.loads(features(*[(SQUARE, {"key": n, "least": n}) for n in range(9)]).read())
    for row, geometry in ((1, bad), (2, None), (3, {"type": "Point", "coordinates": [1, 1]})):
        data["features"][row]["geometry"] = geometry
    others = {"key": 4}, {"key": 5, "least": "high"}, {"key": 0, "least": 1}, {"least": 1}
    for row, properties in enumerate(others, 4):
        data["features"][row]["properties"] = properties
    found = read_subscription_table(io.BytesIO(json.dumps(data).encode()), TEMPLATE)
    assert found.table.column("key").to_pylist() == [0, 8]
    assert [item.number for item in found.rejected] == [1, 2, 3, 4, 5, 6, 7]
    for item, reason in zip(
        found.rejected,
        ("self-intersection", "no value", "as in earlier rows, got a point", "'least': no value",
         "need number, as in earlier rows, got text", "duplicate key 0", "'key': no value"),
        strict=True,
    ):  # fmt: skip
        assert reason in item.reason
    ct.ForwardingTable().subscribe_many(found.table, TEMPLATE)


def test_numbers_that_do_not_stand_together():
    rows = [(SQUARE, {"least": n}) for n in (0.5, 2**53 + 1, 3)]
    found = read_subscription_table(features(*rows), TEMPLATE)
    assert found.table.column("least").to_pylist() == [0.5, 3.0]
    assert "key" not in found.table.column_names
    assert [item.number for item in found.rejected] == [1]
    whole = read_subscription_table(features((SQUARE, {"least": 2**53 + 1}), (SQUARE, {"least": 1})), TEMPLATE)
    assert whole.table.column("least").to_pylist() == [2**53 + 1, 1]


def test_times_and_other_names():
    template = ct.parse("onset > $since")
    lines = b'{"id": 1, "since": "2024-05-01"}\n{"id": 2, "since": "2024-05-01T00:00:00.000000001Z"}\n'
    found = read_subscription_table(io.BytesIO(lines), template, key="id", times=["since"])
    table = ct.ForwardingTable()
    table.subscribe_many(found.table, template)
    assert set(table.match_keys({"onset": instant_of("2024-05-01T00:00:00.000000001Z")})) == {1}


@pytest.fixture
def rows():
    square = SQUARE.to_wkb()
    geometry = [square, b"bad", ct.Point(1, 1).to_wkb(), square, square, square, None]
    return pa.table({
        "key": ["a", "b", "c", "a", "e", None, "g"],
        "geometry": pa.array(geometry, pa.binary()),
        "about": [{"least": 1.0}] * 4 + [{"least": float("nan")}] + [{"least": 2.0}] * 2,
    }).replace_schema_metadata({"geo": json.dumps({"columns": {"geometry": {"encoding": "WKB"}}})})  # fmt: skip


def test_geoparquet_with_a_template(tmp_path, rows):
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path)
    template = ct.parse("overlaps(area, $geometry) AND severity >= $about.least")
    found = read_subscription_table(path, template)
    assert found.table.column("key").to_pylist() == ["a"]
    assert ct.RegionArray.from_arrow(found.table.column("geometry")).crs == "OGC:CRS84"
    assert list(found.origins) == [(str(path), "row", 0)]
    assert [item.number for item in found.rejected] == [1, 2, 3, 4, 5, 6]
    ct.ForwardingTable().subscribe_many(found.table, template)
    streamed = read_subscription_table(io.BytesIO(path.read_bytes()), template)
    assert [item.number for item in streamed.rejected] == [1, 2, 3, 4, 5, 6]
    assert streamed.table.to_pylist() == found.table.to_pylist()
    with pytest.raises(FormatError, match="'nothing'"):
        read_subscription_table(path, ct.parse("a = $nothing"))


def test_truncated_parquet_with_a_template(rows):
    found = read_subscription_table(io.BytesIO(parquet_bytes(rows)[:-20]), TEMPLATE, format="parquet")
    assert found.table.num_rows == 0
    assert len(found.rejected) == 1


def test_points_are_buffered_for_a_template():
    found = read_subscription_table(features((ct.Point(5, 5), {"least": 1}), (SQUARE, {"least": 1})), TEMPLATE,
                                    to_crs="EPSG:3857", buffer=500)  # fmt: skip
    assert found.table.num_rows == 2
    assert found.rejected == []


def test_decimals():
    decimals = [Decimal("0.1"), Decimal("2.5")]
    data = parquet_bytes(pa.table({"least": pa.array(decimals)}))
    found = read_subscription_table(io.BytesIO(data), ct.parse("severity >= $least"), format="parquet")
    assert found.table.column("least").to_pylist() == decimals


BOXES = [shapely.to_wkb(shapely.box(0, 0, k, 2)) for k in (1, 2, 3)]
INSTANCES = pa.table(
    {
        "geometry": BOXES,
        "spot": [shapely.to_wkb(shapely.Point(k, 1)) for k in range(3)],
        "low": [1, 2, 3],
        "high": [Decimal("1.5"), Decimal("0.1"), Decimal("9")],
        "name": ["a%", "B", "é"],
        "at": pa.array([1, 2, 10**18 + 1], pa.timestamp("ns", "UTC")),
        "flag": [True, False, True],
        "place": [{"code": 1}, {"code": 2}, {"code": 3}],
    }
)
TEMPLATES = [
    "S_INTERSECTS(area, $geometry)", "overlaps(area, $geometry) AND disjoint(area, $spot) OR size >= $low",
    "size BETWEEN $low AND $high", "size IN ($low, 7, $high)", "name LIKE $name", "CASEI(name) = CASEI($name)",
    "at > $at", "flag = $flag AND size IS NULL", "size <> $place.code", "meets(area, POINT(1 2)) AND size < $low",
]  # fmt: skip


@pytest.mark.parametrize("text", TEMPLATES)
def test_instances_are_what_each_row_asks(text):
    template = ct.parse(text)
    assert list(Instances(template, INSTANCES)) == [bound(template, row) for row in INSTANCES.flatten().to_pylist()]


def test_bad_rows_are_errors_in_their_places():
    bow_tie = shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))
    rows = pa.table({"geometry": [BOXES[0], bow_tie, None, BOXES[1]], "low": [1, 2, 3, None]})
    found = list(Instances(ct.parse("S_INTERSECTS(area, $geometry) AND size > $low"), rows))
    assert isinstance(found[0], ct.Predicate)
    assert [isinstance(one, ct.FilterError) for one in found] == [False, True, True, True]
    assert "column 'geometry'" in str(found[1])
    assert "no value" in str(found[2])
    assert str(found[3]) == "column 'low': no value"
    (odd,) = Instances(ct.parse("flag < $flag"), pa.table({"flag": [True]}))
    assert isinstance(odd, ct.FilterError)
    with pytest.raises(ct.FilterError, match="needs column 'high'"):
        Instances(ct.parse("x < $high"), rows)


def test_coordinate_systems_are_told_and_differences_refused():
    columns = {name: with_crs(pa.chunked_array([BOXES]), crs) for name, crs in (("a", "EPSG:3035"), ("b", "EPSG:4326"))}
    made = Instances(ct.parse("overlaps(area, $a) AND meets(other, $b) AND meets(area, POINT(1 2))"), pa.table(columns))
    assert made.crs == {"area": "EPSG:3035", "other": "EPSG:4326"}
    assert {one.value.crs for predicate in made for part in predicate for one in part} == {None}
    with pytest.raises(ct.CrsError, match=r"attribute 'area'.*EPSG:3035 and EPSG:4326"):
        Instances(ct.parse("overlaps(area, $a) OR meets(area, $b)"), pa.table(columns))
