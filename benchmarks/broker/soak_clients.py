"""Clients of the soak: requests over kept connections, consumers that leave and resume, and the account of deliveries.

The account knows for every message which subscriptions it satisfies. It is told of each event, and counts those that
are missing, wrong (not expected, or a second time) or out of order.
"""

import asyncio
import time
from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import numpy as np

from benchmarks.broker.process import KEY
from benchmarks.broker.work import owner_name

ANSWER_SECONDS = 60.0


class _Properties(msgspec.Struct):
    n: int


class _Message(msgspec.Struct):
    properties: _Properties


class _Data(msgspec.Struct):
    """The data of an event, or of a reset, which has only `oldest`."""

    id: str = ""
    key: str = ""
    message: _Message | None = None
    oldest: int = 0


_data = msgspec.json.Decoder(_Data).decode


class Account:
    """Which events are due and came. Message n repeats message n modulo the size of a pool.

    Subscriptions that stay are expected to get messages from the start. A subscription that comes and goes is settled
    after it has gone: its answers name the first and the last sequence number that it counts for.
    """

    def __init__(self, matches: list[list[str]]) -> None:
        self.pool, self._matches = len(matches), matches
        self._rows: dict[str, list[int]] = defaultdict(list)  # of the pool, by the key of a subscription that stays
        for row, keys in enumerate(matches):
            for key in keys:
                self._rows[key].append(row)
        self.sent_at = array("d")  # by message: when it was due
        self._sequences = array("q")  # by message; 0 until it is answered
        self._messages = array("q", [-1])  # by sequence number; -1 until it is answered
        self._passing: dict[str, set[int]] = {}  # messages that a subscription got that comes and goes
        self.events = self.wrong = self.unordered = self.excused = 0
        self.late: list[float] = []  # seconds of the deliveries since the last sample

    @property
    def matched(self) -> list[str]:
        """The keys of the subscriptions that messages satisfy."""
        return list(self._rows)

    def send(self, at: float, subscribers: dict[str, "Subscriber"]) -> int:
        """Expect the events of the next message; return its number."""
        number = len(self.sent_at)
        self.sent_at.append(at)
        self._sequences.append(0)
        for key in self._matches[number % self.pool]:
            subscribers[key].due.add((number, key))
        return number

    def answered(self, first: int, numbers: range) -> None:
        """Take the sequence numbers of messages, from `first` on."""
        missing = first + len(numbers) - len(self._messages)
        self._messages.extend([-1] * missing)
        for sequence, number in enumerate(numbers, first):
            self._messages[sequence] = number
            self._sequences[number] = sequence

    def begin(self, key: str) -> None:
        """Collect the events of a subscription that comes and goes."""
        self._passing[key] = set()

    def settle(self, key: str, like: str, first: int, last: int, subscriber: "Subscriber") -> bool:
        """Compare the events of a subscription that has gone; return False while answers of messages are missing.

        It has the geometry of the subscription `like`, and counted for the sequence numbers first..last.
        """
        numbers = np.array(self._messages[first : last + 1], np.int64)
        if len(self._messages) <= last or (numbers < 0).any():
            return False
        expected = set(numbers[np.isin(numbers % self.pool, self._rows[like])].tolist())
        got = self._passing.pop(key)
        self.wrong += len(got - expected)
        subscriber.due.update((number, key) for number in expected - got)
        return True

    def excuse(self, subscriber: "Subscriber", oldest: int) -> None:
        """Expect no event before the sequence number that a reset has named."""
        gone = {event for event in subscriber.due if 0 < self._sequences[event[0]] < oldest}
        subscriber.due -= gone
        self.excused += len(gone)

    def receive(self, subscriber: "Subscriber", number: int, key: str, now: float) -> None:
        """Take an event."""
        self.events += 1
        if self.sent_at[number] > subscriber.since:
            self.late.append(now - self.sent_at[number])
        if (number, key) in subscriber.due:
            subscriber.due.remove((number, key))
        elif (got := self._passing.get(key)) is not None and number not in got:
            got.add(number)
        else:
            self.wrong += 1


class Subscriber(asyncio.Protocol):
    """The consumer of one subscriber, over one connection after the other; it resumes after the last event it has."""

    def __init__(self, owner: int, account: Account) -> None:
        self.owner, self.due = owner, set[tuple[int, str]]()
        self._account = account
        self.since = 0.0  # when it has caught up: events of earlier messages had to wait for it
        self.is_connected = self.may_be_reset = False
        self.resets = 0
        self._place, self._id = (0, 0), ""
        self._transport: Any = None

    async def connect(self, port: int) -> None:
        """Connect, and return when the stream is open."""
        self._rest, self._open = b"", asyncio.get_running_loop().create_future()
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", port)
        await asyncio.wait_for(self._open, ANSWER_SECONDS)
        self.since = time.perf_counter()

    def leave(self, is_long: bool = False) -> None:
        """Cut the connection, for longer than retention or not."""
        self.is_connected, self.may_be_reset = False, is_long
        self._transport.abort()

    def connection_made(self, transport: Any) -> None:
        """Ask for the events after the last one, or for all."""
        self._transport, self.is_connected = transport, True
        start, place = ("", f"Last-Event-ID: {self._id}\r\n") if self._id else ("?from=oldest", "")
        head = f"GET /subscribers/{owner_name(self.owner)}/events{start} HTTP/1.1\r\nHost: x\r\n{place}"
        transport.write(f"{head}Authorization: Bearer {KEY}\r\nAccept: text/event-stream\r\n\r\n".encode())

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if the server has ended the stream."""
        if self.is_connected:
            raise RuntimeError(f"the stream of {owner_name(self.owner)} ended: {exc}")

    def data_received(self, data: bytes) -> None:
        """Take the events that are whole."""
        if not self.is_connected:
            return
        now = time.perf_counter()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                self._take(_data(line[6:]), now)
            elif line.startswith(b"retry: ") and not self._open.done():
                self._open.set_result(None)

    def _take(self, data: _Data, now: float) -> None:
        if data.message is None:
            self.resets += 1
            self._account.wrong += not self.may_be_reset
            self._account.excuse(self, data.oldest)
            return
        sequence, number = map(int, data.id.split("."))
        self._account.unordered += (sequence, number) <= self._place
        self._place, self._id = (sequence, number), data.id
        self._account.receive(self, data.message.properties.n, data.key, now)


class Connection(asyncio.Protocol):
    """A kept connection: one request at a time, whose answer is a JSON object of status 200 or 201."""

    _future: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        self._transport, self._answer = transport, b""

    def data_received(self, data: bytes) -> None:
        """Take a part of the answer, which ends with the only brace at the end of a part."""
        self._answer += data
        if self._answer.endswith(b"}") and self._future is not None and not self._future.done():
            answer, self._answer = self._answer, b""
            if answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
                self._future.set_result(answer[answer.index(b"\r\n\r\n") + 4 :])
            else:
                self._future.set_exception(RuntimeError(f"the server answered {answer[:500]!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits."""
        if self._future is not None and not self._future.done():
            self._future.set_exception(RuntimeError(f"the server closed a connection: {exc}"))

    async def ask(self, request: bytes) -> bytes:
        """Send a request; return the body of the answer."""
        self._future = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await asyncio.wait_for(self._future, ANSWER_SECONDS)


class Connections:
    """A pool of kept connections."""

    def __init__(self, connections: Iterable[Connection]) -> None:
        self._idle: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._idle.put_nowait(connection)

    @classmethod
    async def open(cls, port: int, count: int) -> "Connections":
        """Return a pool of open connections."""
        loop = asyncio.get_running_loop()
        made = [loop.create_connection(Connection, "127.0.0.1", port) for _ in range(count)]
        return cls([protocol for _, protocol in await asyncio.gather(*made)])

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Connection]:
        """Yield a connection that is free."""
        connection = await self._idle.get()
        yield connection
        self._idle.put_nowait(connection)  # after a failure its state is unknown: it is not used again

    async def ask(self, request: bytes) -> Any:
        """Send a request over a free connection; return the decoded answer."""
        async with self.borrow() as connection:
            return msgspec.json.decode(await connection.ask(request))
