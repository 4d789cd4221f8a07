"""Seeded regions with many vertices: coastlines, and neighbours that share a border."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Region

Floats = NDArray[np.float64]


def coastline(
    rng: np.random.Generator, vertices: int, *, centre: tuple[float, float] = (0.0, 0.0), radius: float = 1000.0
) -> Region:
    """An island whose distance from the centre wanders, on all scales, between 0.6 and 1.4 of `radius`."""
    angle = 2 * np.pi * np.arange(vertices) / vertices
    distance = radius * (1 + 0.4 * fractal(rng, vertices))
    ring = np.stack([centre[0] + distance * np.cos(angle), centre[1] + distance * np.sin(angle)], axis=1)
    return Region(ring)


def neighbours(rng: np.random.Generator, vertices: int) -> tuple[Region, Region]:
    """Two regions that meet along a wandering border: all but two of the vertices of either are shared."""
    width = 1000.0
    height = np.linspace(0.0, width, vertices - 2)
    border = np.stack([width * (1 + 0.4 * fractal(rng, vertices - 2)), height], axis=1)
    west = np.concatenate([border, [(0.0, width), (0.0, 0.0)]])
    east = np.concatenate([border[::-1], [(2 * width, 0.0), (2 * width, width)]])
    return Region(west), Region(east)


def fractal(rng: np.random.Generator, count: int, roughness: float = 1.1) -> Floats:
    """A periodic random curve whose waves of k periods have amplitude k ** -roughness, scaled to -1..1."""
    waves = np.arange(1, count // 2 + 1)
    amplitude = rng.normal(size=len(waves)) + 1j * rng.normal(size=len(waves))
    curve = np.fft.irfft(np.concatenate([[0], amplitude * waves**-roughness]), count)
    return np.asarray(curve / np.abs(curve).max())
