"""relate against Shapely and the rationals: all families, and pairs that Hypothesis finds and shrinks.

`make verify` does the same for a million pairs.
"""

import os

import numpy as np
import pytest
import shapely
from hypothesis import given

import contrada as ct
from generators.families import FAMILIES, family
from generators.strategies import shape_pairs
from oracles.relations import INVERSE, NAMES, judge
from verification.report import complaints
from verification.verify import verify

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
PAIRS = 900 if COMPILED else 30  # of each family


@pytest.mark.jitless
@pytest.mark.parametrize("name", [chosen.name for chosen in FAMILIES])
def test_every_pair_of_the_family_is_related_exactly(name):
    (state,) = verify([family(name)], PAIRS, seed=2, sample=0.02 if COMPILED else 0.2)
    assert list(complaints(state)) == []
    assert state.tally.wrong == 0
    assert state.pairs >= 0.5 * PAIRS


@given(shape_pairs())
def test_any_pair_is_related_exactly(pair):
    a, b = (ct.Region.from_shapely(shape) for shape in pair)
    expected = judge(*pair)
    assert NAMES[ct.relate(a, b)] == NAMES[expected]
    assert NAMES[ct.relate(b, a)] == NAMES[INVERSE[expected]]


@given(shape_pairs())
def test_one_pair_and_columns_agree(pair):
    a, b = (ct.Region.from_shapely(shape) for shape in pair)
    column = ct.RegionArray.from_shapely(np.array([*pair, pair[0]]))
    one = [int(ct.relate(a, other)) for other in (a, b, a)]
    assert ct.relate(a, column).tolist() == one
    assert INVERSE[ct.relate(column, a)].tolist() == one
    assert ct.relate(column[[0, 0, 0]], column).tolist() == one


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_answers(threads):
    rng = np.random.default_rng(6)
    a, b = family("mosaics").pairs(rng, 3000)
    column_a, column_b = ct.RegionArray.from_shapely(a), ct.RegionArray.from_shapely(b)
    expected = ct.relate(column_a, column_b, threads=1)
    assert (ct.relate(column_a, column_b, threads=threads) == expected).all()
    one = ct.relate(column_a[0], column_b, threads=threads)
    assert one.tolist() == [int(ct.relate(column_a[0], column_b[k])) for k in range(len(b))]


def test_columns_broadcast():
    squares = shapely.box(np.arange(4) * 2.0, 0, np.arange(4) * 2.0 + 3, 3)
    column = ct.RegionArray.from_shapely(squares)
    codes = ct.relate(column[0], column)
    assert codes.dtype == np.uint8
    assert [NAMES[code] for code in codes] == ["equals", "overlaps", "disjoint", "disjoint"]
    assert ct.relate(column[:1], column).tolist() == codes.tolist()
    with pytest.raises(ValueError, match=r"2.*3|3.*2"):
        ct.relate(column[:2], column[:3])
    assert len(ct.relate(column[:0], column[:0])) == 0


def test_one_region_against_more_than_twenty_thousand():
    """As many as make the kernel prepare the one more finely: the answers are those of single pairs."""
    rng = np.random.default_rng(12)
    lots = [family(name).pairs(rng, 6000) for name in ("mosaics", "coarse grid", "holes at edges", "rotated")]
    many = ct.read_regions(np.concatenate([b for _, b in lots])).regions
    assert len(many) > 20_000
    for a, _ in lots:
        one = ct.RegionArray.from_shapely(a[:1])
        paired = ct.relate(one[np.zeros(len(many), np.int64)], many)
        assert (ct.relate(one[0], many) == paired).all()
        assert (ct.relate(many, one[0]) == INVERSE[paired]).all()
