"""Records that a broker makes durable, as text and bytes for a store, and back."""

from __future__ import annotations

from typing import Any

from contrada.broker import frames
from contrada.broker.advertising import AdvertisementRecord
from contrada.broker.effects import RecordKey
from contrada.broker.frames import AnyCommand, LinkCommand, Path
from contrada.broker.link import LinkRecord
from contrada.broker.state import BrokerRecord, HeldMessages
from contrada.broker.subscribing import SubscriptionRecord
from contrada.broker.wire import decoder_of, encode
from contrada.doors import input_errors, reason_of
from contrada.errors import BrokerError

WAITING = "waiting"  # commands that have no number yet, as a type and fields

_DECODERS = {
    kind: decoder_of(type)
    for kind, type in {
        "broker": BrokerRecord,
        "link": LinkRecord,
        "subscription": SubscriptionRecord,
        "theirs": int,
        "advertisement": AdvertisementRecord,
        "forwarded": bool,
        "outbox": AnyCommand,
        WAITING: AnyCommand,
        "held": HeldMessages,
        "seen": tuple[str, ...],
        "paths": tuple[Path, ...],
    }.items()
}


def record_bytes(key: RecordKey, value: Any) -> bytes:
    """Return the value of a record as bytes.

    >>> record_value(("seen", 4), record_bytes(("seen", 4), ("m1", "m2")))
    ('m1', 'm2')
    """
    if key[0] == WAITING:
        kind, fields = value
        value = getattr(frames, kind)(0, *fields)
    return encode(value)


def record_value(key: RecordKey, data: bytes) -> Any:
    """Return the value of a record; raise BrokerError if the bytes are not of one."""
    try:
        value = _DECODERS[str(key[0])].decode(data)
    except input_errors(KeyError, TypeError, IndexError, OSError) as error:
        raise BrokerError(f"record {key!r:.80} cannot be read: {reason_of(error)}") from error
    if key[0] == WAITING:
        assert isinstance(value, LinkCommand)
        return type(value).__name__, tuple(getattr(value, name) for name in value.__struct_fields__[1:])
    return value
