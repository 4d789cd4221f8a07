"""Courier: delivers the events of one reader, one parcel after another, until they are taken or given up."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError
from contrada.service.cursors import Position
from contrada.service.deliveries.bodies import Parcel
from contrada.service.deliveries.dead_letters import DeadLetters, letters_of
from contrada.service.deliveries.outcomes import GONE, Outcome
from contrada.service.deliveries.progress import PROGRESS, DeliveryKey, FailureView, Progress
from contrada.service.deliveries.retries import RetryPolicy, retry_after_seconds
from contrada.service.feeds import Event, EventReader, Reset
from contrada.service.problems import CONFLICT
from contrada.service.service import Service
from contrada.service.shared_log.duties import DELIVERIES

PAGE_EVENTS = 16  # read at once for a receiver without batches
PAGE_BYTES = 1 << 20  # of messages that are read at once or sent in one batch; one message alone may have more
RESTART_SECONDS = 1.0  # after an error of our own, such as a store that cannot be read
SMALLER_BATCH = (400, 413, 422)  # statuses that may be the fault of one event of a batch

log = logging.getLogger(__name__)


@dataclass
class DeliveryCounts:
    """Counts since the start, of all deliveries: events that were sent or given up, and attempts."""

    sent: int = 0
    failed: int = 0
    retried: int = 0
    dead: int = 0
    discarded: int = 0  # dead letters that made room for later ones
    in_flight: int = 0


class DeliveryTarget(Protocol):
    """What a courier delivers to."""

    @property
    def batch(self) -> int:
        """The most events in one parcel; 0 for parcels of one event that are no array."""

    @property
    def is_paused(self) -> bool:
        """True if events wait."""

    def policy(self, default: RetryPolicy) -> RetryPolicy:
        """Return when an event is given up."""

    async def send(self, parcel: Parcel) -> Outcome:
        """Send a parcel, once; never raise for what the other side does."""


T = TypeVar("T", bound=DeliveryTarget)


@dataclass
class DeliveryTools:
    """Everything that couriers share."""

    service: Service
    policy: RetryPolicy
    clock: Callable[[], int]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    most_letters: int
    pause: Callable[[DeliveryKey, str], Awaitable[None]]
    counts: DeliveryCounts = field(default_factory=DeliveryCounts)
    is_active: bool = True  # False while another server that follows the same log delivers

    async def set_active(
        self, is_active: bool, begin: Callable[[], Awaitable[None]], couriers: Iterable[Courier[Any]], grace: float
    ) -> None:
        """Begin to deliver, or leave deliveries to another server that follows the same log; no change does nothing."""
        if is_active == self.is_active:
            return
        self.is_active = is_active
        if is_active:
            await begin()
        else:
            await asyncio.gather(*(courier.stop(grace) for courier in couriers))

    def require_active(self) -> None:
        """Raise a Problem (409) if another server delivers."""
        following = self.service.following
        if not self.is_active and following is not None:
            holder = following.holder(DELIVERIES)
            name = "another server" if holder is None else f"the server {holder.name!r}"
            raise CONFLICT(f"deliveries are made by {name}; ask that one")


class Courier(Generic[T]):
    """Delivers to one target. The next attempt starts after the one before was taken or given up.

    Memory holds one page of events at most, and none while a target fails: they are read again from its place.
    """

    def __init__(self, key: DeliveryKey, target: T, progress: Progress, tools: DeliveryTools) -> None:
        self.key = key
        self._tools, self._letters = tools, DeadLetters(tools.service)
        self._page: deque[Event] = deque()
        self._reader: EventReader | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_busy = self._is_stopping = False
        self._replaying, self._writing = asyncio.Lock(), asyncio.Lock()
        self.configure(target, progress)

    # --- life ---

    def configure(self, target: T, progress: Progress) -> None:
        """Set what is delivered and how, of a courier that does not run."""
        self.target, self.progress = target, progress
        self._policy = target.policy(self._tools.policy)
        self._place = max(self._tools.service.cursor(*self.key).position, progress.settled)

    def start(self) -> None:
        """Begin to deliver, unless the target is paused or another server delivers."""
        if not self.target.is_paused and self._tools.is_active:
            self._is_stopping = self._is_busy = False
            self._page.clear()
            self._task = asyncio.create_task(self._run())

    async def stop(self, grace: float) -> None:
        """End after the request that runs, or after `grace` seconds; that request then counts as not taken."""
        self._is_stopping = True
        task = self._task
        if task is None or task is asyncio.current_task():
            return
        if self._is_busy:
            await asyncio.wait({task}, timeout=grace)
        await end_tasks(task)

    async def _run(self) -> None:
        while not self._is_stopping:
            try:
                await self._deliver_all()
            except Exception as error:
                is_known = isinstance(error, ContradaError)  # such as a store that takes nothing at the moment
                message = "%s of subscriber %r starts again: %s"
                log.warning(message, self.key.shown, self.key.subscriber, error, exc_info=not is_known)
                self._page.clear()
                self._is_busy = False
                await self._tools.sleep(RESTART_SECONDS)

    async def _deliver_all(self) -> None:
        tenant, subscriber, name = self.key
        self._reader = await self._tools.service.reader(tenant, subscriber, self._place, name)
        try:
            while not self._is_stopping:
                parcel = await self._next(self._reader)
                self._is_busy = True
                delay = await self._try(parcel)
                self._is_busy = False
                if delay is not None and not self._is_stopping:
                    self._page.clear()
                    self._reader.position = self._place
                    await self._tools.sleep(delay)
        finally:
            self._reader.close()
            self._reader = None

    # --- what comes next ---

    async def _next(self, reader: EventReader) -> Parcel:
        """Return the next delivery; wait for it if need be. One that failed is put together as it was."""
        limit = self.target.batch or 1
        if not self._page:
            found = await reader.read(max(limit, PAGE_EVENTS))
            if isinstance(found, Reset):
                return Parcel.of_reset(found.oldest)
            self._page.extend(_within(found, PAGE_BYTES))
            reader.position = self._page[-1].position
        until = self.progress.until if self._is_failing else None
        events = [self._page.popleft()]
        while self._page and len(events) < limit and (until is None or self._page[0].position <= until):
            events.append(self._page.popleft())
        return Parcel.of_events(events)

    @property
    def _is_failing(self) -> bool:
        return self.progress.attempts > 0 and self.progress.after == self._place

    # --- one attempt ---

    async def _try(self, parcel: Parcel) -> float | None:
        """Send a delivery; return the seconds until the next attempt, None if this one is settled."""
        counts = self._tools.counts
        counts.retried += self._is_failing
        outcome = await self.target.send(parcel)
        if outcome.is_taken:
            counts.sent += max(1, len(parcel.events))
            self._settle(parcel.place)
            return None
        counts.failed += 1
        if outcome.taken:
            counts.sent += outcome.taken
            self._settle(parcel.events[outcome.taken - 1].position)
            parcel = Parcel.of_events(parcel.events[outcome.taken :])
        attempts = self.progress.attempts + 1 if self._is_failing else 1
        now = self._tools.clock()
        since = self.progress.since if self._is_failing else now
        if outcome.is_final:
            first = Parcel.of_events(parcel.events[:1]) if parcel.events else parcel
            await self._give_up(first, outcome.text(), attempts, since)
            return 0.0  # the rest is read again
        if outcome.status != GONE and self._policy.is_over(attempts, (now - since) / 1_000):
            await self._give_up(parcel, outcome.text(), attempts, since)
            return None
        await self._note_failure(parcel, outcome, attempts, since)
        if outcome.status == GONE:
            self._is_stopping = True
            await self._tools.pause(self.key, outcome.text())
        retry_after = retry_after_seconds(outcome.retry_after, now / 1_000)
        return self._policy.delay(attempts, self._tools.random(), retry_after)

    def _settle(self, place: Position) -> None:
        tenant, subscriber, name = self.key
        self._place = place
        self._tools.service.note_acknowledged(tenant, subscriber, place, name)

    async def _note_failure(self, parcel: Parcel, outcome: Outcome, attempts: int, since: int) -> None:
        """Keep how often and since when a delivery fails, so that a restart does not begin to count again."""
        until, events = parcel.place, parcel.events
        if len(events) > 1 and outcome.status in SMALLER_BATCH:
            until = events[len(events) // 2 - 1].position  # half of it next time, to find the event at fault
        failure = {"after": self._place, "until": until, "attempts": attempts, "since": since}
        await self._note([], 0, **failure, reason=outcome.text())

    async def _give_up(self, parcel: Parcel, reason: str, attempts: int, since: int) -> None:
        """Make dead letters of a delivery and go on after it, in one transaction."""
        letters = letters_of(parcel, reason, attempts, since, self._tools.clock())
        too_many = max(0, self.progress.letters + len(letters) - self._tools.most_letters)
        oldest = (await self._letters.page(self.key, None, too_many)).letters if too_many else []
        records = self._letters.removals(self.key, oldest) + self._letters.records(self.key, letters)
        await self._note(records, len(letters) - len(oldest), attempts=0, settled=parcel.place)
        self._tools.counts.dead += len(letters)
        self._tools.counts.discarded += len(oldest)
        self._settle(parcel.place)

    async def _note(self, records: list[tuple[str, str, bytes | None]], more_letters: int, **changes: Any) -> None:
        """Make records and a change of the progress durable together; a write that fails changes nothing."""
        async with self._writing:
            letters = max(0, self.progress.letters + more_letters)
            progress = replace(self.progress, letters=letters, **changes)
            record = (PROGRESS, self.key.record, msgspec.msgpack.encode(progress))
            await self._tools.service.write_records([*records, record])
            self.progress = progress

    # --- dead letters ---

    async def replay(self, id: str | None, limit: int) -> tuple[int, Outcome | None]:
        """Send one dead letter, or the oldest ones up to the first that fails; return how many were taken.

        A letter is removed once it is taken. The outcome is that of the letter that failed.
        """
        self._tools.require_active()
        sent = 0
        async with self._replaying:
            if id is not None:
                letters = [await self._letters.get(self.key, id)]
            else:
                letters = (await self._letters.page(self.key, None, limit)).letters
            for letter in letters:
                outcome = await self.target.send(letter.parcel())
                if not outcome.is_taken:
                    self._tools.counts.failed += 1
                    return sent, outcome
                self._tools.counts.sent += 1
                sent += 1
                await self._note(self._letters.removals(self.key, [letter]), -1)
        return sent, None

    # --- how far it is ---

    @property
    def is_idle(self) -> bool:
        """True if every event so far was taken or given up."""
        waits = not self._is_busy and not self._page and not self._is_failing
        return waits and self._reader is not None and self._reader.is_caught_up

    @property
    def lag(self) -> int:
        """The number of messages of the log after the place; 0 only if none of their events is left."""
        if self.is_idle:
            return 0
        least = 0 if self.target.is_paused else 1  # other events of the message at its place may be left
        return max(least, self._tools.service.newest - self._place.sequence)

    @property
    def failing(self) -> FailureView | None:
        """What fails at the moment."""
        progress = self.progress
        return FailureView(progress.attempts, progress.since, progress.reason) if self._is_failing else None

    def note_idle(self) -> None:
        """Acknowledge the messages that do not concern the subscriber, so that a restart does not read them again."""
        if self.is_idle:
            self._settle(max(self._place, Position.after_message(self._tools.service.newest)))


def _within(events: list[Event], most: int) -> list[Event]:
    """Return the first events that have at most so many bytes, at least one."""
    total = 0
    for count, event in enumerate(events):
        total += len(event.body)
        if total > most and count:
            return events[:count]
    return events
