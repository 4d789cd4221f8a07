"""Polygon sets with an operator each, real and synthetic, and messages for them as WKB."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

from benchmarks.peers.geos import Geometries
from benchmarks.report import Report, SkippedError
from contrada.papers.spatial import drawn_regions as synthetic

Operators = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
FILES = {
    "London": "paper_london_4170",
    "Rhône-Alpes": "paper_rhone_alpes_17048",
    "SoCal": "paper_socal_85550",
    "LA": "buildings_la_1m",
}
KINDS: tuple[synthetic.MessageKind, ...] = ("A", "B", "C")


class PolygonSet(NamedTuple):
    """Polygons of a data set, grouped by the operator that each got; row k of every contender is polygon k."""

    name: str
    wkb: pa.Array
    shapes: Geometries
    operators: Operators

    @property
    def universe(self) -> synthetic.Box:
        """Return the box of all polygons."""
        xmin, ymin, xmax, ymax = shapely.total_bounds(self.shapes).tolist()
        return xmin, ymin, xmax, ymax

    def take(self, rows: Any) -> PolygonSet:
        """Return some of the polygons: a slice, or sorted row numbers."""
        wkb = self.wkb[rows] if isinstance(rows, slice) else self.wkb.take(pa.array(rows))
        return self._replace(wkb=wkb, shapes=self.shapes[rows], operators=self.operators[rows])


def read_column(name: str, file: str) -> pa.Array:
    """Return the WKB column of a real data set, as one array; CONTRADA_DATA names the directory of its file."""
    path = Path(os.environ.get("CONTRADA_DATA") or "nowhere") / f"{file}.parquet"
    if not path.exists():
        raise SkippedError(f"{name}: CONTRADA_DATA names no directory with {path.name}")
    return pq.read_table(path, columns=["geometry"])["geometry"].combine_chunks()


def read_set(name: str, seed: int) -> PolygonSet:
    """Return a real set with random operators."""
    return with_operators(name, read_column(name, FILES[name]), np.random.default_rng(seed))


def synthetic_set(seed: int) -> PolygonSet:
    """Return the paper's worst case: 10,000 regions of at least 10 % of the universe."""
    rng = np.random.default_rng(seed)
    return with_operators("synthetic", synthetic.paper_regions(rng, 10_000).to_wkb(), rng)


def read_sets(report: Report, names: Sequence[str], quick: int) -> Iterator[PolygonSet]:
    """Yield the real sets that are there, the first `quick` of them in a quick run."""
    for name in names[: quick if report.quick else None]:
        with report.skipping():
            yield read_set(name, report.seed)


def all_sets(report: Report) -> Iterator[PolygonSet]:
    """Yield the real sets, without the largest in a quick run, and the synthetic one."""
    yield from read_sets(report, tuple(FILES), 3)
    yield synthetic_set(report.seed)


def with_operators(name: str, wkb: pa.Array, rng: np.random.Generator) -> PolygonSet:
    """Return a set whose polygons get one of the eight relations each, at random."""
    operators = rng.integers(0, 8, len(wkb)).astype(np.uint8)
    order = np.argsort(operators, kind="stable")
    wkb = wkb.take(pa.array(order))
    return PolygonSet(name, wkb, shapely.from_wkb(wkb.to_numpy(zero_copy_only=False)), operators[order])


def large_messages(polygons: PolygonSet, kind: synthetic.MessageKind, count: int, seed: int) -> list[bytes]:
    """Return messages of a kind whose boxes take 1 to 25 % of the universe."""
    rng = np.random.default_rng((seed, KINDS.index(kind)))
    regions = synthetic.message_regions(rng, count, kind, universe=polygons.universe)
    return [bytes(value) for value in regions.to_wkb().to_pylist()]


def small_messages(
    polygons: PolygonSet, share: float | Callable[[], float], count: int, rng: np.random.Generator
) -> list[bytes]:
    """Return messages of all kinds whose boxes take `share` of the universe, around vertices of random polygons."""
    xmin, ymin, xmax, ymax = polygons.universe
    centres = places(polygons, count, rng)
    rings = []
    for k in range(count):
        least, most, stretch, draw = synthetic.KINDS[KINDS[k % 3]]
        size = share() if callable(share) else share
        aspect = stretch ** rng.uniform(-1.0, 1.0)
        half = np.sqrt(size * (xmax - xmin) * (ymax - ymin) * np.array([aspect, 1 / aspect])) / 2
        frame = np.concatenate([centres[k] - half, centres[k] + half])[None]
        rings.append(synthetic.place(draw(rng, 1, int(rng.integers(least, most + 1))), frame)[0])
    return [bytes(value) for value in synthetic.as_regions(rings).to_wkb().to_pylist()]


def point_messages(polygons: PolygonSet, count: int, rng: np.random.Generator) -> list[bytes]:
    """Return points next to random polygons: one in four is a vertex, the others a little off."""
    xy = places(polygons, count, rng)
    size = np.mean(shapely.bounds(polygons.shapes[:1000])[:, 2:] - shapely.bounds(polygons.shapes[:1000])[:, :2])
    xy[np.arange(count) % 4 != 0] += rng.normal(0, size / 4, (count, 2))[np.arange(count) % 4 != 0]
    return [bytes(value) for value in shapely.to_wkb(shapely.points(xy))]


def places(polygons: PolygonSet, count: int, rng: np.random.Generator) -> FloatArray:
    """Return the first vertices of random polygons."""
    return first_vertices(polygons.shapes[rng.integers(0, len(polygons.shapes), count)])


def first_vertices(shapes: Geometries) -> FloatArray:
    """Return a vertex of each polygon."""
    return np.asarray(shapely.get_coordinates(shapely.get_point(shapely.get_exterior_ring(shapes), 0)))
