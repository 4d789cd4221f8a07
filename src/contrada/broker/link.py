"""Link: all that a broker knows about one neighbour."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any

import msgspec

from contrada.broker.forwarding import Covering, Forwarding, LinkOptions
from contrada.broker.frames import AnyCommand, LinkCommand, Path


class Phase(Enum):
    """Where a connection stands: there is none, greetings are on their way, or commands flow."""

    DOWN = "down"
    GREETING = "greeting"
    UP = "up"


class LinkRecord(msgspec.Struct, frozen=True):
    """What must be durable of a link, besides its outbox, its paths and what was forwarded."""

    interface: int
    options: LinkOptions
    incarnation: int | None
    received: int
    acknowledged: int
    is_in_step: bool
    is_heard: bool
    refused: tuple[int, ...]
    dropped: int = 0


class Link:
    """A neighbour: how far both directions are, what it was told, and what it told us."""

    def __init__(self, name: str, interface: int, options: LinkOptions, forwarding: Forwarding) -> None:
        self.name, self.interface, self.options = name, interface, options
        self.phase = Phase.DOWN
        self.incarnation: int | None = None  # of the neighbour, when it last said hello
        # Towards the neighbour: the subscriptions that concern it, and the commands that it has not acknowledged.
        self.forwarding = forwarding
        self.advertising = Covering(withdraw=True)
        self.sent = self.acknowledged = 0
        self.outbox: deque[AnyCommand] = deque()
        self.dropped = 0  # messages that waited for the neighbour when there were too many
        self.is_in_step = False  # the neighbour was told, or is being told by commands, all that it should hold
        self.waiting: list[tuple[type[LinkCommand], tuple[Any, ...]]] = []  # commands until then
        self.greeted: set[str] = set()  # brokers that the last hello to the neighbour named
        self.held: tuple[int, ...] | None = None  # digests of what the neighbour holds
        self.asked: set[int] = set()  # buckets that it was asked to show
        self.shown: dict[int, dict[int, int]] = {}  # by bucket, ids and digests that it showed
        # From the neighbour.
        self.received = self.answered = 0  # last command, and last one acknowledged
        self.is_heard = False  # it has told all that we should hold
        self.rows: dict[int, int] = {}  # its subscriptions: rows by its ids
        self.advertised: dict[int, int] = {}  # its advertisements: numbers by its ids
        self.refused: set[int] = set()  # its subscriptions that we could not take
        self.paths: dict[str, Path] = {}  # brokers on its side, and the way to each

    def record(self) -> LinkRecord:
        """Return what must be durable."""
        return LinkRecord(
            self.interface, self.options, self.incarnation, self.received, self.acknowledged,
            self.is_in_step, self.is_heard, tuple(sorted(self.refused)), self.dropped,
        )  # fmt: skip

    def forget_connection(self) -> None:
        """Forget what only this connection was about."""
        self.phase = Phase.DOWN
        self.held = None
        self.asked.clear()
        self.shown.clear()
