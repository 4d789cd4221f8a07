"""Base of subscription graphs: keys of subscriptions, their rows, and their order of arrival."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from contrada.errors import KeyInUseError, UnknownKeyError

Key = Hashable


class Subscribed(NamedTuple):
    """Result of `subscribe`: whether to forward the subscription, the keys that cover it, the keys to withdraw."""

    forward: bool
    covered_by: tuple[Key, ...] = ()
    withdraw: tuple[Key, ...] = ()


class Unsubscribed(NamedTuple):
    """Result of `unsubscribe`: first forward the keys that nothing covers now, then withdraw if `withdraw`."""

    forward: tuple[Key, ...]
    withdraw: bool


class Member(NamedTuple):
    """One subscription: its key, its item, and its number in order of arrival."""

    key: Key
    item: Any
    arrival: int


class Members:
    """Live subscriptions by key and by row; rows of removed ones are reused."""

    def __init__(self) -> None:
        self._rows: dict[Key, int] = {}
        self._members: dict[int, Member] = {}
        self._free: list[int] = []
        self.next_arrival = 0  # arrival number that the next subscription gets
        self.forwarded: set[int] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    def __getitem__(self, row: int) -> Member:
        return self._members[row]

    def require_new(self, key: Key) -> None:
        """Raise KeyInUseError if the key is in use."""
        if key in self._rows:
            raise KeyInUseError(f"a subscription with the key {key!r} already exists")

    def add(self, key: Key, item: Any) -> int:
        """Add a subscription; return its row."""
        row = self._free.pop() if self._free else len(self._rows)
        self._rows[key] = row
        self._members[row] = Member(key, item, self.next_arrival)
        self.next_arrival += 1
        return row

    def row(self, key: Key) -> int:
        """Return the row of a key; raise UnknownKeyError if unknown."""
        try:
            return self._rows[key]
        except KeyError:
            raise UnknownKeyError(f"no subscription has the key {key!r}") from None

    def remove(self, row: int) -> bool:
        """Remove a row; return whether it was forwarded."""
        del self._rows[self._members.pop(row).key]
        self._free.append(row)
        was_forwarded = row in self.forwarded
        self.forwarded.discard(row)
        return was_forwarded

    def keys(self, rows: Iterable[int]) -> tuple[Key, ...]:
        """Return the keys of `rows`."""
        return tuple(self[row].key for row in rows)


class SubscriptionGraph:
    """Common part of subscription graphs: members, forwarded keys, and known edges."""

    _children: Mapping[int, Iterable[int]]

    def __init__(self) -> None:
        self._members = Members()

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: Key) -> bool:
        return key in self._members

    @property
    def forwarded(self) -> set[Key]:
        """The keys of subscriptions that were forwarded to neighbours."""
        return set(self._members.keys(self._members.forwarded))

    def edges(self) -> Iterator[tuple[Key, Key]]:
        """Yield all known pairs of a key and a key that it covers."""
        for row, children in self._children.items():
            for child in children:
                yield self._members[row].key, self._members[child].key
