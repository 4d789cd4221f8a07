"""LinkState: what the engine's thread knows of links besides the broker core: frames to send, connections, counts."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

from contrada.broker.effects import CloseLink, RecordKey, Refused, RejectedMessages, Send
from contrada.broker.frames import LinkAck, Publish
from contrada.broker.wire import encode
from contrada.errors import ContradaError
from contrada.service.links.backlogs import Backlogs

BACKLOG_BYTES = 64 << 20
SHOWN_REFUSALS = 100  # subscriptions that a broker on the way could not take, by tenant

log = logging.getLogger("contrada.service")


class LinkFrame(NamedTuple):
    """A frame to send over a connection after the commit."""

    connection: Any
    data: bytes


class LinkEnd(NamedTuple):
    """A connection to close after the frames before it."""

    connection: Any
    reason: str


class LinkState:
    """Links of all tenants on one core; it begins anew when the core is loaded again.

    At most `backlog_bytes` wait for a neighbour.
    """

    def __init__(self, backlog_bytes: int = BACKLOG_BYTES) -> None:
        self.backlog_bytes = backlog_bytes
        self.backlogs = Backlogs()
        self.connections: dict[tuple[str, str], Any] = {}  # by tenant and neighbour
        self.refusals: dict[tuple[str, Any], str] = {}  # reasons, by tenant and number of the subscription
        self.received = self.rejected = 0  # messages of neighbours since the start
        self.dropped = 0  # messages for neighbours
        self._outgoing: list[LinkFrame | LinkEnd] = []
        self._relayed: list[LinkFrame] = []  # publications of neighbours, which need not wait for the commit
        self._held_back: set[Any] = set()  # connections with frames that wait for it
        self._encoded: dict[int, tuple[Any, bytes]] = {}  # commands of the transaction by identity

    def note_record(self, tenant: str, key: RecordKey, value: Any, data: bytes | None) -> None:
        """Note a record that a broker wants to be durable; a command is encoded once for disk and wire."""
        self.backlogs.note(tenant, key, None if data is None else len(data))
        if key[0] == "outbox" and data is not None:
            self._encoded[id(value)] = value, data

    def add(self, tenant: str, effect: Send | CloseLink, relays: bool = False) -> None:
        """Take a frame to send, or a connection to close, after the commit.

        With `relays` a publication goes before it, unless it would overtake a frame: the neighbour that it came from
        keeps it until this broker acknowledges it, and that waits for the commit.
        """
        connection = self.connections.get((tenant, effect.neighbour))
        if connection is None:
            return
        if isinstance(effect, CloseLink):
            self._outgoing.append(LinkEnd(connection, effect.reason))
            self._held_back.add(connection)
            return
        known = self._encoded.get(id(effect.frame))
        frame = LinkFrame(connection, encode(effect.frame) if known is None else known[1])
        if relays and isinstance(effect.frame, Publish) and connection not in self._held_back:
            self._relayed.append(frame)
            return
        self._outgoing.append(frame)
        if not isinstance(effect.frame, LinkAck):  # which says nothing about the order of others
            self._held_back.add(connection)

    def take_relayed(self) -> list[LinkFrame]:
        """Return what is to be sent before the transaction is durable."""
        relayed, self._relayed = self._relayed, []
        return relayed

    def take_outgoing(self) -> list[LinkFrame | LinkEnd]:
        """Return what is to be sent now that the transaction is durable."""
        outgoing, self._outgoing = self._outgoing, []
        self._encoded.clear()
        self._held_back.clear()
        return outgoing

    def note_rejected(self, tenant: str, effect: RejectedMessages) -> None:
        """Count messages of a neighbour that cannot be matched or delivered here."""
        self.rejected += len(effect.rows)
        for item in effect.rows[:1]:
            log.warning("tenant %s: %d messages of a neighbour are rejected: %s", tenant, len(effect.rows), item.reason)

    def note_refused(self, tenant: str, effect: Refused) -> None:
        """Keep why a broker on the way could not take a subscription."""
        log.warning("tenant %s: a broker cannot take subscription %s: %s", tenant, effect.key, effect.reason)
        self.refusals.pop((tenant, effect.key), None)
        self.refusals[tenant, effect.key] = effect.reason
        while len(self.refusals) > SHOWN_REFUSALS:
            del self.refusals[next(iter(self.refusals))]


class ExpectingError(ContradaError):
    """A broker that lost its state has not heard yet what its neighbours want; the same may be sent again later."""

    def __init__(self, neighbours: Iterable[str]) -> None:
        super().__init__(f"the broker waits for its neighbours {', '.join(neighbours)} to tell what they want")
