"""Routing tables by their definition: which subscriptions a broker should tell each neighbour about.

The model reads the subscriptions and links of one broker from its records, in order, and compares all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from contrada import Filter, Predicate
from contrada.covering.filter_index import filter_covers
from contrada.simplification.simplifying import simplify


@cache
def parts_of(predicate: Predicate) -> tuple[Filter, ...]:
    """The filters of a predicate without what is redundant."""
    return simplify(predicate).filters


@cache
def covers(one: Predicate, other: Predicate) -> bool:
    """True if each filter of the other predicate is covered by a filter of the first."""
    return all(any(filter_covers(mine, theirs) for mine in parts_of(one)) for theirs in parts_of(other))


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
