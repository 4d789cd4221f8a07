"""The frames that neighbours exchange.

Commands are numbered from 1 on in each direction of a link. The receiver takes each number once, in order, and
acknowledges from time to time; the sender keeps what is not acknowledged and sends it again when the link comes back.
Greetings and comparisons of what both sides hold have no number: they begin anew with each connection.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from contrada.broker.messages import MessageRows
from contrada.model import Predicate

VERSION = 2  # since messages have payloads
NOT_IN_STEP = -1  # as the last number sent: the receiver must first be told what it should hold
Id: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]  # also of digests; checked in decode
MessageId: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Path: TypeAlias = tuple[str, ...]  # brokers from a neighbour to a broker beyond it


class FrameBase(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A frame of the protocol."""


class LinkHello(FrameBase, frozen=True):
    """The first frame of each side: who it is, where both directions stand, and which brokers are behind it."""

    version: int
    broker: str
    incarnation: int  # changes when a broker loses its state
    knows: int | None  # the receiver's incarnation, as far as the sender remembers
    received: int
    sent: int
    acknowledged: int
    behind: tuple[Path, ...]


class Close(FrameBase, frozen=True):
    """The sender closes the link; with `removed` for good."""

    reason: str
    removed: bool = False


class LinkAck(FrameBase, frozen=True):
    """All commands up to a number have arrived."""

    number: int


class Held(FrameBase, frozen=True):
    """Digests of what the sender holds from the receiver, one for each bucket."""

    digests: tuple[Id, ...]


class Show(FrameBase, frozen=True):
    """Ask what is held in these buckets."""

    buckets: tuple[int, ...]


class Shown(FrameBase, frozen=True):
    """What is held in buckets that were asked for: ids and digests."""

    buckets: tuple[int, ...]
    ids: tuple[Id, ...]
    digests: tuple[Id, ...]


class LinkCommand(FrameBase, frozen=True):
    """A numbered frame."""

    number: int


class Subscribe(LinkCommand, frozen=True):
    """Send me the messages that satisfy a predicate."""

    id: Id
    predicate: Predicate
    digest: Id


class Advertise(Subscribe, frozen=True):
    """Messages that satisfy a predicate may come from me."""


class Unsubscribe(LinkCommand, frozen=True):
    """Forget a subscription or an advertisement."""

    id: Id


class Rename(LinkCommand, frozen=True):
    """Something that the receiver holds has a new id."""

    old: Id
    new: Id


class InStep(LinkCommand, frozen=True):
    """The receiver holds everything that it should hold; what is superfluous is withdrawn next."""


class Refuse(LinkCommand, frozen=True):
    """The sender could not take the receiver's subscription `id`."""

    id: Id
    reason: str


class Reach(LinkCommand, frozen=True):
    """There are further brokers behind the sender."""

    paths: tuple[Path, ...]


class Unreach(LinkCommand, frozen=True):
    """Some brokers are not behind the sender any more."""

    brokers: tuple[str, ...]


class Publish(LinkCommand, frozen=True):
    """Messages in columns, one row for each id; `payloads`, one for each message or none, travel with them unread."""

    ids: tuple[MessageId, ...]
    messages: MessageRows
    payloads: tuple[bytes, ...] = ()


AnyCommand: TypeAlias = Subscribe | Advertise | Unsubscribe | Rename | InStep | Refuse | Reach | Unreach | Publish
Frame: TypeAlias = LinkHello | Close | LinkAck | Held | Show | Shown | AnyCommand
