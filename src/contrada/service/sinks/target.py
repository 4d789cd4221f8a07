"""SinkTarget: what the courier of a sink delivers to."""

from __future__ import annotations

from contrada.service.deliveries.bodies import Parcel
from contrada.service.deliveries.courier import DeliveryCounts
from contrada.service.deliveries.outcomes import Outcome
from contrada.service.deliveries.progress import DeliveryKey
from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.remotes import missing_engine
from contrada.service.sinks.records import SinkClient, records_of
from contrada.service.table_settings import SinkTable


class SinkTarget:
    """A topic, and the client that reaches it."""

    is_paused = False

    def __init__(self, table: SinkTable, key: DeliveryKey, client: SinkClient, counts: DeliveryCounts) -> None:
        self.table, self._key, self._client, self._counts = table, key, client, counts

    @property
    def batch(self) -> int:
        """The most events that are sent together."""
        return self.table.batch

    def policy(self, default: RetryPolicy) -> RetryPolicy:
        """Return when events of this sink are given up."""
        return default.limited(self.table.attempts, self.table.age)

    async def send(self, parcel: Parcel) -> Outcome:
        """Send a parcel, once."""
        self._counts.in_flight += 1
        try:
            return await self._client.send(records_of(parcel, self._key, self.table.format))
        finally:
            self._counts.in_flight -= 1

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


def open_sink(table: SinkTable) -> SinkClient:
    """Return a client for the topic of a sink; raise MissingEngineError if its library is not installed.

    Libraries are imported here, for servers that use them.
    """
    remote = table.remote()
    try:
        if remote.url.engine == "kafka":
            from contrada.service.sinks.kafka import KafkaSinkClient

            return KafkaSinkClient(remote, table.timeout)
        if remote.url.engine == "nats":
            from contrada.service.sinks.nats import NatsSinkClient

            return NatsSinkClient(remote, table.timeout)
        from contrada.service.sinks.mqtt import MqttSinkClient

        return MqttSinkClient(remote, table.timeout)
    except ModuleNotFoundError as error:
        raise missing_engine(error, f"sink {table.name!r}", remote.url.engine) from error
