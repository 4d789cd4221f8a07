"""One peer of the overlay as a state machine: notes in, notes out, without clock and network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from contrada.overlay import joining, liveness, protocol, routing, structure
from contrada.overlay.interest import Interest
from contrada.overlay.protocol import AnyNote, Down, PeerId, Publication, Sent, Up
from contrada.overlay.rules import Rules
from contrada.overlay.state import PeerState

# What a peer does with each kind of note, except with the frequent `Down`.
_HANDLERS: dict[type, Callable[[PeerState, Any], None]] = {
    protocol.Up: routing.up,
    protocol.Join: joining.join,
    protocol.Place: joining.place,
    protocol.Report: joining.report,
    protocol.Adopted: joining.adopted,
    protocol.Take: structure.take,
    protocol.Replace: joining.replace,
    protocol.Leave: joining.leave,
    protocol.Orphaned: joining.orphaned,
    protocol.Yield: lambda state, note: joining.give_way(state, note.root),
}
_NEIGHBOUR_HANDLERS: dict[type, Callable[[PeerState, PeerId, Any, float], None]] = {
    protocol.Beat: liveness.beat,
    protocol.Ack: liveness.ack,
    protocol.Disown: liveness.disown,
}


class Peer:
    """A peer that knows only its neighbours: for each of its nodes the children with their boxes, and one parent.

    Every method returns the notes to send; `take_deliveries` returns the messages that match. `now` is the time in
    seconds by any clock that never runs backwards.

    >>> from contrada.overlay.interest import Rectangles
    >>> a, b = (Peer(name, Rectangles([box]), Rules()) for name, box in [("a", (0.0, 5.0)), ("b", (4.0, 6.0))])
    >>> [(to, join)] = b.join("a")
    >>> for to, note in a.handle("b", join):
    ...     _ = b.handle("a", note)
    >>> a.state.nodes[1].keys() == {"a", "b"}, b.state.parent
    (True, 'a')
    >>> [(to, note)] = a.publish(Publication(1, (5.5, 5.5)))
    >>> b.handle("a", note), b.take_deliveries()
    ([], [Publication(key=1, where=(5.5, 5.5), body=None)])
    """

    __slots__ = ("state",)

    def __init__(self, id: PeerId, interest: Interest, rules: Rules, seed: int = 0) -> None:
        self.state = PeerState(id, interest, rules, seed)

    @property
    def id(self) -> PeerId:
        """The name of this peer."""
        return self.state.id

    def join(self, *contacts: PeerId, now: float = 0.0) -> list[Sent]:
        """Enter the overlay through the first of `contacts`; the others are tried if it does not answer."""
        self.state.now = self.state.joined = now
        self.state.bootstrap = tuple(contacts)
        structure.seek(self.state, contacts[0])
        return self._sent()

    def leave(self) -> list[Sent]:
        """Leave the overlay; afterwards the peer only passes on notes that still arrive."""
        joining.depart(self.state)
        return self._sent()

    def publish(self, publication: Publication, now: float = 0.0) -> list[Sent]:
        """Send a message to all peers that want it, including this one."""
        self.state.now = now
        routing.up(self.state, Up(publication))
        return self._sent()

    def tick(self, now: float) -> list[Sent]:
        """Check the neighbours; call once per period."""
        self.state.now = now
        liveness.tick(self.state, now)
        return self._sent()

    def handle(self, sender: PeerId, note: AnyNote, now: float = 0.0) -> list[Sent]:
        """Handle a note; return the notes to send."""
        kind = type(note)
        state = self.state
        state.now = now
        if kind is Down:
            routing.down(state, sender, note)  # type: ignore[arg-type]
        elif kind in _HANDLERS:
            _HANDLERS[kind](state, note)
        else:
            _NEIGHBOUR_HANDLERS[kind](state, sender, note, now)
        out = state.out
        if out:
            state.out = []
        return out

    def take_deliveries(self) -> list[Publication]:
        """Return the messages delivered to this peer since the last call."""
        found, self.state.deliveries = self.state.deliveries, []
        return found

    def _sent(self) -> list[Sent]:
        out, self.state.out = self.state.out, []
        return out
