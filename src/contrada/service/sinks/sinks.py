"""Sinks: the couriers of all sinks that settings name."""

from __future__ import annotations

import asyncio
import random as random_numbers
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from contrada.errors import UnknownKeyError
from contrada.service.cursors import Cursor, Position
from contrada.service.deliveries.courier import Courier, DeliveryCounts, DeliveryTools
from contrada.service.deliveries.dead_letters import PAGE, DeadLetterPage, DeadLetters
from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.deliveries.progress import PROGRESS, SINK, DeliveryKey, FailureView, Progress
from contrada.service.deliveries.retries import DEFAULT_POLICY, RetryPolicy
from contrada.service.service import Service, wall_clock
from contrada.service.sinks.records import SinkClient
from contrada.service.sinks.target import SinkTarget, open_sink
from contrada.service.table_settings import SinkTable

IDLE_SECONDS = 60.0  # between acknowledgements of messages that do not concern a sink
MOST_LETTERS = 10_000  # dead letters of one sink; the oldest make room
STOP_GRACE = 5.0


class SinkView(msgspec.Struct, frozen=True):
    """A sink as an administrator sees it; `lag` counts messages of the log after its place."""

    table: SinkTable
    acknowledged: str
    lag: int
    dropped: int
    dead_letters: int
    failing: FailureView | None

    @property
    def state(self) -> str:
        """What it does: `failing`, `sending`, or `idle` if every event so far was taken or given up."""
        return "failing" if self.failing is not None else "sending" if self.lag else "idle"


class TopicSinks:
    """Deliveries of events to topics, over a service that runs; those of one sink are in order and at least once.

    `clock` is in milliseconds; it, `sleep`, `random` and `open_client` are arguments for tests.
    """

    def __init__(
        self,
        service: Service,
        tables: Sequence[SinkTable],
        *,
        policy: RetryPolicy = DEFAULT_POLICY,
        most_letters: int = MOST_LETTERS,
        clock: Callable[[], int] = wall_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_numbers.random,
        open_client: Callable[[SinkTable], SinkClient] = open_sink,
    ) -> None:
        self._service, self._letters = service, DeadLetters(service)
        self._tools = DeliveryTools(service, policy, clock, sleep, random, most_letters, _never_gone)
        self._targets = {
            key: SinkTarget(table, key, open_client(table), self._tools.counts)
            for table in tables
            for key in [DeliveryKey(table.tenant, table.subscriber, SINK + table.name)]
        }
        self._couriers: dict[str, Courier[SinkTarget]] = {}  # by the names of sinks
        self._ticker: asyncio.Task[None] | None = None

    # --- life ---

    async def start(self) -> None:
        """Begin to deliver, each sink where it was."""
        for key, target in self._targets.items():
            if self._service.cursor(*key) == Cursor():
                await self._service.set_cursor(*key, self._start_of(target.table))
            self._couriers[target.table.name] = Courier(key, target, Progress(), self._tools)
        await self._begin()
        self._ticker = asyncio.create_task(self._tick_for_ever())

    async def _begin(self) -> None:
        known = dict(await self._service.records(PROGRESS))
        for courier in self._couriers.values():
            found = known.get(courier.key.record)
            progress = Progress() if found is None else msgspec.msgpack.decode(found, type=Progress)
            courier.configure(courier.target, progress)
            courier.start()

    async def set_active(self, is_active: bool) -> None:
        """Begin to deliver, or leave deliveries to another server that follows the same log."""
        await self._tools.set_active(is_active, self._begin, self._couriers.values(), STOP_GRACE)

    def _start_of(self, table: SinkTable) -> Position:
        return Position.after_message(self._service.newest if table.start == "now" else self._service.oldest - 1)

    async def stop(self, grace: float = STOP_GRACE) -> None:
        """Finish what is being sent, within `grace` seconds, and note how far each sink is."""
        if self._ticker is not None:
            self._ticker.cancel()
        self.note_idle()
        await asyncio.gather(*(courier.stop(grace) for courier in self._couriers.values()))
        await asyncio.gather(*(target.close() for target in self._targets.values()))

    def note_idle(self) -> None:
        """Acknowledge messages that do not concern sinks which have sent everything."""
        for courier in self._couriers.values():
            courier.note_idle()

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            self.note_idle()

    # --- what is known ---

    def views(self) -> list[SinkView]:
        """Return all sinks, by name."""
        return [self._view(self._couriers[name]) for name in sorted(self._couriers)]

    def get(self, name: str) -> SinkView:
        """Return a sink; raise UnknownKeyError if settings name none."""
        return self._view(self._require(name))

    async def dead_letters(self, name: str, after: str | None = None, limit: int = PAGE) -> DeadLetterPage:
        """Return events that were given up, oldest first, after an id."""
        return await self._letters.page(self._require(name).key, after, limit)

    async def replay(self, name: str, id: str | None = None, limit: int = PAGE) -> ReplayAnswer:
        """Send one dead letter again, or the oldest ones up to the first that is not taken."""
        courier = self._require(name)
        sent, outcome = await courier.replay(id, limit)
        return ReplayAnswer(sent, courier.progress.letters, None if outcome is None else outcome.text())

    @property
    def counts(self) -> DeliveryCounts:
        """Counts of all sinks since the start."""
        return self._tools.counts

    # --- parts ---

    def _require(self, name: str) -> Courier[SinkTarget]:
        found = self._couriers.get(name)
        if found is None:
            raise UnknownKeyError(f"no sink is called {name!r:.60}")
        return found

    def _view(self, courier: Courier[SinkTarget]) -> SinkView:
        cursor, letters = self._service.cursor(*courier.key), courier.progress.letters
        acknowledged = cursor.position.id
        return SinkView(courier.target.table, acknowledged, courier.lag, cursor.dropped, letters, courier.failing)


async def _never_gone(key: DeliveryKey, reason: str) -> None:
    """Pause nothing: no topic says that it is gone."""
