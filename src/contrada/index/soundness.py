"""Check the arrays of a saved table before kernels index with them: offsets, numbers and counts must be in range.

Kernels know arrays by their addresses and check nothing. These checks are vectorised passes over the arrays, and run
whenever a table is opened, with or without checksums. A ValueError names the array and the fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada import codes
from contrada.geometry.arrays import Arrays as Regions
from contrada.geometry.saved.soundness import check_numbers, check_offsets, check_regions, require
from contrada.index.entries import box_groups
from contrada.index.packed import LIST_PARTS
from contrada.index.ranking import ScalarArrays
from contrada.kernels.match.tables import TREE


def check_tree_arrays(arrays: Mapping[str, NDArray[Any]], is_points: bool, rows: int) -> None:
    """Raise ValueError unless the arrays of a tree are consistent; its entries are numbered below `rows`.

    `PackedTree.check` then compares lists, nodes and maps with the entries.
    """
    TREE.check(arrays)
    if is_points:
        items = len(arrays["xy"])
    else:
        items = len(arrays["bounds"])
        check_regions(Regions(*(arrays[name] for name in Regions._fields)), items)
        _check_chains(arrays)
    entries = len(arrays["rows"])
    check_offsets("offsets", arrays["offsets"], items, entries, least=1)
    require(len(arrays["masks"]) == entries and len(arrays["union"]) == items, "masks and entries differ in number")
    check_numbers("rows", arrays["rows"], 0, rows)
    nodes, level = 0, items
    while level > codes.FAN:
        level = -(-level // codes.FAN)
        nodes += level
    require(len(arrays["nodes"]) in (0, nodes), f"{len(arrays['nodes'])} nodes do not fit {items} items")
    require(len(arrays["node_masks"]) == len(arrays["nodes"]), "nodes and their masks differ in number")
    for name in LIST_PARTS[::2]:
        listed = len(arrays[name.replace("before", "rows")])
        runs = -(-items // codes.FAN) if len(arrays["nodes"]) else len(arrays[name]) - 1
        check_offsets(name, arrays[name], runs, listed)
    for name in LIST_PARTS[1::2]:
        check_numbers(name, arrays[name], 0, rows)
    if size := len(arrays["disjoint_map"]):
        spread = int(arrays["rows"].max(initial=0)) - int(arrays["rows"].min(initial=0))
        require(size % 8 == 0 and 8 * size > spread, "disjoint_map has fewer bits than rows")


def _check_chains(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check that the edge indexes of large items follow each other, each as long as its vertices need."""
    vertices = np.diff(arrays["ring_offsets"][arrays["region_offsets"]])
    large = np.flatnonzero(vertices > codes.MAX_SCANNED_VERTICES)
    require(np.array_equal(arrays["large"], large), "large does not list the items with many vertices")
    sizes, count = np.zeros(len(large), np.int64), vertices[large] - 1
    is_open = np.ones(len(large), bool)
    while is_open.any():
        count = -(-count // codes.FANOUT)
        sizes += np.where(is_open, count, 0)
        is_open &= count > 1
    ends = np.cumsum(sizes)
    require(np.array_equal(arrays["bases"], ends - sizes), "bases differ from the starts of the edge indexes")
    require(len(arrays["boxes"]) == (ends[-1] if len(ends) else 0), "boxes of edge indexes are missing")


def check_scalar_arrays(a: ScalarArrays, forms: NDArray[np.uint8]) -> None:
    """Raise ValueError unless the arrays of a scalar index are consistent; values at place p have the form forms[p]."""
    slots, texts, places = len(a.forms), len(a.text_offsets) - 1, len(a.numbers)
    check_numbers("slot_of", a.slot_of, -1, slots)
    used = np.flatnonzero(a.slot_of >= 0)
    require(len(np.unique(a.slot_of[used])) == len(used), "slot_of has a duplicate slot")
    require(len(a.slot_of) <= len(forms), "slot_of has more slots than the table")
    require(np.array_equal(a.forms[a.slot_of[used]], forms[used]), "forms differ from the forms of the slots")
    check_offsets("const_base", a.const_base, slots, len(a.keys))
    require(len(a.rests) in (0, len(a.keys)), "rests and keys differ in number")
    check_offsets("text_base", a.text_base, slots, texts)
    check_offsets("text_offsets", a.text_offsets, texts, len(a.blob))
    require(len(a.heads) == texts, "heads and texts differ in number")
    check_offsets("offsets", a.offsets, places, len(a.records))
    check_offsets("set_offsets", a.set_offsets, len(a.set_offsets) - 1, len(a.set_ranks))
    check_offsets("gram_base", a.gram_base, slots, len(a.gram_codes))
    check_offsets("gram_offsets", a.gram_offsets, len(a.gram_codes), len(a.gram_patterns))
    check_numbers("gram_patterns", a.gram_patterns, 0, texts)
    check_numbers("numbers", a.numbers, -1, len(a.local_of))
    check_numbers("local_of", a.local_of, 0, places)
    _check_records(a, slots, texts)
    _check_entries(a, slots, places)


def _check_records(a: ScalarArrays, slots: int, texts: int) -> None:
    """Check the slots of records, and their numbers of sets and patterns."""
    code, low = a.records[:, 0], a.records[:, 1]
    check_numbers("records", code, 0, 1 << 31)
    check_numbers("slots of records", code & codes.SLOT_MASK, 0, slots)
    asks = code >> codes.ASKS_SHIFT
    check_numbers("sets of records", low[(asks >= codes.SET) & (asks < codes.LIKE)], 0, len(a.set_offsets) - 1)
    check_numbers("patterns of records", low[asks >= codes.LIKE], 0, texts)


def _check_entries(a: ScalarArrays, slots: int, places: int) -> None:
    """Check that entries occur once each: by constant, interval, presence, slot by slot, and then by their boxes.

    Kernels have room for every entry once, so overlapping ranges would write beyond that room.
    """
    entries = len(a.entries)
    words = a.entries[:, 0]
    check_numbers("filters of entries", words & codes.FILTER_MASK, 0, places)
    for shift in codes.SLOT_SHIFTS:
        check_numbers("slots of entries", words >> shift & np.uint64(255), 0, max(slots, 1))
    numbers = codes.OTHERS_PER_SLOT * slots + 1
    require(len(a.others) == numbers, f"others has {len(a.others)} numbers; expected {numbers}")
    counts = np.where(a.forms < codes.TEXT, np.diff(a.const_base), np.diff(a.text_base)) + 1
    check_offsets("equal_base", a.equal_base, slots, len(a.equal_offsets))
    require(np.array_equal(np.diff(a.equal_base), counts), "equal_base does not fit the constants")
    first, last, end, block, span = a.others[:-1].reshape(-1, codes.OTHERS_PER_SLOT).T
    nearby = int(a.others[-1])
    ends = np.column_stack([first, last, end]).reshape(-1)
    limits = np.insert(a.equal_offsets.astype(np.int64), np.repeat(a.equal_base[1:], 3), ends)
    check_offsets("others", np.concatenate([[0], limits, [nearby, entries]]), len(limits) + 2, entries)
    intervals = last - first
    blocks = -(-intervals // codes.BLOCK)
    check_numbers("blocks", block, 0, len(a.blocks) + 1)
    check_numbers("blocks", block + blocks + -(-blocks // codes.BLOCK), 0, len(a.blocks) + 1)
    check_numbers("spans", span, 0, len(a.spans) + 1)
    check_numbers("spans", 2 * (span + intervals), 0, len(a.spans) + 1)
    require(len(a.boxes) in (0, box_groups(entries)), f"{len(a.boxes)} groups of boxes do not fit {entries} entries")
