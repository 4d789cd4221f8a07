"""Counts of what a simulated network does: frames by kind, bytes, table entries, matching work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from contrada.broker.frames import Command, Frame, Publish


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
        elif isinstance(frame, Command):
            self.control += 1
        else:
            self.signals += 1


class Counts(NamedTuple):
    """Counts of a whole network.

    The first five are sums over all links. `lost` frames did not arrive. `entries` are the subscriptions in all tables
    now. `matched` messages were matched against a table, each once for every broker that took it. `false_positives`
    are messages that came to a broker from a neighbour and were new there, but neither delivered nor forwarded.
    `deliveries` are pairs of a message and a client.
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

    def since(self, earlier: Counts) -> Counts:
        """Return the differences to earlier counts."""
        return Counts(*(now - before for now, before in zip(self, earlier, strict=True)))
