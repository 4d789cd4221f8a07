"""WebhookTarget: signs parcels and posts them to one endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from contrada.service.deliveries.bodies import Parcel, content_type, parcel_body
from contrada.service.deliveries.courier import DeliveryCounts
from contrada.service.deliveries.outcomes import Outcome
from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.webhooks.endpoints import WebhookEndpoint
from contrada.service.webhooks.sender import Sender
from contrada.service.webhooks.signatures import Signer

SLOW_SECONDS = 1.0


class Lanes:
    """How many requests run at a time: endpoints that were slow last time take turns among themselves."""

    def __init__(self, quick: int, slow: int) -> None:
        self._quick, self._slow = asyncio.Semaphore(quick), asyncio.Semaphore(slow)

    def lane(self, is_slow: bool) -> asyncio.Semaphore:
        """Return what a request holds while it runs."""
        return self._slow if is_slow else self._quick


class WebhookTarget:
    """One endpoint of a subscriber, and how to reach it; `clock` is in milliseconds."""

    def __init__(
        self,
        endpoint: WebhookEndpoint,
        subscriber: str,
        sender: Sender,
        lanes: Lanes,
        clock: Callable[[], int],
        counts: DeliveryCounts,
    ) -> None:
        self.endpoint, self._subscriber = endpoint, subscriber
        self._sender, self._lanes, self._clock, self._counts = sender, lanes, clock, counts
        self._signer = Signer(endpoint.secret, endpoint.second_secret)
        self._is_slow = False

    @property
    def batch(self) -> int:
        """The most events in one request; 0 for one event that is no array."""
        return self.endpoint.batch

    @property
    def is_paused(self) -> bool:
        """True if events wait."""
        return self.endpoint.paused

    def policy(self, default: RetryPolicy) -> RetryPolicy:
        """Return when this endpoint's events are given up."""
        return default.limited(self.endpoint.attempts, self.endpoint.age)

    async def send(self, parcel: Parcel) -> Outcome:
        """Sign and send a parcel, once."""
        endpoint, is_batch = self.endpoint, self.batch > 0
        body = parcel_body(parcel, self._subscriber, endpoint.format, is_batch)
        loop = asyncio.get_running_loop()
        async with self._lanes.lane(self._is_slow):
            headers = self._signer.headers(parcel.id, self._clock() // 1_000, body)
            headers["content-type"] = content_type(endpoint.format, is_batch)
            self._counts.in_flight += 1
            started = loop.time()
            try:
                return await self._sender.post(endpoint.url, headers, body)
            finally:
                self._counts.in_flight -= 1
                self._is_slow = loop.time() - started > SLOW_SECONDS
