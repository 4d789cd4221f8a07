"""Heads: a message that satisfies a filter meets its head, and templates have the heads of what they stand for."""

import numpy as np
import pyarrow as pa
import shapely

from contrada.cql2 import parse
from contrada.matching.routing_boxes import bound_heads, heads_of

SMALL, LARGE = "POLYGON((1 1, 2 1, 2 2, 1 1))", "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))"


def named(heads):
    return [None if k < 0 else heads.names[k] for k in heads.attributes.tolist()]


def test_the_narrowest_constraint_is_the_head():
    asked = [
        f"S_INTERSECTS(area, {LARGE}) AND overlaps(home, {SMALL}) AND size > 3",
        f"S_INTERSECTS(area, {SMALL}) OR S_INTERSECTS(home, POINT(3 4)) AND overlaps(area, {SMALL})",
        f"NOT S_WITHIN(area, {SMALL})",
        f"disjoint(area, {SMALL}) AND inside(area, {LARGE})",
        "size > 3 OR area IS NULL",
    ]
    heads = heads_of([parse(text) for text in asked] + [None])
    assert heads.offsets.tolist() == [0, 1, 3, 4, 5, 7, 7]
    assert named(heads) == ["home", "area", "home", None, "area", None, None]
    assert heads.boxes[[0, 2, 4]].tolist() == [[1, 1, 2, 2], [3, 4, 3, 4], [0, 0, 9, 9]]
    assert np.isnan(heads.boxes[3]).all()


def test_templates_have_the_heads_of_their_rows():
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 9, (50, 2))
    sizes = rng.uniform(0.1, 5, (50, 2))
    shapes = [[shapely.box(x, y, x + s[k], y + s[k]) for (x, y), s in zip(corners, sizes, strict=True)] for k in (0, 1)]
    rows = pa.table({"one": shapely.to_wkb(shapes[0]), "two": shapely.to_wkb(shapes[1]), "least": range(50)})
    template = "S_INTERSECTS(area, $one) AND S_INTERSECTS(home, $two) OR size > $least OR disjoint(area, $one)"
    heads, crs = bound_heads(rows, parse(template))
    assert crs == {"area": None, "home": None}
    narrower = [("area", one) if one.area <= two.area else ("home", two) for one, two in zip(*shapes, strict=True)]
    assert heads.offsets.tolist() == list(range(0, 151, 3))
    assert named(heads) == [name for attribute, _ in narrower for name in (attribute, None, None)]
    assert heads.boxes[::3].tolist() == [list(shape.bounds) for _, shape in narrower]
    assert len(bound_heads(rows.slice(0, 0), parse(template))[0].attributes) == 0
