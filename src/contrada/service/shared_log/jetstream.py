"""JetStream: requests to the interface of a NATS server for streams, and a reader of a stream in order."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from contrada.errors import ContradaError

PREFIX = "$JS.API"
NANOSECONDS = 1_000_000_000
NOT_FOUND = 10037  # codes of errors: there is no such message,
NO_STREAM = 10059  # there is no such stream,
NOT_CLUSTERED = 10074  # a server alone keeps one replica,
WRONG_LAST = (10071, 10164, 10163)  # a subject does not end where a publisher expects,
TOO_LARGE = 10054  # a stream takes no message of this size
BATCH = 512  # messages that a reader asks for at a time
BATCH_BYTES = 8 << 20
HEARTBEAT = 2.0  # seconds between signs of life of a consumer that has nothing to send
LONGEST_REQUEST = 30.0  # seconds that a request for messages stands
INACTIVE = 300.0  # seconds after which the server forgets a consumer that does not ask


class JetStreamError(ContradaError):
    """JetStream refuses a request; `code` says why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class StreamBreakError(ContradaError):
    """A reader has lost its consumer or a message; a new reader goes on."""


class StreamMessage(NamedTuple):
    """A message of a stream."""

    sequence: int
    data: bytes
    id: str | None  # that its publisher gave it


class JetStream:
    """Asks for streams over one connection; each answer takes `timeout` seconds at most."""

    def __init__(self, connection: Any, timeout: float) -> None:
        self.connection, self._timeout = connection, timeout

    async def ask(self, subject: str, payload: bytes, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Send a request, and return the answer; raise JetStreamError if it is an error."""
        try:
            asked = dict(headers) if headers else None
            answer = await self.connection.request(subject, payload, timeout=self._timeout, headers=asked)
        except NoRespondersError:
            raise JetStreamError(503, "JetStream does not answer; it may not be enabled for this account") from None
        found: dict[str, Any] = json.loads(answer.data)
        error = found.get("error")
        if error is not None:
            raise JetStreamError(error.get("err_code", error.get("code", 0)), error.get("description", "refused"))
        return found

    async def api(self, what: str, **body: Any) -> dict[str, Any]:
        """Send a request of the interface."""
        return await self.ask(f"{PREFIX}.{what}", json.dumps(body).encode() if body else b"")

    async def info(self, stream: str) -> dict[str, Any]:
        """Return what there is to know about a stream."""
        return await self.api(f"STREAM.INFO.{stream}")

    async def message(self, stream: str, **which: Any) -> StreamMessage | None:
        """Return a message; None if there is none."""
        try:
            found = (await self.api(f"STREAM.MSG.GET.{stream}", **which))["message"]
        except JetStreamError as error:
            if error.code == NOT_FOUND:
                return None
            raise
        return StreamMessage(
            found["seq"], b64decode(found.get("data") or b""), _id(b64decode(found.get("hdrs") or b""))
        )


def _id(headers: bytes) -> str | None:
    for line in headers.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"nats-msg-id":
            return value.strip().decode("utf-8", "replace")
    return None


class StreamReader:
    """Reads a stream in order by a consumer of its own, which keeps no acknowledgements.

    It asks for many messages at a time, and for more when half of them came: messages wait here that nobody has taken,
    `BATCH` at most.
    """

    def __init__(self, jetstream: JetStream, stream: str) -> None:
        self._jetstream, self._connection, self._stream = jetstream, jetstream.connection, stream
        self._name = self._inbox = ""
        self._subscription: Any = None
        self._next = 1  # number that the consumer gives to the next message
        self._asked = 0  # messages that were asked for and did not come
        self._got: list[Any] = []
        self._came = asyncio.Event()
        self._fault: str | None = None

    async def open(self, after: int) -> None:
        """Make a consumer that starts after a sequence number."""
        config = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": after + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "inactive_threshold": int(INACTIVE * NANOSECONDS),
            "mem_storage": True,
            "num_replicas": 1,
        }
        made = await self._jetstream.api(f"CONSUMER.CREATE.{self._stream}", stream_name=self._stream, config=config)
        self._name, self._inbox = made["name"], self._connection.new_inbox()
        self._subscription = await self._connection.subscribe(self._inbox, cb=self._take)
        await self._ask()

    async def _ask(self) -> None:
        body = {
            "batch": BATCH - self._asked,
            "max_bytes": max(BATCH_BYTES, 2 * self._connection.max_payload),
            "expires": int(LONGEST_REQUEST * NANOSECONDS),
            "idle_heartbeat": int(HEARTBEAT * NANOSECONDS),
        }
        self._asked = BATCH
        subject = f"{PREFIX}.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
        await self._connection.publish(subject, json.dumps(body).encode(), self._inbox)

    async def _take(self, message: Any) -> None:
        status = None if message.headers is None else message.headers.get("Status")
        if status is None or message.reply:
            self._asked -= 1
            self._got.append(message)
        elif status == "503" or (status == "409" and not _is_end_of_request(message)):
            self._fault = message.headers.get("Description") or "the consumer is gone"
        else:
            self._asked -= int(message.headers.get("Nats-Pending-Messages", 0))
        self._came.set()

    async def next(self) -> list[StreamMessage]:
        """Return messages, at least one; raise StreamBreakError if reading must start again."""
        while not self._got:
            if self._fault is not None:
                raise StreamBreakError(self._fault)
            if self._asked <= BATCH // 2:
                await self._ask()
            self._came.clear()
            try:
                async with asyncio.timeout(3 * HEARTBEAT):
                    await self._came.wait()
            except TimeoutError:
                raise StreamBreakError("the consumer gives no sign of life") from None
        got, self._got = self._got, []
        if self._asked <= BATCH // 2:
            await self._ask()
        return [self._message(one) for one in got]

    def _message(self, message: Any) -> StreamMessage:
        place = message.metadata.sequence
        if place.consumer != self._next:
            raise StreamBreakError(f"message {self._next} of the consumer is missing")
        self._next += 1
        return StreamMessage(place.stream, message.data, None)

    async def close(self) -> None:
        """Drop the consumer, if the connection lives."""
        with suppress(NatsError, OSError, TimeoutError, ContradaError):
            await self._subscription.unsubscribe()
            await self._jetstream.api(f"CONSUMER.DELETE.{self._stream}.{self._name}")


def _is_end_of_request(message: Any) -> bool:
    """Return True if a request ended because it has all its bytes or messages, and the consumer lives."""
    text = (message.headers.get("Description") or "").lower()
    return "maxbytes" in text or "batch completed" in text
