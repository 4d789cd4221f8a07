"""Matching against a scan: packed trees of the families' regions, asked with the regions that are hard for them.

    python -m oracles.packed_scan --seed 3 --items 400 --messages 40

The scan takes the relation of the message to every region, which `verification.verify` holds against other
oracles; here the tree, its lists, bit maps, grids and early decisions must give the same rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Point, PointArray, Region, RegionArray, relate
from contrada.index.packed import PackedTree
from generators.families import FAMILIES, Family

Masks = NDArray[np.uint8]
Scan = Callable[[Region | Point], NDArray[np.int32]]


def mask_choices(rng: np.random.Generator, count: int) -> Iterator[Masks]:
    """Ways to ask: one relation each, any set each, mostly `disjoint`, and one set for all."""
    yield (1 << rng.integers(0, 8, count)).astype(np.uint8)
    yield rng.integers(1, 256, count).astype(np.uint8)
    yield np.where(rng.random(count) < 0.9, 1, 1 << rng.integers(0, 8, count)).astype(np.uint8)
    yield np.full(count, rng.choice([0b11111110, 0b10110000, 0b01100000, 1, 2, 4, 8, 16, 32, 64, 128]), np.uint8)


def check_family(chosen: Family, rng: np.random.Generator, items: int, messages: int) -> int:
    """Ask trees of a family's regions, and of their vertices, with regions and points; returns the rows compared."""
    a, b = (RegionArray.from_shapely(side) for side in chosen.pairs(rng, items))
    asked = [*(a[int(k)] for k in rng.integers(0, len(a), messages)), *b[: messages // 4]]
    vertices = PointArray(a.arrays.xy[rng.integers(0, len(a.arrays.xy), items)])
    asked_points = [vertices[int(k)] for k in rng.integers(0, len(vertices), messages)]
    compared = 0
    for column in (b, vertices):
        for masks in mask_choices(rng, len(column)):
            rows = rng.permutation(int(len(column) * rng.choice([1, 1.5, 90])))[: len(column)].astype(np.int32)
            tree = PackedTree(column, masks, rows)
            tree.check()
            right = partial(scan, column, masks, rows)
            for message in [*asked, *asked_points]:
                check_message(tree, right, message)
                compared += len(rows)
            check_batch(tree, right, RegionArray.from_regions(asked))
            check_batch(tree, right, vertices[:messages])
    return compared


def scan(
    column: RegionArray | PointArray, masks: Masks, rows: NDArray[np.int32], message: Region | Point
) -> NDArray[np.int32]:
    """The rows of the constraints that a message satisfies, by its relation to each."""
    codes = np.asarray(relate(message, column, threads=1))
    return np.sort(rows[(masks >> codes) & 1 == 1])


def check_message(tree: PackedTree, right: Scan, message: Region | Point) -> None:
    """One message: the rows of the tree are those of the scan."""
    expected, found = right(message), tree.match(message)
    if not np.array_equal(found, expected):
        wrong = np.setxor1d(found, expected).tolist()
        raise AssertionError(f"{message}: rows {found.tolist()} in place of {expected.tolist()}, as row {wrong[:1]}")


def check_batch(tree: PackedTree, right: Scan, asked: Any) -> None:
    """Messages together: the rows of each are those of the scan."""
    counts, found = tree.match_many(asked, np.arange(len(asked)))
    for message, of_one in zip(asked, np.split(found, np.cumsum(counts)[:-1]), strict=True):
        in_order = of_one if len(tree.disjoint_map) else np.sort(of_one)
        assert np.array_equal(in_order, right(message)), message


def main() -> None:
    """Check every family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--messages", type=int, default=40)
    asked = parser.parse_args()
    for number, chosen in enumerate(FAMILIES):
        compared = check_family(chosen, np.random.default_rng((asked.seed, number)), asked.items, asked.messages)
        print(f"{chosen.name}: {compared:,} answers compared, all right", flush=True)


if __name__ == "__main__":
    main()
