"""Generate parcels and buildings of a synthetic district: streets, blocks, terraces, courtyards; edges are shared.

Every block is a lattice of 7 by 7 vertices: two rows of six parcels, and in each row three strips from the street to
the middle of the block. Parcels and terraced houses take their corners from the lattice, so shared vertices are equal
to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import shapely

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Geometries = npt.NDArray[np.object_]
Path = list[tuple[int, int]]

CENTRE = np.array([689_000.0, 4_798_000.0])  # Siena, in EPSG:25832
ROWS, COLUMNS, STRIPS = 2, 6, 3
PITCH_METRES = np.array([130.0, 88.0])  # from block to block, metres
BLOCK_METRES = np.array([112.0, 72.0])  # without the streets, metres
PARCELS_PER_BLOCK = 10.87  # on average, with merged parcels and perimeter blocks


class Blocks(NamedTuple):
    """The blocks: their places in the street grid (n, 2) and their lattices (n, 7, 7, 2)."""

    places: IntArray
    lattices: FloatArray
    has_courtyard: BoolArray

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of the district."""
        flat = self.lattices.reshape(-1, 2)
        return flat.min(axis=0), flat.max(axis=0)


class Parcels(NamedTuple):
    """Polygons; the first `len(cells)` are single cells (block, row, column) of a lattice."""

    polygons: Geometries
    cells: IntArray
    pairs: IntArray  # parcels of two adjacent cells, which come next: block, row, first column


class Buildings(NamedTuple):
    """Polygons, and the parcel on which each stands."""

    polygons: Geometries
    parcels: IntArray
    is_shed: BoolArray


def make_blocks(rng: np.random.Generator, count: int) -> Blocks:
    """Generate `count` blocks of a town with a ragged edge, a river through it and slightly bent streets."""
    side = int(np.ceil(np.sqrt(count) * 0.9)) + 4
    places = np.stack(np.meshgrid(np.arange(-side, side + 1), np.arange(-side, side + 1)), axis=-1).reshape(-1, 2)
    middle = places * PITCH_METRES
    angle = np.arctan2(middle[:, 1], middle[:, 0])
    ragged = 1 + 0.14 * np.sin(3 * angle + 1.0) + 0.07 * np.sin(7 * angle)
    distance = np.hypot(*middle.T) / ragged
    reach = side * PITCH_METRES[1]
    river = np.abs(middle[:, 0] - 0.35 * reach - 0.18 * reach * np.sin(2.2 * middle[:, 1] / reach)) < 90.0
    distance[river] = np.inf
    places = places[np.sort(np.argsort(distance, kind="stable")[:count])]
    return Blocks(places, _lattices(rng, places), rng.random(count) < 0.05)


def _lattices(rng: np.random.Generator, places: IntArray) -> FloatArray:
    count = len(places)
    widths = rng.uniform(0.7, 1.3, (count, COLUMNS))
    u = np.concatenate([np.zeros((count, 1)), np.cumsum(widths, axis=1)], axis=1)
    u = u / u[:, -1:] - 0.5
    v = np.array([0.0, 0.08, 0.29, 0.5, 0.71, 0.92, 1.0]) - 0.5
    v = v + rng.uniform(-0.025, 0.025, (count, 7)) * np.array([0, 1, 1, 1, 1, 1, 0])
    local = np.empty((count, 7, 7, 2))
    local[..., 0] = u[:, None, :] * BLOCK_METRES[0]
    local[..., 1] = v[:, :, None] * BLOCK_METRES[1]
    straight = local + (places * PITCH_METRES)[:, None, None, :]
    x, y = straight[..., 0], straight[..., 1]
    bent = np.stack([x + 55 * np.sin(y / 310 + 0.6), y + 45 * np.sin(x / 380)], axis=-1)
    cos, sin = np.cos(0.3), np.sin(0.3)
    turned = bent @ np.array([[cos, sin], [-sin, cos]])
    rounded: FloatArray = np.round(CENTRE + turned, 2)  # to the centimetre, as in cadastres
    return rounded


def _ring(bottom: int, top: int, left: int, right: int) -> Path:
    """Return the path around a rectangle of the lattice, anticlockwise, through all vertices on its edge."""
    return (
        [(bottom, column) for column in range(left, right + 1)]
        + [(row, right) for row in range(bottom + 1, top + 1)]
        + [(top, column) for column in range(right - 1, left - 1, -1)]
        + [(row, left) for row in range(top - 1, bottom, -1)]
    )


COURTYARD = _ring(2, 4, 1, 5)


def _along(lattices: FloatArray, path: Path) -> FloatArray:
    rows, columns = np.array(path).T
    return lattices[:, rows, columns]


def _cells(lattices: FloatArray, cells: IntArray, width: int) -> FloatArray:
    """Return the rings of cells (block, row, column), `width` columns wide: (n, vertices, 2)."""
    path = np.array(_ring(0, STRIPS, 0, width))
    block, row, column = cells.T
    found: FloatArray = lattices[block[:, None], row[:, None] * STRIPS + path[:, 0], column[:, None] + path[:, 1]]
    return found


def make_parcels(rng: np.random.Generator, blocks: Blocks) -> Parcels:
    """Generate single cells, adjacent pairs, separate pairs (multipolygons), courtyards and the parcels around them."""
    count = len(blocks.places)
    free = np.broadcast_to(~blocks.has_courtyard[:, None, None], (count, ROWS, COLUMNS)).copy()
    apart = np.flatnonzero((rng.random(count) < 0.12) & ~blocks.has_courtyard)
    free[apart, 0, 0] = free[apart, 1, 5] = False
    start = rng.integers(1, COLUMNS - 2, (count, ROWS))  # a pair leaves the cells at both ends free
    merged = (rng.random((count, ROWS)) < 0.3) & ~blocks.has_courtyard[:, None]
    block, row = np.nonzero(merged)
    pairs = np.stack([block, row, start[block, row]], axis=1)
    free[pairs[:, 0], pairs[:, 1], pairs[:, 2]] = free[pairs[:, 0], pairs[:, 1], pairs[:, 2] + 1] = False
    cells = np.stack(np.nonzero(free), axis=1)
    yards = np.flatnonzero(blocks.has_courtyard)
    courtyards = shapely.linearrings(_along(blocks.lattices[yards], COURTYARD))
    polygons = [
        shapely.polygons(_cells(blocks.lattices, cells, 1)),
        shapely.polygons(_cells(blocks.lattices, pairs, 2)),
        _two_parts(blocks.lattices, apart),
        _around_courtyards(blocks.lattices[yards], _ring(0, 6, 0, 6)),
        shapely.polygons(courtyards),
    ]
    return Parcels(np.concatenate(polygons), cells, pairs)


def _around_courtyards(lattices: FloatArray, path: Path) -> Geometries:
    outer, inner = (shapely.linearrings(_along(lattices, one)) for one in (path, COURTYARD))
    found: Geometries = shapely.polygons(outer, holes=inner[:, None])
    return found


def _two_parts(lattices: FloatArray, apart: IntArray) -> Geometries:
    if not len(apart):
        return np.empty(0, dtype=object)
    ends = np.array([[0, 0, 0], [0, 1, 5]])
    cells = np.repeat(ends[None], len(apart), axis=0)
    cells[..., 0] = apart[:, None]
    parts = shapely.polygons(_cells(lattices, cells.reshape(-1, 3), 1))
    found: Geometries = shapely.multipolygons(parts, indices=np.repeat(np.arange(len(apart)), 2))
    return found


def make_buildings(rng: np.random.Generator, blocks: Blocks, parcels: Parcels) -> Buildings:
    """Generate a house on every parcel of one or two cells, terraced or detached; sheds; blocks around courtyards."""
    yards = np.flatnonzero(blocks.has_courtyard)
    is_terraced = rng.random((len(blocks.places), ROWS)) < 0.45
    block, row, _ = parcels.cells.T
    margin = np.where(is_terraced[block, row], 0.0, rng.uniform(0.08, 0.2, len(block)))
    houses = _inset(_strips(blocks.lattices, parcels.cells, 1, 1), margin, margin)
    halls = _inset(_strips(blocks.lattices, parcels.pairs, 1, 2), np.full(len(parcels.pairs), 0.08), np.array([0.1]))
    chosen = np.flatnonzero(rng.random(len(block)) < 0.62)
    behind = np.where(row[chosen] == 0, 2, 0)
    sheds = _inset(_strips(blocks.lattices, parcels.cells[chosen], behind, 1), rng.uniform(0.3, 0.4, len(chosen)), 0.3)
    around = _around_courtyards(blocks.lattices[yards], _ring(1, 5, 0, 6))
    first_pair = len(parcels.cells)
    first_yard = len(parcels.polygons) - 2 * len(yards)
    stands_on = [
        np.arange(first_pair),
        first_pair + np.arange(len(parcels.pairs)),
        chosen,
        first_yard + np.arange(len(yards)),
    ]
    polygons = [shapely.polygons(houses), shapely.polygons(halls), shapely.polygons(sheds), around]
    is_shed = np.repeat([False, False, True, False], [len(rows) for rows in stands_on])
    return Buildings(np.concatenate(polygons), np.concatenate(stands_on), is_shed)


def _strips(lattices: FloatArray, cells: IntArray, strip: int | IntArray, width: int) -> FloatArray:
    """Return the four corners of one strip of each cell: (n, 4, 2), anticlockwise."""
    block, row, column = cells.T
    low = row * STRIPS + strip
    right = column + width
    corners = [(low, column), (low, right), (low + 1, right), (low + 1, column)]
    return np.stack([lattices[block, r, c] for r, c in corners], axis=1)


def _inset(quads: FloatArray, across: FloatArray, along: FloatArray | float) -> FloatArray:
    """Shrink quadrilaterals by a share of their width and depth; a share of 0 keeps the corners to the last bit."""
    a, b, c, d = np.moveaxis(quads, 1, 0)
    low_u = np.asarray(across)[:, None]
    low_v = np.broadcast_to(np.asarray(along), len(quads))[:, None]
    corners = [(low_u, low_v), (1 - low_u, low_v), (1 - low_u, 1 - low_v), (low_u, 1 - low_v)]
    points = [(1 - v) * ((1 - u) * a + u * b) + v * ((1 - u) * d + u * c) for u, v in corners]
    shrunk: FloatArray = np.round(np.stack(points, axis=1), 2)
    return shrunk


def make_closures(rng: np.random.Generator, blocks: Blocks, count: int) -> FloatArray:
    """Generate `count` closed streets (n, vertices, 2) between two blocks; each shares edges with their parcels."""
    columns = {tuple(place): number for number, place in enumerate(blocks.places.tolist())}
    beside = [(number, columns.get((x + 1, y))) for (x, y), number in columns.items()]
    streets = np.array([pair for pair in beside if pair[1] is not None], dtype=np.int64)
    left, right = streets[rng.integers(0, len(streets), count)].T
    rings: FloatArray = np.concatenate([blocks.lattices[right, :, 0], blocks.lattices[left, ::-1, 6]], axis=1)
    return rings
