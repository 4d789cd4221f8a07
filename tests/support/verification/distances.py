"""Ask a million times whether two shapes are within a distance that is nearly theirs: `make verify`.

The shapes are points and regions of the families of `make verify`, and lines along the edges of these, many of them
moved apart, along an axis or not. The distances are the double next to the exact distance, those below and above it, 0,
and others. Rational arithmetic is the judge of every answer. Exits with 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

import contrada as ct
from generators.families import FAMILIES, family
from oracles.distance import doubles_around_root, is_within, square_of_distance
from verification.verify import cores, lines_of_progress

SLOW = ("hundreds", "hostile", "spirals", "fans", "nested parts", "combs")  # too many edges for the judge
NAMES = [chosen.name for chosen in FAMILIES if chosen.name not in SLOW]
KINDS = ("points", "point and region", "regions", "regions apart", "point and line", "line and region", "lines")
CHUNK = 400  # pairs of shapes; each is asked about five distances
DISTANCES = 5


class Wrong(NamedTuple):
    """A wrong answer, with the shapes as WKT."""

    expected: bool
    a: str
    b: str
    distance: float


class Tally(NamedTuple):
    """Questions asked, how many were true, and what was wrong."""

    asked: int
    within: int
    wrong: list[Wrong]


def shapes_of(name: str, kind: str, rng: np.random.Generator, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return pairs of Shapely shapes of a kind, made from a family of regions."""
    a, b = family(name).pairs(rng, count)
    if kind == "points":
        return _vertices(a), _vertices(b)
    if kind.startswith("point"):
        a = _vertices(a)
    elif kind.startswith("line"):
        a = lines_along(a, rng)
    if kind.endswith(("line", "lines")):
        b = lines_along(b, rng)
    if kind not in ("regions", "line and region"):
        b = _moved(b, rng)
    sound = are_sound(a) & are_sound(b)
    return a[sound], b[sound]


def are_sound(shapes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which shapes can be read: edges may be of no length, and shapes that are moved may break."""
    found = np.ones(len(shapes), bool)
    if len(shapes) and shapes[0].geom_type != "Point":
        read = ct.read_lines if "Line" in shapes[0].geom_type else ct.read_regions
        found[:] = False
        found[read(shapes).rows] = True
    return found


def _moved(b: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return shapes, moved by up to twice their width and height."""
    boxes = shapely.bounds(b)
    steps = (boxes[:, 2:] - boxes[:, :2]) * rng.integers(-2, 3, (len(b), 2))
    moved = shapely.transform(b, lambda xy: xy + np.repeat(steps, shapely.get_num_coordinates(b), axis=0))
    return np.asarray(moved)


def lines_along(regions: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Return lines of some consecutive edges of each ring of regions; every third has all edges."""
    made = []
    for k, region in enumerate(regions):
        parts = []
        for part in shapely.get_parts(region):
            for ring in (part.exterior, *part.interiors):
                coords = list(ring.coords)
                start = 0 if k % 3 == 0 else int(rng.integers(0, len(coords) - 1))
                stop = len(coords) if k % 3 == 0 else int(rng.integers(start + 2, len(coords) + 1))
                parts.append(coords[start:stop])
        made.append(shapely.LineString(parts[0]) if len(parts) == 1 else shapely.MultiLineString(parts))
    return np.array(made, object)


def _vertices(shapes: NDArray[Any]) -> NDArray[Any]:
    """Return a vertex of each shape, as a point."""
    xy, owners = shapely.get_coordinates(shapes, return_index=True)
    return np.asarray(shapely.points(xy[np.unique(owners, return_index=True)[1]]))


def column_of(shapes: NDArray[Any]) -> Any:
    """Return Shapely points, lines or regions as a column."""
    if len(shapes) and "Line" in shapes[0].geom_type:
        return ct.LineArray.from_shapely(shapes)
    if len(shapes) and shapes[0].geom_type == "Point":
        return ct.PointArray.from_shapely(shapes)
    return ct.RegionArray.from_shapely(shapes)


def check(a: NDArray[Any], b: NDArray[Any], rng: np.random.Generator) -> Tally:
    """Ask about five distances of each pair, both ways round, and judge the answers."""
    squares = [square_of_distance(x, y) for x, y in zip(a, b, strict=True)]
    roots = [doubles_around_root(square) for square in squares]
    further = [(0.0 if rng.random() < 0.5 else root[0] * rng.uniform(0.5, 2.0)) for root in roots]
    distances = np.array([(*root, one, root[0] * 1e-9) for root, one in zip(roots, further, strict=True)])
    first, second = column_of(a), column_of(b)
    wrong, within = [], 0
    for k in range(DISTANCES):
        answers = ct.within_distance(first, second, distances[:, k])
        turned = ct.within_distance(second, first, distances[:, k])
        for row, square in enumerate(squares):
            expected = is_within(square, float(distances[row, k]))
            within += expected
            if not answers[row] == turned[row] == expected:
                wrong.append(Wrong(expected, a[row].wkt, b[row].wkt, float(distances[row, k])))
    return Tally(DISTANCES * len(a), within, wrong)


def run_chunk(seed: int, chunk: int) -> Tally:
    """Make the pairs of a chunk and check them; chunks go round the kinds and families."""
    rng = np.random.default_rng([seed, chunk])
    kind, name = KINDS[chunk % len(KINDS)], NAMES[chunk // len(KINDS) % len(NAMES)]
    return check(*shapes_of(name, kind, rng, CHUNK), rng)


def verify_distances(questions: int, seed: int, jobs: int, progress: Callable[[int, int], None]) -> Tally:
    """Ask at least so many questions, in as many processes as `jobs`."""
    asked, within, wrong, chunk = 0, 0, list[Wrong](), 0
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else None
    with pool or nullcontext():
        run = pool.map if pool else map
        while asked < questions:
            chunks = range(chunk, chunk + max(1, min(8 * jobs, -(-(questions - asked) // (CHUNK * DISTANCES)))))
            chunk = chunks.stop
            for tally in run(partial(run_chunk, seed), chunks):
                asked, within = asked + tally.asked, within + tally.within
                wrong += tally.wrong
                progress(asked, questions)
    return Tally(asked, within, wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m verification.distances", description=__doc__)
    parser.add_argument("--questions", type=int, default=1_000_000, help="pairs of shapes with a distance")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one per core)")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    tally = verify_distances(options.questions, options.seed, options.jobs, lines_of_progress("questions"))
    print(
        f"{tally.asked:,} questions of distance in {time.perf_counter() - start:.0f} s, {tally.within:,} of them true;"
        f" wrong answers: {len(tally.wrong):,}"
    )
    for wrong in tally.wrong[:20]:
        print(f"  expected {wrong.expected} of {wrong.distance!r}\n  a = {wrong.a}\n  b = {wrong.b}")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
