"""Trees of edges: one large region against many thin ones and points, as Shapely and the rationals say."""

import numpy as np
import pytest
import shapely

import contrada as ct
from contrada.index.packed import PackedTree
from effort import COMPILED, examples, slow
from generators.families.shapes import HOSTILE, slivers
from oracles.relations import NAMES, check_codes, judge, judge_point, wkt

CELLS = 13
# Maps the integers onto themselves and a square onto a thin diagonal sliver.
THIN = np.array([[7.0, 6.0], [8.0, 7.0]])


def cells(rng):
    """Squares of a board with common edges and corners, joined: parts and holes that touch, over 64 vertices."""
    x, y = np.nonzero(rng.random((CELLS, CELLS)) < 0.6)
    return shapely.unary_union(shapely.box(x, y, x + 1, y + 1))


def figures(rng, count):
    """Triangles, rectangles and rectangles with a hole on the same board, also beyond it."""
    corners = rng.integers(-1, CELLS + 2, (count, 3, 2)).astype(float)
    low, high = corners.min(axis=1), corners.max(axis=1) + 1
    boxes = shapely.box(*low.T, *high.T)
    frames = shapely.difference(shapely.box(*(low - 1).T, *(high + 1).T), boxes)
    shapes = np.concatenate([shapely.polygons(corners), boxes, frames, shapely.box(*low.T, *(low + 1).T)])
    return shapes[shapely.is_valid(shapes)]


def tree_of(shape):
    """A packed tree with a constraint for each relation to the shape, whose tree of edges was built for messages."""
    column = ct.RegionArray.from_shapely([shape] * 8)
    assert shapely.get_num_coordinates(shape) > 64
    tree = PackedTree(column, np.uint8(1) << np.arange(8, dtype=np.uint8), np.arange(8, dtype=np.int32))
    before, around = tree.nbytes, ct.Region.box(*shape.bounds)
    for _ in range(60):  # 7 to 27 are enough
        tree.match(around)
    assert tree.nbytes > before
    return tree


@pytest.mark.jitless
@pytest.mark.effort
@pytest.mark.parametrize("matrix", [np.eye(2), slow(THIN)], ids=["plain", "thin"])
def test_touching_figures_are_related_as_the_rationals_say(matrix):
    """Coarse coordinates: edges and vertices coincide, also in points where two parts touch."""
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(examples(16) if COMPILED else 1):
        shape = shapely.transform(cells(rng), lambda xy: xy @ matrix.T)
        tree = tree_of(shape)
        for figure in figures(rng, 12 if COMPILED else 3):
            other = shapely.transform(figure, lambda xy: xy @ matrix.T)
            (found,) = tree.match(ct.Region.from_shapely(other))
            assert NAMES[found] == NAMES[judge(other, shape)], f"{wkt(other)} {wkt(shape)}"
            seen.add(int(found))
        for point in rng.integers(0, 2 * CELLS, (40, 2)) / 2 @ matrix.T:
            (found,) = tree.match(ct.Point(*point))
            assert NAMES[found] == NAMES[judge_point(point, shape)], f"{point} {wkt(shape)}"
            seen.add(int(found))
    assert not COMPILED or seen >= {ct.Relation.DISJOINT, ct.Relation.MEETS, ct.Relation.OVERLAPS, ct.Relation.INSIDE}


@pytest.mark.parametrize("matrix", [np.eye(2), slow(THIN)], ids=["plain", "thin"])
def test_a_region_that_fills_or_frames_all_parts(matrix):
    """Relations that depend on all rings: within, around, equal, and in the gaps."""
    rng = np.random.default_rng(4)
    for _ in range(4):
        shape = cells(rng)
        around = shapely.box(-1, -1, CELLS + 1, CELLS + 1)
        near = shapely.box(*shape.bounds)
        others = [around, near, shape, around - shape, near - shape, shape.buffer(1, join_style="mitre")]
        others += [max(shape.geoms, key=lambda part: part.area)] if shape.geom_type == "MultiPolygon" else []
        shape = shapely.transform(shape, lambda xy: xy @ matrix.T)
        tree = tree_of(shape)
        for other in (shapely.transform(other, lambda xy: xy @ matrix.T) for other in others):
            (found,) = tree.match(ct.Region.from_shapely(other))
            assert NAMES[found] == NAMES[judge(other, shape)], f"{wkt(other)} {wkt(shape)}"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_column_of_slivers_is_related_exactly(name):
    """So many rows that the tree is built on the way; slivers run along the shape, through it, and share its edges."""
    rng = np.random.default_rng(5)
    shape = HOSTILE[name](600)
    low, high = np.reshape(shape.bounds, (2, 2))
    own = slivers(600)
    fitted = np.round(own / np.abs(own).max() * (high - low) / 2 + (low + high) / 2)
    vertices = shapely.get_coordinates(shape)
    corners = vertices[rng.integers(0, len(vertices) - 1, 300)[:, None] + [[0, 1, 0]]]
    corners[:, 2] = vertices[rng.integers(0, len(vertices), 300)]
    shapes = shapely.polygons(np.concatenate([own, own + np.array([4, -4]), fitted, corners]))
    shapes, region = rng.permutation(shapes), ct.Region.from_shapely(shape)
    sifted = ct.read_regions(shapes)
    codes = ct.relate(region, sifted.regions, threads=1)
    check_codes(codes, np.repeat(np.array([shape]), len(sifted.rows)), shapes[sifted.rows])
    points = np.concatenate([vertices, (vertices[1:] + vertices[:-1]) / 2, rng.uniform(low, high, (2000, 2))])
    codes = ct.relate(ct.PointArray(points), region, threads=1)
    check_codes(codes, points, np.repeat(np.array([shape]), len(points)))


def test_many_messages_build_the_tree_of_a_subscription():
    """Messages one by one and together: the tree is built on the way, and the answers stay the same."""
    shape = HOSTILE["sliver parts"](2000)
    messages = ct.RegionArray.from_shapely(shapely.polygons(slivers(2000) + np.array([4, -4])))
    column = ct.RegionArray.from_shapely([shape] * 8)
    masks, rows = np.uint8(1) << np.arange(8, dtype=np.uint8), np.arange(8, dtype=np.int32)
    together, one_by_one, points = trees = [PackedTree(column, masks, rows) for _ in range(3)]
    before = [tree.nbytes for tree in trees]
    codes = ct.relate(messages, ct.Region.from_shapely(shape))
    check_codes(codes, messages.to_shapely(), np.repeat(np.array([shape]), len(messages)))
    expected = codes.tolist()
    counts, found = together.match_many(messages, np.arange(len(messages)))
    assert (counts.tolist(), found.tolist()) == ([1] * len(messages), expected)
    assert [one_by_one.match(message).tolist() for message in messages] == [[code] for code in expected]
    middles = ct.PointArray(slivers(2000).mean(axis=1))
    _, found = points.match_many(middles, np.arange(len(middles)))
    assert set(found.tolist()) == {ct.Relation.INSIDE}
    assert all(tree.nbytes > size for tree, size in zip(trees, before, strict=True))
