"""Effects: what whoever runs a broker must do after a command, in the given order."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from contrada.broker.frames import Frame
from contrada.broker.messages import Messages
from contrada.geometry import Rejection
from contrada.matching.names import Name

RecordKey: TypeAlias = tuple[str | int, ...]


class Persist(NamedTuple):
    """Make these records durable, all or none, before the effects that follow: a value replaces, None deletes.

    With `can_wait` the effects that follow need not wait, and the records may be written together with later ones: a
    broker that is restored without them learns the same from its neighbours.
    """

    records: tuple[tuple[RecordKey, Any], ...]
    can_wait: bool = False


class Send(NamedTuple):
    """Send a frame to a neighbour; frames to one neighbour keep their order."""

    neighbour: str
    frame: Frame


class Deliver(NamedTuple):
    """Deliver rows of a batch to a client: `keys[i]` are the client's subscriptions that row `rows[i]` satisfies."""

    client: str
    batch: Messages
    rows: tuple[int, ...]
    keys: tuple[tuple[Name, ...], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the messages."""
        return tuple(self.batch.ids[row] for row in self.rows)


class RejectedMessages(NamedTuple):
    """Messages of a batch that were not taken, with the reason of each; rows count within the batch."""

    publisher: str | None
    rows: tuple[Rejection, ...]


class Refused(NamedTuple):
    """A broker on the way cannot take a client's subscription: nothing from beyond it reaches the client."""

    client: str
    key: Name
    reason: str


class CloseLink(NamedTuple):
    """Close the connection to a neighbour. It may be made again, unless the link was `removed`."""

    neighbour: str
    reason: str
    removed: bool = False


Effect: TypeAlias = Persist | Send | Deliver | RejectedMessages | Refused | CloseLink
