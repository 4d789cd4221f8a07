"""What a broker owes its subscribers, worked out in plain Python from what it has acknowledged.

Messages are points with some numbers. A lease is the time, in sequence numbers, in which a filter holds for a key. The
end of a lease may be known only to lie between two bounds, if a server died before it answered a DELETE.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

BUCKETS = 500
SIDE = 90  # as degrees of latitude


class Sent(NamedTuple):
    """A message: serial numbers are ours, given before it is published."""

    serial: int
    x: int
    y: int

    @property
    def bucket(self) -> int:
        """A property by which single keys of a bulk upload are found."""
        return self.serial % BUCKETS


class Condition(NamedTuple):
    """A filter as CQL2, and as a function that knows nothing of CQL2."""

    text: str
    holds: Callable[[Sent], bool]


END = Condition("kind = 'end'", lambda sent: sent.serial < 0)  # no other filter takes a message with such a serial


class Lease(NamedTuple):
    """A filter of a key holds from `first` to at least `last`, at most to `latest`."""

    key: str
    condition: Condition
    first: int
    last: float = float("inf")
    latest: float = float("inf")


class Got(NamedTuple):
    """An event as a consumer received it."""

    sequence: int
    number: int
    key: str
    serial: int


def random_condition(rng: random.Random, tag: int) -> Condition:
    """Return a filter over the place or the numbers of a message; `tag` makes its text differ from all others."""
    kind = rng.randrange(4)
    a, b = sorted(rng.sample(range(SIDE), 2))
    mark = f" AND serial > -{tag}"
    if kind == 0:
        return Condition(f"x BETWEEN {a} AND {b}{mark}", lambda sent: a <= sent.x <= b)
    c, d = sorted(rng.sample(range(SIDE), 2))
    if kind == 1:
        ring = f"{a} {c}, {b} {c}, {b} {d}, {a} {d}, {a} {c}"
        text = f"S_INTERSECTS(geometry, POLYGON (({ring}))){mark}"
        return Condition(text, lambda sent: a <= sent.x <= b and c <= sent.y <= d)
    if kind == 2:  # the triangle below the diagonal of a square, edges included
        size = b - a
        text = f"S_INTERSECTS(geometry, POLYGON (({a} {a}, {b} {a}, {b} {b}, {a} {a}))){mark}"
        return Condition(text, lambda sent: 0 <= sent.y - a <= sent.x - a <= size)
    return Condition(f"(x < {a} OR NOT (y <= {d})){mark}", lambda sent: sent.x < a or sent.y > d)


def bucket_condition(bucket: int, tag: int) -> Condition:
    """Return the filter of one key of a bulk upload."""
    return Condition(f"bucket = {bucket} AND serial > -{tag}", lambda sent: sent.bucket == bucket)


def sequence_faults(sequences: Iterable[int]) -> Iterator[str]:
    """Say what is wrong with the sequence numbers of all messages: they must be 1, 2, 3, ... once each."""
    found = sorted(sequences)
    if found != list(range(1, len(found) + 1)):
        missing = sorted(set(range(1, len(found) + 1)) - set(found))[:5]
        yield f"{len(found)} messages have sequence numbers up to {found[-1] if found else 0}, without {missing}"


def order_faults(name: str, got: Sequence[Got]) -> Iterator[str]:
    """Say where events of one consumer come twice or out of order."""
    for before, after in itertools.pairwise(got):
        if before[:2] >= after[:2]:
            yield f"{name}: {after} came after {before}"


def delivery_faults(name: str, got: Iterable[Got], leases: Sequence[Lease], log: dict[int, Sent]) -> Iterator[str]:
    """Say which events of a subscriber are missing, and which should not be there."""
    wanted: set[tuple[int, str]] = set()
    allowed: set[tuple[int, str]] = set()
    for lease in leases:
        for sequence in range(lease.first, int(min(lease.latest, len(log))) + 1):
            sent = log[sequence]
            if lease.condition.holds(sent) and (sent.serial >= 0 or lease.condition is END):
                allowed.add((sequence, lease.key))
                if sequence <= lease.last:
                    wanted.add((sequence, lease.key))
    events = list(got)
    found = {(event.sequence, event.key) for event in events}
    for missing in sorted(wanted - found)[:5]:
        yield f"{name}: no event for {missing}, one of {len(wanted - found)} that are missing"
    for excess in sorted(found - allowed)[:5]:
        yield f"{name}: an event for {excess}, one of {len(found - allowed)} that nobody asked for"
    for event in events:
        if event.sequence not in log or log[event.sequence].serial != event.serial:
            yield f"{name}: {event} has another message than the one with its sequence number"
            break


def slice_faults(name: str, part: Sequence[Got], whole: Sequence[Got], starts: set[tuple[int, int]]) -> Iterator[str]:
    """Say if one connection did not get the events that follow one of the allowed starts, without holes."""
    if not part:
        return
    places = [event[:2] for event in whole]
    first = places.index(part[0][:2])
    if places[first : first + len(part)] != [event[:2] for event in part]:
        yield f"{name}: a connection that began with {part[0]} has holes"
    after = {next((place for place in places if place > start), None) for start in starts}
    if part[0][:2] not in after:
        yield f"{name}: a connection began with {part[0]}, not after one of {sorted(starts)}"
