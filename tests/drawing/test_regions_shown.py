"""Regions show themselves in notebooks: well-formed, small, with holes, readable on light and dark pages."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import shapely
from hypothesis import given

import contrada as ct
from console import python
from contrada.drawing.outlines import MAX_VERTICES, RIM, Outline, frame_of, paths
from contrada.drawing.svg import COLOURS, DARK_COLOURS
from generators.strategies import regions

SVG = "{http://www.w3.org/2000/svg}"
RING = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (2 2, 5 2, 5 5, 2 5, 2 2))"
STEP = re.compile(r"([Mlhvz])(-?\d+)?(?: (-?\d+))?")
MAX_BYTES = 100_000
LIGHT, DARK = "#ffffff", "#1e1e1e"  # pages of notebooks; JupyterLab's dark one is darker


def rings_of(data):
    """The rings of path data, as vertices."""
    found = []
    for command, first, second in STEP.findall(data):
        if command == "M":
            found.append([(int(first), int(second))])
        elif command != "z":
            x, y = found[-1][-1]
            dx, dy = {"l": (first, second), "h": (first, 0), "v": (0, first)}[command]
            found[-1].append((x + int(dx), y + int(dy)))
    return found


def picture(region):
    """The SVG of a value, parsed; all that its paths hold; and the whole as text."""
    text = region._repr_svg_()
    root = ET.fromstring(text)
    return root, [path.get("d") for path in root.iter(f"{SVG}path")], text


def as_xml(value):
    """What a value shows as HTML, which is well-formed XML too."""
    return ET.fromstring(f"<x>{value._repr_html_()}</x>")


def text_of(value):
    return " ".join("".join(as_xml(value).itertext()).split())


def test_holes_are_rings_of_one_path_filled_by_the_even_odd_rule():
    root, (data,), text = picture(ct.Region.from_wkt(RING))
    shell, hole = map(shapely.Polygon, rings_of(data))
    assert shell.contains(hole)
    assert shell.area / hole.area == pytest.approx(100 / 9, rel=0.01)
    assert "fill-rule:evenodd" in text
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Polygon with 1 hole, 8 vertices"


def test_north_is_up_and_both_directions_have_one_scale():
    _, (data,), _ = picture(ct.Region([(0, 0), (4, 0), (0, 2)]))
    (ring,) = rings_of(data)
    (left, bottom), (right, also_bottom), (also_left, top) = ring
    assert (also_left, also_bottom) == (left, bottom)
    assert bottom > top, "y grows downwards in SVG"
    assert right - left == pytest.approx(2 * (bottom - top), abs=2)


@given(regions())
def test_every_region_is_drawn_within_its_picture(region):
    root, drawn, text = picture(region)
    assert len(text) < MAX_BYTES
    as_xml(region)
    width, height = map(int, root.get("viewBox").split()[2:])
    vertices = np.array([vertex for data in drawn for ring in rings_of(data) for vertex in ring])
    assert len(vertices)
    assert (vertices >= -RIM).all()
    assert (vertices <= np.array([width, height]) + RIM).all()


@pytest.mark.parametrize(
    "box",
    [
        (-1e120, -1e120, 1e120, 5e119), (1e-120, 1e-120, 3e-120, 2e-120), (0, 0, 1e100, 1e-100), (0, 0, 1e-100, 1e100),
        (1e9, 1e9, 1e9 + 1e-6, 1e9 + 1e-6),
    ],
)  # fmt: skip
def test_huge_tiny_and_thin_regions_are_seen(box):
    root, (data,), _ = picture(ct.Region.box(*box))
    width, height = int(root.get("width")), int(root.get("height"))
    assert 40 <= width <= 320
    assert 40 <= height <= 240
    xy = np.array(rings_of(data)[0])
    assert np.ptp(xy, axis=0).max() > 1000, "it spans most of the picture"


def test_parts_too_small_to_be_seen_become_dots():
    places = (0, 0), (1e6, 1e6)
    parts = [shapely.box(x, y, x + 1, y + 1) for x, y in places]
    _, (dots,), text = picture(ct.Region.from_shapely(shapely.MultiPolygon(parts)))
    assert dots.count("h0") == 2
    assert "stroke-linecap:round" in text


def test_long_outlines_are_thinned_for_display_only():
    angles = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    radius = 10 + 0.3 * np.sin(40 * angles)
    region = ct.Region(np.column_stack([radius * np.cos(angles), radius * np.sin(angles)]).tolist())
    before = region.to_wkb()
    _, (data,), text = picture(region)
    assert len(text) < MAX_BYTES
    (ring,) = rings_of(data)
    assert 500 < len(ring) <= MAX_VERTICES
    scale = np.ptp(np.array(ring)[:, 0]) / (region.bounds[2] - region.bounds[0])
    assert shapely.Polygon(ring).area == pytest.approx(region.area * scale**2, rel=0.01)
    assert region.to_wkb() == before
    assert "100,000 vertices" in text


def test_thousands_of_holes_are_bounded():
    holes = [[(x, y), (x, y + 0.5), (x + 0.5, y + 0.5), (x + 0.5, y)] for x in range(1, 101) for y in range(1, 101)]
    region = ct.Region([(0, 0), (102, 0), (102, 102), (0, 102)], holes)
    _, drawn, text = picture(region)
    assert len(text) < MAX_BYTES
    areas = [shapely.Polygon(ring).area for data in drawn for ring in rings_of(data) if len(ring) > 2]
    assert len(areas) > 100
    assert max(areas) > 2000 * 2000, "the shell stays"


def test_many_small_parts_keep_their_shape():
    x, y = np.meshgrid(np.arange(250) * 2.0, np.arange(250) * 2.0)
    parts = shapely.box(x.ravel(), y.ravel(), x.ravel() + 1, y.ravel() + 1)
    _, drawn, text = picture(ct.Region.from_shapely(shapely.MultiPolygon(parts.tolist())))
    assert len(text) < MAX_BYTES
    rings = [ring for data in drawn for ring in rings_of(data) if len(ring) > 1]
    assert len(rings) > 500
    assert {len(ring) for ring in rings} == {4}


def test_a_column_of_many_shows_a_sample_and_says_so():
    x = np.arange(20_000) % 200
    y = np.arange(20_000) // 200
    column = ct.RegionArray.from_shapely(shapely.box(x, y, x + 0.9, y + 0.9))
    assert "RegionArray of 20,000 regions, 80,000 vertices" in text_of(column)
    assert "drawn: 400 of 20,000" in text_of(column)
    assert len(column._repr_html_()) < MAX_BYTES
    _, drawn, _ = picture(column)
    assert len(drawn) == 400
    some = column[:30]
    assert "drawn" not in text_of(some)
    assert len(picture(some)[1]) == 30


def test_columns_of_large_regions_are_bounded():
    circles = shapely.buffer(shapely.points(np.arange(300) * 3.0, 0), 1.4, quad_segs=300)
    column = ct.RegionArray.from_shapely(circles)
    assert len(column._repr_svg_()) < MAX_BYTES


def test_an_empty_column_shows_its_size():
    empty = ct.RegionArray.from_wkt([])
    assert "RegionArray of 0 regions" in text_of(empty)
    ET.fromstring(empty._repr_svg_())


def test_captions_tell_parts_holes_place_and_crs():
    region = ct.Region.from_wkt("MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((6 0, 9 0, 9 3, 6 0)))", crs=25832)
    assert "MultiPolygon of 2 parts, 6 vertices, EPSG:25832" in text_of(region)
    assert "x 0 to 9, y 0 to 4" in text_of(region)


def test_a_crs_without_a_code_is_not_written_out():
    region = ct.Region.box(0, 0, 1, 1, crs="+proj=laea +lat_0=12.3 +lon_0=45.6 +ellps=intl")
    assert "a CRS without a code" in text_of(region)
    assert "PROJJSON" not in region._repr_html_()


def outline(*rings):
    xy = np.concatenate([np.array(ring, float) for ring in rings])
    box = (*xy.min(axis=0).tolist(), *xy.max(axis=0).tolist())
    return Outline(xy, np.append(0, np.cumsum([len(ring) for ring in rings])), box)


@given(regions())
def test_a_window_shows_the_part_of_a_region_within_it(region):
    """Clipped to a window, an outline covers what Shapely's intersection covers, by area."""
    xmin, ymin, xmax, ymax = region.bounds
    window = (xmin, ymin, (xmin + xmax) / 2, (ymin + ymax) / 2)
    frame = frame_of(window, (300, 300))
    drawn = paths([shape_of(region)], frame)[0].shape
    rings = [shapely.Polygon(ring).buffer(0) for ring in rings_of(drawn) if len(ring) > 2]
    inside = shapely.box(0, 0, frame.width, frame.height)
    seen = sum_even_odd(rings).intersection(inside).area
    expected = shapely.transform(region.to_shapely(), frame.place).intersection(inside).area
    assert seen == pytest.approx(expected, abs=0.02 * inside.area)


def shape_of(region):
    return outline(*(ring for shell, holes in region.parts for ring in (shell, *holes)))


def sum_even_odd(polygons):
    total = shapely.Polygon()
    for polygon in polygons:
        total = total.symmetric_difference(polygon)
    return total


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(share * one for share, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("kind", COLOURS)
def test_lines_have_contrast_on_light_and_dark_pages(kind):
    assert contrast(COLOURS[kind], LIGHT) >= 3
    assert contrast(COLOURS[kind], DARK) >= 3, "an image does not know what page it is on"
    assert contrast(DARK_COLOURS.get(kind, COLOURS[kind]), DARK) >= 3


def test_importing_and_showing_need_no_plotting_library():
    code = (
        "import sys, contrada as ct; print('contrada.drawing' in sys.modules);"
        "ct.Region.box(0, 0, 1, 1)._repr_html_(); print('matplotlib' in sys.modules)"
    )
    assert python("-c", code).stdout.split() == ["False", "False"]
