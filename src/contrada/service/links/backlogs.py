"""Backlogs: how much waits for each neighbour until it has acknowledged it, as the store holds it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from contrada.broker.effects import RecordKey

KINDS = ("outbox", "waiting")  # of the records that hold commands for a neighbour


class Backlog(NamedTuple):
    """What waits for a neighbour: commands, and their bytes."""

    commands: int
    bytes: int


class Backlogs:
    """Sizes of the commands that wait for the neighbours of all tenants.

    >>> backlogs = Backlogs()
    >>> backlogs.note("t", ("outbox", "north", 1), 300)
    >>> backlogs.note("t", ("outbox", "north", 2), 500)
    >>> backlogs.note("t", ("outbox", "north", 1), None)
    >>> backlogs.of("t", "north"), backlogs.above("t", 400)
    (Backlog(commands=1, bytes=500), ['north'])
    """

    def __init__(self) -> None:
        self._sizes: defaultdict[tuple[str, Any], dict[RecordKey, int]] = defaultdict(dict)
        self._totals: defaultdict[tuple[str, Any], int] = defaultdict(int)

    def note(self, tenant: str, key: RecordKey, size: int | None) -> None:
        """Note a record of a broker that is put, or removed if `size` is None; only those of KINDS count."""
        if key[0] not in KINDS:
            return
        place = tenant, key[1]
        self._totals[place] -= self._sizes[place].pop(key, 0)
        if size is not None:
            self._sizes[place][key] = size
            self._totals[place] += size

    def of(self, tenant: str, neighbour: str) -> Backlog:
        """Return what waits for a neighbour."""
        place = tenant, neighbour
        return Backlog(len(self._sizes.get(place, ())), self._totals.get(place, 0))

    def above(self, tenant: str, most: int) -> list[str]:
        """Return the neighbours of a tenant for which more than `most` bytes wait."""
        return [name for (owner, name), total in self._totals.items() if total > most and owner == tenant]

    def total(self) -> Backlog:
        """Return what waits for all neighbours; any thread may ask."""
        return Backlog(sum(map(len, list(self._sizes.values()))), sum(list(self._totals.values())))
