"""The greeting of two brokers over a new connection: both prove that they know one key, which does not travel.

The caller says who it is, names its key by a digest and sends a random number. The called broker answers with a number
of its own and a proof: an HMAC of both numbers and both names, keyed by the digest under which it keeps the key. The
caller checks it and sends a proof of its own. Whoever listens learns neither the key nor anything to use later.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from contrada.errors import ContradaError
from contrada.service.access.keys import Principal, is_name

GREETING_VERSION = 1
NONCE_BYTES = 32
MAX_GREETING = 4_096  # bytes of one message of a greeting

Hex = Annotated[str, Meta(pattern="^[0-9a-f]{16,64}$")]
G = TypeVar("G", bound="GreetingBase")


class LinkError(ContradaError):
    """A connection to a neighbour cannot be made or goes wrong; the message says why."""


class GreetingBase(msgspec.Struct, frozen=True, tag_field="greeting"):
    """A message of the greeting, as JSON. Members that a later version adds are skipped."""


class CallerHello(GreetingBase, frozen=True, tag="hello"):
    """First: the caller's name, the digest that names its key, and its random number."""

    version: int
    broker: str
    key: Hex
    nonce: Hex


class CalledHello(GreetingBase, frozen=True, tag="welcome"):
    """Second: the name and the number of the called broker, its proof, and the bytes that a piece may have."""

    version: int
    broker: str
    nonce: Hex
    proof: Hex
    piece: Annotated[int, Meta(ge=1)]


class CallerProof(GreetingBase, frozen=True, tag="proof"):
    """Third: the proof of the caller."""

    proof: Hex


class GreetingRefusal(GreetingBase, frozen=True, tag="refusal"):
    """In place of any answer: why there is no link."""

    reason: str


class LinkKey:
    """A key by its digest, as both sides have it.

    >>> from contrada.service.access.keys import digest_of
    >>> key = LinkKey(digest_of("ctr_x"))
    >>> hello = CallerHello(1, "south", key.name, new_nonce())
    >>> key.proof("caller", hello, "north", "ab" * 32) == key.proof("called", hello, "north", "ab" * 32)
    False
    """

    def __init__(self, digest: bytes) -> None:
        self._digest = digest
        self.name = hashlib.blake2b(digest, digest_size=8, person=b"contrada link").hexdigest()

    def proof(self, side: str, hello: CallerHello, called: str, nonce: str) -> str:
        """Return the proof that one side, `caller` or `called`, knows the key."""
        said = msgspec.json.encode([GREETING_VERSION, side, hello.broker, hello.nonce, called, nonce])
        return hmac.new(self._digest, said, hashlib.sha256).hexdigest()

    def check(self, proof: str, side: str, hello: CallerHello, called: str, nonce: str) -> None:
        """Raise LinkError unless a proof is right."""
        if not hmac.compare_digest(proof, self.proof(side, hello, called, nonce)):
            raise LinkError(f"the {side if side == 'caller' else 'called broker'} does not know the key")


def new_nonce() -> str:
    """Return a random number."""
    return secrets.token_hex(NONCE_BYTES)


def holder_of(name: str, keys: Iterable[tuple[bytes, Principal]]) -> tuple[LinkKey, Principal] | None:
    """Return the key of this name among digests of keys, and who holds it; None if it is not among them."""
    for digest, principal in keys:
        key = LinkKey(digest)
        if key.name == name:
            return key, principal
    return None


def encode_greeting(message: GreetingBase) -> str:
    """Return a message as text."""
    return msgspec.json.encode(message).decode()


def decode_greeting(kind: type[G], data: str | bytes) -> G:
    """Return a message of a type; raise LinkError for a refusal, and for anything else."""
    if len(data) > MAX_GREETING:
        raise LinkError("the greeting of the neighbour is too long")
    try:
        message = msgspec.json.decode(data, type=kind | GreetingRefusal)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise LinkError(f"the neighbour does not greet as a broker does: {error}") from error
    if isinstance(message, GreetingRefusal):
        raise LinkError(f"the neighbour refuses the link: {message.reason[:300]!r}")
    assert isinstance(message, kind)
    return message


def check_greeting(version: int, neighbour: str, own: str) -> None:
    """Raise LinkError unless a neighbour speaks this version and has a name that can be linked with ours."""
    if version != GREETING_VERSION:
        raise LinkError(f"the neighbour greets in version {version}, this broker in {GREETING_VERSION}")
    check_broker_name(neighbour)
    if neighbour == own:
        raise LinkError(f"the neighbour has the name of this broker, {own!r}")


def check_broker_name(name: str) -> None:
    """Raise LinkError unless a text can be the name of a broker."""
    if not is_name(name) or name == RESERVED_NAME:
        raise LinkError(
            f"name: need 1 to 255 printable characters without spaces at the ends, not {RESERVED_NAME!r},"
            f" got {name[:80]!r}"
        )


RESERVED_NAME = "subscribers"  # all clients are one client of this name to the broker core
