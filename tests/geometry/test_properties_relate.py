"""relate against Shapely and the rationals: all families, and pairs that Hypothesis finds and shrinks.

`make verify` does the same for a million pairs.
"""

import numpy as np
import pytest
from hypothesis import given

import contrada as ct
from effort import COMPILED, examples
from generators.families import FAMILIES, family
from generators.strategies import shape_pairs
from oracles.relations import INVERSE, NAMES, check_codes, judge
from verification.verify import complaints, verify

PAIRS = examples(1600) if COMPILED else 30  # of each family


@pytest.mark.jitless
@pytest.mark.effort
@pytest.mark.parametrize("name", [chosen.name for chosen in FAMILIES])
def test_every_pair_of_the_family_is_related_exactly(name):
    (state,) = verify([family(name)], PAIRS, seed=2, sample=0.02 if COMPILED else 0.2)
    assert list(complaints(state)) == []
    assert state.tally.wrong == 0
    assert state.pairs >= 0.5 * PAIRS


@given(shape_pairs())
def test_any_pair_is_related_exactly_alone_and_in_columns(pair):
    a, b = (ct.Region.from_shapely(shape) for shape in pair)
    expected = judge(*pair)
    assert NAMES[ct.relate(a, b)] == NAMES[expected]
    assert NAMES[ct.relate(b, a)] == NAMES[INVERSE[expected]]
    column = ct.RegionArray.from_shapely(np.array([*pair, pair[0]]))
    codes = [int(ct.Relation.EQUALS), expected, int(ct.Relation.EQUALS)]
    assert ct.relate(a, column).tolist() == codes
    assert INVERSE[ct.relate(column, a)].tolist() == codes
    assert ct.relate(column[[0, 0, 0]], column).tolist() == codes


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_answers(threads):
    a, b = family("mosaics").pairs(np.random.default_rng(6), 3000)
    column_a, column_b = ct.RegionArray.from_shapely(a), ct.RegionArray.from_shapely(b)
    check_codes(ct.relate(column_a, column_b, threads=threads), a, b)
    check_codes(ct.relate(column_a[0], column_b, threads=threads), np.repeat(a[:1], len(b)), b)


def test_one_region_against_more_than_twenty_thousand():
    """As many as make the kernel prepare the one more finely."""
    rng = np.random.default_rng(12)
    lots = [family(name).pairs(rng, 600) for name in ("mosaics", "coarse grid", "holes at edges", "rotated")]
    sifted = ct.read_regions(np.concatenate([b for _, b in lots]))
    few, shapes = sifted.regions, np.concatenate([b for _, b in lots])[sifted.rows]
    many = few[np.tile(np.arange(len(few)), 1 + 20_000 // len(few))]
    for a, _ in lots:
        one = ct.Region.from_shapely(a[0])
        codes = ct.relate(one, many)
        check_codes(codes[: len(few)], np.repeat(a[:1], len(few)), shapes)
        assert (codes == np.resize(codes[: len(few)], len(codes))).all()
        assert (ct.relate(many, one) == INVERSE[codes]).all()
