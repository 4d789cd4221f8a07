"""Topics of real engines, as producers and consumers other than ours see them."""

from __future__ import annotations

import asyncio
import secrets
import threading
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

SECONDS = 10.0  # that an engine may take to answer


class Copy(NamedTuple):
    """A record of a topic: the event id in its headers, if it has one, and its body."""

    id: str | None
    body: bytes


class Topics(Protocol):
    """The topics of one engine."""

    url: str

    async def make(self, *names: str) -> None:
        """Make topics that keep the order of their records."""

    async def write(self, topic: str, body: bytes) -> None:
        """Append a record; return after it is acknowledged, raise any error if it may not be."""

    async def read(self, topic: str) -> list[Copy]:
        """Return everything that a topic has got so far."""

    async def close(self) -> None:
        """Close connections."""


class KafkaTopics:
    """Topics of Kafka with one partition."""

    def __init__(self, address: str) -> None:
        self._address, self.url = address, f"kafka://{address}"
        self._producer: Any = None

    async def make(self, *names: str) -> None:
        """Make topics."""
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic

        admin = AIOKafkaAdminClient(bootstrap_servers=self._address)
        await admin.start()
        try:
            while (await admin.describe_cluster())["controller_id"] < 0:  # an engine that has just started
                await asyncio.sleep(0.1)
            await admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1) for name in names])
        finally:
            await admin.close()

    async def write(self, topic: str, body: bytes) -> None:
        """Append a record."""
        from aiokafka import AIOKafkaProducer

        if self._producer is None:
            producer = AIOKafkaProducer(bootstrap_servers=self._address, acks="all", request_timeout_ms=3_000)
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._producer = producer
        try:
            await self._producer.send_and_wait(topic, body)
        except BaseException:
            await self.close()
            raise

    async def read(self, topic: str) -> list[Copy]:
        """Return everything."""
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(topic, bootstrap_servers=self._address, auto_offset_reset="earliest")
        await consumer.start()
        try:
            partition = TopicPartition(topic, 0)
            end = (await consumer.end_offsets([partition]))[partition]
            found: list[Copy] = []
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for one in records:
                        id = dict(one.headers).get("contrada-id")
                        found.append(Copy(None if id is None else id.decode(), one.value))
            return found
        finally:
            await consumer.stop()

    async def close(self) -> None:
        """Close the producer."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(Exception):
                await asyncio.wait_for(producer.stop(), SECONDS)


class NatsTopics:
    """Subjects of NATS, each with a stream of its own."""

    def __init__(self, port: int) -> None:
        self.url = f"nats://127.0.0.1:{port}"
        self._connection: Any = None

    async def jetstream(self) -> Any:
        """Return JetStream, over a connection that lives."""
        import nats

        if self._connection is None or not self._connection.is_connected:
            self._connection = await nats.connect(self.url, allow_reconnect=False, connect_timeout=2)
        return self._connection.jetstream(timeout=3)

    async def make(self, *names: str) -> None:
        """Make streams."""
        for name in names:
            await (await self.jetstream()).add_stream(name=name.replace(".", "-"), subjects=[name])

    async def write(self, topic: str, body: bytes) -> None:
        """Append a message."""
        await (await self.jetstream()).publish(topic, body)

    async def read(self, topic: str) -> list[Copy]:
        """Return everything."""
        stream = await self.jetstream()
        name = topic.replace(".", "-")
        last = (await stream.stream_info(name)).state.last_seq
        found = []
        for sequence in range(1, last + 1):
            one = await stream.get_msg(name, sequence)
            found.append(Copy((one.headers or {}).get("contrada-id"), one.data or b""))
        return found

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close()


class MqttTopics:
    """Topics of MQTT; `make` leaves a session behind that collects what comes."""

    def __init__(self, port: int) -> None:
        self._port, self.url = port, f"mqtt://127.0.0.1:{port}"
        self._sessions: dict[str, str] = {}
        self._got: dict[str, list[Copy]] = {}

    async def make(self, *names: str) -> None:
        """Subscribe to topics with sessions that the server keeps."""
        for name in names:
            self._sessions[name] = f"collector-{secrets.token_hex(4)}"
            self._got[name] = []
            await asyncio.to_thread(self._collect, name, 0.2)

    async def write(self, topic: str, body: bytes) -> None:
        """Publish a message."""
        await asyncio.to_thread(self._write, topic, body)

    def _write(self, topic: str, body: bytes) -> None:
        client = self._client(f"writer-{secrets.token_hex(4)}", clean=True)
        try:
            client.publish(topic, body, qos=1).wait_for_publish(SECONDS)
        finally:
            client.disconnect()
            client.loop_stop()

    def _client(self, id: str, clean: bool, on_message: Any = None) -> Any:
        from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        client = Client(CallbackAPIVersion.VERSION2, client_id=id, protocol=MQTTv5, reconnect_on_failure=False)
        connected = threading.Event()
        client.on_connect = lambda *_: connected.set()
        client.on_message = on_message
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 0 if clean else 0xFFFFFFFF
        client.connect("127.0.0.1", self._port, clean_start=clean, properties=properties)
        client.loop_start()
        if not connected.wait(SECONDS):
            client.loop_stop()
            raise TimeoutError("the server does not answer")
        return client

    def _collect(self, topic: str, seconds: float) -> None:
        """Take what waits, until nothing comes for a while."""
        came = threading.Event()

        def take(client: Any, data: Any, message: Any) -> None:
            properties = dict(getattr(message.properties, "UserProperty", ()))
            self._got[topic].append(Copy(properties.get("contrada-id"), message.payload))
            came.set()

        client = self._client(self._sessions[topic], clean=False, on_message=take)
        client.subscribe(topic, qos=1)
        while came.wait(seconds):
            came.clear()
        client.disconnect()
        client.loop_stop()

    async def read(self, topic: str) -> list[Copy]:
        """Return everything that came since `make`."""
        await asyncio.to_thread(self._collect, topic, 1.0)
        return list(self._got[topic])

    async def close(self) -> None:
        """Do nothing: connections end with each call."""
