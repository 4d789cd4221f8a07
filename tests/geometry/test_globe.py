"""Regions across the date line, around poles, and with edges near geodesics."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from pyproj import Geod

import contrada as ct
from contrada.formats.spatial import Spatial, sift_column
from contrada.geometry.globe import Globe
from generators.strategies import shapes

GEOD = Geod(ellps="WGS84")
PLACES = np.array(
    [(x / 4, y / 4) for x in range(-3, 52, 3) for y in range(-3, 52, 3)]
)  # around the shapes, whose coordinates are 0..12


def moved(shape, scale, by):
    return shapely.transform(shape, lambda xy: xy * scale + [by, 0])


def folded(xy):
    """Every longitude brought to -180..180 by itself."""
    return np.column_stack([(xy[:, 0] + 180) % 360 - 180, xy[:, 1]])


def check_places(region, shape, places):
    """Places inside and outside of the shape, folded, are so of the region; those near its boundary do not count."""
    clear = shapely.distance(shape.boundary, shapely.points(places)) > 1e-6
    inside = shapely.contains_xy(shape, places[:, 0], places[:, 1])[clear]
    found = ct.relate(ct.PointArray(folded(places[clear])), ct.RegionArray.from_regions([region]))
    on_the_line = folded(places[clear])[:, 0] == -180  # where pieces meet
    assert (found[inside & ~on_the_line] == ct.Relation.INSIDE).all()
    assert (found[inside & on_the_line] != ct.Relation.DISJOINT).all()
    assert (found[~inside] == ct.Relation.DISJOINT).all()


@given(shapes(), st.integers(1, 12), st.integers(-500, 500))
def test_a_region_of_any_longitudes_holds_the_same_places_once_wrapped(shape, scale, by):
    given_shape = moved(shape, [scale, 5], by)
    region = ct.Region.from_shapely(given_shape).wrapped(crs="EPSG:4326")
    xmin, _, xmax, _ = region.bounds
    assert -180 <= xmin < xmax <= 180
    places = PLACES * [scale, 5] + [by, 0]
    check_places(region, given_shape, places)
    for turned in (given_shape, shapely.reverse(given_shape)):
        (read,) = ct.read_regions([shapely.to_wkb(turned)], crs="EPSG:4326", wrap="longitude").regions
        assert read == region


@given(shapes(), st.integers(1, 12), st.integers(-500, 500))
def test_the_shorter_way_is_that_of_continuous_longitudes(shape, scale, by):
    given_shape = moved(shape, [scale, 5], by)
    cut = shapely.transform(given_shape, folded)
    (read,) = ct.read_regions([shapely.to_wkb(cut)], crs="EPSG:4326", wrap="shorter").regions
    assert read == ct.Region.from_shapely(given_shape).wrapped(crs="EPSG:4326")


@given(st.lists(st.integers(1, 85), min_size=5, max_size=12), st.sampled_from([-1, 1]), st.integers(-180, 179))
def test_an_outline_around_a_pole_holds_the_pole(latitudes, side, start):
    n = len(latitudes)
    xs = start + np.arange(n) * 360 / n
    chain = np.column_stack([xs, np.array(latitudes) * side])
    ring = folded(chain)
    text = shapely.Polygon(ring).wkt
    (region,) = ct.read_regions([text], crs="EPSG:4326", wrap="shorter").regions
    assert ct.relate(ct.Point(7.25, 89.5 * side), region) is ct.Relation.INSIDE
    assert ct.relate(ct.Point(7.25, 0.5 * side), region) is ct.Relation.DISJOINT
    whole = shapely.Polygon([*chain, (start + 360, chain[0, 1]), (start + 360, 90 * side), (start, 90 * side)])
    assume(whole.is_valid)
    places = np.column_stack([start + np.linspace(0.3, 359.7, 40), np.linspace(2, 88, 40) * side])
    check_places(region, whole, places)


def test_three_ways_to_write_a_region_across_the_date_line():
    rows = [
        "POLYGON((170 0, 190 0, 190 9, 170 9, 170 0))",
        "POLYGON((-190 0, -170 0, -170 9, -190 9, -190 0))",
        "MULTIPOLYGON(((170 0, 180 0, 180 9, 170 9, 170 0)), ((-180 0, -170 0, -170 9, -180 9, -180 0)))",
        "POLYGON((530 0, 550 0, 550 9, 530 9, 530 0))",
    ]
    read = ct.read_regions(rows, crs="EPSG:4326", wrap="longitude")
    assert len(set(read.regions)) == 1
    assert read.regions.crs == "EPSG:4326"
    hole = "POLYGON((170 0, -170 0, -170 9, 170 9, 170 0), (179 3, 179 4, -179 4, -179 3, 179 3))"
    (region,) = ct.read_regions([hole], wrap="shorter").regions
    assert region.area == 20 * 9 - 2
    # Without the option nothing changes.
    assert [bad.fault.value for bad in ct.read_regions(rows, crs="EPSG:4326").rejected] == ["off-the-globe"] * 3


def test_rows_keep_their_places_and_reasons():
    rows = [
        None,
        "POLYGON((170 0, 190 0, 190 9, 170 9, 170 0))",
        "POLYGON((0 0, 1 0, 1 1, 0 0))",
        "POLYGON((170 0, 190 9, 190 0, 170 9, 170 0))",
        "SRID=25832;POLYGON((170 0, 190 0, 190 9, 170 9, 170 0))",
        "POLYGON((0 0, 400 0, 400 1, 0 0))",
        "POLYGON((170 88, 190 88, 190 99, 170 88))",
        "POLYGON((175 0, 185 0, 185 9, 175 0))",
    ]
    read = ct.read_regions(rows, crs="EPSG:4326", wrap="longitude")
    assert read.rows.tolist() == [1, 2, 7]
    assert [(bad.row, bad.fault.value) for bad in read.rejected] == [
        (0, "null"), (3, "self-intersection"), (4, "other-crs"), (5, "off-the-globe"), (6, "off-the-globe"),
    ]  # fmt: skip
    assert read.regions[1] == ct.Region.from_wkt(rows[2])
    assert "more than 360 degrees" in read.rejected[3].reason


def test_parts_that_overlap_after_wrapping_become_one():
    text = "MULTIPOLYGON(((170 0, 190 0, 190 9, 170 9, 170 0)), ((-175 5, -160 5, -160 8, -175 8, -175 5)))"
    (region,) = ct.read_regions([text], crs="EPSG:4326", wrap="longitude").regions
    assert region.area == 20 * 9 + 10 * 3


def test_a_hole_around_the_pole_leaves_a_ring():
    around = "(0 {0}, 120 {0}, -120 {0}, 0 {0})"
    (ring,) = ct.read_regions([f"POLYGON({around.format(70)}, {around.format(80)})"], wrap="shorter").regions
    assert ring.area == 360 * 10
    read = ct.read_regions([f"POLYGON({around.format(0)})", "POLYGON((0 5, 120 -5, -120 5, 0 5))"], wrap="shorter")
    assert ["equator" in bad.reason for bad in read.rejected] == [True, True]


@pytest.mark.parametrize(
    "options", [{"wrap": "latitude"}, {"wrap": 5}, {"densify": 0}, {"densify": 1e-9}, {"densify": float("nan")}]
)
def test_bad_options_are_refused(options):
    with pytest.raises(ct.ArgumentError, match=r"wrap|densify"):
        ct.read_regions([], **options)


def test_only_degrees_are_wrapped():
    for call in (lambda r: r.wrapped(), lambda r: r.densified(5.0)):
        with pytest.raises(ct.CrsError, match="not in degrees"):
            call(ct.Region.box(0, 0, 1, 1, crs="EPSG:25832"))


def furthest_from_geodesics(edges_from, edges_to, chain):
    """The largest distance in metres of a densely sampled chain from the geodesic, about."""
    azimuth, _, length = GEOD.inv(*edges_from, *edges_to)
    share = np.linspace(0, 1, 4001)
    gx, gy, _ = GEOD.fwd(*(np.full(4001, v) for v in (*edges_from, azimuth)), share * length)
    gx = np.asarray(gx) + 360 * np.round((np.interp(share, [0, 1], [edges_from[0], edges_to[0]]) - gx) / 360)
    t = np.linspace(0, len(chain) - 1, 700)
    px, py = (np.interp(t, np.arange(len(chain)), chain[:, k]) for k in (0, 1))
    worst = 0.0
    for x, y in zip(px, py, strict=True):
        near = np.argsort(np.hypot((gx - x) * np.cos(np.radians(y)), gy - y))[:3]
        distances = GEOD.inv(gx[near], gy[near], np.full(3, x), np.full(3, y))[2]
        worst = max(worst, min(distances) - length / 8000)  # between two samples of the geodesic
    return worst


@pytest.mark.parametrize("metres", [50.0, 5000.0])
@pytest.mark.parametrize(
    "corners",
    [
        [(0, 50), (60, 50), (30, 70)],
        [(-179, -80), (-60, -85), (-100, -60)],
        [(5, 45), (5.5, 45.1), (5.2, 45.6)],
        [(170, 10), (250, 60), (175, 62)],
        [(0, 0), (100, 0), (20, 80)],
    ],
)
def test_densified_edges_stay_within_metres_of_geodesics(corners, metres):
    region = ct.Region(corners)
    ((close, _),) = region.densified(metres).parts
    ((ring, _),) = region.parts
    vertices = [tuple(v) for v in close.tolist()]
    assert set(map(tuple, ring.tolist())) <= set(vertices)
    doubled = np.array(vertices[:-1] + vertices)
    for a, b in pairwise(ring):
        start = vertices.index(tuple(a))
        stop = next(k for k in range(start + 1, len(doubled)) if tuple(doubled[k]) == tuple(b))
        assert furthest_from_geodesics(a, b, doubled[start : stop + 1]) <= metres


def test_densify_keeps_poles_and_refuses_the_longer_way():
    cap = ct.read_regions(["POLYGON((0 80, 90 80, 180 80, -90 80, 0 80))"], wrap="shorter", densify=1000.0)
    assert cap.regions[0].bounds[3] == 90
    assert len(cap.regions[0].parts[0][0]) > 100
    read = ct.read_regions(["POLYGON((-100 0, 100 0, 0 50, -100 0))", None], densify=10.0)
    assert ["longer than 180" in bad.reason for bad in read.rejected] == [True, False]


def test_ingested_columns_are_wrapped_before_they_are_reprojected():
    values = [ct.Region.box(175, -20, 185, -10).to_wkb(), ct.Point(182, -15).to_wkb(), None]
    column = pa.chunked_array([pa.array(values)])
    spatial = Spatial("EPSG:4326", globe=Globe("longitude", None))
    kept = sift_column(column, spatial, ct.geometry.Crs.of("EPSG:4326"))
    assert kept.rows.tolist() == [0, 1]
    assert ct.Region.from_wkb(kept.wkb[0].as_py()) == ct.Region.box(175, -20, 185, -10).wrapped()
    assert ct.Point.from_wkb(kept.wkb[1].as_py()) == ct.Point(-178, -15)
    # The pieces have the date line as a common edge in a projection that goes on beyond it: repair joins them.
    spatial = Spatial("EPSG:4326", to_crs="EPSG:3832", globe=Globe("longitude", 100.0))
    joined = sift_column(column, spatial, ct.geometry.Crs.of("EPSG:4326"), repair=True)
    assert joined.rows.tolist() == [0, 1]
    assert len(ct.Region.from_wkb(joined.wkb[0].as_py()).parts) == 1
