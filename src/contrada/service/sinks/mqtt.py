"""MqttSinkClient: records to a topic of MQTT."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from contrada.service.deliveries.outcomes import REASON_CHARACTERS, TAKEN, Outcome
from contrada.service.mqtt_session import PACKET_BYTES, MqttError, MqttSession
from contrada.service.remotes import Remote
from contrada.service.sinks.records import CONTENT_TYPE, SinkRecord

BAD_PAYLOAD = 0x99  # reason code of a server that reads bodies and does not take this one


class MqttSinkClient:
    """Publishes records one after another with quality of service 1; each waits for the server's acknowledgement."""

    def __init__(self, remote: Remote, timeout: float) -> None:
        self._remote, self._timeout = remote, timeout
        self._session: MqttSession | None = None

    async def send(self, records: Sequence[SinkRecord]) -> Outcome:
        """Send records."""
        taken, topic = 0, self._remote.url.topic
        try:
            session = await self._connected()
            for record in records:
                if session.most_bytes is not None and len(record.body) + len(topic) + PACKET_BYTES > session.most_bytes:
                    return Outcome(0, "the event is larger than the server takes", taken=taken, is_final=True)
                code = await session.publish(topic, record.body, _properties(record))
                if code.is_failure:
                    return Outcome(0, f"the server answered: {code}", taken=taken, is_final=code.value == BAD_PAYLOAD)
                taken += 1
            return Outcome(TAKEN)
        except (MqttError, OSError, TimeoutError) as error:
            await self.close()
            reason = str(error) or f"no answer within {self._timeout:g} s"
            return Outcome(0, reason[:REASON_CHARACTERS], taken=taken)

    async def _connected(self) -> MqttSession:
        if self._session is None or not self._session.is_open:
            await self.close()
            self._session = MqttSession(self._remote, f"contrada-{secrets.token_hex(8)}", self._timeout)
            await self._session.open()
        return self._session

    async def close(self) -> None:
        """Close the connection; the next attempt makes a new one."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(OSError):
                await session.close()


def _properties(record: SinkRecord) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)
    properties.ContentType = record.headers[CONTENT_TYPE]
    properties.UserProperty = [(name, value) for name, value in record.headers.items() if name != CONTENT_TYPE]
    return properties
