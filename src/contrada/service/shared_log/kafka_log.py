"""KafkaLog: a shared log in a topic of Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidReplicationFactorError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from contrada.errors import ContradaError
from contrada.service.kafka_access import kafka_access
from contrada.service.remotes import Remote
from contrada.service.shared_log.engine_log import FIRST_WAIT, MOST_WAIT, EngineLog, LogBrokenError, SnapshotEntry
from contrada.service.shared_log.outbox import LogBatch
from contrada.service.shared_log.shared_log import LogRecord, LogUnit, SharedLogError

HEADER = "contrada"  # of a record: its head
REPLICAS, IN_SYNC = 3, 2
RECORD_LIMIT = 8 << 20  # bytes of a batch in topics that we make
FRAME_BYTES = 1024  # of a batch, for its own fields
READ_RECORDS = 5_000  # handed on at once
POLL_MILLISECONDS = 1_000
BACKOFF_MILLISECONDS = 250  # between attempts of the library
STOP_SECONDS = 5.0
LOOK_SECONDS = 5.0  # without records, after which the cluster is asked whether it is there
ENTRIES, PARTS = 0, 1  # partitions of the topic of snapshots
FOREVER = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
}  # a topic with other values may drop records
FINAL = (MessageSizeTooLargeError, RecordListTooLargeError, TopicAuthorizationFailedError)


class KafkaLog(EngineLog):
    """One record of the topic is a unit: its key and value are those of the LogRecord, the header `contrada` its head.

    Other consumers read messages as plain values, by their keys. The topic has one partition; a position is an offset
    plus one. All replicas that are in sync acknowledge a batch of records, which is appended as a whole by an
    idempotent producer; one batch is under way at a time, and the next one has all records that came meanwhile. A
    batch that was sent stays the first until the cluster answers, also if its appends have failed for lack of time.

    A topic with less than three replicas needs `flush.messages=1`, which a topic that is made here has: then records
    are on disk before they are acknowledged.
    """

    faults = (KafkaError, OSError, TimeoutError, ContradaError)
    record_bytes = 64

    def __init__(self, remote: Remote, *, trust: bool = False, timeout: float = 5.0, patience: float = 10.0) -> None:
        super().__init__(remote, trust=trust, timeout=timeout, patience=patience)
        self._snapshots = f"{self._name}-snapshots"
        self._partition = TopicPartition(self._name, 0)
        self._producer: Any = None
        self._storer: Any = None  # a producer of snapshots
        self._storing = asyncio.Lock()
        self._asker: Any = None  # a consumer that answers questions about offsets
        self._largest = 0  # bytes of a batch that the topic takes

    def _access(self) -> dict[str, Any]:
        times = {"request_timeout_ms": int(self._timeout * 1_000), "retry_backoff_ms": BACKOFF_MILLISECONDS}
        return {**kafka_access(self._remote), **times}

    async def _open(self) -> int:
        async with asyncio.timeout(4 * self._timeout):
            admin = AIOKafkaAdminClient(**self._access())
            try:
                await admin.start()
                await self._make(admin, self._snapshots, 2)
                await self._make(admin, self._name, 1)
                await self._check_topic(admin, self._snapshots, 2)
                self._largest = await self._check_topic(admin, self._name, 1)
            finally:
                await _closed(admin.close())
            self._asker = await self._consumer()
        return self._largest - FRAME_BYTES

    async def _make(self, admin: Any, name: str, partitions: int) -> None:
        """Make a topic unless there is one."""
        if name in await admin.list_topics():
            return
        settings = {**FOREVER, "max.message.bytes": str(RECORD_LIMIT)}
        many = NewTopic(name, partitions, REPLICAS, topic_configs={**settings, "min.insync.replicas": str(IN_SYNC)})
        alone = NewTopic(name, partitions, 1, topic_configs={**settings, "flush.messages": "1"})
        is_alone = len((await admin.describe_cluster())["brokers"]) == 1
        error = await _create(admin, alone if is_alone else many)
        if error is InvalidReplicationFactorError:
            raise SharedLogError(f"the cluster does not have {REPLICAS} brokers; make the topic {name!r} yourself")
        if error is not None and error is not TopicAlreadyExistsError:  # another server was first
            raise error(f"the topic {name!r} cannot be made")
        while name not in await admin.list_topics():
            await asyncio.sleep(FIRST_WAIT)

    async def _check_topic(self, admin: Any, name: str, partitions: int) -> int:
        """Raise SharedLogError if a topic may lose records; return the most bytes of a batch."""
        found = (await admin.describe_topics([name]))[0]
        if len(found["partitions"]) != partitions:
            have = len(found["partitions"])
            raise SharedLogError(f"the topic {name!r} has {have} partitions; a shared log needs {partitions}")
        config = await _config(admin, name)
        wrong = [f"{key}={config.get(key)}" for key, value in FOREVER.items() if config.get(key, value) != value]
        if wrong:
            needed = ", ".join(f"{key}={value}" for key, value in FOREVER.items())
            self._refuse(f"the topic {name!r} may lose records: it has {', '.join(wrong)}; set {needed}")
        replicas = min(len(one["replicas"]) for one in found["partitions"])
        in_sync = int(config.get("min.insync.replicas", "1"))
        if config.get("flush.messages") != "1" and (replicas < REPLICAS or in_sync < IN_SYNC):
            self._refuse(
                f"the topic {name!r} may lose acknowledged records: it has replicas={replicas} and "
                f"min.insync.replicas={in_sync}; use {REPLICAS} replicas with min.insync.replicas={IN_SYNC}, or set "
                "flush.messages=1"
            )
        return int(config.get("max.message.bytes", str(RECORD_LIMIT)))

    async def _consumer(self, partition: Any = None, offset: int = 0) -> Any:
        """Return a consumer without a group that reads a partition from an offset."""
        consumer = AIOKafkaConsumer(
            **self._access(),
            enable_auto_commit=False,
            auto_offset_reset="none",
            fetch_max_bytes=4 * RECORD_LIMIT,
            max_partition_fetch_bytes=RECORD_LIMIT,
        )
        try:
            with _no_stray_cancelling():
                await consumer.start()
                if partition is not None:
                    # This connects to the leader. A consumer that is stopped while it connects to fetch leaks a socket.
                    await consumer.beginning_offsets([partition])
                    consumer.assign([partition])
                    consumer.seek(partition, offset)
        except BaseException:
            await _closed(consumer.stop())
            raise
        return consumer

    def _work(self) -> Sequence[Coroutine[Any, Any, None]]:
        return [self._publish(), self._read()]

    async def _disconnect(self) -> None:
        clients = self._producer, self._storer, self._asker
        self._producer = self._storer = self._asker = None
        for one in clients:
            if one is not None:
                await _closed(one.stop())

    async def _look(self) -> None:
        with suppress(*self.faults):
            await self._ends()
            self._fault = None

    async def _publish(self) -> None:
        while True:
            batch = await self._outbox.take()
            error: SharedLogError | None = None
            try:
                await self._deliver(batch)
            except SharedLogError as refused:
                error = refused
            batch.end(error)

    async def _deliver(self, batch: LogBatch) -> None:
        """Send records until the topic has them or nobody waits for them; SharedLogError if it can never have them."""
        records = batch.records()
        while records and batch.is_wanted():
            if self._broken is not None:
                raise SharedLogError(self._broken)
            try:
                with _no_stray_cancelling():
                    producer = self._producer = self._producer or await self._started_producer()
                    built, count = _built(producer, records)
                    await self._acknowledged(await producer.send_batch(built, self._name, partition=0))
                records, self._fault = records[count:], None
            except FINAL as error:
                raise SharedLogError(f"the topic {self._name!r} refuses a record: {self._text(error)}") from error
            except self.faults as error:  # a producer of Kafka does not go on after a batch that it gave up
                self._fault = self._text(error)
                producer, self._producer = self._producer, None
                if producer is not None:
                    await _closed(producer.stop())
                await asyncio.sleep(FIRST_WAIT)

    async def _acknowledged(self, sent: asyncio.Future[Any]) -> None:
        """Wait for an acknowledgement; the library tries for as long as it takes, and says nothing."""
        while not (await asyncio.wait([sent], timeout=MOST_WAIT))[0]:
            self._fault = "the cluster does not acknowledge records"
        sent.result()

    async def _started_producer(self) -> Any:
        producer = AIOKafkaProducer(
            **self._access(),
            enable_idempotence=True,
            acks="all",
            max_batch_size=self._largest,
            max_request_size=self._largest + FRAME_BYTES,
        )
        try:
            with _no_stray_cancelling():
                async with asyncio.timeout(2 * self._timeout):
                    await producer.start()
        except BaseException:
            await _closed(producer.stop())
            raise
        return producer

    async def _ends(self) -> tuple[int, int]:
        first, end = await self._offsets(self._partition)
        return first + 1, end

    async def _unit(self, position: int) -> LogUnit | None:
        consumer = await self._consumer(self._partition, position - 1)
        try:
            async with asyncio.timeout(4 * self._timeout):
                found = _unit((await _some(consumer))[0])
                return found if found.position == position else None
        finally:
            await _closed(consumer.stop())

    async def _read(self) -> None:
        """Read by one consumer after another; after a log that is broken, by none."""
        await self._started.wait()
        wait = FIRST_WAIT
        while True:
            consumer = None
            try:
                await self._check_place()
                consumer = await self._consumer(self._partition, self._after)
                wait = FIRST_WAIT
                with _no_stray_cancelling():
                    await self._consume(consumer)
            except LogBrokenError as error:
                self._broken = str(error)
                return
            except self.faults as error:
                self._fault = self._text(error)
            finally:
                if consumer is not None:
                    await _closed(consumer.stop())
            await asyncio.sleep(wait)
            wait = min(2 * wait, MOST_WAIT)

    async def _consume(self, consumer: Any) -> None:
        looked = time.monotonic()
        while True:
            found = await consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=READ_RECORDS)
            units = [_unit(record) for records in found.values() for record in records]
            if units:
                await self._hand(units)
                looked = time.monotonic()
            elif time.monotonic() - looked > LOOK_SECONDS:
                await self._check_place()  # the consumer itself would wait without a word
                looked = time.monotonic()

    async def _store(self, partition: int, key: str, value: bytes) -> int:
        """Append to the topic of snapshots."""
        async with self._storing:
            storer = self._storer = self._storer or await self._started_producer()
            try:
                with _no_stray_cancelling():
                    async with asyncio.timeout(2 * self._timeout):
                        stored = await storer.send_and_wait(self._snapshots, value, key.encode(), partition=partition)
            except BaseException:
                self._storer = None
                await _closed(storer.stop())
                raise
        offset: int = stored.offset
        return offset

    async def _store_part(self, id: str, number: int, part: bytes) -> int:
        return await self._store(PARTS, f"{id}-{number}", part)

    async def _store_entry(self, entry: SnapshotEntry) -> None:
        await self._store(ENTRIES, entry.id, msgspec.json.encode(entry))

    async def _offsets(self, partition: Any) -> tuple[int, int]:
        """Return the first offset of a partition, and the one after its last."""
        with _no_stray_cancelling():
            async with asyncio.timeout(self._timeout):
                first = (await self._asker.beginning_offsets([partition]))[partition]
                return first, (await self._asker.end_offsets([partition]))[partition]

    async def _oldest_part(self) -> int:
        return (await self._offsets(TopicPartition(self._snapshots, PARTS)))[0]

    async def _entries(self) -> list[tuple[int, SnapshotEntry]]:
        place = TopicPartition(self._snapshots, ENTRIES)
        first, end = await self._offsets(place)
        found: dict[int, SnapshotEntry] = {}
        consumer = await self._consumer(place, first)
        try:
            async with asyncio.timeout(4 * self._timeout):
                while await consumer.position(place) < end:
                    for record in await _some(consumer):
                        with suppress(msgspec.MsgspecError):  # of another writer
                            found[record.offset] = msgspec.json.decode(record.value or b"", type=SnapshotEntry)
        finally:
            await _closed(consumer.stop())
        return list(found.items())

    def _parts(self, entry: SnapshotEntry) -> Iterator[bytes]:
        place, number, wait = TopicPartition(self._snapshots, PARTS), 1, 4 * self._timeout
        if not entry.count or self._call(self._oldest_part()) > entry.first:
            return
        consumer = self._call(self._consumer(place, entry.first))
        try:
            at = entry.first
            while at <= entry.last:
                for record in self._call(asyncio.wait_for(_some(consumer), wait)):
                    at = record.offset + 1
                    if record.key == f"{entry.id}-{number}".encode():  # a part may be there twice
                        number += 1
                        yield record.value
        finally:
            self._call(_closed(consumer.stop()))

    async def _trim_log(self, position: int) -> None:
        await self._delete({self._partition: position})

    async def _trim_snapshots(self, place: int, entry: SnapshotEntry) -> None:
        first = {TopicPartition(self._snapshots, PARTS): entry.first} if entry.count else {}
        await self._delete({TopicPartition(self._snapshots, ENTRIES): place, **first})

    async def _delete(self, before: dict[Any, int]) -> None:
        """Remove the records of partitions before an offset."""
        admin = AIOKafkaAdminClient(**self._access())
        try:
            async with asyncio.timeout(4 * self._timeout):
                await admin.start()
                await admin.delete_records({one: RecordsToDelete(offset) for one, offset in before.items()})
        finally:
            await _closed(admin.close())


@contextmanager
def _no_stray_cancelling() -> Iterator[None]:
    """Make an error of a connection that ends: aiokafka cancels those who wait for an answer over it."""
    try:
        yield
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise KafkaConnectionError("the connection ended") from None


async def _create(admin: Any, topic: Any) -> type[KafkaError] | None:
    """Make a topic; return what the cluster says against it."""
    answer = await admin.create_topics([topic])
    code = answer.topic_errors[0][1]
    error: type[KafkaError] | None = for_code(code) if code else None
    return error


async def _config(admin: Any, topic: str) -> dict[str, str]:
    """Return all settings of a topic."""
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    return {entry[0]: entry[1] for answer in answers for resource in answer.resources for entry in resource[4]}


async def _some(consumer: Any) -> list[Any]:
    """Return records of a consumer, at least one."""
    while True:
        with _no_stray_cancelling():
            found = await consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=READ_RECORDS)
        if found:
            return [record for records in found.values() for record in records]


async def _closed(closing: Coroutine[Any, Any, None]) -> None:
    """Close a client, however it is."""
    with suppress(KafkaError, OSError, TimeoutError), _no_stray_cancelling():
        async with asyncio.timeout(STOP_SECONDS):
            await closing


def _built(producer: Any, records: Sequence[LogRecord]) -> tuple[Any, int]:
    """Return a batch of the first records, at least one, and how many it has."""
    batch, count = producer.create_batch(), 0
    for key, head, value in records:
        if batch.append(key=key.encode(), value=value, timestamp=None, headers=[(HEADER, head)]) is None:
            break
        count += 1
    batch.close()
    return batch, count


def _unit(record: Any) -> LogUnit:
    """Return a record as a unit; one of another writer has no head."""
    head = b""
    for name, value in record.headers:
        if name == HEADER:
            head = value or b""
            break
    key = (record.key or b"").decode("utf-8", "replace")
    return LogUnit(record.offset + 1, (LogRecord(key, head, record.value or b""),))
