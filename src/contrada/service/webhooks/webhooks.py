"""Webhooks: the endpoints of all subscribers, and the couriers that deliver to them."""

from __future__ import annotations

import asyncio
import random as random_numbers
import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from contrada.cancelling import end_tasks
from contrada.errors import LimitError, UnknownKeyError
from contrada.service.cursors import Position
from contrada.service.deliveries.bodies import Parcel
from contrada.service.deliveries.courier import Courier, DeliveryCounts, DeliveryTools
from contrada.service.deliveries.dead_letters import PAGE, DeadLetterPage, DeadLetters
from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.deliveries.progress import PROGRESS, DeliveryKey, Progress
from contrada.service.deliveries.retries import DEFAULT_POLICY, RetryPolicy
from contrada.service.service import Service, wall_clock
from contrada.service.webhooks.endpoints import ENDPOINT, EndpointRequest, EndpointView, WebhookEndpoint, endpoint_of
from contrada.service.webhooks.sender import Sender
from contrada.service.webhooks.target import Lanes, WebhookTarget

IDLE_SECONDS = 60.0  # between acknowledgements of messages that do not concern an endpoint
CHANGE_GRACE = 1.0  # seconds that a running request has to finish when its endpoint is changed
STOP_GRACE = 30.0


class WebhookLimits(NamedTuple):
    """Sizes: requests at a time to endpoints that answer quickly and slowly, and what is kept."""

    quick: int = 512
    slow: int = 128
    endpoints: int = 10_000  # of one tenant
    dead_letters: int = 10_000  # of one endpoint; the oldest make room


DEFAULT_LIMITS = WebhookLimits()


class AttemptAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a test: the status of the answer, 0 if there was none."""

    id: str
    taken: bool
    status: int
    reason: str | None = None


class Webhooks:
    """Signed deliveries of events to HTTP endpoints, over a service that runs.

    Deliveries to one endpoint are in order and at least once; endpoints do not wait for one another. `clock` is in
    milliseconds; it, `sleep` and `random` are arguments so that tests can do hours in no time.
    """

    def __init__(
        self,
        service: Service,
        sender: Sender,
        *,
        policy: RetryPolicy = DEFAULT_POLICY,
        limits: WebhookLimits = DEFAULT_LIMITS,
        clock: Callable[[], int] = wall_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_numbers.random,
    ) -> None:
        self._service, self._limits, self._sender = service, limits, sender
        self._lanes = Lanes(limits.quick, limits.slow)
        self._tools = DeliveryTools(service, policy, clock, sleep, random, limits.dead_letters, self._pause_gone)
        self._letters = DeadLetters(service)
        self._couriers: dict[DeliveryKey, Courier[WebhookTarget]] = {}
        self._locks: WeakValueDictionary[DeliveryKey, asyncio.Lock] = WeakValueDictionary()
        self._followed: set[asyncio.Future[None]] = set()
        self._ticker: asyncio.Task[None] | None = None

    # --- life ---

    async def start(self) -> None:
        """Load the endpoints and begin to deliver."""
        self._service.watch_records(ENDPOINT, self._note_endpoint)
        self._service.watch_records(PROGRESS, self._note_progress)
        await self._load()
        self._ticker = asyncio.create_task(self._tick_for_ever())

    async def _load(self) -> None:
        progress = {
            name: msgspec.msgpack.decode(value, type=Progress) for name, value in await self._service.records(PROGRESS)
        }
        for name, value in await self._service.records(ENDPOINT):
            key = DeliveryKey(*name.split("\0"))
            self._begin(key, msgspec.msgpack.decode(value, type=WebhookEndpoint), progress.get(name, Progress()))

    async def set_active(self, is_active: bool) -> None:
        """Begin to deliver, or leave deliveries to another server that follows the same log."""
        await self._tools.set_active(is_active, self._load, self._couriers.values(), CHANGE_GRACE)

    def _note_endpoint(self, name: str, value: bytes | None) -> None:
        """Follow a change of an endpoint, of this server or another one."""
        task = asyncio.ensure_future(self._follow(DeliveryKey(*name.split("\0"))))
        self._followed.add(task)
        task.add_done_callback(self._followed.discard)

    async def _follow(self, key: DeliveryKey) -> None:
        async with self._lock(key):
            courier = self._couriers.get(key)
            found, progress = [await self._record(kind, key) for kind in (ENDPOINT, PROGRESS)]
            endpoint = None if found is None else msgspec.msgpack.decode(found, type=WebhookEndpoint)
            if courier is not None and courier.target.endpoint == endpoint:
                return
            if courier is not None:
                await courier.stop(CHANGE_GRACE)
            if endpoint is None:
                self._couriers.pop(key, None)
            else:
                known = Progress() if progress is None else msgspec.msgpack.decode(progress, type=Progress)
                self._begin(key, endpoint, known)

    async def _record(self, kind: str, key: DeliveryKey) -> bytes | None:
        return dict(await self._service.record_page(kind, key.record, "", 1)).get(key.record)

    def _note_progress(self, name: str, value: bytes | None) -> None:
        courier = self._couriers.get(DeliveryKey(*name.split("\0")))
        if courier is not None and value is not None and not self._tools.is_active:
            courier.progress = msgspec.msgpack.decode(value, type=Progress)

    async def stop(self, grace: float = STOP_GRACE) -> None:
        """Finish the requests that run, within `grace` seconds, and note how far each endpoint is."""
        if self._ticker is not None:
            self._ticker.cancel()
        self.note_idle()
        await end_tasks(*self._followed)
        await asyncio.gather(*(courier.stop(grace) for courier in self._couriers.values()))
        await self._sender.close()

    def note_idle(self) -> None:
        """Acknowledge messages that do not concern endpoints which have taken everything."""
        for courier in self._couriers.values():
            courier.note_idle()

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            self.note_idle()

    def _begin(self, key: DeliveryKey, endpoint: WebhookEndpoint, progress: Progress) -> Courier[WebhookTarget]:
        tools = self._tools
        target = WebhookTarget(endpoint, key.subscriber, self._sender, self._lanes, tools.clock, tools.counts)
        courier = self._couriers.get(key)
        if courier is None:
            courier = self._couriers[key] = Courier(key, target, progress, tools)
        else:
            courier.configure(target, progress)
        courier.start()
        return courier

    # --- endpoints ---

    async def put(self, tenant: str, subscriber: str, name: str, asked: EndpointRequest) -> EndpointView:
        """Add or replace an endpoint; the answer shows the secret if it was made here."""
        key = DeliveryKey(tenant, subscriber, name)
        key.check()
        self._sender.check_url(asked.url)
        async with self._lock(key):
            old = self._couriers.get(key)
            known = None if old is None else old.target.endpoint
            if old is None and sum(one.tenant == tenant for one in self._couriers) >= self._limits.endpoints:
                raise LimitError(f"the tenant has {self._limits.endpoints:,} webhooks, as many as it may")
            endpoint = endpoint_of(asked, known)
            place = await self._start_of(asked, old is None)
            if old is not None:
                await old.stop(CHANGE_GRACE)
            courier = await self._replace(key, endpoint, place)
            return self._view(courier, endpoint.secret if known is None and asked.secret is None else None)

    async def remove(self, tenant: str, subscriber: str, name: str) -> None:
        """Remove an endpoint with its place and its dead letters."""
        key = DeliveryKey(tenant, subscriber, name)
        async with self._lock(key):
            await self._require(key).stop(CHANGE_GRACE)
            await self._service.write_records([(ENDPOINT, key.record, None), (PROGRESS, key.record, None)])
            del self._couriers[key]
            await self._service.set_cursor(tenant, subscriber, name, None)
            while letters := (await self._letters.page(key)).letters:
                await self._service.write_records(self._letters.removals(key, letters))

    def get(self, tenant: str, subscriber: str, name: str) -> EndpointView:
        """Return an endpoint; raise UnknownKeyError if there is none."""
        return self._view(self._require(DeliveryKey(tenant, subscriber, name)))

    def list(
        self, tenant: str, subscriber: str | None = None, after: str = "", limit: int | None = None
    ) -> list[EndpointView]:
        """Return the endpoints of a tenant or a subscriber, by subscriber and name, with names after one."""
        asked = (tenant, subscriber)
        found = [key for key in self._couriers if asked in ((key.tenant, None), key[:2]) and key.name > after]
        return [self._view(self._couriers[key]) for key in sorted(found)[:limit]]

    async def pause(self, tenant: str, subscriber: str, name: str) -> EndpointView:
        """Stop deliveries to an endpoint; its events wait."""
        return await self._set_paused(DeliveryKey(tenant, subscriber, name), True, None)

    async def resume(self, tenant: str, subscriber: str, name: str) -> EndpointView:
        """Go on with deliveries to an endpoint, at once."""
        return await self._set_paused(DeliveryKey(tenant, subscriber, name), False, None)

    async def test(self, tenant: str, subscriber: str, name: str) -> AttemptAnswer:
        """Send a signed test to an endpoint, once, whether it is paused or not."""
        courier = self._require(DeliveryKey(tenant, subscriber, name))
        id = f"test.{secrets.token_hex(8)}"
        outcome = await courier.target.send(Parcel(id, Position(0, 0)))
        reason = None if outcome.is_taken else outcome.text()
        return AttemptAnswer(id, outcome.is_taken, outcome.status, reason)

    # --- dead letters ---

    async def dead_letters(
        self, tenant: str, subscriber: str, name: str, after: str | None = None, limit: int = PAGE
    ) -> DeadLetterPage:
        """Return events that were given up, oldest first, after an id."""
        return await self._letters.page(self._require(DeliveryKey(tenant, subscriber, name)).key, after, limit)

    async def replay(
        self, tenant: str, subscriber: str, name: str, id: str | None = None, limit: int = PAGE
    ) -> ReplayAnswer:
        """Send one dead letter again, or the oldest ones up to the first that is not taken; remove what is taken."""
        courier = self._require(DeliveryKey(tenant, subscriber, name))
        sent, outcome = await courier.replay(id, limit)
        return ReplayAnswer(sent, courier.progress.letters, None if outcome is None else outcome.text())

    # --- metrics ---

    @property
    def counts(self) -> DeliveryCounts:
        """Counts of all endpoints since the start."""
        return self._tools.counts

    def lags(self) -> dict[DeliveryKey, int]:
        """Return, by endpoint, the number of messages of the log after its place; 0 if none concerns it."""
        return {key: courier.lag for key, courier in self._couriers.items()}

    # --- parts ---

    def _lock(self, key: DeliveryKey) -> asyncio.Lock:
        """Return what is held while an endpoint changes."""
        return self._locks.setdefault(key, asyncio.Lock())

    def _require(self, key: DeliveryKey) -> Courier[WebhookTarget]:
        found = self._couriers.get(key)
        if found is None:
            raise UnknownKeyError(f"subscriber {key.subscriber!r:.60} has no webhook {key.name!r:.60}")
        return found

    async def _start_of(self, asked: EndpointRequest, is_new: bool) -> Position | None:
        """Return the place that a request asks for; None to stay."""
        if asked.since is not None:
            return await self._service.position_at(int(asked.since.timestamp() * 1_000))
        start = "now" if asked.start is None and is_new else asked.start
        if start == "now":
            return Position.after_message(self._service.newest)
        if start == "oldest":
            return Position.after_message(self._service.oldest - 1)
        return Position.after_message(start - 1) if isinstance(start, int) else None

    async def _replace(
        self, key: DeliveryKey, endpoint: WebhookEndpoint, place: Position | None
    ) -> Courier[WebhookTarget]:
        """Make an endpoint durable, with its place first: a crash in between leaves a place that nobody uses."""
        old = self._couriers.get(key)
        progress = Progress() if old is None else old.progress
        if not endpoint.paused:  # somebody looked at it: its event has all attempts again
            progress = replace(progress, attempts=0)
        records: list[tuple[str, str, bytes | None]] = [(ENDPOINT, key.record, msgspec.msgpack.encode(endpoint))]
        if place is not None:
            await self._service.set_cursor(*key, place)
            progress = replace(progress, settled=Position(0, 0))
            records.append((PROGRESS, key.record, msgspec.msgpack.encode(progress)))
        await self._service.write_records(records)
        return self._begin(key, endpoint, progress)

    async def _set_paused(self, key: DeliveryKey, is_paused: bool, reason: str | None) -> EndpointView:
        async with self._lock(key):
            courier = self._require(key)
            await courier.stop(CHANGE_GRACE)
            return self._view(
                await self._replace(key, replace(courier.target.endpoint, paused=is_paused, reason=reason), None)
            )

    async def _pause_gone(self, key: DeliveryKey, reason: str) -> None:
        """Pause an endpoint that says it is gone; called by its courier."""
        await self._set_paused(key, True, reason)

    def _view(self, courier: Courier[WebhookTarget], secret: str | None = None) -> EndpointView:
        endpoint, key = courier.target.endpoint, courier.key
        if not self._tools.is_active:
            courier.configure(courier.target, courier.progress)  # which looks where it is now
        cursor = self._service.cursor(*key)
        return EndpointView(
            subscriber=key.subscriber,
            name=key.name,
            url=endpoint.url,
            batch=endpoint.batch,
            format=endpoint.format,
            paused=endpoint.paused,
            acknowledged=cursor.position.id,
            lag=courier.lag,
            dropped=cursor.dropped,
            dead_letters=courier.progress.letters,
            reason=endpoint.reason,
            failing=courier.failing,
            secret=secret,
        )
