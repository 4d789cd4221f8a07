"""LinkChange: what to tell a neighbour after a command."""

from __future__ import annotations

from typing import NamedTuple

from contrada.model import Predicate


class LinkChange(NamedTuple):
    """Subscriptions to forward to a neighbour, by id, and then ids to withdraw: always in this order.

    Whatever a withdrawn one let through, the forwarded ones let through too, unless its subscriber has left: so no
    message is lost while coverage changes hands.
    """

    forward: tuple[tuple[int, Predicate], ...] = ()
    withdraw: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.forward or self.withdraw)


NO_CHANGE = LinkChange()
