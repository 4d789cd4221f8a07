"""Messages that a peer keeps for a while, to send them again to neighbours that lack them.

A note may be lost, and a peer may crash with messages that it has not passed on yet. So every peer keeps each message
for `retention` seconds. Parent and child compare what they keep once per heartbeat:

- The child lists the messages that came since the last answered list; to a new parent it lists everything it keeps.
- The parent sends again what the child does not list although its box meets it, and asks for what it lacks itself.

A new parent, a new child and a child whose box has grown need nothing more: the next heartbeat finds the difference.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator

from contrada.limits import limit
from contrada.overlay.boxes import meets
from contrada.overlay.protocol import ChildEntry, Key, PeerId, Publication
from contrada.overlay.rules import Rules

RESENT_PER_HEARTBEAT = 256  # messages to one neighbour; further ones follow at the next heartbeat
OVERHEAD_BYTES = 512  # of a kept message beside its body
# Keys outlive messages: a copy that was on its way for long must not be delivered again.
KEYS_PER_MESSAGE = 16
RETENTIONS_OF_KEYS = 2.0


class KeptPublication:
    """A message, when it was published by the clock of this peer, and the neighbours known to have it."""

    __slots__ = ("arrived", "born", "holders", "number", "publication")

    def __init__(self, number: int, publication: Publication, born: float, arrived: float) -> None:
        self.number, self.publication, self.born, self.arrived = number, publication, born, arrived
        self.holders: set[PeerId] = set()


class ChildLink:
    """Progress with one child: it has all messages up to number `clear`, or does not want them with this `scope`."""

    __slots__ = ("clear", "scope")

    def __init__(self) -> None:
        self.scope: tuple[ChildEntry, bool] | None = None  # the entry, and whether older messages matter
        self.clear = -1


class KeptMessages:
    """The messages that one peer keeps, in the order in which they came.

    >>> kept = KeptMessages(Rules(kept=2))
    >>> for key in "abc":
    ...     kept.keep(Publication(key, (1.0, 1.0)), 0.0, 0.0)
    >>> list(kept), kept.dropped
    (['b', 'c'], 1)
    >>> kept.list_new()
    (('b', 'c'), 2)
    >>> [one.publication.key for one in kept.owed_to("child", ChildEntry((0.0, 5.0), (0.0, 5.0)), ["b"])]
    ['c']
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.dropped = 0  # messages dropped before `retention` seconds had passed
        self.bytes = 0
        self._kept: dict[Key, KeptPublication] = {}
        self._count = 0  # messages kept so far
        self._keys: deque[tuple[float, Key]] = deque()  # remembered to drop duplicates, and when each came
        self._told = -1  # the parent knows of all messages up to this number
        self._links: dict[PeerId, ChildLink] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._kept)

    def keep(self, publication: Publication, born: float, now: float) -> None:
        """Keep a message that came `now`; beyond `kept` messages or `kept_bytes` (a limit) the oldest is dropped."""
        self._kept[publication.key] = KeptPublication(self._count, publication, born, now)
        self._count += 1
        self.bytes += size_of(publication)
        self._keys.append((now, publication.key))
        while len(self._kept) > self.rules.kept or self.bytes > limit("kept_bytes"):
            self._drop(next(iter(self._kept)))
            self.dropped += 1

    def _drop(self, key: Key) -> None:
        self.bytes -= size_of(self._kept.pop(key).publication)

    def expire(self, now: float) -> list[Key]:
        """Drop messages older than `retention`; return the keys that need not be remembered any longer."""
        for key in [key for key, one in self._kept.items() if now - one.born > self.rules.retention]:
            self._drop(key)
        forgotten = []
        horizon = now - RETENTIONS_OF_KEYS * self.rules.retention
        while self._keys and (self._keys[0][0] < horizon or len(self._keys) > KEYS_PER_MESSAGE * self.rules.kept):
            forgotten.append(self._keys.popleft()[1])
        return forgotten

    # --- a child ---

    def add_holder(self, key: Key, neighbour: PeerId) -> None:
        """Record that a neighbour has a message."""
        one = self._kept.get(key)
        if one is not None:
            one.holders.add(neighbour)

    def owed_to(
        self, child: PeerId, entry: ChildEntry, listed: Iterable[Key], since: float = -math.inf
    ) -> list[KeptPublication]:
        """Return the messages that a child with this entry lacks and may want, after it listed some that it has.

        Messages published before `since` are left out: the child, a leaf, did not exist.
        """
        link = self._links.get(child)
        if link is None:  # what is known of an earlier peer of this name, or from an earlier time, may be wrong
            link = self._links[child] = ChildLink()
            for one in self._kept.values():
                one.holders.discard(child)
        for key in listed:
            self.add_holder(key, child)
        scope = entry, math.isinf(since)
        if link.scope != scope:
            link.scope, link.clear = scope, -1
        owed: list[KeptPublication] = []
        for one in reversed(self._kept.values()):
            if one.number <= link.clear:
                break
            if child not in one.holders and one.born >= since and is_met(entry, one.publication):
                owed.append(one)
        link.clear = (owed[-1].number if owed else self._count) - 1
        return owed[::-1]

    def forget_links(self, children: set[PeerId]) -> None:
        """Forget the progress with all others than these children."""
        if self._links.keys() - children:
            self._links = {child: link for child, link in self._links.items() if child in children}

    # --- the parent ---

    def start_list(self) -> None:
        """List everything to the parent: it is a new one."""
        self._told = -1

    def list_again(self, key: Key) -> None:
        """List a message again: the parent has just sent it a second time."""
        one = self._kept.get(key)
        if one is not None:
            self._told = min(self._told, one.number - 1)

    def untold(self) -> list[KeptPublication]:
        """Return the messages of which the parent may not know, the oldest first."""
        found = []
        for one in reversed(self._kept.values()):
            if one.number <= self._told:
                break
            found.append(one)
        return found[::-1]

    def list_new(self) -> tuple[tuple[Key, ...], int]:
        """Return the keys of `untold` messages, and the number of the last message."""
        return tuple(one.publication.key for one in self.untold()), self._count - 1

    def take_answer(self, upto: int, lacking: Iterable[Key]) -> list[KeptPublication]:
        """Handle the parent's answer to a list that ended with number `upto`; return the messages that it lacks."""
        missing = sorted((self._kept[key] for key in lacking if key in self._kept), key=lambda one: one.number)
        known = missing[0].number - 1 if missing else min(upto, self._count - 1)
        self._told = max(self._told, known)
        return missing


def size_of(publication: Publication) -> int:
    """Return about how many bytes a kept message takes."""
    return OVERHEAD_BYTES + (len(publication.body) if isinstance(publication.body, str) else 0)


def is_met(entry: ChildEntry, publication: Publication) -> bool:
    """Return True if a message goes to a child with this entry.

    >>> is_met(ChildEntry((0.0, 9.0), (0.0, 1.0), ((0.0, 1.0), (8.0, 9.0))), Publication(1, (5.0, 5.0)))
    False
    """
    return any(meets(box, publication.where) for box in entry.parts or (entry.box,))
