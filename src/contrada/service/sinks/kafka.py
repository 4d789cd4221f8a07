"""KafkaSinkClient: records to a topic of Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError
from aiokafka.partitioner import DefaultPartitioner

from contrada.service.deliveries.outcomes import REASON_CHARACTERS, TAKEN, Outcome
from contrada.service.kafka_access import kafka_access, kafka_fault
from contrada.service.remotes import Remote
from contrada.service.sinks.records import SinkRecord

BATCH_BYTES = 900_000  # in one batch; a broker takes 1,048,588 by default, headers included
TOO_LARGE = 413
STOP_SECONDS = 5.0


class KafkaSinkClient:
    """Sends batches to the partition that the key of its records has by the partitioner of Kafka's own producers.

    All replicas that are in sync acknowledge a batch. A batch is appended as a whole or not at all, and the producer is
    idempotent: a batch that it sends again because the answer was lost is stored once. Only if an attempt ends without
    an answer, and the next one is made by a new producer, may records come twice.
    """

    def __init__(self, remote: Remote, timeout: float) -> None:
        self._remote, self._timeout = remote, timeout
        self._producer: Any = None
        self._partitioner = DefaultPartitioner()

    async def send(self, records: Sequence[SinkRecord]) -> Outcome:
        """Send records, in as few batches as their sizes allow."""
        taken = size = 0
        try:
            async with asyncio.timeout(2 * self._timeout):  # the library gives up before
                producer = await self._connected()
                while taken < len(records):
                    batch, size = _batch(producer, records[taken:])
                    partition = await self._partition(producer, records[taken].key.encode())
                    await (await producer.send_batch(batch, self._remote.url.topic, partition=partition))
                    taken += size
            return Outcome(TAKEN)
        except (MessageSizeTooLargeError, RecordListTooLargeError) as error:
            return Outcome(TOO_LARGE, str(error)[:REASON_CHARACTERS], taken=taken, is_final=size == 1)
        except (KafkaError, OSError, TimeoutError) as error:
            await self.close()
            reason = await kafka_fault(self._remote, error, self._timeout)
            return Outcome(0, reason[:REASON_CHARACTERS], taken=taken)

    async def _partition(self, producer: Any, key: bytes) -> int:
        partitions = sorted(await producer.partitions_for(self._remote.url.topic))
        found: int = self._partitioner(key, partitions, partitions)
        return found

    async def _connected(self) -> Any:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **kafka_access(self._remote),
                enable_idempotence=True,
                acks="all",
                max_batch_size=BATCH_BYTES,
                request_timeout_ms=int(self._timeout * 1_000),
            )
            try:
                await producer.start()
            except BaseException:
                await _stop(producer)
                raise
            self._producer = producer
        return self._producer

    async def close(self) -> None:
        """Close the connection; the next attempt makes a new one."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await _stop(producer)


async def _stop(producer: Any) -> None:
    with suppress(KafkaError, OSError, TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            await producer.stop()


def _batch(producer: Any, records: Sequence[SinkRecord]) -> tuple[Any, int]:
    """Return a batch of the first records, at least one, and how many it has."""
    batch, count = producer.create_batch(), 0
    for record in records:
        headers = [(name, value.encode()) for name, value in record.headers.items()]
        if batch.append(key=record.key.encode(), value=record.body, timestamp=None, headers=headers) is None:
            break
        count += 1
    batch.close()
    return batch, count
