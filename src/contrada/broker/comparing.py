"""Compare what two neighbours hold by digests of buckets, so that only the difference is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

BUCKETS = 256
_MIXERS = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9  # odd, with bits all over
_MASK = (1 << 63) - 1


def bucket_of(digest: int) -> int:
    """Return the bucket of what has this digest."""
    return digest % BUCKETS


def bucket_digests(held: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return a digest of ids and digests for each bucket, whatever their order.

    >>> bucket_digests([(1, 5), (2, 6)]) == bucket_digests([(2, 6), (1, 5)]) != bucket_digests([(1, 6), (2, 5)])
    True
    """
    sums = [0] * BUCKETS
    for id, digest in held:
        mixed = (id * _MIXERS[0] + digest * _MIXERS[1]) & _MASK
        sums[bucket_of(digest)] += (mixed ^ mixed >> 31) * _MIXERS[2]
    return tuple(total & _MASK for total in sums)


class Difference(NamedTuple):
    """What makes a neighbour hold `own` where it holds `theirs`: ids to rename, to add, and to remove."""

    rename: tuple[tuple[int, int], ...]
    add: tuple[int, ...]
    remove: tuple[int, ...]


def difference(own: Mapping[int, int], theirs: Mapping[int, int]) -> Difference:
    """Compare digests by id; what has another id over there is renamed, not sent again.

    >>> difference({1: 10, 2: 20, 3: 30}, {1: 10, 7: 20, 8: 80})
    Difference(rename=((7, 2),), add=(3,), remove=(8,))
    """
    wanted = {id: digest for id, digest in own.items() if theirs.get(id) != digest}
    spare: dict[int, list[int]] = {}
    for id, digest in sorted(theirs.items(), reverse=True):
        if id not in own:
            spare.setdefault(digest, []).append(id)
    renamed: dict[int, int] = {}
    for id, digest in sorted(wanted.items()):
        if id not in theirs and spare.get(digest):
            renamed[spare[digest].pop()] = id
    add = sorted(wanted.keys() - renamed.values())
    return Difference(tuple(renamed.items()), tuple(add), tuple(sorted(id for ids in spare.values() for id in ids)))
