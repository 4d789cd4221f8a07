"""Families give valid regions, the same for a seed; test_properties_relate counts the relations that they produce."""

import numpy as np
import pytest
import shapely

from generators.families import FAMILIES, family
from generators.families.mosaic import Census, Mosaic
from generators.rings import Rings, add_straight, drop_straight, redescribe


@pytest.mark.parametrize("chosen", FAMILIES, ids=lambda chosen: chosen.name)
def test_pairs_are_valid_and_follow_from_the_seed(chosen):
    a, b = chosen.pairs(np.random.default_rng(5), 120)
    assert len(a) == len(b) > 40
    assert shapely.is_valid([a, b]).all()
    again_a, again_b = chosen.pairs(np.random.default_rng(5), 120)
    assert (shapely.to_wkb(a) == shapely.to_wkb(again_a)).all()
    assert (shapely.to_wkb(b) == shapely.to_wkb(again_b)).all()


def test_impossible_relations_come_with_a_reason():
    assert all(why for chosen in FAMILIES for why in chosen.impossible.values())
    assert len({chosen.name for chosen in FAMILIES}) == len(FAMILIES)


def test_an_unknown_family_is_named():
    with pytest.raises(KeyError, match="no family 'squares'; there are coarse grid"):
        family("squares")


@pytest.mark.parametrize(
    ("name", "share", "holds"),
    [
        ("holes", 0.8, lambda c: (c.holes > 0) & ~c.rings_touch),
        ("holes at vertices", 0.8, lambda c: c.holes > 0),
        ("holes at vertices", 0.5, lambda c: c.rings_touch),
        ("parts", 0.8, lambda c: (c.parts > 1) & ~c.parts_touch),
        ("touching parts", 0.8, lambda c: c.parts_touch),
        ("nested parts", 0.8, lambda c: (c.parts > 1) & (c.holes > 0)),
    ],
)
def test_structured_families_have_their_structure(name, share, holds):
    """In each pair at least one region has it; which one is drawn."""
    a, b = family(name).pairs(np.random.default_rng(2), 400)
    either = holds(Census.of(a)) | holds(Census.of(b))
    assert either.mean() > share  # vertices that were dropped from straight edges can hide a contact


def test_holes_touch_within_edges():
    a, b = family("holes at edges").pairs(np.random.default_rng(2), 200)
    touching = 0
    for region in np.concatenate([a, b]):
        for part in shapely.get_parts(region):
            corners = {xy for ring in (part.exterior, *part.interiors) for xy in ring.coords}
            rings = [part.exterior, *part.interiors]
            touching += any(
                shapely.intersects_xy(ring, *xy) and xy not in ring.coords for ring in rings for xy in corners
            )
    assert touching > 150


def test_redescribed_regions_are_the_same():
    rng = np.random.default_rng(4)
    mosaic = Mosaic.triangles(rng, 5)
    masks = mosaic.random_masks(rng, 300)
    regions = mosaic.regions(masks[masks.any(axis=1)])
    for change in (
        lambda: Rings.of(regions).geometries(),
        lambda: redescribe(rng, regions),
        lambda: add_straight(rng, regions, 0.5),
        lambda: drop_straight(rng, regions, 1.0),
    ):
        changed = change()
        assert shapely.is_valid(changed).all()
        assert shapely.equals(changed, regions).all()
    assert (shapely.to_wkb(redescribe(rng, regions)) != shapely.to_wkb(regions)).mean() > 0.9
    before, after = (shapely.get_num_coordinates(r) for r in (regions, drop_straight(rng, regions, 1.0)))
    assert (after <= before).all()
    assert (after < before).any()


def test_the_cells_of_a_mosaic_know_their_neighbours():
    mosaic = Mosaic.squares(5)
    centre = np.zeros((1, 25), bool)
    centre[0, 12] = True
    assert mosaic.dilate(centre).sum() == 9
    assert (mosaic.erode(mosaic.dilate(centre)) == centre).all()
    assert mosaic.rim.sum() == 16
    around = mosaic.dilate(centre) & ~centre
    assert (mosaic.holes(around) == centre).all()
    assert not mosaic.holes(centre).any()
