"""Real building footprints: near pairs, and reading 100,000 polygons from WKB."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import shapely

import contrada as ct
from benchmarks.peers.geos import Geometries, relation_codes, settle
from benchmarks.polygons import FILES, read_column
from benchmarks.report import Report, Row, SkippedError
from benchmarks.timing import take_turns
from generators import synthetic

NEAR_PAIRS = "Near pairs of real footprints, pair by pair"
READING = "Reading WKB: parse and validate"
NEAR = 0.0002  # degrees, some 20 m: the gap between boxes that still counts as near


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


def relate_pairs(name: str, a: Geometries, b: Geometries, repeats: int) -> Iterator[Row]:
    """Measure element by element over two columns, one thread; and with as many threads as the machine has cores."""
    ours_a, ours_b = ct.RegionArray.from_shapely(a), ct.RegionArray.from_shapely(b)
    contenders = {
        "ours": lambda: ct.relate(ours_a, ours_b, threads=1),
        "threads": lambda: ct.relate(ours_a, ours_b),
        "peer": lambda: shapely.relate(a, b),
    }
    found = take_turns(contenders, repeats)
    different, wrong = settle(a, b, found["ours"].answer, relation_codes(found["peer"].answer))
    counts = {"compared": len(a), "different": different, "wrong": wrong}
    for label, extra in (("ours", ""), ("threads", ", all cores")):
        each = found[label].seconds, found["peer"].seconds
        yield Row.versus(NEAR_PAIRS, f"{len(a):,} {name}{extra}", "shapely.relate", *each, **counts)


def boxes_meet(a: Geometries, b: Geometries) -> Any:
    """Return which pairs have boxes that share a point."""
    p, q = shapely.bounds(a), shapely.bounds(b)
    return (p[:, :2] <= q[:, 2:]).all(axis=1) & (q[:, :2] <= p[:, 2:]).all(axis=1)


def run_pairs(report: Report) -> Iterator[Row]:
    """Measure Los Angeles and London; in Los Angeles also those pairs alone whose boxes meet."""
    rng = np.random.default_rng(report.seed)
    count, repeats = (20_000, 3) if report.quick else (1_000_000, 3)
    for place, name in (("Los Angeles", FILES["LA"]), ("London", "buildings_london")):
        shapes = shapely.from_wkb(read_column(f"footprints of {place}", name).to_numpy(zero_copy_only=False))
        i, j = near_pairs(rng, shapes, count)
        yield from relate_pairs(f"near pairs in {place}", shapes[i], shapes[j], repeats)
        meet = boxes_meet(shapes[i], shapes[j])
        i, j = i[meet], j[meet]
        yield from relate_pairs(f"of these with boxes that meet, {place}", shapes[i], shapes[j], repeats)


def run_reading(report: Report) -> Iterator[Row]:
    """Measure WKB to validated regions: synthetic polygons of 20 vertices, and real footprints if there are any."""
    count, repeats = (5_000, 3) if report.quick else (100_000, 7)
    rng = np.random.default_rng(report.seed)
    columns = {"synthetic polygons of 20 vertices": synthetic.paper_regions(rng, count).to_wkb()}
    with suppress(SkippedError):
        columns["footprints of Los Angeles"] = read_column("Los Angeles", FILES["LA"])[:count]
    for name, column in columns.items():
        values = column.to_numpy(zero_copy_only=False)
        contenders = {
            "ours": partial(ct.RegionArray.from_wkb, column),
            "peer": lambda values=values: shapely.is_valid(shapely.from_wkb(values)),
        }
        ours, peer = take_turns(contenders, repeats).values()
        different = int((~peer.answer).sum()) + abs(len(ours.answer) - len(column))
        yield Row.versus(
            READING, f"{len(column):,} {name}", "shapely.from_wkb and is_valid", ours.seconds, peer.seconds, 1,
            compared=len(column), different=different,
        )  # fmt: skip
