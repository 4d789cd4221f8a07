"""Regions: every format in and out, validation that names the place, values that compare by their rings."""

import pickle

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct

DONUT = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))"
TWO_PARTS = "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 9 5, 9 9, 5 9, 5 5), (6 6, 6 7, 7 7, 6 6)))"
finite = st.floats(-1e120, 1e120).filter(lambda v: v == 0 or abs(v) >= 1e-120)


def copies(region):
    """The region after a way out and back in, in each format."""
    ways = ("wkt", "wkb", "geojson", "shapely")
    return [getattr(ct.Region, f"from_{way}")(getattr(region, f"to_{way}")()) for way in ways]


@given(st.lists(st.one_of(st.sampled_from([0.0, -3.0, 10.0, 0.05, 20.01, 1e15, 1e16, 5e-5, -1e-7, 100.0]), finite)))
def test_wkt_has_the_shortest_numbers(numbers):
    xs = [0.25, *numbers]
    region = ct.Region.box(0, 0, 1, 1) if len(set(xs)) < 2 else ct.Region.box(min(xs), 0, max(xs), 20)
    for shell, _ in region.parts:
        texts = [" ".join(repr(number).removesuffix(".0") for number in vertex) for vertex in shell.tolist()]
        assert region.to_wkt() == f"POLYGON (({', '.join(texts)}))"


@pytest.mark.parametrize(
    "text", [DONUT, TWO_PARTS, "POLYGON ((0.1 0.2, 0.30000000000000004 0.2, 1e-100 7e+99, 0.1 0.2))"]
)
def test_round_trips_change_no_coordinate(text):
    region = ct.Region.from_wkt(text)
    assert region.to_wkt() == text
    assert [copy.to_wkt() for copy in copies(region)] == [text] * 4
    assert shapely.from_wkb(region.to_wkb()) == region.to_shapely() == shapely.from_wkt(text)
    assert shapely.geometry.shape(region).equals_exact(region.to_shapely(), 0)


@given(st.lists(st.tuples(finite, finite), min_size=3, max_size=3, unique=True))
def test_any_triangle_comes_back_bit_for_bit(vertices):
    try:
        region = ct.Region(vertices)
    except ct.RegionError:
        return  # collinear
    assert {*map(tuple, region.parts[0][0].tolist())} == {(x + 0.0, y + 0.0) for x, y in vertices}
    for copy in copies(region):
        assert np.array_equal(copy.parts[0][0], region.parts[0][0])


def test_z_is_dropped_and_both_byte_orders_and_ewkb_are_read():
    solid = shapely.from_wkt("POLYGON Z ((0 0 7, 4 0 7, 4 4 7, 0 0 7))")
    plain = ct.Region([(0, 0), (4, 0), (4, 4)])
    assert ct.Region.from_shapely(solid) == plain
    for order in (0, 1):
        for flavor in ("extended", "iso"):
            data = shapely.to_wkb(solid, byte_order=order, flavor=flavor)
            assert ct.Region.from_wkb(data) == plain
            assert ct.Region.from_wkb(data.hex()) == plain
    named = shapely.to_wkb(shapely.set_srid(solid, 25832), include_srid=True)
    assert ct.Region.from_wkb(named).crs == "EPSG:25832"
    measured = shapely.from_wkt("MULTIPOLYGON ZM (((0 0 1 2, 4 0 1 2, 4 4 1 2, 0 0 1 2)))")
    assert ct.Region.from_wkb(shapely.to_wkb(measured, output_dimension=4, flavor="iso")) == plain


def test_open_rings_close_and_repeated_vertices_go():
    square = ct.Region([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
    assert ct.Region([(0, 0), (1, 0), (1, 0), (1, 1), (0, 1), (0, 1)]) == square
    assert ct.Region.from_wkt("POLYGON((0 0, 1 0, 1 1, 0 1))") == square
    assert ct.Region([(-0.0, 0), (1, -0.0), (1, 1), (0, 1)]).to_wkb() == square.to_wkb()
    unclosed = bytearray(square.to_wkb())
    unclosed[9] = 4  # four vertices in place of five
    assert ct.Region.from_wkb(bytes(unclosed[:-16])) == square


def test_same_rings_are_equal_whatever_their_start_direction_and_order():
    region = ct.Region.from_wkt(TWO_PARTS)
    turned = ct.Region.from_wkt(
        "MULTIPOLYGON (((9 9, 9 5, 5 5, 5 9, 9 9), (7 7, 6 7, 6 6, 7 7)), ((1 1, 1 0, 0 0, 1 1)))"
    )
    assert region == turned
    assert hash(region) == hash(turned)
    assert region != ct.Region.from_wkt(DONUT)
    assert region != "region"
    with_extra_vertex = ct.Region([(0, 0), (2, 0), (4, 0), (4, 4), (0, 4)])
    assert with_extra_vertex != ct.Region.box(0, 0, 4, 4)
    assert ct.relate(with_extra_vertex, ct.Region.box(0, 0, 4, 4)) is ct.Relation.EQUALS


def test_pickles_and_is_immutable():
    region = ct.Region.from_wkt(DONUT, crs="EPSG:4326")
    copy = pickle.loads(pickle.dumps(region))
    assert copy == region
    assert copy.crs == "EPSG:4326"
    with pytest.raises(AttributeError, match="cannot be changed"):
        region.area = 3
    with pytest.raises(ValueError, match="read-only"):
        region.parts[0][0][0, 0] = 7
    row = ct.RegionArray.from_wkt([DONUT, TWO_PARTS])[1]
    assert len(pickle.dumps(row)) < 2000  # a row does not carry its column along


def test_measures():
    donut = ct.Region.from_wkt(DONUT)
    assert (donut.area, donut.length, donut.is_simple) == (96.0, 48.0, False)
    assert donut.bounds == (0.0, 0.0, 10.0, 10.0)
    far = ct.Region([(1e8, 1e8), (1e8 + 1, 1e8), (1e8, 1e8 + 1)])
    assert far.area == 0.5
    assert repr(far).startswith("<Region POLYGON ((100000000 100000000")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        *((bad, "is not finite near") for bad in (float("nan"), float("inf"), -float("inf"))),
        (1e200, r"outside 1e-120..1e120 in magnitude near \(6.0, 1e\+200\)"),
        (1e-200, r"outside 1e-120..1e120 in magnitude near \(6.0, 1e-200\)"),
    ],
)
def test_coordinates_must_be_finite_and_neither_huge_nor_tiny(bad, reason):
    with pytest.raises(ct.RegionError, match=f"hole 1: coordinate {reason}"):
        ct.Region([(0, 0), (9, 0), (9, 9)], [[(5, 1), (6, bad), (6, 2)]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ct.Region.from_wkt("POLYGON EMPTY"), "empty geometry"),
        (lambda: ct.Region.from_wkt("MULTIPOLYGON EMPTY"), "empty geometry"),
        (lambda: ct.Region([]), "empty geometry"),
        (lambda: ct.Region.from_wkt("POINT(1 2)"), "wrong geometry type Point"),
        (lambda: ct.Region.from_wkt("GEOMETRYCOLLECTION(POINT(1 2))"), "wrong geometry type GeometryCollection"),
        (lambda: ct.Region.from_wkt("POLYGON((0 0, 1"), "malformed"),
        (lambda: ct.Region.from_wkt(7), "WKT: need text, got int"),
        (lambda: ct.Region.from_wkb(b""), "malformed"),
        (lambda: ct.Region.from_wkb(7), "WKB: need bytes or hex text, got int"),
        (lambda: ct.Region.from_wkb("zz"), "malformed"),
        (lambda: ct.Region.from_geojson({"type": "Point", "coordinates": [1, 2]}), "wrong geometry type Point"),
        (lambda: ct.Region.from_geojson({"type": "Polygon", "coordinates": "x"}), "malformed"),
        (lambda: ct.Region.from_geojson("{"), "malformed"),
        (lambda: ct.Region.from_geojson(None), "no geometry"),
        (lambda: ct.Region.from_shapely(None), "no geometry"),
        (lambda: ct.Region.from_shapely("POLYGON"), "need a Shapely geometry, got str"),
        (lambda: ct.Region([1, 2, 3]), "the shell is not a sequence"),
        (lambda: ct.Region([(0, 0), (1, 0), (1, 1)], [7]), "hole 1 is not a sequence"),
        (lambda: ct.Region.box(1, 0, 0, 1), "need xmin < xmax"),
    ],
)
def test_unreadable_input_is_a_region_error(make, message):
    with pytest.raises(ct.RegionError, match=message):
        make()


def test_truncated_and_lying_wkb_never_reads_beyond_its_end():
    data = ct.Region.from_wkt(TWO_PARTS).to_wkb()
    for length in range(len(data)):
        with pytest.raises(ct.RegionError):
            ct.Region.from_wkb(data[:length])
    with pytest.raises(ct.RegionError, match="malformed"):
        ct.Region.from_wkb(data + b"x")
    rng = np.random.default_rng(5)
    for _ in range(2000):
        broken = bytearray(data)
        for position in rng.integers(0, len(data), 3):
            broken[position] = rng.integers(0, 256)
        made = ct.read_regions([bytes(broken)])
        assert len(made.regions) + len(made.rejected) == 1


def test_repair_mends_what_can_be_mended():
    bow_tie = "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))"
    mended = ct.Region.from_wkt(bow_tie, repair=True)
    assert mended.area == 8
    assert len(mended.parts) == 2
    assert ct.Region.from_wkt(DONUT, repair=True) == ct.Region.from_wkt(DONUT)
    with pytest.raises(ct.RegionError, match="zero area"):
        ct.Region.from_wkt("POLYGON((0 0, 1 1, 2 2, 0 0))", repair=True)
    overlapping = ct.Region.from_wkt(
        "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0)), ((2 2, 6 2, 6 6, 2 6, 2 2)))", repair=True
    )
    assert overlapping.area == 28


def test_geographic_coordinates_must_fit_the_globe():
    with pytest.raises(
        ct.RegionError, match=r"crosses the antimeridian use wrap=, or split it into a MultiPolygon \(RFC 7946"
    ):
        ct.Region.from_wkt("POLYGON((170 0, 190 0, 190 5, 170 0))", crs="EPSG:4326")
    assert ct.Region.from_wkt("POLYGON((170 0, 190 0, 190 5, 170 0))", crs="EPSG:3857").crs == "EPSG:3857"
    assert ct.Region.from_wkt("SRID=4326;POLYGON((170 0, 180 0, 180 5, 170 0))").crs == "EPSG:4326"


def test_a_crs_meets_none_and_its_equal():
    here = ct.Region.from_wkt("POLYGON((0 0, 1 0, 1 1, 0 0))", crs="EPSG:4326")
    assert ct.relate(here, ct.Region.box(0, 0, 1, 1)) is ct.Relation.COVERED_BY
    assert ct.relate(here, ct.Region.box(0, 0, 1, 1, crs="OGC:CRS84")) is ct.Relation.COVERED_BY


@pytest.mark.parametrize("count", [3, 5, 39, 40, 41, 300])
def test_the_beginning_of_a_region_is_shown(count):
    angles = np.linspace(0, 6, count)
    shapes = [
        ct.Region(np.column_stack([np.cos(angles), np.sin(angles)])),
        ct.Region(np.column_stack([np.round(9000 * np.cos(angles)), np.round(9000 * np.sin(angles))])),
        ct.Region.from_shapely(shapely.MultiPolygon([shapely.box(3 * k, 0, 3 * k + 1, 1) for k in range(count)])),
        ct.Region.from_shapely(shapely.box(-1, -1, 900, 2) - shapely.MultiPolygon(
            [shapely.box(3 * k, 0, 3 * k + 1, 1) for k in range(count)])),
    ]  # fmt: skip
    for shape in shapes:
        text = shape.to_wkt()
        assert repr(shape) == f"<Region {text if len(text) <= 80 else text[:77] + '...'}>"
