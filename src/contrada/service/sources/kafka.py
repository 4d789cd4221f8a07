"""KafkaSourceClient: records of a topic of Kafka."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaConnectionError, KafkaError

from contrada.errors import ContradaError
from contrada.service.kafka_access import kafka_access, kafka_fault
from contrada.service.remotes import Remote
from contrada.service.sources.records import SourceRecord
from contrada.service.table_settings import SourceTable

METADATA_MILLISECONDS = 10_000  # until a topic or a partition that is new is noticed
POLL_MILLISECONDS = 500  # that a read waits for records before it looks at the connection
LOOK_SECONDS = 5.0  # without records, after which the cluster is asked whether it is there
STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


def lane_of(partition: Any) -> str:
    """Return the lane of a partition."""
    return f"{partition.topic}/{partition.partition}"


class KafkaSourceClient:
    """Reads as a member of a consumer group; only records of committed transactions are read.

    The place in the store counts: a partition starts after it, or at the group's offset if that is further. The group's
    offset is committed after records are durable here, for whoever watches the group.
    """

    def __init__(self, remote: Remote, table: SourceTable) -> None:
        self._remote, self._table = remote, table
        self._consumer: Any = None
        self._places: dict[str, int] = {}
        self._moved: dict[str, int] = {}
        self._looked = 0.0
        self._fault: Exception | None = None

    async def open(self, places: Mapping[str, int]) -> None:
        """Join the group."""
        self._places, self._moved, self._fault = dict(places), {}, None
        self._consumer = AIOKafkaConsumer(
            **kafka_access(self._remote),
            group_id=self._table.reader,
            enable_auto_commit=False,
            auto_offset_reset="earliest" if self._table.start == "oldest" else "latest",
            isolation_level="read_committed",
            request_timeout_ms=int(self._table.timeout * 1_000),
            metadata_max_age_ms=METADATA_MILLISECONDS,
            max_poll_records=self._table.batch,
        )
        try:
            async with asyncio.timeout(2 * self._table.timeout):
                await self._consumer.start()
        except KafkaConnectionError as error:
            raise ContradaError(await kafka_fault(self._remote, error, self._table.timeout)) from error
        self._consumer.subscribe([self._remote.url.topic], listener=_Assignments(self))
        self._looked = time.monotonic()

    async def assign(self, partitions: Collection[Any]) -> None:
        """Start partitions that were assigned to this member where the store and the group are."""
        try:
            await self._assign(partitions)
        except Exception as error:  # which the library would log and forget
            self._fault = error

    async def _assign(self, partitions: Collection[Any]) -> None:
        ends = await self._consumer.end_offsets(list(partitions))
        for partition in partitions:
            lane, end = lane_of(partition), ends[partition]
            place, committed = self._places.get(lane), await self._consumer.committed(partition)
            if place is not None and end <= place:
                # Offsets of a group go with their topic: if there are none, the topic was made anew. Otherwise the
                # cluster lost its last records.
                start = 0 if committed is None else end
                log.warning(
                    "source %r: %s ends at %d, before %d; reading from %d", self._table.name, lane, end, place, start
                )
                self._moved[lane] = self._places[lane] = start - 1
                self._consumer.seek(partition, start)
            elif place is not None and place + 1 > (committed or 0):
                self._consumer.seek(partition, place + 1)
            elif place is None and committed is None and self._table.start == "now":
                # Noted at once: a start before the first record would begin later and leave out what came meanwhile.
                self._moved[lane] = self._places[lane] = end - 1
                self._consumer.seek(partition, end)

    def moved(self) -> dict[str, int]:
        """Return lanes that start elsewhere, once."""
        moved, self._moved = self._moved, {}
        return moved

    async def read(self) -> list[SourceRecord]:
        """Return the next records."""
        while True:
            found = await self._consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=self._table.batch)
            if self._fault is not None:
                raise self._fault
            records = [_record(one) for part in found.values() for one in part]
            if records or self._moved:
                self._looked = time.monotonic()
                for record in records:
                    self._places[record.lane] = record.offset
                return records
            if time.monotonic() - self._looked > LOOK_SECONDS:
                await self._look()

    async def _look(self) -> None:
        """Raise an error if the cluster does not answer; the consumer itself would wait without a word."""
        async with asyncio.timeout(self._table.timeout):
            assigned = list(self._consumer.assignment())
            await (self._consumer.end_offsets(assigned) if assigned else self._consumer.topics())
        self._looked = time.monotonic()

    async def commit(self, records: Sequence[SourceRecord]) -> None:
        """Commit the offsets of the group."""
        offsets = {record.token: record.offset + 1 for record in records}
        if offsets:
            try:
                async with asyncio.timeout(self._table.timeout):
                    await self._consumer.commit(offsets)
            except (KafkaError, IllegalStateError, TimeoutError) as error:  # the place in the store counts
                log.info("source %r: offsets were not committed: %s", self._table.name, error)

    @property
    def lag(self) -> int | None:
        """The number of records of this member's partitions after the last ones that were read."""
        total = 0
        for partition in self._consumer.assignment():
            place, end = self._places.get(lane_of(partition)), self._consumer.highwater(partition)
            if place is not None and end is not None:
                total += max(0, end - place - 1)
        return total

    async def close(self) -> None:
        """Leave the group."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            with suppress(KafkaError, OSError, TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await consumer.stop()


class _Assignments:
    """Hears which partitions a member has."""

    def __init__(self, source: KafkaSourceClient) -> None:
        self._source = source

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        """Do nothing: what was read of them is published, and known if another member reads it again."""

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        await self._source.assign(assigned)


ConsumerRebalanceListener.register(_Assignments)


def _record(found: Any) -> SourceRecord:
    headers = {}
    for name, value in found.headers or ():
        text = (value or b"").decode("utf-8", "replace")
        # CloudEvents in binary mode have ce_ in Kafka.
        headers[name.lower().replace("ce_", "ce-", 1) if name.lower().startswith("ce_") else name.lower()] = text
    partition = TopicPartition(found.topic, found.partition)
    return SourceRecord(lane_of(partition), found.offset, found.value or b"", headers, partition)
