"""Connection: frames between two simulated brokers arrive in order, until the connection is cut or closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from contrada.broker.forwarding import LinkOptions


class Connection:
    """One connection of a link; the next one of the same link is another object.

    Each end learns at a time of its own that the connection is up. Frames to an end wait until then.
    """

    def __init__(self, ups: dict[str, float]) -> None:
        self.is_over = False
        self._arrivals = dict(ups)  # of the latest frame to each end; at first when the end is up
        self._lost_from = dict.fromkeys(ups, inf)

    def arrival(self, to: str, time: float) -> float:
        """Return when a frame arrives that would arrive at `time` if it had not to wait for earlier ones."""
        self._arrivals[to] = max(self._arrivals[to], time)
        return self._arrivals[to]

    def lose_from(self, to: str, time: float) -> None:
        """Lose frames that would arrive at an end after `time`."""
        self._lost_from[to] = time

    def is_lost(self, to: str, time: float) -> bool:
        """Return True if a frame that would arrive at `time` is lost."""
        return time > self._lost_from[to]


@dataclass(slots=True)
class Wire:
    """A link as the hosts of both brokers see it: its options, its connection, and whether it is cut."""

    ends: tuple[str, str]
    options: LinkOptions
    is_cut: bool = False
    connection: Connection | None = None
    free_at: dict[str, float] = field(default_factory=dict)  # when each end knows that the last connection is gone

    def other(self, end: str) -> str:
        """Return the other end."""
        return self.ends[self.ends[0] == end]
