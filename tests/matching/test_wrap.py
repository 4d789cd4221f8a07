"""Tables whose attributes are wrapped at the date line: every door against the plane, in which nothing is cut."""

import copy

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.matching.building import TableBuilder
from contrada.matching.row_scan import RowBlock, RowScan
from effort import examples
from generators.strategies import mosaic_shapes, shape_pairs

WORDS = ("S_INTERSECTS", "S_DISJOINT", "S_WITHIN", "S_CONTAINS", "S_EQUALS", "S_TOUCHES", "S_OVERLAPS")
TURNS = st.integers(-2, 2)
WRAP = {"area": "longitude", "at": "longitude"}
BOX = "S_INTERSECTS(area, BBOX(170, 0, 190, 9))"


def moved(shape, scale, by):
    return shapely.transform(shape, lambda xy: xy * scale + [by, 0])


def relations_on_the_globe(shape, other):
    """The words that hold of two shapes narrower than 180 degrees, by the plane in which they come closest."""
    a = ct.Region.from_shapely(shape) if shape.geom_type != "Point" else ct.Point(shape.x, shape.y)
    turns = [ct.Region.from_shapely(moved(other, 1, 360 * k)) for k in (-1, 0, 1)]
    found = {ct.relate(a, turned) for turned in turns} - {ct.Relation.DISJOINT}
    assert len(found) <= 1
    relation = found.pop() if found else ct.Relation.DISJOINT
    return {word for word in WORDS if relation in getattr(ct.RelationSet, word)}


def ewkb(shape):
    return shapely.to_wkb(shapely.set_srid(shape, 4326), include_srid=True)


def doors(shape):
    """One message through every door, as an iterable of answers of a table."""
    geojson = shapely.geometry.mapping(shape)
    plain = ct.Region.from_shapely(shape) if shape.geom_type != "Point" else ct.Point(shape.x, shape.y)
    for value in (shape, shapely.set_srid(shape, 4326), shapely.to_wkb(shape), ewkb(shape), geojson, plain):
        yield lambda table, value=value: table.match_keys({"area": value})
        yield lambda table, value=value: table.match_many([{"area": value}], by="subscription")[0]
    yield lambda table: table.match_keys({"nested": {"deeper": 1}, "area": geojson})
    for value in (shapely.to_wkb(shape), ewkb(shape)):
        rows = pa.table({"area": [value]})
        yield lambda table, rows=rows: table.match_many(rows, by="subscription")[0]


def tables(shape):
    """One subscription for every word, through every door."""
    wkt = shapely.to_wkt(shape, rounding_precision=-1)
    region = ct.Region.from_shapely(shape)
    one = ct.ForwardingTable(wrap=WRAP)
    for word in WORDS:
        one.subscribe("s", f"{word}(area, {wkt})", key=word)
    yield one
    yield one.simplified()
    other = ct.ForwardingTable(wrap=WRAP)
    for word in WORDS:
        other.subscribe("s", ct.Constraint("area", getattr(ct.RelationSet, word), region), key=word)
    other.simplify()
    yield other
    for data in (shapely.to_wkb(shape), ewkb(shape)):
        third, fourth = ct.ForwardingTable(wrap=WRAP), ct.ForwardingTable(wrap=WRAP)
        for word in WORDS:
            rows = pa.table({"key": [word], "geometry": [data]})
            third.subscribe_many(rows, f"{word}(area, $geometry)")
            assert TableBuilder(ct.parse(f"{word}(area, $geometry)"), fourth).add(rows) == []
        yield third
        yield fourth


@given(mosaic_shapes(2), st.integers(1, 7), st.integers(150, 183), TURNS, TURNS)
def test_all_relations_are_those_of_the_plane_without_a_cut(pair, scale, by, turn, other_turn):
    asked, given_shape = (moved(shape, scale, by + 0.5) for shape in pair)
    table = next(tables(moved(asked, 1, 360 * turn)))
    found = table.match_keys({"area": moved(given_shape, 1, 360 * other_turn)})
    assert set(found) == relations_on_the_globe(given_shape, asked)


@settings(max_examples=examples(15))
@given(mosaic_shapes(2), st.integers(1, 7), st.integers(150, 183), TURNS, TURNS)
def test_every_door_answers_as_the_plane_without_a_cut(pair, scale, by, turn, other_turn):
    # Edges are parallel to an axis or diagonal, and no vertex is on the date line: all cuts are exact.
    asked, given_shape = (moved(shape, scale, by + 0.5) for shape in pair)
    expected = relations_on_the_globe(given_shape, asked)
    turned = moved(given_shape, 1, 360 * other_turn)
    for table in tables(moved(asked, 1, 360 * turn)):
        if isinstance(table, ct.ForwardingTable):
            assert set(table.match_keys({"area": ct.Region.from_shapely(turned)})) == expected
        else:
            assert bool(table.match({"area": ct.Region.from_shapely(turned)})) == bool(expected)
    table = next(tables(asked))
    for door in doors(turned):
        assert set(door(table)) == expected


@given(shape_pairs(), st.integers(1, 6), st.integers(150, 183), TURNS)
def test_regions_of_any_slope_are_found_if_their_interiors_meet(pair, scale, by, turn):
    asked, given_shape = (moved(shape, scale, by) for shape in pair)
    common, apart = shapely.intersection(asked, given_shape).area, shapely.distance(asked, given_shape)
    table = ct.ForwardingTable(wrap=WRAP)
    table.subscribe("s", ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.from_shapely(asked)), key="k")
    found = table.match_keys({"area": moved(given_shape, 1, 360 * turn)})
    assert bool(found) or common < 1e-9
    assert not found or apart < 1e-9


@settings(max_examples=examples(30))
@given(mosaic_shapes(1), st.integers(1, 7), st.integers(150, 183), st.tuples(*[st.integers(0, 12)] * 2), TURNS)
def test_points_are_wrapped_as_regions_are(shapes, scale, by, place, turn):
    asked, at = moved(shapes[0], scale, by + 0.5), shapely.Point(place[0] * scale / 4 + by + 0.5, place[1] * scale / 4)
    at_the_line = (at.x - 180) % 360 == 0
    expected = relations_on_the_globe(at, asked)
    if at_the_line:  # within a region the line is an edge of both pieces
        expected = expected & {"S_INTERSECTS", "S_DISJOINT"}
    turned = moved(at, 1, 360 * turn)
    table = next(tables(asked))
    for door in doors(turned):
        found = set(door(table))
        assert (found & {"S_INTERSECTS", "S_DISJOINT"} if at_the_line else found) == expected


def test_batches_keep_their_rows_and_say_why_some_are_bad():
    table = ct.ForwardingTable(wrap=WRAP)
    table.subscribe("s", BOX, key="w")
    values = [
        ewkb(shapely.box(185, 1, 186, 2)),
        shapely.to_wkb(shapely.box(0, 1, 1, 2)),
        None,
        shapely.to_wkb(shapely.set_srid(shapely.box(185, 1, 186, 2), 25832), include_srid=True),
        ewkb(shapely.box(0, 1, 400, 2)),
        ewkb(shapely.from_wkt("POLYGON((170 0, 190 9, 190 0, 170 9, 170 0))")),
        b"rubbish",
        ewkb(shapely.Point(-185, 4)),
        shapely.to_wkb(shapely.box(-175, 1, -174, 2)),
    ]
    answer = table.match_many(pa.table({"area": values}), by="subscription")
    assert [set(answer[k]) for k in range(len(values))] == [{"w"}, *[set()] * 6, {"w"}, {"w"}]
    reasons = {bad.row: bad.reason for bad in answer.rejected}
    assert sorted(reasons) == [3, 4, 5, 6]
    assert "attribute 'area': wrap: EPSG:25832 is not in degrees" in reasons[3]
    assert "attribute 'area': wrap: longitudes 0.0..400.0 are more than 360 degrees apart" in reasons[4]
    one_by_one = table.match_many([{"area": value} for value in values], by="subscription")
    assert [set(one_by_one[k]) for k in range(len(values))] == [set(answer[k]) for k in range(len(values))]
    assert {bad.row: bad.reason for bad in one_by_one.rejected}.keys() == reasons.keys()


def test_attributes_that_are_not_named_do_not_change():
    table = ct.ForwardingTable(wrap={"area": "longitude"})
    table.subscribe("s", BOX, key="w")
    table.subscribe("s", BOX.replace("area", "zone"), key="z")
    assert set(
        table.match_keys({"area": ct.Region.box(-175, 1, -174, 2), "zone": ct.Region.box(-175, 1, -174, 2)})
    ) == {"w"}
    assert set(table.match_keys({"zone": ct.Region.box(185, 1, 186, 2)})) == {"z"}
    assert not ct.ForwardingTable().wrap


def test_the_shorter_way():
    table = ct.ForwardingTable(wrap={"area": "shorter"})
    table.subscribe("s", "S_INTERSECTS(area, POLYGON((170 0, -170 0, -170 9, 170 9, 170 0)))", key="w")
    for value in (shapely.box(179, 1, 179.5, 2), shapely.box(-175, 1, -174, 2)):
        assert set(table.match_keys({"area": value})) == {"w"}
        assert set(table.match_many(pa.table({"area": [ewkb(value)]}), by="subscription")[0]) == {"w"}
    assert not table.match_keys({"area": shapely.box(0, 1, 1, 2)})
    wide = [[170, 1], [-170, 1], [-170, 2], [170, 2], [170, 1]]
    assert set(table.match_keys({"area": {"type": "Polygon", "coordinates": [wide]}})) == {"w"}
    cap = shapely.to_wkb(shapely.Polygon([(0, 8), (90, 8), (180, 8), (-90, 8)]))
    for _ in range(2):  # a region that was wrapped stays as it is
        assert set(table.match_many(pa.table({"area": [cap]}), by="subscription")[0]) == {"w"}
        cap = ct.read_regions([cap], wrap="shorter").regions[0].to_wkb()


@pytest.mark.parametrize("start", [-180, 0, 37.5])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("latitudes", [(80, 80, 80, 80), (80, 70, 75, 60)])
def test_an_outline_once_around_is_the_region_to_the_pole(start, side, latitudes):
    ring = [[start + 90 * k, side * y] for k, y in enumerate((*latitudes, latitudes[0]))]
    table = ct.ForwardingTable(wrap={"area": "longitude"})
    for name, y in (("pole", 89), ("outside", 50)):
        for x in (-175, 3, 175):
            table.subscribe("s", f"S_CONTAINS(area, POINT ({x} {side * y}))", key=f"{name} {x}")
    polar = {"pole -175", "pole 3", "pole 175"}
    for outline in (ring, ring[::-1]):
        value = {"type": "Polygon", "coordinates": [outline]}
        assert set(table.match_keys({"area": value})) == polar
        (read,) = ct.read_regions([value], crs="EPSG:4326", wrap="longitude").regions
        assert set(table.match_keys({"area": read})) == polar
        kind = pa.list_(pa.list_(pa.list_(pa.float64(), 2)))
        column = pa.table({"area": pa.array([[outline]], kind)})
        assert set(table.match_many(column, by="subscription")[0]) == polar


def test_boxes_around_the_globe_stay_boxes():
    corners = np.array([(-180, 60), (180, 60), (180, 90), (-180, 90)])
    for way in (corners, corners[::-1]):
        for start in range(4):
            ring = np.roll(way, start, axis=0).tolist()
            for closed in (ring, [*ring, ring[0]]):
                (read,) = ct.read_regions(
                    [{"type": "Polygon", "coordinates": [closed]}], crs="EPSG:4326", wrap="longitude"
                ).regions
                assert read == ct.Region.box(-180, 60, 180, 90)
    # A ring that was closed is one of the plane: here the sea between a parallel and a coast.
    sea = [[-180, -60], [180, -60], [180, -80], [0, -70], [-180, -80], [-180, -60]]
    (read,) = ct.read_regions([{"type": "Polygon", "coordinates": [sea]}], wrap="longitude").regions
    assert read == ct.Region(sea)
    (bad,) = ct.read_regions(
        [{"type": "Polygon", "coordinates": [[[0, -5], [180, 5], [360, -5]]]}], wrap="longitude"
    ).rejected
    assert "both sides of the equator" in bad.reason


def test_saved_tables_keep_how_they_wrap(tmp_path):
    table = ct.ForwardingTable(wrap=WRAP)
    table.subscribe("s", BOX, key="w")
    table.save(tmp_path / "table")
    assert copy.deepcopy(table).wrap == WRAP
    opened = ct.ForwardingTable.open(tmp_path / "table")
    assert opened.wrap == table.wrap == WRAP
    assert set(opened.match_keys({"area": ct.Region.box(-175, 1, -174, 2)})) == {"w"}
    opened.subscribe("s", BOX.replace("0, 190", "0, 175"), key="new")
    assert set(opened.match_keys({"area": ct.Region.box(-187, 1, -174, 2)})) == {"w", "new"}
    shorter = table.simplified()
    shorter.save(tmp_path / "shorter")
    assert ct.SubscriberTable.open(tmp_path / "shorter").wrap == WRAP
    assert set(ct.SubscriberTable.open(tmp_path / "shorter").match({"area": ct.Region.box(-175, 1, -174, 2)})) == {"s"}


def test_explain_shows_what_was_written_and_what_it_became():
    table = ct.ForwardingTable(wrap=WRAP)
    table.subscribe("s", BOX, key="w")
    table.subscribe("s", ct.Constraint("at", ct.RelationSet.S_EQUALS, ct.Point(190, 5)), key="p")
    shown = str(table.explain({"area": ct.Region.box(-175, 1, -174, 2)}, "w"))
    assert f"written: {BOX}" in shown
    assert "MULTIPOLYGON" in shown
    shown = str(table.explain({"at": ct.Point(-170, 5)}, "p"))
    assert "written: S_EQUALS(at, POINT (190 5))" in shown
    assert "S_EQUALS(at, POINT (-170 5))" in shown
    assert table.written("p") == "S_EQUALS(at, POINT (190 5))"


def test_rows_that_are_read_past_few_messages_are_wrapped():
    boxes = [shapely.box(170 + k, 0, 190 + k, 9) for k in range(-360, 360, 30)]
    rows = pa.table({"key": list(range(len(boxes))), "geometry": [ewkb(box) for box in boxes]})
    template = ct.parse("S_INTERSECTS(area, $geometry)")
    messages = [[{"area": shapely.box(-175, 1, -174, 2)}], pa.table({"area": [ewkb(shapely.box(545, 1, 546, 2))]})]
    scan = RowScan(template, messages, wrap=WRAP)
    scan.run([RowBlock(rows, rows)])
    table = ct.ForwardingTable(wrap=WRAP)
    table.subscribe_many(rows, template)
    assert not scan.bad
    for found, batch in zip(scan.matches("subscription"), messages, strict=True):
        assert scan.names.keys_of(found.rows) == sorted(table.match_many(batch, by="subscription")[0]) != []


@pytest.mark.parametrize(
    "wrap", ["longitude", {"area": "latitude"}, {"area": None}, {"": "longitude"}, {5: "longitude"}, {"area": ["x"]}]
)
def test_bad_options_are_refused(wrap):
    with pytest.raises(ct.ArgumentError, match="wrap: "):
        ct.ForwardingTable(wrap=wrap)


def test_errors_name_attribute_column_and_row():
    table = ct.ForwardingTable(wrap={"area": "longitude"})
    with pytest.raises(ct.ContradaError, match="constraint on 'area': wrap: EPSG:25832 is not in degrees"):
        table.subscribe("s", ct.Constraint("area", ct.Relation.MEETS, ct.Region.box(0, 0, 1, 1, crs="EPSG:25832")))
    with pytest.raises(ct.FilterError, match=r"constraint on 'area': .*more than 360 degrees"):
        table.subscribe("s", "S_INTERSECTS(area, BBOX(0, 0, 400, 9))")
    rows = pa.table({"geometry": [ewkb(shapely.box(0, 0, 1, 1)), ewkb(shapely.box(0, 0, 400, 1))]})
    with pytest.raises(ct.ContradaError, match=r"column 'geometry', row 1: .*more than 360 degrees"):
        table.subscribe_many(rows, "S_INTERSECTS(area, $geometry)")
    with pytest.raises(ct.FilterError, match="wrapped in different ways"):
        table.subscribe_many(rows, "S_INTERSECTS(area, $geometry) OR S_INTERSECTS(zone, $geometry)")
    table.subscribe("s", BOX)
    with pytest.raises(ct.ContradaError, match=r"attribute 'area': .*more than 360 degrees"):
        table.match({"area": shapely.box(0, 0, 400, 9)})
    assert len(table) == 1
