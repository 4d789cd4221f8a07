"""Rings that are known to be simple without a look at pairs of edges."""

import numba
import numpy as np
import pytest
import shapely

from contrada.kernels.read.clean import is_star


@numba.njit
def star_of(closed):
    """What the kernel says; only compiled code can call it."""
    return is_star(closed, 0, len(closed))


def ring(points):
    points = np.asarray(points, float)
    return np.concatenate([points, points[:1]])


def star(points):
    return bool(star_of(ring(points)))


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_only_one_turn_counts(turns):
    angles = np.linspace(0, 2 * np.pi * turns, 7 * turns, endpoint=False)
    spiral = np.column_stack([np.cos(angles), np.sin(angles)]) * np.linspace(1, 2, len(angles))[:, None]
    assert star(spiral) == (turns == 1)


def test_what_is_a_star_is_valid():
    """On coarse grids with rings that cross, touch themselves and turn several times."""
    rng = np.random.default_rng(3)
    found = 0
    for trial in range(6000):
        count = int(rng.integers(3, 12))
        points = rng.integers(-4, 5, (count, 2)).astype(float)
        if trial % 2:
            angles = np.sort(rng.uniform(0, 2 * np.pi * rng.integers(1, 3), count))
            points = np.round(np.column_stack([np.cos(angles), np.sin(angles)]) * rng.uniform(1, 6, (count, 1)))
        if star(points):
            found += 1
            assert shapely.Polygon(ring(points)).is_valid, points.tolist()
            assert shapely.Polygon(ring(points)).exterior.is_ccw
    assert found > 500


def test_a_mean_too_small_to_be_exact_counts_as_zero():
    assert star(np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]) * 1e-119 + [(1e-121, 0)])
    assert not star([(0, 0), (4, 0), (4, 4), (3, 4), (3, 1), (1, 1), (1, 4), (0, 4)])  # a U
