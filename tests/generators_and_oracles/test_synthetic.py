"""The workload generators keep what section 5 of [SPATIAL] says of its regions."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.papers.spatial import drawn_regions as synthetic
from generators import coastlines

UNIVERSES = [synthetic.UNIVERSE, (-3.0, 10.0, 5.0, 12.0)]
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20, deadline=None)


def sizes(regions):
    """Number of vertices of each region, the closing one not counted."""
    return shapely.get_num_coordinates(regions.to_shapely()) - 1


def area_of(box):
    return (box[2] - box[0]) * (box[3] - box[1])


def within(boxes, universe):
    low, high = np.array(universe[:2]), np.array(universe[2:])
    return (boxes[:, :2] >= low).all() and (boxes[:, 2:] <= high).all()


@few
@given(seed=seeds)
def test_paper_regions(seed):
    rings, frames = synthetic.paper_polygons(np.random.default_rng(seed), 100)
    regions = synthetic.as_regions(list(rings))
    shapes = regions.to_shapely()
    assert len(regions) == 100
    assert shapely.is_valid(shapes).all()
    assert set(sizes(regions)) == {20}
    assert (shapely.area(shapes) >= 0.1 * area_of(synthetic.UNIVERSE) * (1 - 1e-12)).all()
    assert within(frames, synthetic.UNIVERSE)
    assert set((regions.bounds == frames).sum(axis=1)) == {3, 4}, "sides of its frame that a region touches"
    assert (regions.bounds[:, :2] >= frames[:, :2]).all()
    assert (regions.bounds[:, 2:] <= frames[:, 2:]).all()


@pytest.mark.parametrize(("kind", "least", "most"), [("A", 6, 10), ("B", 30, 50), ("C", 3, 5)])
@pytest.mark.parametrize("universe", UNIVERSES)
@few
@given(seed=seeds)
def test_message_regions(kind, least, most, universe, seed):
    rings, frames = synthetic.message_polygons(np.random.default_rng(seed), 60, kind, universe=universe)
    regions = synthetic.as_regions(rings)
    shares = area_of(frames.T) / area_of(universe)
    assert shapely.is_valid(regions.to_shapely()).all()
    assert sizes(regions).min() >= least
    assert sizes(regions).max() <= most
    assert shares.min() >= 0.01 - 1e-12
    assert shares.max() <= 0.25 + 1e-12
    assert within(frames, universe)
    assert (regions.bounds == frames).all(), "regions fill their boxes"


def test_kinds_look_as_described():
    rng = np.random.default_rng(5)
    box, shape = {}, {}
    for kind in "ABC":
        regions = synthetic.message_regions(rng, 400, kind)
        width, height = (regions.bounds[:, 2:] - regions.bounds[:, :2]).T
        box[kind] = np.maximum(width, height) / np.minimum(width, height)
        shapes = regions.to_shapely()
        shape[kind] = 4 * np.pi * shapely.area(shapes) / shapely.length(shapes) ** 2  # 1 for a circle
    assert box["A"].max() <= 1.1 + 1e-9
    assert box["B"].max() > 2
    assert shape["A"].min() > 0.6
    assert np.median(shape["B"]) < 0.25
    assert np.median(shape["C"]) < 0.5


def test_every_relation_but_the_rare_ones_occurs_in_the_workload():
    rng = np.random.default_rng(11)
    shapes = synthetic.paper_regions(rng, 400).to_shapely()
    small = synthetic.message_regions(rng, 40, "A").to_shapely()
    assert shapely.contains(shapes, small[:, None]).any()
    assert shapely.overlaps(shapes, small[:, None]).any()
    assert shapely.disjoint(shapes, small[:, None]).any()


def test_the_seed_decides():
    first, again, other = (synthetic.paper_regions(np.random.default_rng(s), 20) for s in (1, 1, 2))
    assert first.to_wkb().equals(again.to_wkb())
    assert not first.to_wkb().equals(other.to_wkb())


@pytest.mark.parametrize("vertices", [16, 999, 5000])
def test_coastlines_are_simple(vertices):
    region = coastlines.coastline(np.random.default_rng(2), vertices, centre=(5.0, -7.0), radius=10.0)
    shape = region.to_shapely()
    assert shape.is_valid
    assert shapely.get_num_coordinates(shape) == vertices + 1
    distance = np.hypot(*(shapely.get_coordinates(shape) - (5.0, -7.0)).T)
    assert distance.min() >= 6 - 1e-9
    assert distance.max() <= 14 + 1e-9


def test_neighbours_share_their_border():
    west, east = (region.to_shapely() for region in coastlines.neighbours(np.random.default_rng(2), 1000))
    assert west.is_valid
    assert east.is_valid
    assert west.touches(east)
    assert shapely.get_num_coordinates(west) == shapely.get_num_coordinates(east) == 1001
    assert shapely.intersection(west.boundary, east.boundary).length > 1000
