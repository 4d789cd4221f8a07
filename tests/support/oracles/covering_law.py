"""Covering of rectangles: random commands as [COVER] draws them, and the law of relation graphs by brute force."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise

from contrada.papers.cover import KdTree, Scan, ZCurve
from contrada.papers.cover.point_index import PointIndex

Member = tuple[Sequence[float], int]  # a point and its arrival

# Limits so small that everything splits, merges and spills; and the ones in use.
INDEXES: dict[str, Callable[[int], PointIndex]] = {
    "scan": Scan,
    "k-d tree": KdTree,
    "small k-d tree": lambda dimensions: KdTree(dimensions, overflow=3, underflow=2),
    "single k-d tree": lambda dimensions: KdTree(dimensions, overflow=1, underflow=0),
    "Z-curve": ZCurve,
    "fine Z-curve": lambda dimensions: ZCurve(dimensions, small=1),
}


def covers(one: Member, other: Member) -> bool:
    """Whether one covers another: it dominates it, and came first if they are equal.

    >>> covers(([2, 1], 5), ([2, 0], 1)), covers(([2, 1], 5), ([2, 1], 1))
    (True, False)
    """
    (ours, our_arrival), (theirs, their_arrival) = one, other
    is_above = all(a >= b for a, b in zip(ours, theirs, strict=True))
    return is_above and (list(ours) != list(theirs) or our_arrival < their_arrival)


def check_law(live: Mapping[Hashable, Member], forwarded: set[Hashable]) -> None:
    """Raise AssertionError unless what neighbours know stands for everything that is live.

    >>> check_law({"a": ([2, 2], 0), "b": ([1, 1], 1)}, {"a"})
    >>> check_law({"a": ([2, 2], 0), "b": ([1, 1], 1)}, {"b"})
    Traceback (most recent call last):
        ...
    AssertionError: 'a' is covered by nothing and was not forwarded
    """
    if gone := forwarded - live.keys():
        raise AssertionError(f"{gone} are forwarded and gone")
    for key, member in live.items():
        above = {other for other in live if other != key and covers(live[other], member)}
        if key not in forwarded and not above:
            raise AssertionError(f"{key!r} is covered by nothing and was not forwarded")
        if key not in forwarded and not above & forwarded:
            raise AssertionError(f"{key!r} is covered by nothing that was forwarded")
    points = sorted(tuple(point) for key, (point, _) in live.items() if key in forwarded)
    if any(one == other for one, other in pairwise(points)):
        raise AssertionError("two equal ones were forwarded")
