"""Run whole sequences of commands on a relation graph G_k in compiled code, to measure indexes and not Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada.codes import TALLY_LENGTH
from contrada.errors import CoveringError
from contrada.kernels.cover.arrays import GraphArrays
from contrada.papers.cover.point_index import PointIndex
from contrada.papers.cover.relation_graph import GraphWork


class Replayed(NamedTuple):
    """The result of a sequence of commands, and its cost."""

    subscribe_work: GraphWork
    unsubscribe_work: GraphWork
    forwarded: NDArray[np.int64]  # rows in the order in which they were forwarded
    forwarded_on_subscribe: int
    forwarded_on_unsubscribe: int
    withdrawn: int


def replay(index: PointIndex, points: ArrayLike, commands: ArrayLike, k: int = 1) -> Replayed:
    """Run commands on an empty index: r subscribes row r of `points`, -1 - r unsubscribes it, each at most once.

    The result equals that of a `RelationGraph` with this index and k.

    >>> from contrada.papers.cover import KdTree
    >>> replay(KdTree(1), [[3], [1]], [0, 1, -1]).forwarded.tolist()        # 1 is covered until 0 leaves
    [0, 1]
    """
    if k < 1:
        raise CoveringError(f"k: need a number of at least 1, got {k}")
    rows = _checked_points(index, points)
    steps = np.ascontiguousarray(commands, np.int64)
    _check_commands(steps, len(rows))
    n = max(1, len(rows))
    tally = np.zeros(TALLY_LENGTH, np.int64)
    log = np.zeros(n, np.int64)
    steps.setflags(write=False)
    graph = GraphArrays(
        parents=np.full((n, k), -1, np.int32),
        nexts=np.full((n, k), -1, np.int64),
        prevs=np.full((n, k), -1, np.int64),
        heads=np.full(n, -1, np.int64),
        forwarded=np.zeros(n, np.uint8),
        orphans=np.zeros(n, np.int64),
        covers=np.zeros(k, np.int64),
        counters=np.zeros(2, np.int64),
    )
    index.run(rows, graph, steps, log, tally)
    queries_s, queries_u, nodes_s, nodes_u, comparisons_s, comparisons_u, *sent = tally.tolist()
    subscribing = GraphWork(queries_s, nodes_s, comparisons_s)
    unsubscribing = GraphWork(queries_u, nodes_u, comparisons_u)
    return Replayed(subscribing, unsubscribing, log[: sent[3]], *sent[:3])


def _checked_points(index: PointIndex, points: ArrayLike) -> NDArray[np.float64]:
    """Return points as doubles; raise CoveringError for a wrong shape or NaN."""
    rows = np.array(points, np.float64)
    if rows.ndim != 2 or rows.shape[1] != index.dimensions:
        raise CoveringError(f"points: need {index.dimensions} columns, got shape {rows.shape}")
    if np.isnan(rows).any():
        raise CoveringError(f"point {int(np.isnan(rows).any(axis=1).argmax())} has a coordinate that is NaN")
    return rows


def _check_commands(commands: NDArray[np.int64], rows: int) -> None:
    """Raise CoveringError unless every row subscribes once, and unsubscribes at most once, later."""
    if commands.ndim != 1:
        raise CoveringError(f"commands: need a sequence of whole numbers, got shape {commands.shape}")
    row = np.where(commands >= 0, commands, -1 - commands)
    for command in np.flatnonzero(row >= rows):
        raise CoveringError(f"command {command} refers to row {row[command]}, but there are {rows} rows")
    times = np.full((2, rows), len(commands))
    for which, is_chosen in enumerate((commands >= 0, commands < 0)):
        chosen = row[is_chosen]
        if len(np.unique(chosen)) < len(chosen):
            raise CoveringError(f"a row {('subscribes', 'unsubscribes')[which]} twice")
        times[which, chosen] = np.flatnonzero(is_chosen)
    for early in np.flatnonzero((times[1] < len(commands)) & (times[0] >= times[1])):
        raise CoveringError(f"row {early} unsubscribes before it subscribes")
