"""DE-9IM of lines against rational arithmetic: shared edges and vertices, crossings, parts that meet (mod-2)."""

import numpy as np
import pytest
import shapely
from hypothesis import example, given

import contrada as ct
from contrada.geometry.reading import shape_of as read
from effort import COMPILED, examples
from generators.lines import mixed_pairs, random_lines
from generators.strategies import points, shape_pairs
from oracles.matrix import matrix_rational, shape_of

SAMPLES = examples(400) if COMPILED else 20


def judge(a, b):
    return matrix_rational(shape_of(a), shape_of(b))


def transposed(text):
    return "".join(text[3 * column + row] for row in range(3) for column in range(3))


def wkt(*texts):
    return tuple(map(shapely.from_wkt, texts))


# Two parts end where a hole touches its shell; a crossing at the boundary of another part; an end inside another part.
TOUCHING_HOLE = "POLYGON((0 0, 6 0, 6 6, 0 6, 0 0), (0 3, 3 2, 3 4, 0 3))"


@given(mixed_pairs())
@example(wkt("LINESTRING(-1 3, 4 3)", TOUCHING_HOLE))
@example(wkt("LINESTRING(-1 4, 1 2)", TOUCHING_HOLE))
@example(wkt("MULTILINESTRING((0 0, 4 4), (2 2, 2 5))", "LINESTRING(0 4, 4 0)"))
@example(wkt("MULTILINESTRING((0 0, 2 2), (2 2, 4 4), (2 2, 2 5))", "LINESTRING(0 4, 4 0)"))
@example(wkt("MULTILINESTRING((0 0, 4 4), (2 2, 6 2))", "POLYGON((0 4, 4 0, 6 6, 0 4))"))
@example(wkt("LINESTRING(0 0, 4 0, 4 4, 0 4, 0 0)", "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"))
@example(wkt("LINESTRING(0 0, 4 0, 4 0.5)", "LINESTRING(1 0, 2 0)"))
def test_any_pair_with_a_line(pair):
    a, b = pair
    expected = judge(a, b)
    assert ct.de9im(a, b) == expected
    assert ct.de9im(b, a) == transposed(expected)
    assert ct.intersects(a, b) == (not ct.disjoint(a, b)) == (expected[0:2] + expected[3:5] != "FFFF")


@given(shape_pairs())
def test_any_pair_of_regions(pair):
    assert ct.de9im(*pair) == judge(*pair)


@given(points(), points())
def test_points(a, b):
    expected = "0FFFFFFF2" if a == b else "FF0FFF0F2"
    assert ct.de9im(a, b) == expected == judge(a.to_shapely(), b.to_shapely())


@given(mixed_pairs())
def test_predicates_follow_from_the_matrix(pair):
    a, b = pair
    text = judge(a, b)
    dims = [0 if g.geom_type == "Point" else 1 if "Line" in g.geom_type else 2 for g in pair]

    def fits(*patterns):
        return any(
            all(p == "*" or (p == "T" and c != "F") or p == c for p, c in zip(pattern, text, strict=True))
            for pattern in patterns
        )

    crosses = {(0, 1): "T*T******", (0, 2): "T*T******", (1, 2): "T*T******", (1, 1): "0********"}
    crosses |= {(1, 0): "T*****T**", (2, 0): "T*****T**", (2, 1): "T*****T**"}
    expected = {
        "equals": fits("T*F**FFF*"),
        "disjoint": fits("FF*FF****"),
        "touches": fits("FT*******", "F**T*****", "F***T****"),
        "within": fits("T*F**F***"),
        "contains": fits("T*****FF*"),
        "covers": fits("T*****FF*", "*T****FF*", "***T**FF*", "****T*FF*"),
        "covered_by": fits("T*F**F***", "*TF**F***", "**FT*F***", "**F*TF***"),
        "crosses": fits(crosses[tuple(dims)]) if tuple(dims) in crosses else False,
        "overlaps": fits("1*T***T**") if dims == [1, 1] else False,
    }
    assert {name: getattr(ct, name)(a, b) for name in expected} == expected


def column(shapes):
    return read(np.asarray(shapes, dtype=object))


def check(found, a, b):
    """Compare with Shapely; where it differs, the rationals decide."""
    expected = shapely.relate(a, b)
    differ = np.flatnonzero(found != expected)
    for k in differ[:3]:
        assert found[k] == judge(a[k], b[k])
    assert len(differ) <= 0.02 * len(found)


@pytest.mark.parametrize(("sizes", "step"), [((3, 5), 8.0), ((8, 80), 1.5), ((150, 90), 1.0), ((400, 300), 0.5)])
def test_large_lines_against_lines_in_columns(sizes, step):
    """More than 64 vertices have an edge index; grids of sixteenths make vertices and pieces coincide."""
    rng = np.random.default_rng(sizes[0])
    count = max(4, SAMPLES // max(sizes))
    a, b = (random_lines(rng, count, size, step) for size in sizes)
    same = shapely.get_coordinates(a[::3]).reshape(len(a[::3]), sizes[0], 2)[:, : min(sizes)]
    b[::3] = shapely.linestrings(same[:, ::-1])
    check(ct.de9im(column(a), column(b)), a, b)
    check(ct.de9im(a[0], column(b)), np.repeat(a[:1], count), b)


@pytest.mark.parametrize("size", [12, 200])
def test_large_regions_and_lines_in_columns(size):
    rng = np.random.default_rng(size)
    count = max(4, SAMPLES // size)
    angles = np.linspace(0, 2 * np.pi, size, endpoint=False)
    radii = np.round(rng.uniform(8, 16, (count, size)) * 64) / 64
    rings = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=2).round(3) + 50
    regions = shapely.polygons(rings)
    assert shapely.is_valid(regions).all()
    walks = [shapely.LineString(ring[: size // 2 + 1]) for ring in rings[::2]]
    lines = np.array([*walks, *random_lines(rng, count - len(walks), 70, 1.0)])
    check(ct.de9im(column(lines), column(regions)), lines, regions)
    outlines = [shapely.LineString(ring[[*range(size), 0]]) for ring in rings]
    assert set(ct.de9im(column(outlines), column(regions)).tolist()) == {"F1FFFF212"[:7] + "F2"}


@pytest.mark.jitless
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("LINESTRING(0 0, 4 4)", "POLYGON((2 0, 6 0, 6 8, 2 8, 2 0))", "1010F0212"),
        ("LINESTRING(0 0, 2 2)", "LINESTRING(0 2, 2 0)", "0F1FF0102"),
        ("POINT(1 1)", "LINESTRING(0 0, 2 2)", "0FFFFF102"),
        ("POINT(0 0)", "LINESTRING(0 0, 2 2)", "F0FFFF102"),
        ("POINT(0 0)", "LINESTRING(0 0, 2 0, 2 2, 0 0)", "0FFFFF1F2"),
        ("POLYGON((0 0, 1 0, 1 1, 0 0))", "POINT(9 9)", "FF2FF10F2"),
    ],
)
def test_worked_examples(a, b, expected):
    a, b = wkt(a, b)
    assert ct.de9im(a, b) == expected == judge(a, b)


@pytest.mark.parametrize("threads", [1, 2])
def test_columns_broadcast_and_threads_do_not_matter(threads):
    rng = np.random.default_rng(1)
    lines = column(random_lines(rng, 9000, 4, 30.0))
    box = ct.Region.box(20, 20, 80, 80)
    found = ct.de9im(lines, box, threads=threads)
    expected = shapely.relate(lines.to_shapely(), box.to_shapely())
    assert (found == expected).all()
    assert (ct.crosses(box, lines, threads=threads) == shapely.crosses(lines.to_shapely(), box.to_shapely())).all()


def test_different_systems_and_lengths_are_refused():
    a = ct.Line([(0, 0), (1, 1)], crs="EPSG:25832")
    with pytest.raises(ct.CrsError):
        ct.de9im(a, ct.Region.box(0, 0, 1, 1, crs="EPSG:4326"))
    with pytest.raises(ct.ArgumentError, match="2 and 3 rows"):
        ct.de9im(ct.LineArray.from_lines([a, a]), ct.LineArray.from_lines([a, a, a]))
    with pytest.raises(ct.ArgumentError, match="need a Region"):
        ct.touches(a, 3)


@pytest.mark.parametrize("other", ["line", "region"])
def test_pairs_that_take_too_many_comparisons_are_refused(other, limited):
    """Two combs across each other meet n times n times; of usual lines each edge meets a few."""
    n = 600
    comb = np.column_stack([np.arange(2 * n) / 2, np.arange(2 * n) % 2 * n])
    a, b = shapely.LineString(comb), shapely.LineString(comb[:, ::-1])
    b = b if other == "line" else shapely.Polygon([*comb[:, ::-1], (-1, n), (-1, 0)])
    expected = ct.de9im(a, b)
    assert expected[0] == ("0" if other == "line" else "1")
    limited(comparisons=10_000)
    with pytest.raises(ct.LimitError, match=r"row 0: too many edges .*CONTRADA_MAX_COMPARISONS"):
        ct.de9im(a, b)
    assert ct.intersects(a, b)
