"""Subscriptions of mixed filters for benchmarks/cover.py: two ranges and a string each, half with a building.

Ranges lie between two uniform numbers, strings are Zipf's over a thousand values, buildings of Los Angeles have a
random mask. A tenth is made inside another one: the same string, ranges within its ranges, and its building, if it has
one, with some of its relations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from footprints import data_directory, read_column
from mixed_sets import zipf
from numpy.typing import NDArray
from report import Report

import contrada as ct

INSIDE, WITH_REGION = 0.1, 0.5
UNIVERSE = -118.7, 33.7, -117.6, 34.4  # of made-up buildings, in degrees
BUILDINGS = "buildings_la_1m.parquet"


def mixed_filters(report: Report, live: int, further: int) -> list[ct.Filter]:
    """Filters, all objects made; those that lie inside another one do so in one of the first `live`."""
    rng = np.random.default_rng((report.seed, live))
    count = live + further
    values, ends = zipf(rng, (count,)), np.sort(rng.random((count, 2, 2)), axis=2)
    has_region, masks = rng.random(count) < WITH_REGION, rng.integers(1, 256, count)
    building = rng.permutation(count)
    is_inside = rng.random(count) < INSIDE
    outer = rng.choice(np.flatnonzero(~is_inside[:live]), is_inside.sum())
    values[is_inside] = values[outer]
    low, high = ends[outer, :, :1], ends[outer, :, 1:]
    ends[is_inside] = low + (high - low) * ends[is_inside]
    has_region[is_inside] |= has_region[outer]
    is_same = np.flatnonzero(is_inside)[has_region[outer]]
    outer = outer[has_region[outer]]
    building[is_same] = building[outer]
    masks[is_same] = [some_of(rng, mask) for mask in masks[outer].tolist()]
    read = buildings(report, count)
    return [
        ct.Filter(
            [
                ct.Constraint("kind", "=", f"v{value}"),
                ct.Constraint("height", "between", first),
                ct.Constraint("age", "between", second),
                *([ct.Constraint("area", ct.RelationSet.from_mask(mask), read(place))] if with_region else ()),
            ]
        )
        for value, (first, second), with_region, mask, place in zip(
            values.tolist(), ends.tolist(), has_region.tolist(), masks.tolist(), building.tolist(), strict=True
        )
    ]


def some_of(rng: np.random.Generator, mask: int) -> int:
    """Some of the relations of a mask, at least one."""
    some = mask & int(rng.integers(1, 256))
    return some or mask


def buildings(report: Report, count: int) -> Callable[[int], ct.Region]:
    """Reads one of `count` different buildings, or a made-up box where there are none."""
    directory = data_directory()
    if directory is not None and (directory / BUILDINGS).exists():
        column: pa.Array = read_column(directory / BUILDINGS)
        return lambda k: ct.Region.from_wkb(column[k % len(column)].as_py())
    reason = f"buildings: CONTRADA_DATA names no directory with {BUILDINGS}, boxes of their size in their place"
    if reason not in report.skipped:
        report.skipped.append(reason)
    corners = made_up(np.random.default_rng((report.seed, count)), count)
    return lambda k: ct.Region.box(*corners[k].tolist())


def made_up(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Boxes of some 5 to 30 metres."""
    low = rng.uniform(UNIVERSE[:2], UNIVERSE[2:], (count, 2))
    return np.hstack([low, low + rng.uniform(5e-5, 3e-4, (count, 2))])
