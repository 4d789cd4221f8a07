"""Kernels stay within their arrays: compiled code does not look, so it is run where every index is checked."""

import os
import subprocess
import sys

import numpy as np
import pytest
import shapely

import contrada as ct
from effort import thorough
from generators.families.mosaic import Mosaic
from oracles.relations import shapely_codes

MANY = 60  # regions, as many as make the kernel prepare the one they are related to


def level_edges(count):
    """Squares above each other and far below them: edges along whole rows of whatever grid is laid over them."""
    low = np.arange(count) * 4.0
    return shapely.multipolygons([shapely.box(20, y, 24, y + 2) for y in (*low, low[-1] * 3 + 20)])


LEVEL = [level_edges(count) for count in (1, 2, 7, 15, 31, 40)]
TURNED = [shapely.transform(one, lambda xy: xy[:, ::-1]) for one in LEVEL]
NARROW = shapely.from_wkt([  # these once overran the lists of edges per cell
    "MULTIPOLYGON(((20 0, 20 4, 24 4, 24 0, 20 0)), ((20 24, 20 28, 24 28, 24 24, 20 24)))",
    "MULTIPOLYGON(((40 4, 40 0, 36 0, 40 4)), ((36 40, 40 40, 40 36, 36 40)))",
])  # fmt: skip


@pytest.mark.jitless
@pytest.mark.parametrize("region", [*LEVEL, *TURNED, *NARROW])
@pytest.mark.parametrize("corners", [(15, 0, 21, 6), (15, 0, 41, 40)])
def test_a_region_of_few_edges_against_many(region, corners):
    others = shapely.box(*(np.linspace(k, k + 9, MANY) for k in corners))
    codes = ct.relate(ct.Region.from_shapely(region), ct.RegionArray.from_shapely(others), threads=1)
    assert codes.tolist() == shapely_codes(np.repeat(region, MANY), others).tolist()


@pytest.mark.jitless
@pytest.mark.parametrize("size", [3, 9, 31])
def test_a_region_of_cells_against_many(size):
    """All edges lie on the lines of one grid, at every distance from the lines of the kernel's own."""
    rng = np.random.default_rng(size)
    mosaic = Mosaic.squares(size)
    masks = rng.random((MANY + 1, len(mosaic))) < 0.4
    masks[:, 0] = True
    regions = mosaic.regions(masks)
    regions = regions if size < 31 else np.array([regions[0], *shapely.box(0, 0, rng.random(MANY) * 99, 50)])
    column = ct.RegionArray.from_shapely(regions)
    codes = ct.relate(column[0], column[1:], threads=1)
    assert codes.tolist() == shapely_codes(np.repeat(regions[:1], MANY), regions[1:]).tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        ["verification.verify", "--pairs", "50000", "--jobs", "1", "--seed", "1"],
        thorough(["verification.verify", "--pairs", "50000", "--jobs", "1", "--seed", "2"]),
        ["oracles.packed_scan", "--items", "300", "--messages", "20", "--seed", "5"],
    ],
    ids=["relate 1", "relate 2", "match"],
)
def test_no_index_is_out_of_bounds(program, tmp_path_factory):
    """All families through kernels compiled with bounds checks, in a process and a cache of their own."""
    cache = tmp_path_factory.getbasetemp() / "bounds-checked"
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "CONTRADA_CACHE_DIR": str(cache)}
    environment.pop("NUMBA_DISABLE_JIT", None)
    run = subprocess.run([sys.executable, "-m", *program], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
