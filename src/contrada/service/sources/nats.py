"""NatsSourceClient: messages of a stream of JetStream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy

from contrada.errors import ContradaError
from contrada.service.nats_access import connect_nats
from contrada.service.remotes import Remote
from contrada.service.sources.records import SourceRecord
from contrada.service.table_settings import SourceTable

POLL_SECONDS = 2.0  # that a request for messages waits
INACTIVE_SECONDS = 300.0  # after which the server forgets a consumer that does not ask


class StreamGapError(ContradaError):
    """A message did not reach the consumer; it is read again from the place in the store."""


class NatsSourceClient:
    """Reads with a consumer of its own, which starts after the place in the store: that place is the durable one.

    The server keeps no acknowledgements. Messages come in the order of the stream; one that got lost on the way shows
    as a gap in the numbers of the consumer, and reading starts again.
    """

    def __init__(self, remote: Remote, table: SourceTable) -> None:
        self._remote, self._table = remote, table
        self._connection: Any = None
        self._consumer: Any = None
        self._moved: dict[str, int] = {}
        self._lane, self._next, self._pending = "", 1, 0

    async def open(self, places: Mapping[str, int]) -> None:
        """Find the stream that has the subject, and make a consumer."""
        async with asyncio.timeout(4 * self._table.timeout):
            self._connection = await connect_nats(self._remote, self._table.timeout)
            jetstream = self._connection.jetstream(timeout=self._table.timeout)
            stream = await jetstream.find_stream_name_by_subject(self._remote.url.topic)
            info = await jetstream.stream_info(stream)
            if info.config.retention not in (None, RetentionPolicy.LIMITS):
                raise ContradaError(f"stream {stream!r} must keep messages by limits, so that they can be read again")
            made = getattr(info, "created", None)
            self._lane = stream if made is None else f"{stream}/{made}"
            place = places.get(self._lane)
            last = info.state.last_seq
            if (place is None and self._table.start == "now") or (place is not None and place > last):
                place = self._moved[self._lane] = last  # a server that lost its last messages goes on before the place
            await self._consume(jetstream, stream, 0 if place is None else place)

    async def _consume(self, jetstream: Any, stream: str, place: int) -> None:
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=place + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=self._remote.url.topic,
            inactive_threshold=INACTIVE_SECONDS,
        )
        made = await jetstream.add_consumer(stream, config)
        self._next, self._pending = 1, made.num_pending or 0
        self._consumer = await jetstream.pull_subscribe_bind(consumer=made.name, stream=stream)

    def moved(self) -> dict[str, int]:
        """Return the lane if it starts elsewhere, once."""
        moved, self._moved = self._moved, {}
        return moved

    async def read(self) -> list[SourceRecord]:
        """Return the next messages."""
        while not self._moved:
            try:
                found = await self._consumer.fetch(self._table.batch, timeout=POLL_SECONDS)
            except NatsTimeoutError:
                if not self._connection.is_connected:
                    raise
                await self._consumer.consumer_info()  # an error if the server has forgotten it
                continue
            return [self._record(message) for message in found]
        return []

    def _record(self, message: Any) -> SourceRecord:
        place = message.metadata
        if place.sequence.consumer != self._next:
            raise StreamGapError(f"message {self._next} of the consumer is missing")
        self._next += 1
        self._pending = place.num_pending
        headers = {name.lower(): value for name, value in (message.headers or {}).items()}
        return SourceRecord(self._lane, place.sequence.stream, message.data, headers)

    async def commit(self, records: Sequence[SourceRecord]) -> None:
        """Do nothing: the place in the store is the durable one."""

    @property
    def lag(self) -> int | None:
        """The number of messages of the stream after the last one that was read."""
        return self._pending

    async def close(self) -> None:
        """Close the connection; the server forgets the consumer after some minutes."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(NatsError, OSError, TimeoutError):
                await connection.close()
