"""Records of a sink: one for each event, with the headers by which receivers tell repetitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

from contrada.service.deliveries.bodies import BodyFormat, Parcel, content_type, parcel_body
from contrada.service.deliveries.outcomes import Outcome
from contrada.service.deliveries.progress import DeliveryKey

ID_HEADER, CONTENT_TYPE = "contrada-id", "content-type"


class SinkRecord(NamedTuple):
    """A record for a topic.

    `key` is the same for all records of a sink. `mark` is the same for two records only if one repeats the other: it
    depends on the body too, so that a server that lost its state and counts events from 1 again has other marks.
    """

    id: str
    key: str
    body: bytes
    mark: str
    headers: Mapping[str, str]


class SinkClient(Protocol):
    """Sends records to one topic."""

    async def send(self, records: Sequence[SinkRecord]) -> Outcome:
        """Send records in order and wait until the topic has them; never raise for what the other side does.

        A record is sent after the one before was taken, or together with it: none is taken if one before it is not.
        """

    async def close(self) -> None:
        """Close the connection."""


def records_of(parcel: Parcel, key: DeliveryKey, format: BodyFormat) -> list[SinkRecord]:
    """Return a record for each event of a parcel, or one for the news that it is."""
    parcels = [Parcel.of_events([event]) for event in parcel.events] or [parcel]
    return [_record(one, key, format) for one in parcels]


def _record(parcel: Parcel, key: DeliveryKey, format: BodyFormat) -> SinkRecord:
    body = parcel_body(parcel, key.subscriber, format, is_batch=False)
    mark = blake2b(f"{key.record}\0{parcel.id}\0".encode() + body, digest_size=16).hexdigest()
    headers = {CONTENT_TYPE: content_type(format, is_batch=False), ID_HEADER: parcel.id}
    return SinkRecord(parcel.id, key.subscriber, body, mark, headers)
