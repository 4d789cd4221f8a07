"""The future work of [SPATIAL]: splits of the CR-tree, and one that knows the operators."""

from __future__ import annotations

import statistics
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from contrada.errors import FormatError
from contrada.papers.exhibit import (
    Chart,
    Exhibit,
    Measurement,
    PaperClaim,
    Row,
    Setting,
    SweepParameter,
    TableColumn,
    TableLayout,
)
from contrada.papers.showing import mean_of, values_of
from contrada.papers.spatial.crtree import CRTree, Split
from contrada.papers.spatial.exhibits import PAPER, workload
from contrada.papers.spatial.measuring import timed
from contrada.papers.spatial.operator_tree import OperatorTree
from contrada.papers.spatial.polygon_sets import (
    KINDS,
    SETS,
    SYNTHETIC,
    check_kind,
    file_of_set,
    messages_of,
    polygon_set,
)

PLAIN: dict[str, Split] = {"quadratic": "quadratic", "linear": "linear", "R*": "rstar"}
OPERATORS: dict[str, Split] = {"operators quadratic": "quadratic", "operators R*": "rstar"}
COUNTS = (
    TableColumn("nodes", "nodes visited"),
    TableColumn("boxes", "boxes compared"),
    TableColumn("evaluated", "evaluated"),
    TableColumn("search_ms", "CPU ms of the search", ".4f"),
    TableColumn("ms", "CPU ms with exact relations", ".4f"),
)


def check_split(name: str) -> None:
    """Raise FormatError for an unknown split."""
    if name not in PLAIN | OPERATORS:
        raise FormatError(f"unknown split {name!r:.60}; splits: {'; '.join(PLAIN | OPERATORS)}")


@lru_cache(maxsize=2)
def tree_of(split: str, of: str, constraints: int, seed: int, data: Path | None) -> CRTree | OperatorTree:
    """Return a tree with one insert after another."""
    workload = polygon_set(of, seed, data).first(constraints)
    tree = CRTree(PLAIN[split]) if split in PLAIN else OperatorTree(OPERATORS[split])
    for row, (mask, region) in enumerate(zip(workload.masks.tolist(), workload.column, strict=True)):
        tree.insert(row, mask, region)
    return tree


def measure_split(setting: Setting, seed: int, data: Path | None) -> Row:
    """Return what a search of the tree visits, compares and leaves to evaluation per message, and its CPU time."""
    s: Any = setting
    tree = tree_of(s["split"], s["set"], s["constraints"], seed, data)
    messages = messages_of(polygon_set(s["set"], seed, data), s["kind"], s["messages"], seed)
    tree.match(messages[0])
    before = tree.work.copy()
    evaluated = [tree.count_evaluated(message) for message in messages]
    nodes, boxes = ((tree.work - before) / len(messages)).tolist()
    searches, _ = timed(lambda message: np.array([tree.count_evaluated(message)]), messages)
    matches, answers = timed(tree.match, messages)
    return {
        "nodes": nodes,
        "boxes": boxes,
        "evaluated": statistics.fmean(evaluated),
        "search_ms": 1000 * statistics.fmean(searches),
        "ms": 1000 * statistics.fmean(matches),
        "matches": statistics.fmean(map(len, answers)),
    }


def gains_most(rows: list[Row]) -> bool | None:
    """Return whether a split by operators visits and compares least, for every set and kind."""
    if not {*PLAIN} & {*values_of(rows, "split")} or not {*OPERATORS} & {*values_of(rows, "split")}:
        return None
    for of, kind in {(row["set"], row["kind"]) for row in rows}:
        own = [row for row in rows if (row["set"], row["kind"]) == (of, kind)]
        work = {
            name: mean_of(own, "nodes", split=name) + mean_of(own, "boxes", split=name)
            for name in values_of(own, "split")
        }
        if min(work, key=work.__getitem__) not in OPERATORS:
            return False
    return True


def tell_savings(rows: list[Row]) -> str:
    """Say how much less a split visits and compares than the quadratic one, over all sets and kinds."""
    lines = []
    works = dict.fromkeys((row["set"], row["kind"]) for row in rows)
    for split in values_of(rows, "split"):
        if split == "quadratic":
            continue
        parts = []
        for value, title in (("nodes", "nodes visited"), ("boxes", "boxes compared")):
            shares = [
                mean_of(rows, value, set=of, kind=kind, split=split)
                / mean_of(rows, value, set=of, kind=kind, split="quadratic")
                for of, kind in works
            ]
            known = [share for share in shares if share == share]
            if known:
                parts.append(f"{min(known):.0%} to {max(known):.0%} of the {title}")
        if parts:
            lines.append(f"- {split}: {', '.join(parts)} of the quadratic split")
    return "\n".join(lines)


def evaluates_same(rows: list[Row]) -> bool:
    """Return whether all splits leave equally many constraints to evaluation."""
    works = {(row["set"], row["kind"], row["constraints"], row["seed"]): row["evaluated"] for row in rows}
    return all(works[row["set"], row["kind"], row["constraints"], row["seed"]] == row["evaluated"] for row in rows)


SPLIT = Exhibit(
    "spatial-split",
    PAPER,
    "section 6, future work",
    "Does a split that keeps constraints that hold for most messages apart from others make the CR-tree faster?",
    Measurement("spatial-split", measure_split, is_timed=True, file_of=file_of_set),
    {
        "set": workload((SYNTHETIC, *SETS), (0,), KINDS, 100)["set"],
        "constraints": SweepParameter("number of constraints; 0: all polygons of the set", (0,), (300,)),
        "split": SweepParameter(
            "quadratic (the paper's), linear, R*, or by operators first",
            (*PLAIN, *OPERATORS),
            is_printed=False,
            check=check_split,
        ),
        "messages": SweepParameter("number of messages", (100,), (2,), is_printed=False),
        "kind": SweepParameter("messages: 20 points, A, B or C", KINDS, KINDS[:1], check=check_kind),
    },
    (TableLayout(("set", "kind", "split"), COUNTS),),
    (Chart("kind", "boxes", "kind of messages", "boxes compared per message", ("split",), "set"),),
    (
        PaperClaim("all splits leave the same constraints to evaluation", evaluates_same),
        PaperClaim("a split by operators visits and compares least for every set and kind", gains_most),
    ),
    tell=tell_savings,
)
EXHIBITS = (SPLIT,)
