"""The two forms of the constraint R-tree of [SPATIAL]: the paper's, which grows by single inserts, and the packed one.

As in section 5 of the paper, every constraint has one of the eight operators at random. Both trees are compiled and
take a ready-made region to sorted rows, on one thread. `contrada experiment run spatial-figure-4a` compares them with
scans, with Algorithm 1 and with CGAL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import contrada as ct
from benchmarks.answers import ask_plan, count_differences, table_of
from benchmarks.polygons import KINDS, PolygonSet, large_messages, read_sets, synthetic_set
from benchmarks.report import Report, Row
from benchmarks.timing import Timed, measured, take_turns
from contrada.index.packed import PackedTree
from contrada.papers.spatial import drawn_regions as synthetic
from contrada.papers.spatial.crtree import CRTree, Split

FORMS = "Two forms of the constraint R-tree, random operators"
PACKED = "packed tree"
SYNTHETIC, REAL = "synthetic", "Rhône-Alpes"
Match = Callable[[ct.Region], npt.NDArray[np.integer]]


class Workload(NamedTuple):
    """Constraints, row k with masks[k] against region k, in random order; and messages."""

    polygons: PolygonSet
    column: ct.RegionArray
    masks: npt.NDArray[np.uint8]
    messages: list[ct.Region]

    def __str__(self) -> str:
        return f"{self.polygons.name}, N = {len(self.column):,}"

    def first(self, size: int) -> Workload:
        """Return the first constraints alone."""
        return self._replace(column=self.column[:size], masks=self.masks[:size])


def run(report: Report) -> Iterator[Row]:
    """Measure both forms on synthetic regions and on a real set."""
    count = 3 if report.quick else 6
    workloads = [synthetic_workload(report, count)]
    workloads += [real_workload(real, report, count) for real in read_sets(report, (REAL,), 1)]
    for workload in workloads:
        yield from forms(workload.first(2_000) if report.quick else workload, 2 if report.quick else 7)


def synthetic_workload(report: Report, count: int) -> Workload:
    """Return the paper's worst case: constraints and messages from the same generator."""
    messages = list(synthetic.paper_regions(np.random.default_rng((report.seed, 1)), count))
    return shuffled(synthetic_set(report.seed), messages, report.seed)


def real_workload(polygons: PolygonSet, report: Report, count: int) -> Workload:
    """Return polygons without holes, as the paper has them; messages of all kinds."""
    simple = ct.RegionArray.from_wkb(polygons.wkb).is_simple
    chosen = polygons.take(np.flatnonzero(simple))
    messages = [wkb for kind in KINDS for wkb in large_messages(polygons, kind, count // len(KINDS), report.seed)]
    return shuffled(chosen, [ct.Region.from_wkb(wkb) for wkb in messages], report.seed)


def shuffled(polygons: PolygonSet, messages: list[ct.Region], seed: int) -> Workload:
    """Return the polygons in random order, so that the first ones are a sample and trees grow by chance."""
    order = np.random.default_rng(seed).permutation(len(polygons.shapes))
    column = ct.RegionArray.from_wkb(polygons.wkb.take(pa.array(order)))
    masks = (1 << polygons.operators[order]).astype(np.uint8)
    return Workload(polygons, column, masks, messages)


def compared(section: str, work: str, workload: Workload, contenders: dict[str, Match], repeats: int) -> Iterator[Row]:
    """Yield a row for each contender but the packed tree, with the answers on which they differ from it."""
    messages = workload.messages
    asked = {name: partial(ask_plan, match, messages) for name, match in contenders.items()}
    found: dict[str, Timed] = take_turns(asked, repeats, len(messages))
    ours = found.pop(PACKED)
    for name, theirs in found.items():
        different = count_differences(ours.answer, theirs.answer)
        counts = {"compared": len(messages) * len(workload.column), "different": different}
        yield Row.versus(section, work, name, ours, theirs, **counts)


def paper_tree(workload: Workload, split: Split) -> CRTree:
    """Return the paper's tree, one insert after another."""
    tree = CRTree(split)
    for row, region in enumerate(workload.column):
        tree.insert(row, int(workload.masks[row]), region)
    return tree


def packed_tree(workload: Workload) -> PackedTree:
    """Return the packed tree, all at once."""
    return PackedTree(workload.column, workload.masks, np.arange(len(workload.column), dtype=np.int32))


def forms(workload: Workload, repeats: int) -> Iterator[Row]:
    """Measure building, matching, updating and memory: the packed tree next to the paper's with each of its splits."""
    trees: dict[str, CRTree] = {}
    packing = measured(partial(packed_tree, workload), 3)
    for split in get_args(Split):
        name = f"CR-tree, {split} split"
        few = partial(paper_tree, workload.first(500), split)
        growing = measured(partial(paper_tree, workload, split), warm_up=few)
        trees[name] = growing.answer
        against = f"{name}, one insert after another"
        yield Row.versus(FORMS, f"{workload}: build", against, packing, growing)
    packed: PackedTree = packing.answer
    contenders: dict[str, Match] = {name: tree.match for name, tree in trees.items()}
    contenders[PACKED] = packed.match
    yield from compared(FORMS, f"{workload}: match one message", workload, contenders, repeats)
    for name, tree in trees.items():
        opened = float(np.mean([opened_nodes(tree, message) for message in workload.messages]))
        yield Row(FORMS, f"{workload}: nodes opened for a message", name, None, None, opened, "nodes")
    yield from updates(workload, trees, 100 if len(workload.column) < 5_000 else 500)
    for name, held in (("packed tree", packed), *list(trees.items())[:1]):
        each = held.nbytes / len(workload.column)
        yield Row(FORMS, f"{workload}: memory per constraint beyond coordinates", name, None, None, each, "bytes")


def opened_nodes(tree: CRTree, message: ct.Region) -> int:
    """Return nodes whose children the search looks at: the living ones whose boxes are not apart from the message's."""
    xmin, ymin, xmax, ymax = message.bounds
    box = tree.arrays.boxes[tree.arrays.levels >= 0]
    return int(((box[:, 0] <= xmax) & (box[:, 2] >= xmin) & (box[:, 1] <= ymax) & (box[:, 3] >= ymin)).sum())


def updates(workload: Workload, trees: dict[str, CRTree], count: int) -> Iterator[Row]:
    """Measure one constraint in and out again; the packed form takes it through the levels of a table."""
    table = table_of(workload.polygons)
    regions = [(int(mask), region) for mask, region in zip(workload.masks, workload.column[:count], strict=False)]
    constraints = [ct.Constraint("area", ct.RelationSet.from_mask(mask), region) for mask, region in regions]

    def change_table() -> None:
        for constraint in constraints:
            table.unsubscribe(table.subscribe("someone", constraint))

    def change_tree(tree: CRTree) -> None:
        for mask, region in regions:
            tree.insert(-1, mask, region)
            tree.delete(-1)

    ours = measured(change_table, 3, count)
    table.wait_for_compaction()
    for name, tree in trees.items():
        theirs = measured(partial(change_tree, tree), 3, count)
        yield Row.versus(FORMS, f"{workload}: one in and out again", f"{name}; ours a table", ours, theirs)
