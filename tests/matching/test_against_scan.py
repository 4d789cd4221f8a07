"""Packed trees answer as a scan does, for all families of regions that are hard to relate."""

from functools import partial

import numpy as np
import pytest

import contrada as ct
from contrada.index.packed import PackedTree
from effort import examples
from generators.families import FAMILIES
from oracles.packed_scan import check_family, check_message, scan


@pytest.mark.parametrize("number", range(len(FAMILIES)), ids=[chosen.name for chosen in FAMILIES])
@pytest.mark.effort
def test_every_family(number):
    items, messages = examples(600), examples(40)
    assert check_family(FAMILIES[number], np.random.default_rng((7, number)), items, messages) > 50 * items


@pytest.mark.jitless
def test_a_few_families_without_compilation():
    for number in (2, 4, 7):
        assert check_family(FAMILIES[number], np.random.default_rng((8, number)), items=24, messages=3) > 100


MESSAGES = max(12, examples(60))  # of fewer none might match
# Without `disjoint`, so that a message far from all regions satisfies nothing: all others, each alone, and a few sets.
LOCAL_MASKS = (0b11111110, 0b10110000, 0b01100000, *(1 << relation for relation in range(1, 8)))


@pytest.mark.parametrize("count", [3, 17, 300, 5000])
@pytest.mark.parametrize("is_points", [False, True], ids=["regions", "points"])
def test_messages_in_gaps_and_at_edges(count, is_points):
    rng = np.random.default_rng((5, count))
    side = 4 * int(np.ceil(np.sqrt(count)))
    low = rng.integers(0, side, (count, 2))  # whole numbers: many messages touch a region, or only its box
    size = rng.integers(1, 4, (count, 2))
    corners = np.concatenate([low, low + size], axis=1)
    shells = ([(x, y), (u, y), (u, v)] if k % 2 else [(x, y), (u, y), (u, v), (x, v)]
              for k, (x, y, u, v) in enumerate(corners.tolist()))  # fmt: skip
    column = ct.PointArray(low.astype(float)) if is_points else ct.RegionArray.from_regions([*map(ct.Region, shells)])
    rows, hits = np.arange(count, dtype=np.int32), 0
    for mask in LOCAL_MASKS:
        masks = np.full(count, mask, np.uint8)
        tree = PackedTree(column, masks, rows)
        for x, y in rng.integers(-2, side + 4, (MESSAGES, 2)).tolist():
            wkb = ct.Region([(x, y), (x + 1, y), (x, y + 1)]).to_wkb()
            check_message(tree, partial(scan, column, masks, rows), ct.Region.from_wkb(wkb))
            hits += len(tree.match(ct.Region.from_wkb(wkb))) > 0
    assert 0 < hits < MESSAGES * len(LOCAL_MASKS)


def test_a_wrong_row_is_seen():
    column = ct.RegionArray.from_regions([ct.Region.box(0, 0, 2, 2), ct.Region.box(9, 9, 10, 10)])
    masks, rows = np.array([4, 1], np.uint8), np.array([0, 1], np.int32)
    tree = PackedTree(column, masks, rows)
    check_message(tree, partial(scan, column, masks, rows), ct.Region.box(1, 1, 3, 3))
    with pytest.raises(AssertionError, match=r"rows \[0, 1\] in place of \[0\]"):
        check_message(tree, partial(scan, column, np.array([4, 2], np.uint8), rows), ct.Region.box(1, 1, 3, 3))


@pytest.mark.parametrize("part", ["nodes", "node_masks", "union", "masks", "rows", "offsets", "disjoint_map"])
def test_a_damaged_tree_is_seen(part):
    rng = np.random.default_rng(3)
    column = ct.RegionArray.from_regions([ct.Region.box(x, y, x + 1, y + 1) for x in range(20) for y in range(10)])
    tree = PackedTree(column, (1 << rng.integers(0, 8, 200) | 1).astype(np.uint8), np.arange(200, dtype=np.int32))
    tree.check()
    damaged = getattr(tree, part).copy()
    damaged.flat[1] = damaged.flat[1] - 1 if damaged.flat[1] > 0 else 1
    setattr(tree, part, damaged)
    with pytest.raises(AssertionError, match=r"entr|union|node|list|map"):
        tree.check()
