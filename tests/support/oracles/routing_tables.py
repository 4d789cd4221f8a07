"""Routing tables by their definition: which subscriptions a broker should tell each neighbour about.

The model reads the subscriptions and links of one broker from its records, in order, and compares all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import permutations
from typing import Any

import shapely

from contrada import Constraint, Filter, Predicate, RelationSet
from contrada.broker import LinkOptions
from contrada.covering.packing import filter_covers
from contrada.simplification.simplifying import simplify


@cache
def parts_of(predicate: Predicate) -> tuple[Filter, ...]:
    """The filters of a predicate without what is redundant."""
    return simplify(predicate).filters


@cache
def covers(one: Predicate, other: Predicate) -> bool:
    """True if each filter of the other predicate is covered by a filter of the first."""
    return all(any(filter_covers(mine, theirs) for mine in parts_of(one)) for theirs in parts_of(other))


def are_equivalent(one: Predicate, other: Predicate) -> bool:
    """True if two predicates cover each other."""
    return covers(one, other) and covers(other, one)


def widest(interests: Mapping[Any, Predicate]) -> dict[Any, Predicate]:
    """The predicates that only equivalent ones cover."""
    return {
        number: own
        for number, own in interests.items()
        if all(covers(own, other) for other in interests.values() if covers(other, own))
    }


def check_told(told: Mapping[Any, Predicate], interests: Mapping[Any, Predicate], options: LinkOptions) -> None:
    """Raise AssertionError unless what is told stands for all interests, and all of it for one.

    Without merging only interests are told. With withdrawal, which merging implies, they are the widest, each once. A
    merged predicate stands for the widest interests that differ from it in their region alone.
    """
    for number, wanted in interests.items():
        assert any(covers(one, wanted) for one in told.values()), ("not told", number, wanted)
    plain = {id: one for id, one in told.items() if id in interests}
    assert all(one == interests[id] for id, one in plain.items())
    if options.mode == "flooding":
        assert told.keys() == interests.keys()
    if options.mode != "merging":
        assert plain.keys() == told.keys()
    if options.mode == "merging" or (options.mode == "covering" and options.withdraw):
        wide = widest(interests)
        assert plain.keys() <= wide.keys(), ("covered, but told", plain.keys() - wide.keys())
        assert not any(covers(one, other) for one, other in permutations(plain.values(), 2))
        assert len(told) <= len(wide)
        for id in told.keys() - plain.keys():
            _check_merged(told[id], wide.values(), options.share)


def _check_merged(merged: Predicate, interests: Iterable[Predicate], share: float) -> None:
    """Raise AssertionError unless a merged region holds the regions of its members and little else, by Shapely."""
    own = _spatial_and_others(merged)
    members = [one for one in interests if covers(merged, one) and _spatial_and_others(one)[1:] == own[1:]]
    assert members, ("stands for nothing", merged)
    if merged in members:
        return  # a single interest under a new id
    (spatial,), _ = own
    assert spatial.operator == RelationSet.S_INTERSECTS
    region = spatial.value.to_shapely()
    asked = [constraint for one in members for constraint in _spatial_and_others(one)[0]]
    # A region that a message must contain or meet may reach beyond a merged one that it implies without having made it.
    regions = [one for one in (constraint.value.to_shapely() for constraint in asked) if region.covers(one)]
    assert len(regions) >= sum(one.operator == RelationSet.S_INTERSECTS for one in asked)
    union = shapely.union_all(regions)
    assert union.area >= (1 - share) * region.area * (1 - 1e-9), ("too wide", merged, union.area, region.area)


def _spatial_and_others(predicate: Predicate) -> tuple[list[Constraint], tuple[frozenset[Constraint], ...]]:
    """The constraints on regions, and for each filter the others."""
    parts = [constraint for part in predicate.filters for constraint in part.constraints]
    spatial = [constraint for constraint in parts if isinstance(constraint.operator, RelationSet)]
    return spatial, tuple(frozenset(part.constraints) - frozenset(spatial) for part in predicate.filters)


class ToldModel:
    """The subscriptions that concern one neighbour, in the order of arrival, and which of them it is told about."""

    def __init__(self, mode: str, withdraw: bool) -> None:
        self.floods, self.withdraws = mode == "flooding", withdraw or mode == "merging"
        self.live: dict[int, Predicate] = {}
        self.told: set[int] = set()

    def is_covered(self, number: int) -> bool:
        """True if another one covers it; of two that cover each other, the earlier covers the later."""
        own = self.live[number]
        return any(
            covers(other, own) and (place < number or not covers(own, other))
            for place, other in self.live.items()
            if place != number
        )

    def add(self, number: int, predicate: Predicate) -> None:
        self.live[number] = predicate
        self._tell()

    def remove(self, number: int) -> None:
        del self.live[number]
        self.told.discard(number)
        self._tell()

    def _tell(self) -> None:
        if self.floods:
            self.told = set(self.live)
            return
        kept = set() if self.withdraws else self.told
        self.told = kept | {number for number in self.live if number not in kept and not self.is_covered(number)}


class TableModel:
    """What one broker should tell its neighbours, computed from its records alone."""

    def __init__(self, mode: str, withdraw: bool) -> None:
        self.options = mode, withdraw
        self.entries: dict[int, tuple[str | None, Predicate]] = {}  # neighbour that it came from, and predicate
        self.links: dict[str, ToldModel] = {}

    def take(self, records: Iterable[tuple[tuple[Any, ...], Any]]) -> None:
        for (kind, *rest), value in records:
            if kind == "subscription":
                self._take_subscription(rest[0], value)
            elif kind == "link" and value is None:
                self.links.pop(rest[0], None)
            elif kind == "link" and rest[0] not in self.links:
                link = self.links[rest[0]] = ToldModel(*self.options)
                for number, (origin, predicate) in self.entries.items():
                    if origin != rest[0]:
                        link.add(number, predicate)

    def _take_subscription(self, number: int, record: Any) -> None:
        if record is not None:
            self.entries[number] = (record.owner if record.key is None else None), record.predicate
        elif number not in self.entries:
            return
        origin, predicate = self.entries[number]
        if record is None:
            del self.entries[number]
        for name, link in self.links.items():
            if name == origin:
                continue
            if record is None:
                link.remove(number)
            else:
                link.add(number, predicate)
