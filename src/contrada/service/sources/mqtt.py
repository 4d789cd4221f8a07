"""MqttSourceClient: messages of a topic of MQTT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from contrada.service.mqtt_session import MqttSession
from contrada.service.remotes import Remote
from contrada.service.sources.records import SourceRecord
from contrada.service.table_settings import SourceTable


class MqttSourceClient:
    """Reads with quality of service 1 in a session that the server keeps; acknowledges what is durable here.

    A message that the server sends again after a break has its flag DUP and its packet id: together with a digest they
    tell whether it was published already.
    """

    lag: int | None = None  # a server of MQTT does not tell

    def __init__(self, remote: Remote, table: SourceTable) -> None:
        self._remote, self._table = remote, table
        self._session: MqttSession | None = None

    async def open(self, places: Mapping[str, int]) -> None:
        """Connect and subscribe."""
        self._session = MqttSession(self._remote, self._table.reader, self._table.timeout, self._table.batch)
        await self._session.open()
        await self._session.subscribe(self._remote.url.topic)

    def moved(self) -> dict[str, int]:
        """Return nothing: there are no places."""
        return {}

    async def read(self) -> list[SourceRecord]:
        """Return the next messages."""
        assert self._session is not None
        return [_record(message) for message in await self._session.receive(self._table.batch)]

    async def commit(self, records: Sequence[SourceRecord]) -> None:
        """Acknowledge messages."""
        assert self._session is not None
        for record in records:
            self._session.acknowledge(record.token)

    async def close(self) -> None:
        """Close the connection; messages wait at the server."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(OSError):
                await session.close()


def _record(message: Any) -> SourceRecord:
    headers: dict[str, str] = {}
    properties = dict(getattr(message.properties, "UserProperty", ()))
    if "specversion" in properties:  # a CloudEvent in binary mode
        headers = {f"ce-{name}": value for name, value in properties.items()}
    content_type = getattr(message.properties, "ContentType", None)
    if content_type is not None:
        headers["content-type"] = content_type
    digest = blake2b(f"{message.topic}\0".encode() + message.payload, digest_size=16).digest()
    mark = message.mid.to_bytes(2) + digest if message.qos else b""
    return SourceRecord(message.topic, -1, message.payload, headers, message, mark, bool(message.dup))
