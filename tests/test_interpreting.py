"""Small calls on an empty cache: interpreted, with the answers of compiled kernels, and compiled when that pays."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import shapely
from hypothesis import given

import contrada as ct
from console import python
from contrada import kernels
from effort import COMPILED, examples, slow
from generators.families import FAMILIES, family
from generators.strategies import shape_pairs

INTERPRETED = (
    "count_wkb", "scan_wkb", "fill_wkb", "read_polygon", "validate_regions", "relate_rows", "relate_points",
)  # fmt: skip
PAIRS = examples(40)  # of each family

pytestmark = pytest.mark.skipif(not COMPILED, reason="compares compiled with interpreted kernels")

RELATE_ONCE = """
import contrada as ct
a, b = ct.Region.box(0, 0, 4, 4), ct.Region.from_wkt("POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1), (2 2, 2.5 2, 2 2.5, 2 2))")
print(ct.relate(a, b), ct.relate(ct.Point(4, 2), a))
"""
READ_OFTEN = """
import sys
import contrada as ct
from contrada import jit
from contrada.geometry.sources import raw_from_wkb
one = ct.Region.box(0, 0, 4, 4).to_wkb()
small = raw_from_wkb([one])
assert jit.cache_state().kernels == 0
if sys.argv[1] == "large":
    large = raw_from_wkb([one] * 1000)
    assert (large.xy.reshape(1000, -1) == small.xy.ravel()).all()
else:
    calls = 0
    while jit.cache_state().kernels < 2 and calls < 1_000_000:
        calls += 1
        assert (raw_from_wkb([one]).xy == small.xy).all()
    assert calls > 10
assert jit.cache_state().kernels == 2
"""


@contextmanager
def interpreted() -> Iterator[None]:
    """Within this context, kernels that may be interpreted are."""
    with pytest.MonkeyPatch.context() as patch:
        for name in INTERPRETED:
            kernels.compiled_kernel(name)
            patch.setattr(kernels, name, kernels.interpreted_kernel(name))
        yield


def read_and_relate(shapes, others):
    """Regions, reasons and relations of two columns of Shapely's shapes, some invalid; and relations to points."""
    a, b = ct.read_regions(shapely.to_wkb(shapes)), ct.read_regions(shapely.to_wkb(others))
    rows, first, second = np.intersect1d(a.rows, b.rows, return_indices=True)
    column, other = a.regions[first], b.regions[second]
    found = [array.tobytes() for array in (*a.regions.arrays, *b.regions.arrays, rows)]
    found += [str(rejected) for rejected in (*a.rejected, *b.rejected)]
    codes = [ct.relate(one, two) for one, two in zip(column, other, strict=True)]
    corners = ct.PointArray(other.bounds[:, :2])
    return [*found, *codes, ct.relate(column, other).tobytes(), ct.relate(corners, column).tobytes()]


@pytest.mark.effort
@pytest.mark.parametrize("name", [chosen.name for chosen in FAMILIES])
def test_interpreted_kernels_return_what_compiled_ones_do(name):
    a, b = family(name).pairs(np.random.default_rng(17), PAIRS)
    expected = read_and_relate(a, b)
    with interpreted():
        assert read_and_relate(a, b) == expected


@given(shape_pairs())
def test_any_pair_is_related_alike(pair):
    expected = read_and_relate([pair[0]], [pair[1]])
    with interpreted():
        assert read_and_relate([pair[0]], [pair[1]]) == expected


@pytest.mark.parametrize(
    "wkt",
    [
        "POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))",
        "POLYGON ((0 0, 4 0, 4 4, 0 0), (5 5, 6 5, 6 6, 5 5))",
        "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((1 0, 3 0, 3 1, 1 0)))",
        "POLYGON ((0 0, 1e200 0, 1 1, 0 0))",
        "POLYGON EMPTY",
    ],
)
def test_invalid_regions_are_refused_for_the_same_reason(wkt):
    def reason():
        with pytest.raises(ct.RegionError) as caught:
            ct.Region.from_wkt(wkt)
        return str(caught.value)

    expected = reason()
    with interpreted():
        assert reason() == expected


def test_the_first_relate_on_an_empty_cache_compiles_nothing(tmp_path):
    ran = python("-W", "error", "-c", RELATE_ONCE, env={**os.environ, "CONTRADA_CACHE_DIR": str(tmp_path)})
    assert (ran.stdout, ran.stderr) == ("contains meets\n", "")
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.parametrize("calls", ["large", slow("many")])
def test_large_calls_and_many_small_ones_are_compiled(tmp_path, calls):
    ran = python("-W", "error", "-c", READ_OFTEN, calls, env={**os.environ, "CONTRADA_CACHE_DIR": str(tmp_path)})
    assert ran.stderr.startswith("contrada: compiling kernels")
