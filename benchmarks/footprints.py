"""Real building footprints: near pairs, and reading 100,000 polygons from WKB."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from peers import Geometries, relation_codes, settle
from report import Report, Row
from timing import say, take_turns

import contrada as ct
from generators import synthetic

NEAR = 0.0002  # degrees, some 20 m: the gap between boxes that still counts as near


def data_directory() -> Path | None:
    """Where CONTRADA_DATA says the real data sets are."""
    named = os.environ.get("CONTRADA_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def read_column(path: Path) -> pa.Array:
    """The WKB column of a GeoParquet file, as one array."""
    return pq.read_table(path, columns=["geometry"])["geometry"].combine_chunks()


def near_pairs(rng: np.random.Generator, shapes: Geometries, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` random pairs of different rows whose boxes are less than NEAR apart (or all there are)."""
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
    """Element by element over two columns, one thread; and with as many threads as the machine has cores."""
    ours_a, ours_b = ct.RegionArray.from_shapely(a), ct.RegionArray.from_shapely(b)
    found = take_turns(
        {
            "ours": lambda: ct.relate(ours_a, ours_b, threads=1),
            "threads": lambda: ct.relate(ours_a, ours_b),
            "peer": lambda: shapely.relate(a, b),
        },
        repeats,
    )
    different, wrong = settle(a, b, found["ours"].answer, relation_codes(found["peer"].answer))
    for label, extra in (("ours", ""), ("threads", ", all cores")):
        yield Row(
            section="Near pairs of real footprints, pair by pair",
            work=f"{len(a):,} {name}{extra}",
            against="shapely.relate",
            ours=found[label].seconds,
            theirs=found["peer"].seconds,
            value=found["peer"].seconds / found[label].seconds,
            compared=len(a),
            different=different,
            wrong=wrong,
        )


def boxes_meet(a: Geometries, b: Geometries) -> Any:
    """Which pairs have boxes that share a point."""
    p, q = shapely.bounds(a), shapely.bounds(b)
    return (p[:, :2] <= q[:, 2:]).all(axis=1) & (q[:, :2] <= p[:, 2:]).all(axis=1)


def run_pairs(report: Report) -> Iterator[Row]:
    """Los Angeles and London; in Los Angeles also those pairs alone whose boxes meet."""
    directory = data_directory()
    if directory is None:
        report.skipped.append("real footprints: CONTRADA_DATA names no directory")
        return
    rng = np.random.default_rng(report.seed)
    count, repeats = (20_000, 3) if report.quick else (1_000_000, 3)
    for place, name in (("Los Angeles", "buildings_la_1m"), ("London", "buildings_london")):
        say(f"footprints: near pairs in {place}")
        shapes = shapely.from_wkb(read_column(directory / f"{name}.parquet").to_numpy(zero_copy_only=False))
        i, j = near_pairs(rng, shapes, count)
        yield from relate_pairs(f"near pairs in {place}", shapes[i], shapes[j], repeats)
        meet = boxes_meet(shapes[i], shapes[j])
        i, j = i[meet], j[meet]
        yield from relate_pairs(f"of these with boxes that meet, {place}", shapes[i], shapes[j], repeats)


def run_reading(report: Report) -> Iterator[Row]:
    """WKB to validated regions: synthetic polygons of 20 vertices, and real footprints if there are any."""
    count, repeats = (5_000, 3) if report.quick else (100_000, 7)
    rng = np.random.default_rng(report.seed)
    say(f"reading: {count:,} polygons")
    columns = {"synthetic polygons of 20 vertices": synthetic.paper_regions(rng, count).to_wkb()}
    if directory := data_directory():
        columns["footprints of Los Angeles"] = read_column(directory / "buildings_la_1m.parquet")[:count]
    for name, column in columns.items():
        values = column.to_numpy(zero_copy_only=False)
        found = take_turns(
            {
                "ours": lambda column=column: ct.RegionArray.from_wkb(column),
                "peer": lambda values=values: shapely.is_valid(shapely.from_wkb(values)),
            },
            repeats,
        )
        ours, peer = found["ours"], found["peer"]
        yield Row(
            section="Reading WKB: parse and validate",
            work=f"{len(column):,} {name}",
            against="shapely.from_wkb and is_valid",
            ours=ours.seconds,
            theirs=peer.seconds,
            value=peer.seconds / ours.seconds,
            at_least=1,
            compared=len(column),
            different=int((~peer.answer).sum()) + abs(len(ours.answer) - len(column)),
        )
