"""Lines as values: reading, writing, faults, equality, columns, saved columns."""

import copy
import pickle

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from contrada.geometry.reading import shape_of
from generators.lines import line_shapes

BENT = ct.Line([(0, 0), (4, 0), (4, 4)])
TWO = ct.Line([(0, 0), (1, 1)], [(5, 5), (6, 5), (7, 9)])


@given(line_shapes())
def test_every_form_reads_back_to_the_same_line(shape):
    line = ct.Line.from_shapely(shape)
    given_vertices = {tuple(xy) for xy in shapely.get_coordinates(shape).tolist()}
    assert {tuple(xy) for part in line.parts for xy in part.tolist()} == given_vertices
    assert all((part[1:] != part[:-1]).any(axis=1).all() for part in line.parts)
    read = [
        ct.Line.from_wkt(line.to_wkt()), ct.Line.from_wkb(line.to_wkb()), ct.Line.from_geojson(line.to_geojson()),
        ct.Line.from_shapely(line.to_shapely()), ct.Line(*line.parts), pickle.loads(pickle.dumps(line)),
        copy.deepcopy(line), shape_of(geopandas.GeoSeries([line.to_shapely()]))[0],
    ]  # fmt: skip
    assert all(other == line and hash(other) == hash(line) for other in read)
    assert [part.tolist() for part in read[1].parts] == [part.tolist() for part in line.parts]


@given(st.lists(line_shapes() | st.none(), max_size=6))
def test_columns_read_back_and_set_nulls_aside(shapes):
    values = np.array([*shapes, None], dtype=object)[:-1]
    wkb = [None if shape is None else shapely.to_wkb(shape) for shape in shapes]
    read = ct.read_lines(values)
    there = [k for k, shape in enumerate(shapes) if shape is not None]
    assert read.rows.tolist() == there
    assert [(bad.row, bad.fault.value) for bad in read.rejected] == [
        (k, "null") for k in range(len(shapes)) if k not in there
    ]
    column = read.lines
    assert ct.read_lines(pa.array(wkb, pa.binary())).lines == column == ct.read_lines(wkb).lines
    for form in (column.to_arrow(), column.to_wkb()):
        assert ct.LineArray.from_arrow(form) == column
        assert ct.LineArray.from_arrow(form[1:]) == column[1:]
    assert pickle.loads(pickle.dumps(column)) == column
    assert ct.LineArray.from_lines(list(column)) == column
    assert column.bounds.tolist() == [list(line.bounds) for line in column]


def test_equality_ignores_order_direction_and_start():
    ring = [(0, 0), (4, 0), (4, 4), (0, 4)]
    closed = ct.Line([*ring, ring[0]])
    for k in range(4):
        turned = ring[k:] + ring[:k]
        assert closed == ct.Line([*turned, turned[0]]) == ct.Line([turned[0], *turned[::-1]])
    eight = [(0, 0), (1, 1), (2, 0), (0, 0), (-1, 1), (-2, 0)]
    assert ct.Line([*eight, (0, 0)]) == ct.Line([*eight[3:], *eight[:3], eight[3]])
    assert ct.Line([*eight, (0, 0)]) != ct.Line([*eight[:3], *eight[3:][::-1], (0, 0)][:7])
    assert TWO == ct.Line([(7, 9), (6, 5), (5, 5)], [(1, 1), (0, 0)]) != BENT
    assert ct.Region.box(0, 0, 4, 4) != BENT
    assert ct.Line([(0, 0), (4, 0), (4, 4)], crs="EPSG:25832") == BENT


def test_repeated_vertices_negative_zero_and_empty_parts_are_left_out():
    line = ct.Line.from_wkt("MULTILINESTRING((-0 0, -0 0, 1 1, 1 1, 0 0), EMPTY, (2 2, 3 3))")
    assert line.to_wkt() == "MULTILINESTRING ((0 0, 1 1, 0 0), (2 2, 3 3))"
    assert not np.signbit(line.parts[0]).any()
    assert ct.Line.from_wkt("LINESTRING Z (0 0 5, 1 1 6)") == ct.Line([(0, 0), (1, 1)])


@pytest.mark.parametrize(
    ("text", "fault", "why"),
    [
        ("LINESTRING(1 2, 1 2, 1 2)", "too-few-vertices", "fewer than two distinct vertices near (1.0, 2.0)"),
        ("MULTILINESTRING((0 0, 1 1), (2 2, 2 2))", "too-few-vertices", "part 1: fewer than two"),
        ("LINESTRING EMPTY", "empty", "empty geometry"),
        ("MULTILINESTRING(EMPTY, EMPTY)", "empty", "empty geometry"),
        ("LINESTRING(0 0, 1e121 0)", "bad-coordinate", "outside 1e-120..1e120"),
        ("LINESTRING(0 0, nan 0)", "bad-coordinate", "not finite"),
        ("LINESTRING(0 0, 1 1", "malformed", "malformed"),
        ("POINT(1 1)", "point", "wrong geometry type Point; a line is a LineString or MultiLineString"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0))", "wrong-type", "wrong geometry type Polygon; a line is"),
        ("GEOMETRYCOLLECTION(LINESTRING(0 0, 1 1))", "wrong-type", "GeometryCollection"),
        ("CIRCULARSTRING(0 0, 1 1, 2 0)", "curved", "curves"),
    ],
)
def test_faults(text, fault, why):
    (bad,) = ct.read_lines(["LINESTRING(0 0, 1 1)", text]).rejected
    assert (bad.row, bad.fault.value) == (1, fault)
    assert why in bad.reason
    with pytest.raises(ct.RegionError, match="row 1: "):
        ct.LineArray.from_wkt(["LINESTRING(0 0, 1 1)", text])
    with pytest.raises(ct.RegionError) as raised:
        ct.Line.from_wkt(text)
    assert not str(raised.value).startswith("row")


def test_geojson_faults_and_features():
    feature = {"type": "Feature", "geometry": BENT.to_geojson(), "properties": {}}
    rows = [feature, BENT.to_geojson(), '{"type": "Polygon"}', {"type": "Feature", "geometry": None}, {}]
    read = ct.read_lines(rows)
    assert list(read.lines) == [BENT, BENT]
    assert [bad.fault.value for bad in read.rejected] == ["wrong-type", "null", "malformed"]
    with pytest.raises(ct.RegionError, match="part 1 is not a sequence"):
        ct.Line([(0, 0), (1, 1)], 7)
    with pytest.raises(ct.RegionError, match="part 0 is not a sequence"):
        ct.Line([(0, 0, 0, 0, 0), (1, 1, 1, 1, 1)])


def test_systems_are_carried_and_compared():
    line = ct.Line([(9, 50), (10, 51)], crs="EPSG:4326")
    assert ct.Line.from_wkb(line.to_wkb(srid=True)).crs == "EPSG:4326"
    column = ct.LineArray.from_lines([line, line])
    assert ct.LineArray.from_arrow(column.to_arrow()).crs == column[1:].crs == column[0].crs == "EPSG:4326"
    assert ct.read_lines(geopandas.GeoSeries(column.to_shapely(), crs="EPSG:4326")).lines.crs == "EPSG:4326"
    with pytest.raises(ct.CrsError):
        ct.LineArray.from_arrow(column.to_arrow(), crs="EPSG:25832")
    with pytest.raises(ct.CrsError):
        BENT.to_wkb(srid=True)
    (bad,) = ct.read_lines([line.to_wkb(srid=True), BENT.to_wkb()], crs="EPSG:25832").rejected
    assert bad.fault is ct.FaultCode.OTHER_CRS
    (far,) = ct.read_lines(["LINESTRING(170 0, 190 0)"], crs="EPSG:4326").rejected
    assert far.fault is ct.FaultCode.OFF_THE_GLOBE


def test_geoarrow_of_other_libraries(tmp_path):
    frame = geopandas.GeoDataFrame(geometry=[BENT.to_shapely(), BENT.to_shapely()], crs="EPSG:25832")
    for encoding in ("WKB", "geoarrow"):
        column = pa.table(frame.to_arrow(geometry_encoding=encoding))["geometry"]
        assert list(ct.read_lines(column).lines) == [BENT, BENT]
    multi = geopandas.GeoDataFrame(geometry=[TWO.to_shapely()] * 2, crs="EPSG:25832")
    arrow = pa.table(multi.to_arrow(geometry_encoding="geoarrow"))["geometry"]
    assert list(ct.read_lines(arrow).lines) == [TWO, TWO]


def test_rows_are_chosen_as_in_other_columns():
    column = ct.LineArray.from_lines([BENT, TWO, BENT])
    assert column[1] == column[-2] == TWO
    assert list(column[::2]) == [BENT, BENT] == list(column[np.array([True, False, True])])
    assert list(column[[1, 1]]) == [TWO, TWO]
    assert len(column[:0]) == 0 == len(ct.LineArray.from_lines([]))
    assert column[1:2].lengths.tolist() == [TWO.length]
    for wrong in (7, [5], [True], ["a"]):
        with pytest.raises((IndexError, ValueError)):
            column[wrong]
    with pytest.raises(AttributeError, match="cannot be changed"):
        BENT.parts = ()


def test_saved_columns(tmp_path):
    column = ct.LineArray.from_lines([BENT, TWO])
    column[1:].save(tmp_path / "lines")
    opened = ct.LineArray.open(tmp_path / "lines")
    assert list(opened) == [TWO]
    assert ct.de9im(opened, TWO).tolist() == ["1FFF0FFF2"]
    with pytest.raises(ct.RegionError, match=r"exists|replace"):
        column.save(tmp_path / "lines")
    column.save(tmp_path / "lines", replace=True)
    assert ct.LineArray.open(tmp_path / "lines", verify=False) == column
    np.save(tmp_path / "lines" / "line_offsets.npy", np.array([0, 9, 3], np.int32))
    for verify in (True, False):
        with pytest.raises(ct.RegionError, match="damaged"):
            ct.LineArray.open(tmp_path / "lines", verify=verify)
    with pytest.raises(ct.RegionError):
        ct.RegionArray.open(tmp_path / "lines")


def test_regions_still_refuse_lines():
    for text in (BENT.to_wkt(), TWO.to_wkt()):
        with pytest.raises(ct.RegionError, match=r"wrong geometry type (Multi)?LineString"):
            ct.Region.from_wkt(text)
    with pytest.raises(ct.ContradaError):
        ct.relate(BENT, ct.Region.box(0, 0, 1, 1))


def test_reprs():
    assert repr(BENT) == "<Line LINESTRING (0 0, 4 0, 4 4)>"
    assert repr(ct.LineArray.from_lines([BENT, TWO])) == "<LineArray of 2 lines, 8 vertices>"
    assert repr(ct.Line(np.random.default_rng(1).random((5000, 2)))).endswith("...>")
