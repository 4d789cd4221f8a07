"""Engines of a shared log on their own: servers with durable settings, and plain publishing to them from Python."""

import asyncio
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import uvloop

from benchmarks.report import ROOT, SkippedError
from contrada.collecting import collections_paused
from engine_servers import nats_server
from fetched_programs import NoProgramError

sys.path.append(str(ROOT / "tests" / "pipeline"))  # it has the broker of Kafka that tests of streams start

IN_FLIGHT = 4_000  # messages without an acknowledgement in JetStream: the default of nats-py; fewer are slower
KAFKA_BATCHES = {"batches of 1 MiB": 1 << 20, "batches of 16 KiB (default)": 1 << 14}  # of records; best first
LARGEST = 8 << 20  # bytes of a request to Kafka


class RawLog(ABC):
    """An engine that is running; what it acknowledges is on disk."""

    name: str
    url: str
    is_judged: bool  # the bar of the issue is for one engine or the other

    @classmethod
    @contextmanager
    @abstractmethod
    def running(cls, folder: Path) -> Iterator[Self]:
        """Yield an engine with its data in a folder; SkippedError if its program is not there."""

    @abstractmethod
    def rates(self, bodies: Sequence[bytes], batches: Sequence[bytes]) -> dict[str, float]:
        """Publish messages in several ways; return messages per second of each.

        The first is the best way that has a record for each message, which other readers of the engine need.
        """


class RawNats(RawLog):
    """A NATS server that synchronises before it acknowledges."""

    name, is_judged = "JetStream", True

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Self]:
        """Yield a server."""
        folder.mkdir()
        try:
            server = nats_server(folder)
        except NoProgramError as error:
            raise SkippedError(f"engines: {error}") from error
        server.start()
        try:
            yield cls(f"nats://127.0.0.1:{server.port}")
        finally:
            server.kill()

    def __init__(self, url: str) -> None:
        self.url = url

    def rates(self, bodies: Sequence[bytes], batches: Sequence[bytes]) -> dict[str, float]:
        """Publish a message of the stream for each body, and for each batch of them."""
        return {
            "a message each": len(bodies) / uvloop.run(self._publish(bodies)),
            "whole posts as one message": len(bodies) / uvloop.run(self._publish(batches)),
        }

    async def _publish(self, payloads: Sequence[bytes]) -> float:
        """Return the seconds until all payloads are acknowledged."""
        import nats

        connection = await nats.connect(self.url)
        jetstream = connection.jetstream(publish_async_max_pending=IN_FLIGHT)
        await jetstream.add_stream(name="raw", subjects=["raw"], storage="file", discard="new")
        with collections_paused():
            start = time.perf_counter()
            await asyncio.gather(*[await jetstream.publish_async("raw", one, wait_stall=60.0) for one in payloads])
            seconds = time.perf_counter() - start
        stored = (await jetstream.stream_info("raw")).state.messages
        assert stored == len(payloads), f"{stored:,} of {len(payloads):,} messages are in the stream"
        await jetstream.delete_stream("raw")
        await connection.close()
        return seconds


class RawKafka(RawLog):
    """A broker of Kafka; topics have one partition, and are synchronised before a batch is acknowledged."""

    name, is_judged = "Kafka", False

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Self]:
        """Yield a broker."""
        import kafka_broker

        folder.mkdir()
        try:
            server = kafka_broker.Broker(kafka_broker.broker_jars(), folder, partitions=1)
        except kafka_broker.UnavailableError as error:
            raise SkippedError(f"engines: {error}") from error
        server.start()
        try:
            yield cls(server.address)
        finally:
            server.kill()

    def __init__(self, address: str) -> None:
        self._address, self.url = address, f"kafka://{address}"

    def rates(self, bodies: Sequence[bytes], batches: Sequence[bytes]) -> dict[str, float]:
        """Publish a record for each body, in batches of two sizes, and for each batch of messages."""
        found = {}
        for name, size in KAFKA_BATCHES.items():
            found[f"a record each, {name}"] = len(bodies) / uvloop.run(self._publish(bodies, size))
        most = max(KAFKA_BATCHES.values())
        found["whole posts as one record"] = len(bodies) / uvloop.run(self._publish(batches, most))
        return found

    async def _publish(self, payloads: Sequence[bytes], size: int) -> float:
        """Return the seconds until all payloads are acknowledged."""
        from aiokafka import AIOKafkaProducer
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic

        topic = f"raw-{time.time_ns()}"
        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        settings = {"flush.messages": "1", "max.message.bytes": str(LARGEST)}
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=settings)])
        access: dict[str, Any] = {"bootstrap_servers": self._address, "enable_idempotence": True, "acks": "all"}
        async with AIOKafkaProducer(**access, max_batch_size=size, max_request_size=LARGEST) as producer:
            await producer.send_and_wait(topic, b"{}", partition=0)  # the client knows the topic afterwards
            with collections_paused():
                start = time.perf_counter()
                await asyncio.gather(*[await producer.send(topic, one, partition=0) for one in payloads])
                seconds = time.perf_counter() - start
        await admin.delete_topics([topic])
        await admin.close()
        return seconds
