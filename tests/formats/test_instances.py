"""Instances of a template are the predicates that its rows ask, bound by plain Python."""

from decimal import Decimal

import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada.formats.templates import Instances
from contrada.geometry.arrow.geoarrow import with_crs
from oracles.subscriptions import bound

BOXES = [shapely.to_wkb(shapely.box(0, 0, k, 2)) for k in (1, 2, 3)]
ROWS = pa.table(
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
    assert list(Instances(template, ROWS)) == [bound(template, row) for row in ROWS.flatten().to_pylist()]


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
