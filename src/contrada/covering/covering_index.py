"""CoveringIndex: which live subscriptions need not be forwarded, because another one covers them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice

from contrada.arguments import checks_methods
from contrada.covering.cover_graph import CoverGraph
from contrada.covering.filter_index import FilterIndex
from contrada.covering.members import Subscribed, Unsubscribed
from contrada.covering.slots import Profile
from contrada.cql2.queries import Asked
from contrada.errors import ArgumentError, KeyInUseError, UnknownKeyError
from contrada.matching.names import Name, check_name
from contrada.model import Filter, Predicate
from contrada.model.implication import MAX_COMPARED_PAIRS
from contrada.simplification.simplifying import compact_predicate

Key = Name


@checks_methods("__init__", "subscribe", "unsubscribe", "is_forwarded", "predicate")
class CoveringIndex:
    """The relation graph G_k of [COVER] over predicates of mixed filters: numbers, times, text, presence, regions.

    A predicate covers another if each filter of the other is covered by one of its own filters: always sound, and as
    complete as `contrada.model.implication`. Of subscriptions that cover each other only the earlier covers the later,
    so one of them is always forwarded. With `withdraw` a new subscription withdraws the forwarded ones that it covers.

    Filters are kept packed; the objects that are subscribed are not kept. Iteration gives the keys in order of arrival.

    >>> index = CoveringIndex()
    >>> index.subscribe("wide", "severity >= 3")
    Subscribed(forward=True, covered_by=(), withdraw=())
    >>> index.subscribe("narrow", "severity >= 5 AND kind = 'flood'")
    Subscribed(forward=False, covered_by=('wide',), withdraw=())
    >>> index.unsubscribe("wide")
    Unsubscribed(forward=('narrow',), withdraw=True)
    >>> list(index), index.is_forwarded("narrow"), str(index.predicate("narrow"))
    (['narrow'], True, "severity >= 5 AND kind = 'flood'")
    """

    def __init__(self, k: int = 1, withdraw: bool = False) -> None:
        """Make an empty index that keeps up to `k` covers for each subscription."""
        if k < 1:
            raise ArgumentError(f"k: need a number of at least 1, got {k}")
        self.k = k
        self._withdraws = withdraw
        self._index = FilterIndex()
        # A subscription has the number of its first filter. Numbers of removed filters are used again.
        self._numbers: dict[Key, int] = {}
        self._several: dict[int, tuple[int, ...]] = {}  # numbers of all filters, if a subscription has more than one
        self._owners: dict[int, int] = {}  # subscriptions of further filters, by their numbers
        self._free: list[int] = []
        self._next_arrival = 0
        self._graph = CoverGraph(k)
        self._keys: list[Key | None] = []  # this and the following: by number
        self._arrivals = array("q")
        self._is_forwarded = bytearray()  # of all filters of a subscription

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __iter__(self) -> Iterator[Key]:
        return iter(self._numbers)

    @property
    def forwarded(self) -> set[Key]:
        """The keys of subscriptions that were forwarded to neighbours."""
        return {key for key, number in self._numbers.items() if self._is_forwarded[number]}

    def is_forwarded(self, key: Key) -> bool:
        """Return whether a subscription was forwarded to neighbours; raise UnknownKeyError if the key is unknown."""
        return bool(self._is_forwarded[self._number(key)])

    def predicate(self, key: Key) -> Predicate:
        """Return the predicate of a subscription, simplified; raise UnknownKeyError if the key is unknown."""
        return Predicate(self._part(number) for number in self._filters(self._number(key)))

    @property
    def work(self) -> tuple[int, int]:
        """Nodes visited and points compared by all searches so far."""
        return self._index.work

    def subscribe(self, key: Key, what: Asked) -> Subscribed:
        """Add a subscription; raise KeyInUseError if the key is in use."""
        check_name("key", key)
        if key in self._numbers:
            raise KeyInUseError(f"a subscription with the key {key!r} already exists")
        profiles = [Profile(part) for part in compact_predicate(what).filters]
        covers = list(islice(self._covers_of(profiles), self.k))
        withdrawn = [] if covers or not self._withdraws else self._forwarded_under(profiles)
        member = self._add(key, profiles)
        self._forward(member, not covers)
        for cover in covers:
            self._graph.link(cover, member)
        for one in withdrawn:
            self._graph.link(member, one)
            self._forward(one, False)
        return Subscribed(not covers, self._keys_of(covers), self._keys_of(withdrawn))

    def unsubscribe(self, key: Key) -> Unsubscribed:
        """Remove a subscription; those that only it covered get new covers or are forwarded."""
        member = self._number(key)
        was_forwarded = bool(self._is_forwarded[member])
        orphans = sorted(self._graph.remove(member), key=self._arrivals.__getitem__)
        self._remove(key, member)
        found = [orphan for orphan in orphans if not self._cover_anew(orphan)]
        return Unsubscribed(self._keys_of(found), was_forwarded)

    def _number(self, key: Key) -> int:
        try:
            return self._numbers[key]
        except KeyError:
            raise UnknownKeyError(f"no subscription has the key {key!r}") from None

    def _filters(self, member: int) -> tuple[int, ...]:
        """Return the numbers of the filters of a subscription."""
        return self._several.get(member) or (member,)

    def _part(self, number: int) -> Filter:
        return self._index.profile(number).part

    def _add(self, key: Key, profiles: list[Profile]) -> int:
        """Add the filters of a new subscription; return its number."""
        numbers = tuple(map(self._add_filter, profiles))
        member = self._numbers[key] = numbers[0]
        if len(numbers) > 1:
            self._several[member] = numbers
            self._owners.update(dict.fromkeys(numbers[1:], member))
        self._keys[member] = key
        self._arrivals[member] = self._next_arrival
        self._next_arrival += 1
        return member

    def _add_filter(self, profile: Profile) -> int:
        """Add a filter to the index; return its number."""
        if self._free:
            number = self._free.pop()
        else:
            number = len(self._keys)
            self._keys.append(None)
            self._arrivals.append(0)
            self._is_forwarded.append(0)
            self._graph.make_room(number)
        self._index.add(number, profile)
        return number

    def _remove(self, key: Key, member: int) -> None:
        """Remove a subscription without edges."""
        del self._numbers[key]
        self._keys[member] = None
        for number in self._filters(member):
            self._index.remove(number)
            self._owners.pop(number, None)
            self._free.append(number)
        self._several.pop(member, None)

    def _forward(self, member: int, is_forwarded: bool) -> None:
        """Record whether a subscription is forwarded."""
        for number in self._filters(member):
            self._is_forwarded[number] = is_forwarded

    def _cover_anew(self, orphan: int) -> bool:
        """Find new covers for a subscription that lost all its covers; forward it and return False if there are none.

        A subscription below the orphan is no valid cover: in a cycle none would be forwarded. One that waits for new
        covers itself is valid, since it gets one or is forwarded.
        """
        profiles = [self._index.profile(number) for number in self._filters(orphan)]
        valid = (cover for cover in self._covers_of(profiles, orphan) if not self._graph.is_above(orphan, cover))
        covers = list(islice(valid, self.k))
        for cover in covers:
            self._graph.link(cover, orphan)
        self._forward(orphan, not covers)
        return bool(covers)

    def _covers_of(self, profiles: list[Profile], member: int | None = None) -> Iterator[int]:
        """Yield the subscriptions that cover the filters of a new one, or of `member`.

        Of those that `member` covers too, only earlier ones count.
        """
        pivot = profiles[0]
        if len(profiles) > 1:  # the filter with the fewest constraints is the hardest to cover
            pivot = min(profiles, key=lambda profile: len(profile.items))
        seen = {member}
        for numbers in self._index.may_cover(pivot):
            for number in numbers:
                owner = self._owners.get(number, number)
                if owner in seen or not self._index.is_covering(number, pivot):
                    continue
                seen.add(owner)
                if len(profiles) > 1 and not self._covers(owner, profiles):
                    continue
                is_earlier = member is None or self._arrivals[owner] < self._arrivals[member]
                if is_earlier or not self._is_covered(owner, profiles):
                    yield owner

    def _forwarded_under(self, profiles: list[Profile]) -> list[int]:
        """Return the forwarded subscriptions that a new one, which nothing covers, covers."""
        found: dict[int, bool] = {}
        for profile in profiles:
            for numbers in self._index.may_be_covered(profile):
                for number in numbers:
                    if self._is_forwarded[number]:
                        owner = self._owners.get(number, number)
                        if owner not in found:
                            found[owner] = self._is_covered(owner, profiles)
        return [owner for owner, is_covered in found.items() if is_covered]

    def _covers(self, member: int, profiles: list[Profile]) -> bool:
        """Return True if each filter of `profiles` is covered by one of a subscription."""
        numbers = self._filters(member)
        if len(numbers) * len(profiles) > MAX_COMPARED_PAIRS:
            return {profile.part for profile in profiles} <= {self._part(number) for number in numbers}
        covering = self._index.is_covering
        return all(any(covering(number, profile) for number in numbers) for profile in profiles)

    def _is_covered(self, member: int, profiles: list[Profile]) -> bool:
        """Return True if each filter of a subscription is covered by one of `profiles`."""
        numbers = self._filters(member)
        if len(numbers) * len(profiles) > MAX_COMPARED_PAIRS:
            return {self._part(number) for number in numbers} <= {profile.part for profile in profiles}
        is_covered = self._index.is_covered
        return all(any(is_covered(number, profile) for profile in profiles) for number in numbers)

    def _keys_of(self, members: list[int]) -> tuple[Key, ...]:
        keys = [self._keys[member] for member in members]
        return tuple(key for key in keys if key is not None) if keys else ()
