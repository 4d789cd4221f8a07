"""How fast points find the circles that they lie in, against the plans of Shapely, in one run.

    python -m benchmarks.distance [--quick] [--only batch,single,metres] [--seed 7] [--write]

100,000 circles of 100 m to 10 km in a square of 1,000 km, and points. Both sides are timed from coordinates in to pairs
of a point and a circle out, and answers are compared. The plans of Shapely: a tree of the boxes of the circles and then
`dwithin` for every pair; and a tree of the points that is asked `dwithin` with the centres and radii. Circles in metres
are in a square of 10 degrees; their plans are a tree of boxes in degrees and then pyproj's geodesics, of every pair, or
of the pairs that chords leave open. With --write the tables replace those of benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from pyproj import Geod

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.timing import take_turns

SECTION_BATCH, SECTION_SINGLE = "Points against circles, batch", "Points against circles, one by one"
SECTION_METRES = "Points against circles in metres, batch"
CORNER, DEGREES = (0.0, 45.0), 10.0  # of the square of circles in metres
RADIUS, SQUARED = 6_378_137.0, 0.0066943799901413165  # of WGS 84: the equatorial radius, the eccentricity squared
SIDE, LEAST, MOST = 1_000_000.0, 100.0, 10_000.0  # metres
REPEATS = 3
Pairs = NDArray[np.int64]


class Work(NamedTuple):
    """Circles, and points that are messages."""

    centres: NDArray[np.float64]
    radii: NDArray[np.float64]
    points: NDArray[np.float64]


def work_of(report: Report, points: int) -> Work:
    """Return circles whose radii are spread evenly over magnitudes, and points."""
    rng = np.random.default_rng(report.seed)
    circles = 5_000 if report.quick else 100_000
    radii = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), circles))
    return Work(rng.uniform(0, SIDE, (circles, 2)), radii, rng.uniform(0, SIDE, (points, 2)))


def table_of(work: Work, template: str = "within_distance(area, $geometry, $metres)") -> ct.ForwardingTable:
    """Return a packed table of the circles."""
    table = ct.ForwardingTable()
    rows = pa.table({"geometry": ct.PointArray(work.centres).to_wkb(), "metres": work.radii})
    table.subscribe_many(rows, template)
    table.pack()
    return table


def ours(table: ct.ForwardingTable, xy: NDArray[np.float64]) -> Pairs:
    """Return the pairs of points and circles by a table, sorted."""
    answer = table.match_many(pa.table({"area": ct.PointArray(xy).to_wkb()}), by="subscription")
    return sorted_pairs(np.repeat(np.arange(len(xy)), np.diff(answer.offsets)), answer.rows)


def by_boxes(tree: shapely.STRtree, centres: NDArray[Any], radii: NDArray[Any], xy: NDArray[np.float64]) -> Pairs:
    """Return the pairs by a tree of grown boxes, which were made before, and dwithin of each candidate."""
    points = shapely.points(xy)
    rows, found = tree.query(points)
    near = shapely.dwithin(points[rows], centres[found], radii[found])
    return sorted_pairs(rows[near], found[near])


def by_points(centres: NDArray[Any], radii: NDArray[Any], xy: NDArray[np.float64]) -> Pairs:
    """Return the pairs by a tree of the points, asked with the centres and radii."""
    found, rows = shapely.STRtree(shapely.points(xy)).query(centres, predicate="dwithin", distance=radii)
    return sorted_pairs(rows, found)


def sorted_pairs(points: NDArray[Any], circles: NDArray[Any]) -> Pairs:
    """Return pairs as numbers, sorted."""
    return np.sort(np.asarray(points, np.int64) << 32 | np.asarray(circles, np.int64))


def batch(report: Report) -> Iterator[Row]:
    """Measure a batch of points."""
    work = work_of(report, 2_000 if report.quick else 100_000)
    table, centres = table_of(work), shapely.points(work.centres)
    reach = work.radii[:, None]
    tree = shapely.STRtree(shapely.box(*np.concatenate([work.centres - reach, work.centres + reach], axis=1).T))
    contenders = {
        "ours": partial(ours, table, work.points),
        "Shapely, tree of grown boxes": partial(by_boxes, tree, centres, work.radii, work.points),
        "Shapely, tree of the points": partial(by_points, centres, work.radii, work.points),
    }
    yield from rows_of(SECTION_BATCH, work, contenders, 5.0)


def single(report: Report) -> Iterator[Row]:
    """Measure points one by one; a tree of one point is no plan."""
    work = work_of(report, 500 if report.quick else 5_000)
    table, centres = table_of(work), shapely.points(work.centres)
    reach = work.radii[:, None]
    tree = shapely.STRtree(shapely.box(*np.concatenate([work.centres - reach, work.centres + reach], axis=1).T))
    shapes = shapely.points(work.points)
    messages = [{"area": ct.Point(*xy)} for xy in work.points.tolist()]

    def one_by_one() -> Pairs:
        return joined([table.match(message, by="subscription").rows for message in messages])

    def boxes_one_by_one() -> Pairs:
        answers = []
        for shape in shapes:
            found = tree.query(shape)
            answers.append(found[shapely.dwithin(shape, centres[found], work.radii[found])])
        return joined(answers)

    contenders = {"ours": one_by_one, "Shapely, tree of grown boxes": boxes_one_by_one}
    yield from rows_of(SECTION_SINGLE, work, contenders, 1.0)


def metres(report: Report) -> Iterator[Row]:
    """Measure a batch of points against circles in metres."""
    work = work_of(report, 2_000 if report.quick else 100_000)
    centres, points = (CORNER + DEGREES / SIDE * xy for xy in (work.centres, work.points))
    work = work._replace(centres=centres, points=points)
    table = table_of(work, "within_distance(area, $geometry, $metres, 'm')")
    up = np.degrees(work.radii / 6_335_000.0)
    across = np.degrees(np.arcsin(work.radii / (RADIUS * np.cos(np.radians(centres[:, 1])))))
    reach = np.column_stack([across, up])
    tree = shapely.STRtree(shapely.box(*np.concatenate([centres - reach, centres + reach], axis=1).T))
    contenders = {
        "ours": partial(ours, table, points),
        "Shapely's tree, pyproj": partial(by_geodesics, tree, work),
        "Shapely's tree, chords, pyproj": partial(by_chords, tree, axes(centres), work),
    }
    yield from rows_of(SECTION_METRES, work, contenders, 1.0)


def by_geodesics(tree: shapely.STRtree, work: Work) -> Pairs:
    """Return the pairs by a tree of grown boxes, and the geodesic of each candidate."""
    rows, found = tree.query(shapely.points(work.points))
    near = geodesics(work.points[rows], work.centres[found]) <= work.radii[found]
    return sorted_pairs(rows[near], found[near])


def by_chords(tree: shapely.STRtree, places: NDArray[np.float64], work: Work) -> Pairs:
    """Return the pairs by a tree of grown boxes, chords, and geodesics of those that chords leave open."""
    rows, found = tree.query(shapely.points(work.points))
    chords = np.sqrt(((axes(work.points)[rows] - places[found]) ** 2).sum(axis=1))
    radii = work.radii[found]
    near = chords <= radii * (1 - (radii / 12_000_000.0) ** 2) - 0.001
    (open_,) = np.nonzero(~near & (chords <= radii))
    near[open_] = geodesics(work.points[rows[open_]], work.centres[found[open_]]) <= radii[open_]
    return sorted_pairs(rows[near], found[near])


def geodesics(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the metres between points of longitude and latitude."""
    return np.asarray(Geod(ellps="WGS84").inv(one[:, 0], one[:, 1], other[:, 0], other[:, 1])[2])


def axes(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points of longitude and latitude in metres along three axes from the centre of WGS 84."""
    x, y = np.radians(xy).T
    n = RADIUS / np.sqrt(1 - SQUARED * np.sin(y) ** 2)
    return np.column_stack([n * np.cos(y) * np.cos(x), n * np.cos(y) * np.sin(x), n * (1 - SQUARED) * np.sin(y)])


def joined(answers: list[NDArray[Any]]) -> Pairs:
    """Return the answers to points, one after another, as pairs."""
    sizes = [len(answer) for answer in answers]
    return sorted_pairs(np.repeat(np.arange(len(answers)), sizes), np.concatenate(answers))


def rows_of(section: str, work: Work, contenders: dict[str, Any], bar: float) -> Iterator[Row]:
    """Let contenders take turns and compare their answers; the bar is against the best of the peers."""
    found = take_turns(contenders, REPEATS, len(work.points))
    mine, *peers = found.items()
    best = min(peers, key=lambda peer: peer[1].seconds)
    text = f"{len(work.points):,} points, {len(work.radii):,} circles, {len(mine[1].answer):,} pairs"
    for name, timed in peers:
        different = len(np.setxor1d(mine[1].answer, timed.answer))
        yield Row.versus(
            section, text, name, mine[1], timed, bar if name == best[0] else None,
            compared=len(mine[1].answer), different=different,
        )  # fmt: skip


if __name__ == "__main__":
    run_sections("distance", __doc__ or "", {"batch": batch, "single": single, "metres": metres})
