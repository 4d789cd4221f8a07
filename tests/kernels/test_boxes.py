"""Relations of boxes, and Table 2 of the spatial paper: which of them admit which relation of regions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given

import contrada as ct
from contrada.geometry.relate import BOX_RELATIONS, relate_boxes
from generators.strategies import shape_pairs

pytestmark = pytest.mark.jitless

SIDES = [(low, high) for low, high in product(range(4), repeat=2) if low < high]
BOXES = np.array([(x0, y0, x1, y1) for (x0, x1), (y0, y1) in product(SIDES, repeat=2)], float)

# One pair for each relation of regions and of their boxes that Table 2 as printed does not look at.
FORK = "POLYGON ((0 0, 10 0, 10 10, 6 10, 6 4, 4 4, 4 10, 0 10, 0 0))"
ROOF = "POLYGON ((2 1, 8 1, 8 2, 5 4, 2 2, 2 1))"
MISSED = {
    "COVERED_BY": (ROOF, FORK, "INSIDE"),
    "COVERS": (FORK, ROOF, "CONTAINS"),
    "DISJOINT": (
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((3 3, 4 3, 4 4, 3 4, 3 3)))",
        "MULTIPOLYGON (((0 3, 1 3, 1 4, 0 4, 0 3)), ((3 0, 4 0, 4 1, 3 1, 3 0)))",
        "EQUALS",
    ),
}


def boxes_of(region: ct.Region) -> np.ndarray:
    return np.array([region.bounds])


def test_boxes_relate_as_the_regions_they_are():
    regions = ct.RegionArray.from_regions([ct.Region.box(*box) for box in BOXES.tolist()])
    for row, box in enumerate(BOXES):
        expected = ct.relate(regions[row], regions)
        assert (relate_boxes(box, BOXES) == expected).all()
        assert (relate_boxes(np.repeat([box], len(BOXES), axis=0), BOXES) == expected).all()
        assert (relate_boxes(BOXES, BOXES[row : row + 1]) == ct.relate(regions, regions[row])).all()


def test_columns_of_boxes_must_go_together():
    with pytest.raises(ValueError, match="2 and 3 rows"):
        relate_boxes(BOXES[:2], BOXES[:3])


@given(shape_pairs())
def test_the_table_looks_at_every_pair_that_occurs(pair):
    a, b = (ct.Region.from_shapely(shape) for shape in pair)
    (boxes,) = relate_boxes(boxes_of(a), boxes_of(b))
    assert BOX_RELATIONS[ct.relate(a, b)] >> boxes & 1


@pytest.mark.parametrize("name", MISSED)
def test_what_the_printed_table_misses(name):
    first, second, expected = MISSED[name]
    a, b = ct.Region.from_wkt(first), ct.Region.from_wkt(second)
    (boxes,) = relate_boxes(boxes_of(a), boxes_of(b))
    assert (ct.relate(a, b).name, ct.Relation(boxes).name) == (name, expected)
    assert BOX_RELATIONS[ct.relate(a, b)] >> boxes & 1
