"""Seeded workloads of [SPATIAL]: the synthetic regions of section 5 and its kinds of messages.

Section 5 chooses two random points as the frame R of a region, three or four points each on a separate side
of R and further points within R, and orders them "in such a way that the boundary has no intersecting
segments". It does not say how. Here they are ordered by their angle around their mean, which gives
star-shaped polygons: always simple, since the mean of points lies inside their convex hull, and irregular
enough for every relation to occur.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.geometry import RegionArray

Floats = NDArray[np.float64]
Box = tuple[float, float, float, float]
MessageKind = Literal["A", "B", "C"]
Boxes = Literal["area", "narrow", "sides"]  # readings of "an MBR area between 1% and 25% of the universe"

UNIVERSE: Box = (0.0, 0.0, 1000.0, 1000.0)
POINTS, LEAST_AREA = 20, 0.1 * 1000.0 * 1000.0  # of the regions of section 5
SIDES = ((0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0))  # axis and value: left, right, lower, upper


def paper_regions(rng: np.random.Generator, count: int) -> RegionArray:
    """`count` regions of section 5: 20 vertices each, area at least a tenth of the universe.

    >>> len(paper_regions(np.random.default_rng(7), 3))
    3
    """
    return as_regions(list(paper_polygons(rng, count)[0]))


def paper_polygons(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    """The vertices (count, 20, 2) and frames R (count, 4) of such regions.

    A region touches three or four sides of its frame, so the frame is its bounding box or a little more.
    """
    polygons, frames = np.empty((0, POINTS, 2)), np.empty((0, 4))
    while len(polygons) < count:
        drawn = random_frames(rng, 2 * (count - len(polygons)) + 16)
        rings = star_order(place(star_points(rng, len(drawn), POINTS), drawn))
        large = shapely.area(shapely.polygons(rings)) >= LEAST_AREA
        polygons, frames = np.concatenate([polygons, rings[large]]), np.concatenate([frames, drawn[large]])
    return polygons[:count], frames[:count]


def message_regions(
    rng: np.random.Generator, count: int, kind: MessageKind, *, universe: Box = UNIVERSE, boxes: Boxes = "area"
) -> RegionArray:
    """`count` regions of a kind of section 5.2, whose bounding boxes take 1 to 25 % of the universe.

    With boxes="narrow" their boxes are also ten times as long as wide; with "sides" the longer side, in place of the
    area, is 1 to 25 % of the universe's.

    A: round, nearly square box, 6 to 10 vertices (clouds, storms). B: irregular, 30 to 50 vertices (herds,
    fires). C: narrow and long, 3 to 5 vertices, from one corner of its box to the opposite one (paths of
    aircraft).

    >>> len(message_regions(np.random.default_rng(7), 5, "C"))
    5
    """
    return as_regions(message_polygons(rng, count, kind, universe=universe, boxes=boxes)[0])


def message_polygons(
    rng: np.random.Generator, count: int, kind: MessageKind, *, universe: Box = UNIVERSE, boxes: Boxes = "area"
) -> tuple[list[Floats], Floats]:
    """The vertices (a list of (n, 2) arrays) and bounding boxes (count, 4) of such regions."""
    least, most, stretch, draw = KINDS[kind]
    frames = FRAMES[boxes](rng, count, universe, stretch)
    sizes = rng.integers(least, most + 1, count)
    rings: list[Floats] = [np.empty((0, 2))] * count
    for size in np.unique(sizes):  # one vectorised draw per number of vertices
        rows = np.flatnonzero(sizes == size)
        for row, ring in zip(rows, place(draw(rng, len(rows), int(size)), frames[rows]), strict=True):
            rings[row] = ring
    return rings, frames


def random_frames(rng: np.random.Generator, count: int) -> Floats:
    """Boxes spanned by two random points; those too small for a region of section 5 are redrawn."""
    low, high = np.array(UNIVERSE[:2]), np.array(UNIVERSE[2:])
    frames = np.empty((0, 4))
    while len(frames) < count:
        corners = low + rng.random((8 * count, 2, 2)) * (high - low)
        drawn = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
        areas = np.prod(drawn[:, 2:] - drawn[:, :2], axis=1)
        frames = np.concatenate([frames, drawn[areas > LEAST_AREA]])
    return frames[:count]


def sized_frames(rng: np.random.Generator, count: int, universe: Box, stretch: float) -> Floats:
    """Boxes of 1 to 25 % of the universe, placed at random; width / height is log-uniform up to `stretch`."""
    width, height = universe[2] - universe[0], universe[3] - universe[1]
    area = rng.uniform(0.01, 0.25, count) * width * height
    aspect = stretch ** rng.uniform(-1.0, 1.0, count)
    aspect = np.clip(aspect, area / height**2, width**2 / area)  # so that it fits
    return placed_frames(rng, universe, np.stack([np.sqrt(area * aspect), np.sqrt(area / aspect)], axis=1))


def narrow_frames(rng: np.random.Generator, count: int, universe: Box, stretch: float) -> Floats:
    """Boxes of 1 to 10 % of the universe, ten times as long as wide in its units, upright or lying; placed at random.

    No box as narrow takes more than 10 % of the universe. `stretch` has no effect.
    """
    extent = np.array([universe[2] - universe[0], universe[3] - universe[1]])
    long = np.sqrt(NARROW * rng.uniform(0.01, 1 / NARROW, count))
    size = np.stack([long, long / NARROW], axis=1)
    upright = rng.random(count) < 0.5
    size[upright] = size[upright, ::-1]
    return placed_frames(rng, universe, size * extent)


def side_frames(rng: np.random.Generator, count: int, universe: Box, stretch: float) -> Floats:
    """Boxes whose longer side is 1 to 25 % of the universe's; width / height is log-uniform up to `stretch`."""
    extent = np.array([universe[2] - universe[0], universe[3] - universe[1]])
    long = rng.uniform(0.01, 0.25, count)
    aspect = stretch ** rng.uniform(-1.0, 1.0, count)
    size = np.stack([long * np.minimum(aspect, 1.0), long / np.maximum(aspect, 1.0)], axis=1)
    return placed_frames(rng, universe, size * extent)


def placed_frames(rng: np.random.Generator, universe: Box, size: Floats) -> Floats:
    """Boxes of given sizes, placed at random within the universe."""
    width, height = universe[2] - universe[0], universe[3] - universe[1]
    free = np.maximum(np.array([width, height]) - size, 0.0)
    low = np.array(universe[:2]) + rng.random((len(size), 2)) * free
    return np.concatenate([low, np.minimum(low + size, np.array(universe[2:]))], axis=1)


def star_points(rng: np.random.Generator, count: int, size: int, sides: int | None = None) -> Floats:
    """Random points of the unit square, four of them on its four sides, or three on three, as `sides` says.

    None leaves it to chance, as in section 5.
    """
    points = rng.random((count, size, 2))
    spared = rng.integers(0, 8 if sides is None else 4, count)  # 4..7 spare no side
    for k, (axis, value) in enumerate(SIDES):
        rows = np.full(count, True) if sides == 4 else spared != k
        points[rows, k, axis] = value
    return points


def spiky_unit_rings(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Irregular star-shaped rings that touch all four sides of the unit square."""
    return star_order(star_points(rng, count, size, sides=4))


def round_unit_rings(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Roundish rings, fitted to the unit square: radii and angular steps vary by a fifth."""
    angle = 2 * np.pi / size * (np.arange(size) + rng.uniform(-0.2, 0.2, (count, size)))
    radius = rng.uniform(0.8, 1.0, (count, size))
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    low, high = ring.min(axis=1, keepdims=True), ring.max(axis=1, keepdims=True)
    return np.asarray((ring - low) / (high - low))


def narrow_unit_rings(rng: np.random.Generator, count: int, size: int) -> Floats:
    """Bands of 3, 4 or 5 vertices along a diagonal of the unit square, blunt (4) or with a tip at one end."""
    a, b, c, d = rng.uniform(0.05, 0.25, (4, count))
    zero, one = np.zeros(count), np.ones(count)
    head = [(one, 1 - d), (1 - c, one)] if size < 5 else [(one, 1 - d), (one, one), (1 - c, one)]
    tail = [(zero, zero)] if size == 3 else [(zero, a), (b, zero)]
    ring = np.stack([np.stack(vertex, axis=-1) for vertex in tail + head], axis=1)
    falling = rng.random(count) < 0.5
    ring[falling, :, 0] = 1 - ring[falling, :, 0]
    return ring


# Fewest and most vertices, how far from square the box may be, and the shape.
KINDS: dict[str, tuple[int, int, float, Callable[[np.random.Generator, int, int], Floats]]] = {
    "A": (6, 10, 1.1, round_unit_rings),
    "B": (30, 50, 3.0, spiky_unit_rings),
    "C": (3, 5, 6.0, narrow_unit_rings),
}

NARROW = 10.0  # length of a narrow box in widths
FRAMES: dict[str, Callable[[np.random.Generator, int, Box, float], Floats]] = {
    "area": sized_frames,
    "narrow": narrow_frames,
    "sides": side_frames,
}


def star_order(points: Floats, centre: Floats | None = None) -> Floats:
    """Return sets of points (..., n, 2), each ordered counter-clockwise around its mean or another centre."""
    apart = points - (points.mean(axis=-2, keepdims=True) if centre is None else centre)
    order = np.argsort(np.arctan2(apart[..., 1], apart[..., 0]), axis=-1, kind="stable")
    return np.take_along_axis(points, order[..., None], axis=-2)


def place(unit: Floats, frames: Floats) -> Floats:
    """Rings of the unit square moved into their frames; 0 and 1 land on the frame's sides exactly."""
    low, high = frames[:, None, :2], frames[:, None, 2:]
    return np.asarray(np.clip(low * (1 - unit) + high * unit, low, high))


def as_regions(rings: list[Floats]) -> RegionArray:
    """A column of simple polygons from their rings (not closed)."""
    owner = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
    vertices = np.concatenate(rings) if rings else np.empty((0, 2))
    return RegionArray.from_shapely(shapely.polygons(shapely.linearrings(vertices, indices=owner)))
