"""Pairs of regions against GEOS: coastlines of 100,000 vertices, near footprints of buildings; and reading from WKB."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

import contrada as ct
from benchmarks.peers.geos import Geometries, relation_codes, settle
from benchmarks.polygons import FILES, read_column
from benchmarks.report import Report, Row, SkippedError
from benchmarks.timing import race, take_turns
from contrada.papers.spatial import drawn_regions as synthetic
from generators.coastlines import coastline, neighbours

COASTLINES = "Two regions of {:,} vertices each"
YES_NO = "shapely.intersects, prepared, again (only yes/no)"
FRESH = 8  # untouched pairs of coastlines: one for each repetition, one to warm up
NEAR_PAIRS = "Near pairs of real footprints, pair by pair"
READING = "Reading WKB: parse and validate"
NEAR = 0.0002  # degrees, some 20 m: the gap between boxes that still counts as near


def shell(region: ct.Region) -> npt.NDArray[np.float64]:
    """Return the vertices of a region of one ring."""
    return np.asarray(region.parts[0][0])


def coastlines(rng: np.random.Generator, vertices: int) -> Iterator[tuple[str, ct.Region, ct.Region]]:
    """Yield pairs that are hard for different reasons."""
    island = coastline(rng, vertices)
    yield "coastlines that cross", island, coastline(rng, vertices, centre=(200.0, 0.0))
    yield "a coastline and itself, 1 % smaller", island, ct.Region(shell(island) * 0.99)
    yield "a coastline and itself, 0.001 % smaller", island, ct.Region(shell(island) * 0.99999)
    west, east = neighbours(rng, vertices)
    yield "neighbours with a common border", west, east
    yield "neighbours a hair apart", west, ct.Region(shell(east) + np.array([1e-6, 0.0]))
    yield "a coastline and its copy", island, ct.Region(np.roll(shell(island)[:-1], 7, axis=0))


def contenders(a: ct.Region, b: ct.Region) -> dict[str, Callable[[], Any]]:
    """Return ours and GEOS with warm indexes, and both from untouched objects."""
    wkb, shapes = [a.to_wkb(), b.to_wkb()], (a.to_shapely(), b.to_shapely())
    shapely.prepare(shapes[0])
    fresh_ours = iter([[ct.Region.from_wkb(one) for one in wkb] for _ in range(FRESH)])
    fresh_peer = iter([shapely.from_wkb(wkb) for _ in range(FRESH)])

    def peer_first() -> Any:
        first, second = next(fresh_peer)
        shapely.prepare(first)
        return shapely.relate(first, second)

    return {
        "ours": lambda: ct.relate(a, b, threads=1),
        "relate": lambda: shapely.relate(*shapes),
        "intersects": lambda: shapely.intersects(*shapes),
        "ours first": lambda: ct.relate(*next(fresh_ours), threads=1),
        "relate first": peer_first,
    }


def run_coastlines(report: Report) -> Iterator[Row]:
    """Measure every pair with the first region prepared for GEOS, warm and for the first time."""
    vertices, repeats = (5_000, 3) if report.quick else (100_000, FRESH - 1)
    for name, a, b in coastlines(np.random.default_rng(report.seed), vertices):
        found = take_turns(contenders(a, b), repeats)
        ours = found["ours"].answer
        row = partial(Row.versus, COASTLINES.format(vertices), f"{name}: {ct.Relation(ours).name.lower()}", compared=1)
        related = partial(row, bar=1, different=int(relation_codes(found["relate"].answer)[0] != ours))
        yield related("shapely.relate, prepared, again", found["ours"], found["relate"])
        yield related("shapely.relate, prepared, first time", found["ours first"], found["relate first"])
        # Intersects may stop at the first common point, where the relation must look on: no bar against it.
        different = int((ours != ct.Relation.DISJOINT) != bool(found["intersects"].answer))
        yield row(YES_NO, found["ours"], found["intersects"], different=different)


def near_pairs(rng: np.random.Generator, shapes: Geometries, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` random pairs of different rows whose boxes are less than NEAR apart (or all there are)."""
    tree = shapely.STRtree(shapes)
    first, second = np.empty(0, np.int64), np.empty(0, np.int64)
    rows = rng.permutation(len(shapes))
    for chunk in np.array_split(rows, max(1, len(rows) // 20_000)):
        low, high = np.split(shapely.bounds(shapes[chunk]), 2, axis=1)
        i, j = tree.query(shapely.box(*(low - NEAR).T, *(high + NEAR).T))
        i = chunk[i]
        first, second = np.append(first, i[i != j]), np.append(second, j[i != j])
        if len(first) >= count:
            break
    chosen = rng.permutation(len(first))[:count]
    return first[chosen], second[chosen]


def relate_pairs(name: str, a: Geometries, b: Geometries) -> Iterator[Row]:
    """Measure element by element over two columns, one thread; and with as many threads as the machine has cores."""
    ours_a, ours_b = ct.RegionArray.from_shapely(a), ct.RegionArray.from_shapely(b)
    contenders = {
        "": lambda: ct.relate(ours_a, ours_b, threads=1),
        ", all cores": lambda: ct.relate(ours_a, ours_b),
        "peer": lambda: shapely.relate(a, b),
    }
    found = take_turns(contenders, 3)
    peer = found.pop("peer")
    different, wrong = settle(a, b, found[""].answer, relation_codes(peer.answer))
    counts = {"compared": len(a), "different": different, "wrong": wrong}
    for extra, ours in found.items():
        yield Row.versus(NEAR_PAIRS, f"{len(a):,} {name}{extra}", "shapely.relate", ours, peer, **counts)


def boxes_meet(a: Geometries, b: Geometries) -> Any:
    """Return which pairs have boxes that share a point."""
    p, q = shapely.bounds(a), shapely.bounds(b)
    return (p[:, :2] <= q[:, 2:]).all(axis=1) & (q[:, :2] <= p[:, 2:]).all(axis=1)


def run_footprints(report: Report) -> Iterator[Row]:
    """Measure Los Angeles and London, and in each those pairs alone whose boxes meet."""
    rng = np.random.default_rng(report.seed)
    for place, name in (("Los Angeles", FILES["LA"]), ("London", "buildings_london")):
        shapes = shapely.from_wkb(read_column(f"footprints of {place}", name).to_numpy(zero_copy_only=False))
        i, j = near_pairs(rng, shapes, 20_000 if report.quick else 1_000_000)
        yield from relate_pairs(f"near pairs in {place}", shapes[i], shapes[j])
        meet = boxes_meet(shapes[i], shapes[j])
        yield from relate_pairs(f"of these with boxes that meet, {place}", shapes[i[meet]], shapes[j[meet]])


def run_reading(report: Report) -> Iterator[Row]:
    """Measure WKB to validated regions: synthetic polygons of 20 vertices, and real footprints if there are any."""
    count, repeats = (5_000, 3) if report.quick else (100_000, 7)
    rng = np.random.default_rng(report.seed)
    columns = {"synthetic polygons of 20 vertices": synthetic.paper_regions(rng, count).to_wkb()}
    with suppress(SkippedError):
        columns["footprints of Los Angeles"] = read_column("Los Angeles", FILES["LA"])[:count]
    for name, column in columns.items():
        values = column.to_numpy(zero_copy_only=False)
        read = partial(ct.RegionArray.from_wkb, column)
        ours, peer = race(read, lambda values=values: shapely.is_valid(shapely.from_wkb(values)), repeats)
        different = int((~peer.answer).sum()) + abs(len(ours.answer) - len(column))
        counts = {"compared": len(column), "different": different}
        yield Row.versus(READING, f"{len(column):,} {name}", "shapely.from_wkb and is_valid", ours, peer, 1, **counts)
