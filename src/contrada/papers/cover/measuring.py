"""Measure sequences of commands as [COVER] does: nodes visited, points compared, queries, and run time.

Run times are CPU seconds of whole sequences of commands, compiled, on one core: the best of a few runs, because other
work on the machine can only add to them.
"""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from contrada.errors import CoveringError
from contrada.papers.cover.commands import rectangle_commands
from contrada.papers.cover.kd_tree import KdTree
from contrada.papers.cover.point_index import PointIndex
from contrada.papers.cover.replay import Replayed, replay
from contrada.papers.cover.scan import Scan
from contrada.papers.cover.z_curve import ZCurve
from contrada.papers.exhibit import Row, Setting

INDEXES = ("k-d tree", "Z-curve", "scan")
drawn_commands = lru_cache(maxsize=2)(rectangle_commands)


def check_share(p: float) -> None:
    """Raise CoveringError unless unsubscriptions are fewer than subscriptions."""
    if not 0 <= p < 0.5:
        raise CoveringError(f"p: need a probability below 0.5, got {p}")


def check_underflow(share: float) -> None:
    """Raise CoveringError unless a share of the overflow limit is at most 1."""
    if not 0 <= share <= 1:
        raise CoveringError(f"underflow: need a share of the overflow limit from 0 to 1, got {share}")


def index_of(name: str, dimensions: int, buckets: int, underflow: float) -> PointIndex:
    """Return an empty index; `buckets` is the overflow limit of a k-d tree's buckets, `underflow` a share of it."""
    if name == "k-d tree":
        return KdTree(dimensions, buckets, int(buckets * underflow))
    if name not in INDEXES:
        raise CoveringError(f"unknown index {name!r:.60}; indexes: {', '.join(INDEXES)}")
    return ZCurve(dimensions) if name == "Z-curve" else Scan(dimensions)


def replayed(setting: Setting, seed: int) -> tuple[float, Replayed]:
    """Run the commands of a setting; return CPU seconds and the result."""
    s: Any = setting
    steps, points = drawn_commands(s["commands"], s["attributes"], s["p"], seed, s["draw"])
    index = index_of(s["index"], points.shape[1], s["buckets"], s["underflow"])
    start = time.process_time()
    result = replay(index, points, steps, s["k"])
    return time.process_time() - start, result


def measure_counts(setting: Setting, seed: int, _: Path | None = None) -> Row:
    """Return nodes visited (nv), points compared (pc) and queries; _s due to subscribing, _u to unsubscribing.

    >>> setting = {"commands": 300, "attributes": 5, "p": 0.4, "k": 1, "index": "k-d tree", "draw": "ends"}
    >>> row = measure_counts(setting | {"buckets": 16, "underflow": 0.3}, 1)
    >>> row["pc"] == row["pc_s"] + row["pc_u"]
    True
    """
    _seconds, result = replayed(setting, seed)
    s, u = result.subscribe_work, result.unsubscribe_work
    return {
        "nv": s.nodes + u.nodes, "nv_s": s.nodes, "nv_u": u.nodes,
        "pc": s.comparisons + u.comparisons, "pc_s": s.comparisons, "pc_u": u.comparisons,
        "queries_s": s.queries, "queries_u": u.queries, "forwarded": len(result.forwarded),
    }  # fmt: skip


def measure_times(setting: Setting, seed: int, _: Path | None = None) -> Row:
    """Return the least CPU seconds of as many runs as `repeats` says."""
    for name in INDEXES:  # compile or load before timing
        replay(index_of(name, 2, 8, 0), [[1.0, 1.0]], [0, -1])
    repeats = max(1, int(setting["repeats"]))
    return {"seconds": min(replayed(setting, seed)[0] for _ in range(repeats))}
