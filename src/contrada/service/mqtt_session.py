"""MqttSession: one connection to a server of MQTT 5, for the event loop. The library reads and writes in a thread."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from contrada.errors import ContradaError
from contrada.service.remotes import Remote

KEEP_ALIVE = 30  # seconds between signs of life
FOR_EVER = 0xFFFFFFFF  # seconds that the server keeps a session
PACKET_BYTES = 1 << 10  # at most, of a packet besides topic and body


class MqttError(ContradaError):
    """A connection of MQTT failed or was closed, or the server refused a request."""


class MqttSession:
    """A connection. Without `receive` the server keeps nothing of it when it ends.

    With `receive` it belongs to a session that the server keeps under `client_id`: messages wait there while nobody is
    connected, and at most `receive` are handed over before they are acknowledged.
    """

    def __init__(self, remote: Remote, client_id: str, timeout: float, receive: int = 0) -> None:
        self._remote, self._timeout, self._receive = remote, timeout, receive
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[tuple[str, int], asyncio.Future[Any]] = {}
        self._connected: asyncio.Future[Any] = self._loop.create_future()
        self._messages: deque[Any] = deque()
        self._arrived = asyncio.Event()
        self._lost: MqttError | None = None
        self.most_bytes: int | None = None  # of a packet that the server takes
        self._client = self._make_client(client_id)

    def _make_client(self, client_id: str) -> Any:
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            protocol=MQTTv5,
            reconnect_on_failure=False,
            manual_ack=self._receive > 0,
        )
        client.connect_timeout = self._timeout
        if self._remote.user is not None:
            client.username_pw_set(self._remote.user, self._remote.password)
        tls = self._remote.tls()
        if tls is not None:
            client.tls_set_context(tls)
        tell = self._loop.call_soon_threadsafe
        client.on_connect = lambda _c, _u, _f, code, more: tell(self._answer_connect, code, more)
        client.on_disconnect = lambda _c, _u, _f, code, _m: tell(self._lose, f"the connection ended: {code}")
        client.on_publish = lambda _c, _u, number, code, _m: tell(self._answer, ("publish", number), code)
        client.on_subscribe = lambda _c, _u, number, codes, _m: tell(self._answer, ("subscribe", number), codes[0])
        client.on_message = lambda _c, _u, message: tell(self._take, message)
        return client

    # --- what the thread tells ---

    def _answer_connect(self, code: Any, properties: Any) -> None:
        self.most_bytes = getattr(properties, "MaximumPacketSize", None)
        if not self._connected.done():
            self._connected.set_result(code)

    def _answer(self, request: tuple[str, int], code: Any) -> None:
        future = self._waiting.pop(request, None)
        if future is not None and not future.done():
            future.set_result(code)

    def _take(self, message: Any) -> None:
        self._messages.append(message)
        self._arrived.set()

    def _lose(self, reason: str) -> None:
        if not self._connected.done():
            reason += ", before the server had answered; does it ask for TLS?"
        self._lost = MqttError(reason)
        for future in (self._connected, *self._waiting.values()):
            if not future.done():
                future.set_exception(self._lost)
                future.exception()  # somebody may have stopped to wait for it
        self._arrived.set()

    # --- life ---

    async def open(self) -> None:
        """Connect; raise MqttError, OSError or TimeoutError if that fails."""
        properties = Properties(PacketTypes.CONNECT)
        if self._receive:
            properties.SessionExpiryInterval, properties.ReceiveMaximum = FOR_EVER, self._receive
        ((host, port),) = self._remote.url.servers
        async with asyncio.timeout(2 * self._timeout):
            await asyncio.to_thread(
                self._client.connect, host, port, KEEP_ALIVE, clean_start=not self._receive, properties=properties
            )
            self._client.loop_start()
            code = await self._connected
        if code.is_failure:
            raise MqttError(f"the server refused the connection: {code}")

    async def close(self) -> None:
        """Say goodbye, and end the thread."""
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)

    @property
    def is_open(self) -> bool:
        """True until the connection is lost."""
        return self._lost is None

    # --- requests ---

    async def publish(self, topic: str, body: bytes, properties: Any) -> Any:
        """Send a message with quality of service 1; return the reason code of the server's acknowledgement."""
        if self._lost is not None:
            raise self._lost
        sent = self._client.publish(topic, body, qos=1, properties=properties)
        return await self._answered("publish", sent.mid)

    async def subscribe(self, topic: str) -> None:
        """Ask for the messages of a topic, with quality of service 1; retained ones come the first time only."""
        options = SubscribeOptions(qos=1, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB)
        _, number = self._client.subscribe(topic, options=options)
        code = await self._answered("subscribe", number)
        if code.is_failure:
            raise MqttError(f"the server refused the topic: {code}")

    async def _answered(self, kind: str, number: int) -> Any:
        # The thread's answer comes through the loop, after this future is there.
        future = self._waiting[kind, number] = self._loop.create_future()
        try:
            async with asyncio.timeout(self._timeout):
                return await future
        finally:
            self._waiting.pop((kind, number), None)

    async def receive(self, limit: int) -> list[Any]:
        """Return the next messages, at least one; raise MqttError if the connection is lost."""
        while not self._messages:
            if self._lost is not None:
                raise self._lost
            self._arrived.clear()
            await self._arrived.wait()
        if self._lost is not None:  # these come again in the next connection
            raise self._lost
        return [self._messages.popleft() for _ in range(min(limit, len(self._messages)))]

    def acknowledge(self, message: Any) -> None:
        """Acknowledge a message, in the order in which they came."""
        if message.qos:
            self._client.ack(message.mid, message.qos)
