"""Tables I and II of [COVER]: the cost of the reporting mode k of the relation graph G_k with the k-d tree.

60,000 commands on rectangles of five attributes, points of ten dimensions; unsubscriptions with probability 5 % (heavy
load: many subscriptions) and 40 % (light load). nv counts nodes visited, pc points compared; _s counts those of
subscribing, _u of unsubscribing. The paper prints no bucket limits, so several are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from typing import Any

from contrada.papers.cover import KdTree
from contrada.papers.cover.commands import rectangle_commands
from contrada.papers.cover.replay import replay

NAME = "cover-tables"
COMMANDS = 60_000
ATTRIBUTES = 5
MODES = (1, 2, 3, 4, 5, 6)
LOADS = (0.05, 0.40)
BUCKET_LIMITS = ((8, 2), (16, 5), (32, 10), (128, 40))  # overflow and underflow, in points
COUNTS = ("nv", "nv_s", "nv_u", "pc", "pc_s", "pc_u")
# Counts in thousands, by p and k.
PAPER: dict[float, dict[int, tuple[int, ...]]] = {
    0.05: {
        1: (813, 782, 31, 6147, 5993, 154),
        2: (983, 974, 9, 9967, 9852, 115),
        3: (1140, 1131, 9, 13111, 12973, 138),
        4: (1275, 1266, 9, 15816, 15663, 153),
        5: (1400, 1390, 10, 18274, 18111, 163),
        6: (1508, 1498, 10, 20407, 20237, 170),
    },
    0.40: {
        1: (556, 415, 141, 6192, 4684, 1508),
        2: (634, 529, 105, 8952, 7376, 1576),
        3: (714, 615, 99, 11026, 9365, 1661),
        4: (780, 683, 97, 12661, 10936, 1725),
        5: (839, 740, 99, 14050, 12260, 1790),
        6: (889, 789, 100, 15233, 13389, 1844),
    },
}


def measure(
    commands: int = COMMANDS,
    seed: int = 7,
    limits: Iterable[tuple[int, int]] = BUCKET_LIMITS,
    tell: Callable[[str, int, int], None] = lambda text, done, total: None,
) -> Iterator[dict[str, Any]]:
    """Yield one row for each load, pair of bucket limits and k, with the paper's counts; `tell` reports progress.

    >>> row = next(measure(commands=200))
    >>> row["p"], row["k"], row["overflow"], row["paper"]["nv"], row["pc"] == row["pc_s"] + row["pc_u"]
    (0.05, 1, 8, 813000, True)
    """
    drawn = {p: rectangle_commands(commands, ATTRIBUTES, p, seed) for p in LOADS}
    plan = list(product(LOADS, limits, MODES))
    for done, (p, (overflow, underflow), k) in enumerate(plan):
        tell(f"p = {p:.0%}, buckets of {overflow}, k = {k}", done, len(plan))
        steps, points = drawn[p]
        replayed = replay(KdTree(2 * ATTRIBUTES, overflow, underflow), points, steps, k)
        s, u = replayed.subscribe_work, replayed.unsubscribe_work
        ours = (s.nodes + u.nodes, s.nodes, u.nodes, s.comparisons + u.comparisons, s.comparisons, u.comparisons)
        yield {
            "p": p,
            "k": k,
            "overflow": overflow,
            "underflow": underflow,
            "queries_s": s.queries,
            "queries_u": u.queries,
            "forwarded": len(replayed.forwarded),
            **dict(zip(COUNTS, ours, strict=True)),
            "paper": dict(zip(COUNTS, (1000 * count for count in PAPER[p][k]), strict=True)),
        }


def trends(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each load and bucket limit whether the paper's trends hold: which counts rise or fall with k.

    >>> rows = [dict(p=0.4, overflow=8, k=k, nv=k, pc=k, queries_u=9 - k, nv_s=k, nv_u=0, pc_u=0) for k in (1, 2, 3)]
    >>> trends(rows)
    [{'p': 0.4, 'overflow': 8, 'nv rises': True, 'pc rises': True, 'k = 1 is cheapest': True, 'queries_u falls': True}]
    """
    groups: dict[tuple[float, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["p"], row["overflow"]), []).append(row)
    found = []
    for (p, overflow), group in groups.items():
        first, *others = sorted(group, key=lambda row: int(row["k"]))
        steps = list(pairwise([first, *others]))
        found.append({
            "p": p,
            "overflow": overflow,
            **{f"{name} rises": all(one[name] < other[name] for one, other in steps) for name in ("nv", "pc")},
            "k = 1 is cheapest": all(first["nv"] < row["nv"] and first["pc"] < row["pc"] for row in others),
            "queries_u falls": all(one["queries_u"] >= other["queries_u"] for one, other in steps),
        })  # fmt: skip
    return found
