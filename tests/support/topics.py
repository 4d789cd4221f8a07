"""Topics in memory for the clients of sinks and sources, with faults that tests choose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from contrada.service.deliveries.outcomes import TAKEN, Outcome
from contrada.service.sinks.records import SinkRecord
from contrada.service.sources.records import SourceRecord


class TakingTopic:
    """A topic that a sink writes to: `judge` says what becomes of the n-th attempt (from 1 on)."""

    def __init__(self, judge: Callable[[Sequence[SinkRecord], int], Outcome] = lambda sent, count: Outcome(TAKEN)):
        self.judge = judge
        self.attempts: list[list[SinkRecord]] = []
        self.taken: list[SinkRecord] = []
        self.is_closed = False

    async def send(self, records: Sequence[SinkRecord]) -> Outcome:
        """Take as many records as the judge says."""
        await asyncio.sleep(0)
        self.attempts.append(list(records))
        outcome = self.judge(records, len(self.attempts))
        self.taken += records if outcome.is_taken else records[: outcome.taken]
        return outcome

    async def close(self) -> None:
        """Note that the sink has closed it."""
        self.is_closed = True

    @property
    def ids(self) -> list[str]:
        """The ids of the records that were taken."""
        return [record.id for record in self.taken]


class GivingTopic:
    """A topic that a source reads, with lanes of records; it hands over `page` records at a time.

    `again` says at which offset a lane starts when it is opened although the source asks for a later one. Faults are
    raised by the n-th read or open.
    """

    def __init__(self, page: int = 3) -> None:
        self.lanes: dict[str, list[tuple[bytes, Mapping[str, str]]]] = {}
        self.page = page
        self.again: dict[str, int] = {}
        self.faults: dict[int, Exception] = {}
        self.reads = self.opened = 0
        self.committed: list[SourceRecord] = []
        self.lag: int | None = None
        self._next: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self._given = asyncio.Event()

    def give(self, *bodies: bytes, lane: str = "a/0", headers: Mapping[str, str] | None = None) -> None:
        """Append records to a lane."""
        self.lanes.setdefault(lane, []).extend((body, headers or {}) for body in bodies)
        self._given.set()

    def begin_anew(self, lane: str, *bodies: bytes) -> None:
        """Replace a lane by another one that has its name."""
        self.lanes[lane] = [(body, {}) for body in bodies]
        self._next[lane], self._moved[lane] = 0, -1
        self._given.set()

    async def open(self, places: Mapping[str, int]) -> None:
        """Start after the places, or where `again` says."""
        self.opened += 1
        self._next = {lane: self.again.get(lane, places.get(lane, -1) + 1) for lane in self.lanes}

    def moved(self) -> dict[str, int]:
        """Return lanes that began anew, once."""
        moved, self._moved = self._moved, {}
        return moved

    async def read(self) -> list[SourceRecord]:
        """Return the next records of all lanes by turns."""
        while True:
            self.reads += 1
            if self.reads in self.faults:
                raise self.faults[self.reads]
            found = []
            for lane, records in self.lanes.items():
                start = self._next.setdefault(lane, 0)
                stop = min(start + self.page, len(records))
                found += [SourceRecord(lane, offset, *records[offset]) for offset in range(start, stop)]
                self._next[lane] = stop
            if found:
                return found
            self._given.clear()
            await self._given.wait()

    async def commit(self, records: Sequence[SourceRecord]) -> None:
        """Note what is durable."""
        self.committed += records

    async def close(self) -> None:
        """Keep what was recorded."""
