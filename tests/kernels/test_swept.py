"""The sweep line gives the relation and the validity that rational arithmetic gives, and its work grows as n log n."""

import sys

import numba
import numpy as np
import pytest
import shapely

import contrada as ct
from contrada.kernels.read.sweep_validity import FINE, sweep_parts
from contrada.kernels.relate.contacts import RegionColumn
from contrada.kernels.relate.regions import RELATION
from contrada.kernels.relate.sweep_relation import sweep_bits
from contrada.kernels.relate.touch_nodes import UNTIL_SETTLED
from effort import COMPILED, examples
from generators.families import FAMILIES, family
from generators.families.shapes import HOSTILE
from generators.messy import KINDS, disturbed, messy_regions
from generators.rings import polygons
from oracles.relations import INVERSE, check_codes, judge_validity, wkt

PAIRS = examples(800) if COMPILED else 4
REGIONS = examples(200) if COMPILED else 10  # of each kind


@numba.njit
def swept_relations(a, a_regions, b, b_regions, out):
    """Relate row k of one column to row k of another by the sweep alone; only compiled code can call it."""
    for k in range(len(out)):
        bits = sweep_bits(
            a, np.int64(a_regions[k]), np.int64(a_regions[k + 1]), b, np.int64(b_regions[k]),
            np.int64(b_regions[k + 1]), np.int64(0), UNTIL_SETTLED,
        )  # fmt: skip
        out[k] = RELATION[bits & 15]


@numba.njit
def swept_result(xy, offsets, part_rings, flags):
    """The result of sweeping one region; only compiled code can call it."""
    return sweep_parts(xy, offsets, part_rings, flags)[0]


def relate_swept(*columns):
    out, given = np.empty(len(columns[0]), np.uint8), []
    for xy, ring_offsets, region_offsets, ring_flags, *_ in (column.arrays for column in columns):
        given += RegionColumn(xy, ring_offsets, ring_flags, np.empty((0, 4))), region_offsets
    swept_relations(*given, out)
    return out


def is_valid_swept(region):
    """What the sweep says of a region without repeated vertices; None if a ring has fewer than three."""
    rings, part_rings = [], [0]
    for shell, holes in polygons(region):
        for points in (shell, *holes):
            ring = np.array(points)
            ring = ring[np.concatenate([[True], (np.diff(ring, axis=0) != 0).any(axis=1)])]
            if len(ring) < 4:
                return None
            rings.append(ring)
        part_rings.append(len(rings))
    offsets = np.cumsum([0, *(len(ring) for ring in rings)])
    return swept_result(np.concatenate(rings), offsets, np.array(part_rings), np.zeros(len(rings), np.uint8)) == FINE


@pytest.mark.slow  # compiles the sweep by itself; other tests reach it by large regions
@pytest.mark.jitless
@pytest.mark.effort
@pytest.mark.parametrize("name", [chosen.name for chosen in FAMILIES])
def test_relations(name):
    a, b = family(name).pairs(np.random.default_rng(11), PAIRS if name != "hundreds" else max(PAIRS // 10, 4))
    if not COMPILED:
        small = shapely.get_num_coordinates(a) + shapely.get_num_coordinates(b) < 200
        a, b = a[small], b[small]
    columns = [ct.RegionArray.from_shapely(regions) for regions in (a, b)]
    found = relate_swept(*columns)
    check_codes(found, a, b)
    assert (INVERSE[relate_swept(*columns[::-1])] == found).all()
    assert (ct.relate(*columns) == found).all()


@pytest.mark.slow
@pytest.mark.jitless
@pytest.mark.effort
def test_validity():
    """Fans, stars and the rest, moved a little so that many are not valid; and small ones with every fault there is."""
    rng = np.random.default_rng(12)
    a, b = family("hostile").make(rng, REGIONS)
    regions = [
        *messy_regions(rng, REGIONS * len(KINDS)),
        *b,
        *disturbed(rng, a[shapely.get_num_coordinates(a) < 120]),
    ]
    seen = {True: 0, False: 0}
    for region in regions:
        if not COMPILED and shapely.get_num_coordinates(region) > 120:
            continue
        found = is_valid_swept(region)
        if found is None:
            continue
        seen[found] += 1
        assert found == bool(shapely.is_valid(region)) or found == (judge_validity(region) is None), wkt(region)
    assert min(seen.values()) > REGIONS


@pytest.mark.jitless
@pytest.mark.skipif(COMPILED, reason="compiled code cannot be counted in")
@pytest.mark.parametrize("name", HOSTILE)
def test_work(name, monkeypatch):
    """Orientation tests per vertex stay few: comparing all pairs would take hundreds of times as many."""
    calls = 0

    def counted(*arguments):
        nonlocal calls
        calls += 1
        return exact(*arguments)

    from contrada.kernels.relate.orientation import orient as exact

    for module in [module for key, module in sys.modules.items() if key.startswith("contrada.kernels.")]:
        if getattr(module, "orient", None) is exact:
            monkeypatch.setattr(module, "orient", counted)
    data = shapely.to_wkb(HOSTILE[name](600))
    vertices = shapely.get_num_coordinates(shapely.from_wkb(data))
    region = ct.Region.from_wkb(data)
    assert calls < 200 * vertices
    calls = 0
    assert ct.relate(region, region) is ct.Relation.EQUALS
    assert calls < 400 * vertices  # all pairs, with four each, would be 2,400 per vertex
