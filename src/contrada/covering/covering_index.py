"""CoveringIndex: which live subscriptions need not be forwarded, because another one covers them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from contrada.arguments import checks_methods
from contrada.covering.filter_index import FilterIndex, filter_covers
from contrada.covering.members import Subscribed, Unsubscribed
from contrada.covering.slots import Profile
from contrada.cql2.queries import Asked, bound_predicate
from contrada.errors import ArgumentError, KeyInUseError, UnknownKeyError
from contrada.matching.names import Name, check_name
from contrada.model import Filter, Predicate
from contrada.model.implication import MAX_COMPARED_PAIRS
from contrada.simplification.simplifying import simplify

Key = Name


class _Member:
    """A subscription: its filters, its edges in the graph, and whether it was forwarded to neighbours."""

    __slots__ = ("arrival", "children", "forwarded", "key", "numbers", "parents", "parts")

    def __init__(self, key: Key, parts: tuple[Filter, ...], first: int) -> None:
        self.key, self.parts = key, parts
        self.arrival = first  # numbers of filters grow, so the first one tells who came earlier
        self.numbers = range(first, first + len(parts))
        self.parents: dict[_Member, None] = {}
        self.children: dict[_Member, None] = {}
        self.forwarded = False

    def covers(self, parts: tuple[Filter, ...]) -> bool:
        """Return True if each of `parts` is covered by a filter of this one; very many are compared by equality."""
        if len(self.parts) * len(parts) > MAX_COMPARED_PAIRS:
            return set(self.parts).issuperset(parts)
        return all(any(filter_covers(own, other) for own in self.parts) for other in parts)


@checks_methods("__init__", "subscribe", "unsubscribe")
class CoveringIndex:
    """The relation graph G_k of [COVER] over predicates of mixed filters: numbers, times, text, presence, regions.

    A predicate covers another if each filter of the other is covered by one of its own filters: always sound, and as
    complete as `contrada.model.implication`. Of subscriptions that cover each other only the earlier covers the later,
    so one of them is always forwarded. With `withdraw` a new subscription withdraws the forwarded ones that it covers.

    >>> index = CoveringIndex()
    >>> index.subscribe("wide", "severity >= 3")
    Subscribed(forward=True, covered_by=(), withdraw=())
    >>> index.subscribe("narrow", "severity >= 5 AND kind = 'flood'")
    Subscribed(forward=False, covered_by=('wide',), withdraw=())
    >>> index.unsubscribe("wide")
    Unsubscribed(forward=('narrow',), withdraw=True)
    """

    def __init__(self, k: int = 1, withdraw: bool = False) -> None:
        """Make an empty index that keeps up to `k` covers for each subscription."""
        if k < 1:
            raise ArgumentError(f"k: need a number of at least 1, got {k}")
        self.k = k
        self._withdraws = withdraw
        self._members: dict[Key, _Member] = {}
        self._owners: dict[int, _Member] = {}  # by filter number
        self._index = FilterIndex()
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, key: object) -> bool:
        return key in self._members

    @property
    def forwarded(self) -> set[Key]:
        """The keys of subscriptions that were forwarded to neighbours."""
        return {key for key, member in self._members.items() if member.forwarded}

    def is_forwarded(self, key: Key) -> bool:
        """Return True if a subscription was forwarded to neighbours."""
        return self._members[key].forwarded

    def predicate(self, key: Key) -> Predicate:
        """Return the predicate of a subscription, as it is filed."""
        return Predicate(self._members[key].parts)

    @property
    def work(self) -> tuple[int, int]:
        """Nodes visited and points compared by all searches so far."""
        return self._index.work

    def subscribe(self, key: Key, what: Asked) -> Subscribed:
        """Add a subscription; raise KeyInUseError if the key is in use."""
        check_name("key", key)
        if key in self._members:
            raise KeyInUseError(f"a subscription with the key {key!r} already exists")
        member = _Member(key, _filed(what), self._next_number)
        self._next_number = member.numbers.stop
        profiles = [Profile(part) for part in member.parts]
        covers = list(islice(self._covers_of(member, set(), profiles), self.k))
        self._members[key] = member
        for number, profile in zip(member.numbers, profiles, strict=True):
            self._index.add(number, profile)
            self._owners[number] = member
        self._link(member, covers)
        withdrawn = [] if covers or not self._withdraws else self._withdraw_under(member)
        return Subscribed(not covers, _keys(covers), _keys(withdrawn))

    def unsubscribe(self, key: Key) -> Unsubscribed:
        """Remove a subscription; those that only it covered get new covers or are forwarded."""
        member = self._members.get(key)
        if member is None:
            raise UnknownKeyError(f"no subscription has the key {key!r}")
        del self._members[key]
        for number in member.numbers:
            self._index.remove(number)
            del self._owners[number]
        for parent in member.parents:
            del parent.children[member]
        orphans: dict[_Member, None] = {}
        for child in member.children:
            del child.parents[member]
            if not child.parents:
                orphans[child] = None
        while orphans:
            self._settle(next(iter(orphans)), orphans, set())
        found = [orphan for orphan in sorted(member.children, key=lambda one: one.arrival) if orphan.forwarded]
        return Unsubscribed(_keys(found), member.forwarded)

    @staticmethod
    def _link(member: _Member, covers: list[_Member]) -> None:
        """Add edges from `covers` to `member`; without covers it is forwarded."""
        for cover in covers:
            member.parents[cover] = None
            cover.children[member] = None
        member.forwarded = not covers

    def _settle(self, orphan: _Member, orphans: dict[_Member, None], waiting: set[_Member]) -> None:
        """Find new covers for a subscription that lost all its covers, or forward it.

        A subscription below one that waits for this call is no valid cover: otherwise a cycle could remain in which
        subscriptions cover only each other, and none is forwarded.
        """
        waiting.add(orphan)
        covers: list[_Member] = []
        for cover in self._covers_of(orphan, waiting, [Profile(part) for part in orphan.parts]):
            above = _ancestors(cover)
            if above & waiting:
                continue
            for other in sorted(above & orphans.keys(), key=lambda one: one.arrival):
                if other in orphans:
                    self._settle(other, orphans, waiting)
            covers.append(cover)
            if len(covers) == self.k:
                break
        waiting.discard(orphan)
        del orphans[orphan]
        self._link(orphan, covers)

    def _covers_of(self, member: _Member, without: set[_Member], profiles: list[Profile]) -> Iterator[_Member]:
        """Yield the subscriptions that cover `member`; of those that it covers too, only earlier ones."""
        pivot = profiles[0]
        if len(profiles) > 1:  # the filter with the fewest constraints is the hardest to cover
            pivot = min(profiles, key=lambda profile: len(profile.part))
        seen = {member, *without}
        for number in self._index.covering(pivot):
            owner = self._owners[number]
            if owner in seen:
                continue
            seen.add(owner)
            if len(member.parts) > 1 and not owner.covers(member.parts):
                continue
            if owner.arrival < member.arrival or not member.covers(owner.parts):
                yield owner

    def _withdraw_under(self, member: _Member) -> list[_Member]:
        """Withdraw the forwarded subscriptions that `member`, a new one, covers; they become its children."""
        found: dict[_Member, None] = {}
        seen = {member}
        for part in member.parts:
            for number in self._index.covered(Profile(part)):
                owner = self._owners[number]
                if owner not in seen:
                    seen.add(owner)
                    if owner.forwarded and member.covers(owner.parts):
                        found[owner] = None
        for owner in found:
            owner.parents[member] = None
            member.children[owner] = None
            owner.forwarded = False
        return list(found)


def _ancestors(member: _Member) -> set[_Member]:
    """Return a subscription and all above it in the graph."""
    found, todo = {member}, [member]
    while todo:
        for parent in todo.pop().parents:
            if parent not in found:
                found.add(parent)
                todo.append(parent)
    return found


def _filed(what: Asked) -> tuple[Filter, ...]:
    """Return the filters of a query, simplified unless it is one filter with one constraint per attribute."""
    if isinstance(what, Filter) and _is_plain(what):
        return (what,)
    predicate = bound_predicate(what)
    if len(predicate) == 1 and _is_plain(predicate.filters[0]):
        return predicate.filters
    return simplify(predicate).filters


def _is_plain(part: Filter) -> bool:
    """Return True if a filter has one constraint per attribute."""
    constraints = part.constraints
    return len({constraint.attribute for constraint in constraints}) == len(constraints)


def _keys(members: list[_Member]) -> tuple[Key, ...]:
    return tuple(member.key for member in members)
