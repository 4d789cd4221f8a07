"""NatsLog: a shared log in a stream of JetStream."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import urllib.request
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from nats.errors import Error as NatsError

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError
from contrada.service.nats_access import connect_nats
from contrada.service.remotes import Remote
from contrada.service.shared_log.engine_log import FIRST_WAIT, MOST_WAIT, EngineLog, LogBrokenError, SnapshotEntry
from contrada.service.shared_log.jetstream import (
    NANOSECONDS,
    NO_STREAM,
    NOT_CLUSTERED,
    TOO_LARGE,
    WRONG_LAST,
    JetStream,
    JetStreamError,
    StreamBreakError,
    StreamMessage,
    StreamReader,
)
from contrada.service.shared_log.outbox import LogBatch
from contrada.service.shared_log.shared_log import LogRecord, LogUnit, SharedLogError

REPLICAS = 3  # of streams in a cluster
DUPLICATES = 120.0  # seconds in which the server knows a message again
FRAME_BYTES = 1024  # of a message, for its headers
KEEPS = {
    "retention": "limits",
    "storage": "file",
    "discard": "new",
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
}  # a stream of another kind may drop messages


class LogFlight(NamedTuple):
    """A batch that was sent or is about to be: one message, which keeps its id however often it is sent."""

    id: str
    payload: bytes
    batch: LogBatch


class NatsLog(EngineLog):
    """One message of the stream is a unit: an array in MessagePack of records, each an array of key, head and value.

    A position is a sequence number of the stream. One message is under way at a time, and the next one has all records
    that came meanwhile. Every NatsLog publishes to a subject of its own and says after which of its messages the next
    one comes: a message that was given up and arrives late is refused, so that the order of appends holds.

    A stream with less than three replicas needs a server that writes to disk before it acknowledges. Clients cannot
    see that; `monitor` is the HTTP address of the server where it can be seen. Without it `notices` says what to set.
    """

    faults = (NatsError, OSError, TimeoutError, ContradaError)
    record_bytes = 16

    def __init__(
        self,
        remote: Remote,
        *,
        monitor: str | None = None,
        trust: bool = False,
        timeout: float = 5.0,
        patience: float = 10.0,
    ) -> None:
        super().__init__(remote, trust=trust, timeout=timeout, patience=patience)
        self._monitor = monitor
        self._snapshots = f"{self._name}-snapshots"
        self._writer = secrets.token_hex(8)
        self._subject = f"{self._name}.log.{self._writer}"
        self._jetstream: JetStream | None = None
        self._connected, self._lost = asyncio.Event(), asyncio.Event()
        self._created: Any = None
        self._flight: LogFlight | None = None
        self._sent, self._last = 0, 0  # number of messages, and sequence of the last one that the stream has of ours

    async def _open(self) -> int:
        jetstream = await self._connect()
        await self._made(jetstream, self._snapshots, f"{self._name}.snapshots.>")
        info = await self._made(jetstream, self._name, f"{self._name}.log.*")
        self._created = info["created"]
        await self._check_durable(info)
        most: int = jetstream.connection.max_payload
        return most - FRAME_BYTES

    async def _connect(self) -> JetStream:
        self._lost.clear()
        async with asyncio.timeout(2 * self._timeout):
            connection = await connect_nats(self._remote, self._timeout, self._lost.set)
        self._jetstream = JetStream(connection, self._timeout)
        self._connected.set()
        return self._jetstream

    async def _made(self, jetstream: JetStream, name: str, subject: str) -> dict[str, Any]:
        """Return the description of a stream, which is made if there is none."""
        try:
            return await jetstream.info(name)
        except JetStreamError as error:
            if error.code != NO_STREAM:
                raise
        config = {"name": name, "subjects": [subject], "duplicate_window": int(DUPLICATES * NANOSECONDS), **KEEPS}
        try:
            return await jetstream.api(f"STREAM.CREATE.{name}", **config, num_replicas=REPLICAS)
        except JetStreamError as error:
            if error.code != NOT_CLUSTERED:
                raise
        return await jetstream.api(f"STREAM.CREATE.{name}", **config, num_replicas=1)

    async def _check_durable(self, info: dict[str, Any]) -> None:
        """Raise SharedLogError if the stream is seen to lose messages; note what cannot be seen."""
        config = info["config"]
        wrong = [f"{name} is {config.get(name)!r}" for name, value in KEEPS.items() if config.get(name, value) != value]
        wrong += ["persist_mode is 'async'"] if config.get("persist_mode") == "async" else []
        if wrong:
            self._refuse(f"the stream {self._name!r} may lose records: {', '.join(wrong)}")
        replicas = config.get("num_replicas", 1)
        if replicas >= REPLICAS or self._trust:
            return
        advice = (
            f"the stream {self._name!r} has {replicas} replica{'s' * (replicas > 1)}; set `sync_interval: always` in "
            "the block `jetstream` of the NATS server, or use a cluster of three"
        )
        leader = (info.get("cluster") or {}).get("leader")
        syncs = None
        if self._monitor is not None:
            syncs = await asyncio.to_thread(_syncs_always, self._monitor, leader, self._timeout)
        if syncs is None:
            self.notices.append(
                f"whether acknowledged records are on disk cannot be seen: {advice}. To have it checked, set "
                "`http_port` in the server and give the URL of this monitor"
            )
        elif not syncs:
            self._refuse(f"the NATS server acknowledges records before they are on disk: {advice}")

    def _work(self) -> Sequence[Coroutine[Any, Any, None]]:
        return [self._serve()]

    async def _serve(self) -> None:
        """Publish and read over one connection after another."""
        wait = FIRST_WAIT
        while True:
            try:
                jetstream, began = self._jetstream or await self._connect(), time.monotonic()
                self._fault = None
                self._fault = self._text(await self._use(jetstream))
                wait = FIRST_WAIT if time.monotonic() - began > MOST_WAIT else wait
            except self.faults as error:
                self._fault = self._text(error)
            await self._disconnect()
            await asyncio.sleep(wait)
            wait = min(2 * wait, MOST_WAIT)

    async def _use(self, jetstream: JetStream) -> BaseException | None:
        """Publish and read over a connection while it lasts; return what ended it."""
        tasks = [asyncio.create_task(work) for work in (self._publish(jetstream), self._read(jetstream))]
        lost = asyncio.create_task(self._lost.wait())
        try:
            ended, _ = await asyncio.wait([*tasks, lost], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks(*tasks, lost)
        return next((error for task in ended if (error := task.exception()) is not None), None)

    async def _disconnect(self) -> None:
        self._connected.clear()
        jetstream, self._jetstream = self._jetstream, None
        if jetstream is not None:
            with suppress(*self.faults):
                async with asyncio.timeout(self._timeout):
                    await jetstream.connection.close()

    async def _look(self) -> None:
        if self._jetstream is not None and self._flight is None:
            with suppress(*self.faults):
                await self._jetstream.info(self._name)
                self._fault = None

    async def _publish(self, jetstream: JetStream) -> None:
        while True:
            if self._flight is None:
                batch = await self._outbox.take()
                self._sent += 1
                payload = msgspec.msgpack.encode(batch.records())
                self._flight = LogFlight(f"{self._writer}-{self._sent}", payload, batch)
            error: SharedLogError | None = None
            try:
                await self._deliver(jetstream, self._flight)
            except SharedLogError as refused:
                error = refused
            self._flight.batch.end(error)
            self._flight = None

    async def _deliver(self, jetstream: JetStream, flight: LogFlight) -> None:
        """Send a message until the stream has it or nobody waits for it; SharedLogError if it can never be there."""
        while flight.batch.is_wanted():
            if self._broken is not None:
                raise SharedLogError(self._broken)
            headers = {
                "Nats-Msg-Id": flight.id,
                "Nats-Expected-Stream": self._name,
                "Nats-Expected-Last-Subject-Sequence": str(self._last),
            }
            try:
                stored = await jetstream.ask(self._subject, flight.payload, headers)
                self._last, self._fault = stored["seq"], None
                return
            except JetStreamError as error:
                if error.code == TOO_LARGE:
                    raise SharedLogError(str(error)) from error
                if error.code in WRONG_LAST:
                    found = await jetstream.message(self._name, last_by_subj=self._subject)
                    self._last = 0 if found is None else found.sequence
                    if found is not None and found.id == flight.id:
                        return  # its acknowledgement got lost
                else:
                    self._fault = str(error)
            await asyncio.sleep(FIRST_WAIT)

    async def _reached(self) -> JetStream:
        """Return a connection; wait for one for some time."""
        try:
            async with asyncio.timeout(self._timeout):
                while self._jetstream is None:
                    await self._connected.wait()
        except TimeoutError:
            raise SharedLogError(self.fault() or "there is no connection") from None
        return self._jetstream

    async def _ends(self) -> tuple[int, int]:
        info = await (await self._reached()).info(self._name)
        if info["created"] != self._created:
            raise LogBrokenError(f"the stream {self._name!r} was made anew")
        return max(1, info["state"]["first_seq"]), info["state"]["last_seq"]  # a new stream starts at 0

    async def _unit(self, position: int) -> LogUnit | None:
        found = await (await self._reached()).message(self._name, seq=position)
        return None if found is None else LogUnit(position, _records(found.data))

    async def _read(self, jetstream: JetStream) -> None:
        """Read by one consumer after another; after a log that is broken, by none."""
        await self._started.wait()
        try:
            while True:
                await self._check_place()
                await self._check_next(jetstream)
                reader = StreamReader(jetstream, self._name)
                try:
                    await reader.open(self._after)
                    while True:
                        messages = await reader.next()
                        units = self._units(messages)
                        await self._hand(units)
                        if len(units) < len(messages):
                            raise StreamBreakError(f"position {self._after + 1} did not come")
                except StreamBreakError:
                    await reader.close()
                    await asyncio.sleep(FIRST_WAIT)
        except LogBrokenError as error:
            self._broken = str(error)
        await asyncio.Event().wait()

    async def _check_next(self, jetstream: JetStream) -> None:
        """Raise LogBrokenError if somebody has removed the next message from the middle of the log."""
        at = self._after + 1
        if at <= (await self._ends())[1] and await jetstream.message(self._name, seq=at) is None:
            raise LogBrokenError(f"position {at} is missing in the log")

    def _units(self, messages: Sequence[StreamMessage]) -> list[LogUnit]:
        """Return the units of messages as far as they follow the last one without a gap."""
        at, units = self._after, list[LogUnit]()
        for message in messages:
            at += 1
            if message.sequence != at:
                break
            units.append(LogUnit(at, _records(message.data)))
        return units

    async def _store(self, kind: str, payload: bytes, id: str) -> int:
        headers = {"Nats-Msg-Id": id, "Nats-Expected-Stream": self._snapshots}
        stored = await (await self._reached()).ask(f"{self._name}.snapshots.{kind}", payload, headers)
        sequence: int = stored["seq"]
        return sequence

    async def _store_part(self, id: str, number: int, part: bytes) -> int:
        return await self._store(f"parts.{id}", part, f"{id}-{number}")

    async def _store_entry(self, entry: SnapshotEntry) -> None:
        await self._store("entries", msgspec.json.encode(entry), entry.id)

    async def _oldest_part(self) -> int:
        first: int = (await (await self._reached()).info(self._snapshots))["state"]["first_seq"]
        return first

    async def _message(self, after: int, kind: str) -> StreamMessage | None:
        """Return the next message of the stream of snapshots that has a subject."""
        subject = f"{self._name}.snapshots.{kind}"
        return await (await self._reached()).message(self._snapshots, seq=after + 1, next_by_subj=subject)

    async def _entries(self) -> list[tuple[int, SnapshotEntry]]:
        found, at = list[tuple[int, SnapshotEntry]](), 0
        while (one := await self._message(at, "entries")) is not None:
            at = one.sequence
            found.append((at, msgspec.json.decode(one.data, type=SnapshotEntry)))
        return found

    def _parts(self, entry: SnapshotEntry) -> Iterator[bytes]:
        at = entry.first - 1
        while at < entry.last and (part := self._call(self._message(at, f"parts.{entry.id}"))) is not None:
            at = part.sequence
            yield part.data

    async def _trim_log(self, position: int) -> None:
        await (await self._reached()).api(f"STREAM.PURGE.{self._name}", seq=position + 1)

    async def _trim_snapshots(self, place: int, entry: SnapshotEntry) -> None:
        await (await self._reached()).api(f"STREAM.PURGE.{self._snapshots}", seq=entry.first or place)


def _records(data: bytes) -> Sequence[LogRecord]:
    """Return the records of a message; what others have published has no head."""
    try:
        return msgspec.msgpack.decode(data, type=list[LogRecord])
    except msgspec.DecodeError:
        return [LogRecord("", b"", data)]


def _syncs_always(monitor: str, leader: str | None, timeout: float) -> bool | None:
    """Return whether a server writes to disk before it acknowledges; None if its monitor does not say."""
    try:
        with urllib.request.urlopen(f"{monitor.rstrip('/')}/varz", timeout=timeout) as answer:
            found = json.loads(answer.read())
    except (OSError, ValueError) as error:
        raise SharedLogError(f"the monitor of the NATS server at {monitor} does not answer: {error}") from error
    if leader is not None and found.get("server_name") != leader:
        raise SharedLogError(f"the monitor at {monitor} is of {found.get('server_name')!r}; {leader!r} keeps the log")
    config = (found.get("jetstream") or {}).get("config") or {}
    if config.get("sync_always"):
        return True
    return False if "sync_interval" in config else None
