"""Rows near messages: none that a message satisfies is left out, and bad rows have the reasons of a table."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.matching.building import TableBuilder
from contrada.matching.near_rows import CoveredCells, MessageBoxes, can_prune, sift_rows
from contrada.matching.table import subscribe_rows
from contrada.matching.template import asked_columns, read_columns
from effort import examples
from oracles.plain import predicate_holds

WHOLE = st.integers(0, 9).map(float)
SIDES = st.tuples(WHOLE, WHOLE, st.integers(0, 3), st.integers(0, 3))
BOXES = st.lists(SIDES.map(lambda side: (*side[:2], side[0] + side[2], side[1] + side[3])), min_size=1, max_size=12)
SHAPES = [
    *(shapely.box(x, y, x + w, y + w) for x, y, w in ((0, 0, 2), (2, 0, 1), (2, 2, 2), (7, 7, 1), (0, 0, 9))),
    shapely.box(0, 0, 6, 6) - shapely.box(1, 1, 4, 4),
    shapely.MultiPolygon([shapely.box(0, 8, 1, 9), shapely.box(8, 0, 9, 1)]),
]
POINTS = [shapely.Point(2, 2), shapely.Point(3, 3), shapely.Point(9, 9), shapely.Point(7.5, 7.5)]
TEMPLATES = [
    "S_INTERSECTS(area, $geometry)",
    "S_TOUCHES(area, $geometry)",
    "S_WITHIN(area, $geometry) AND size >= $least",
    "S_CONTAINS(area, $geometry) OR (S_OVERLAPS(area, $geometry) AND name LIKE $name)",
    "S_INTERSECTS(area, $geometry) AND S_INTERSECTS(place, POLYGON((0 0, 3 0, 3 3, 0 3, 0 0)))",
    "S_DISJOINT(area, $geometry) AND S_INTERSECTS(place, $geometry)",
]


@settings(max_examples=examples(400))
@given(own=BOXES, other=BOXES, most=st.sampled_from([1, 2, 3, 512]))
def test_every_box_that_meets_a_box_is_found(own, other, most):
    own, other = np.array(own), np.array(other)
    found = CoveredCells(own, most).meet(other)
    low, high = other[:, None, :2] <= own[:, 2:], own[:, :2] <= other[:, None, 2:]
    meets = (low & high).all(axis=2).any(axis=1)
    assert found[meets].all()
    if most == 512:  # every side is a line of the grid, so nothing else is found
        assert np.array_equal(found, meets)


def some_rows(rng, count, odd):
    """Rows of a template, some of them bad if `odd`."""
    geometry = [shapely.to_wkb(SHAPES[k]) for k in rng.integers(0, len(SHAPES), count)]
    least = rng.integers(0, 3, count).astype(float)
    names = [["a%", "b", "%"][k] for k in rng.integers(0, 3, count)]
    keys = list(range(count))
    if odd:
        geometry[3], geometry[5] = None, shapely.to_wkb(shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]))
        least[7], geometry[8] = np.nan, b"odd"
        keys[11], keys[12] = keys[10], None
    return pa.table({"key": pa.array(keys), "geometry": geometry, "least": least, "name": names})


def some_messages(rng, count):
    shapes = [*map(shapely.to_wkb, [*SHAPES, *POINTS]), None, b"no geometry"]
    columns = {name: [shapes[k] for k in rng.integers(0, len(shapes), count)] for name in ("area", "place")}
    columns |= {"size": rng.integers(0, 3, count).astype(float), "name": ["ab", "b"] * (count // 2)}
    return pa.table(columns)


@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("text", TEMPLATES)
def test_rows_that_match_are_near_and_reasons_are_those_of_a_table(text, odd):
    template, rng = ct.parse(text), np.random.default_rng(3)
    for count in (2, 4, 20):
        rows, messages = asked_columns(some_rows(rng, 40, odd), template), some_messages(rng, count)
        builder = TableBuilder(template)
        bad = builder.add(rows)
        sifted = sift_rows(rows, template, MessageBoxes.of_table(messages, {"area", "place"}))
        assert {item.row: item.reason for item in bad} == sifted.reasons
        assert sifted.good.tolist() == sorted({*range(40)} - {item.row for item in bad})
        assert set(sifted.near) <= set(sifted.good)
        table = ct.ForwardingTable()
        subscribe_rows(table, rows.take(sifted.near), template, read=read_columns(sifted.read, sifted.near, 40))
        for by in ("subscription", "subscriber"):
            whole, few = builder.table.match_many(messages, by), table.match_many(messages, by)
            assert list(map(set, whole)) == list(map(set, few))


def test_far_rows_are_left_out_and_the_plain_scan_agrees():
    rng = np.random.default_rng(8)
    corners = rng.integers(0, 1000, (3000, 2))
    geometry = shapely.to_wkb(shapely.box(*corners.T, *(corners + 3).T))
    rows, template = pa.table({"geometry": geometry, "key": np.arange(3000)}), ct.parse(TEMPLATES[0])
    areas = [ct.Region.box(x, y, x + 5, y + 5) for x, y in ((0, 0), (500, 500), (990, 3))]
    messages = pa.table({"area": [area.to_wkb() for area in areas]})
    sifted = sift_rows(rows, template, MessageBoxes.of_table(messages, ["area"]))
    regions = [ct.Region.from_wkb(wkb) for wkb in geometry]
    right = {
        row
        for row, region in enumerate(regions)
        for area in areas
        if predicate_holds([[ct.Constraint("area", ct.RelationSet.S_INTERSECTS, region)]], {"area": area})
    }
    assert right <= set(sifted.near.tolist())
    assert set(sifted.near.tolist()) == right, "boxes are regions here"


def test_only_templates_that_a_message_must_meet_can_leave_rows_out():
    prunes = ["S_INTERSECTS(area, $geometry) AND size > $least", "inside(a, $g) OR meets(b, $g)"]
    assert all(can_prune(ct.parse(text)) for text in prunes)
    keeps = ["size > $least", "S_DISJOINT(area, $geometry)", "inside(a, $g) OR size > $least"]
    assert not any(can_prune(ct.parse(text)) for text in keeps)


def test_several_coordinate_systems_in_a_column_are_an_error():
    tagged = [shapely.to_wkb(shapely.set_srid(SHAPES[0], srid), include_srid=True) for srid in (4326, 3857)]
    with pytest.raises(ct.CrsError):
        sift_rows(pa.table({"geometry": tagged}), ct.parse(TEMPLATES[0]), MessageBoxes({}))
