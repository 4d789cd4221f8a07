"""Counts of what a simulated network does: frames by kind, bytes, table entries, matching work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from contrada.broker.effects import RecordKey
from contrada.broker.frames import Frame, LinkCommand, Publish


@dataclass(slots=True)
class LinkCounts:
    """Frames that one broker sent to one neighbour, those that were lost on the way included.

    `control` are commands about subscriptions, advertisements and topology; `publications` are frames with messages,
    and `messages` their rows; `signals` are all frames without a number. `bytes` is 0 unless the simulator encodes.
    """

    control: int = 0
    signals: int = 0
    publications: int = 0
    messages: int = 0
    bytes: int = 0

    def add(self, frame: Frame, size: int) -> None:
        """Count a frame of `size` bytes."""
        self.bytes += size
        if isinstance(frame, Publish):
            self.publications += 1
            self.messages += len(frame.ids)
        elif isinstance(frame, LinkCommand):
            self.control += 1
        else:
            self.signals += 1


class Counts(NamedTuple):
    """Counts of a whole network.

    The first five are sums over all links. `lost` frames did not arrive. `entries` are the subscriptions in all tables
    now. `matched` messages were matched against a table, each once for every broker that took it. `false_positives`
    are messages that came to a broker from a neighbour and were new there, but neither delivered nor forwarded.
    `deliveries` are pairs of a message and a client. `missing` messages were lost with the state of a broker, each
    counted for every link that it should have passed next.
    """

    control: int
    signals: int
    publications: int
    messages: int
    bytes: int
    lost: int
    entries: int
    matched: int
    false_positives: int
    deliveries: int
    missing: int

    def since(self, earlier: Counts) -> Counts:
        """Return the differences to earlier counts."""
        return Counts(*(now - before for now, before in zip(self, earlier, strict=True)))


class MissingMessage(NamedTuple):
    """A message that a broker lost with its state; `neighbour` is None if the broker had not routed it yet."""

    broker: str
    neighbour: str | None
    message: str


def kept_messages(broker: str, records: Mapping[RecordKey, Any]) -> Iterator[MissingMessage]:
    """Yield the messages that a broker keeps in its records, for a neighbour or until it can route them."""
    for (kind, *rest), value in records.items():
        neighbour = str(rest[0]) if rest else None
        ids: tuple[str, ...] = ()
        if kind == "outbox" and isinstance(value, Publish):
            ids = value.ids
        elif kind == "waiting" and value[0] == Publish.__name__:
            ids = value[1][0]
        elif kind == "held":
            neighbour, ids = None, value.ids
        yield from (MissingMessage(broker, neighbour, id) for id in ids)


def seen_messages(records: Iterable[tuple[RecordKey, Any]]) -> set[str]:
    """Return the ids of messages that records say were seen."""
    return {id for (kind, *_), ids in records if kind == "seen" and ids is not None for id in ids}
