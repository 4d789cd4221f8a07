"""Encode notes as bytes: frames of limited length, checked against a schema, and a handshake with a shared secret.

A frame is its length in four bytes, then MessagePack. Both sides begin with a Hello. With a secret, each side proves
that it has it by an HMAC over the nonces of both sides. The secret keeps out unknown peers; TLS protects against
eavesdropping and tampering.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import secrets
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from contrada.errors import OverlayError
from contrada.limits import check_limit, limit
from contrada.overlay.boxes import check_box
from contrada.overlay.connecting import Door
from contrada.overlay.protocol import Ack, AnyNote, Beat, ChildEntry, Key, Note, PeerId, Place, Publication, Take
from contrada.overlay.rules import MAX_KEPT, MAX_SKETCH_BOXES

MAX_GREETING_BYTES = 1 << 16  # of a frame before the handshake is complete
MAX_LEVEL = 64
PEER_FIELDS = ("peer", "previous", "child", "parent", "heir", "old", "new", "via", "root", "contacts")
MAX_KEY_CHARACTERS = 64
VERSION = 2
_LENGTH = struct.Struct(">I")


class Hello(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The first frame of each side: its address (None: a client that only publishes), and its overlay."""

    version: int
    peer: str | None
    overlay: str
    nonce: bytes


class Proof(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The second frame of each side: the HMAC."""

    digest: bytes


class Offer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A message to publish, in JSON, from a client that is not a peer."""

    body: str


class OfferAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The answer to an offer: the key of the message, or why it was refused."""

    key: str | None
    reason: str | None = None


Frame = AnyNote | Offer | OfferAnswer | Hello | Proof
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    """Return the bytes of a frame.

    >>> decode(encode(Offer("{}"))[4:])
    Offer(body='{}')
    """
    content = _ENCODER.encode(frame)
    check_limit("frame_bytes", len(content), "a note")
    return _LENGTH.pack(len(content)) + content


def decode(content: bytes) -> Frame:
    """Return the frame in bytes without length; raise OverlayError if they are invalid.

    >>> decode(b"rubbish")
    Traceback (most recent call last):
    contrada.errors.OverlayError: invalid frame: ...
    """
    try:
        return _DECODER.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise OverlayError(f"invalid frame: {error}") from error


async def read_frame(reader: StreamReader, longest: int | None = None) -> Frame | None:
    """Read the next frame, of at most `longest` bytes (default: the limit); None at the end of the connection."""
    most = limit("frame_bytes") if longest is None else longest
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if not 0 < length <= most:
            raise OverlayError(f"invalid frame: {length:,} bytes; need 1 to {most:,} bytes")
        return decode(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def check_note(note: Frame, dimensions: int) -> None:
    """Raise an OverlayError unless a note's boxes have these dimensions, and its levels and hops are in range.

    A note that names more peers than the limit allows raises LimitError.
    """
    if not isinstance(note, Note):
        raise OverlayError(f"need a note, got {type(note).__name__}")
    check_limit("note_peers", sum(1 for _ in peers_in(note)), f"a {type(note).__name__}")
    for value in _parts(note):
        if isinstance(value, ChildEntry):
            for box in (value.box, value.own, *value.parts):
                check_box(box, dimensions)
            if len(value.parts) > MAX_SKETCH_BOXES:
                raise OverlayError(f"sketch: need at most {MAX_SKETCH_BOXES} boxes, got {len(value.parts)}")
        elif isinstance(value, Publication):
            check_box(value.where, dimensions)
            check_key(value.key)
            if not isinstance(value.body, str):
                raise OverlayError(f"message body: need text, got {type(value.body).__name__}")
    _check_numbers(note)
    keys = note.got if isinstance(note, Beat) else note.lacks if isinstance(note, Ack) else ()
    if len(keys) > MAX_KEPT:
        raise OverlayError(f"{type(note).__name__}: need at most {MAX_KEPT:,} keys of messages, got {len(keys):,}")
    for key in keys:
        check_key(key)
    if isinstance(note, Place):
        _check_numbers(note.join)
    if isinstance(note, Take) and note.level + len(note.tables) > MAX_LEVEL:
        raise OverlayError(f"Take: {len(note.tables)} nodes from level {note.level} on exceed level {MAX_LEVEL}")


def check_key(key: Key) -> None:
    """Raise OverlayError for the key of a message that is longer than any peer makes one."""
    if isinstance(key, str) and len(key) > MAX_KEY_CHARACTERS:
        raise OverlayError(f"key of a message: need at most {MAX_KEY_CHARACTERS} characters, got {len(key):,}")


def _check_numbers(note: Note) -> None:
    for name in ("level", "at", "hops", "reinserted"):
        number = getattr(note, name, 0)
        if number is not None and not 0 <= number <= (MAX_LEVEL if name != "reinserted" else 1 << MAX_LEVEL):
            raise OverlayError(f"{type(note).__name__}: {name} {number} is out of range")
    age = getattr(note, "age", 0.0)
    if not age >= 0 or (math.isinf(age) and not isinstance(note, Beat)):  # the first peer of an overlay joined never
        raise OverlayError(f"{type(note).__name__}: age {age} is out of range")


def peers_in(note: Note) -> Iterator[PeerId]:
    """Yield all peers that a note names, with repetitions.

    >>> from contrada.overlay.protocol import Ack
    >>> list(peers_in(Ack(0, ("a:1", "b:2"))))
    ['a:1', 'b:2']
    """
    for name in note.__struct_fields__:
        value = getattr(note, name)
        if isinstance(value, Note):
            yield from peers_in(value)
        elif name in PEER_FIELDS and value is not None:
            yield from value if isinstance(value, tuple) else (value,)
        elif name in ("added", "tables"):
            for table in value if isinstance(value, list) else (value,):
                yield from table


def _parts(value: Any) -> Iterable[Any]:
    """Yield all entries and publications within a note."""
    if isinstance(value, ChildEntry | Publication):
        yield value
        return
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    elif isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for each in value:
        yield from _parts(each)


async def shake_hands(
    reader: StreamReader, writer: StreamWriter, me: str | None, overlay: str, door: Door, is_server: bool
) -> Hello:
    """Exchange greetings and prove knowledge of the secret; return the other side's Hello.

    Raise TimeoutError if a frame of the other side takes more than the `handshake_seconds` of the door.
    """
    mine = Hello(VERSION, me, overlay, secrets.token_bytes(32))
    writer.write(encode(mine))
    async with asyncio.timeout(door.handshake_seconds):
        theirs = await read_frame(reader, MAX_GREETING_BYTES)
    if not isinstance(theirs, Hello):
        raise OverlayError("the other side sent no greeting")
    if theirs.version != VERSION:
        raise OverlayError(f"the other side has protocol version {theirs.version}, this side has {VERSION}")
    if theirs.overlay != overlay and theirs.overlay and overlay:
        raise OverlayError(f"the other side is in overlay {theirs.overlay!r}, this side is in {overlay!r}")
    if len(theirs.nonce) != 32 or theirs.nonce == mine.nonce:
        raise OverlayError("the other side sent an invalid nonce")
    server, client = (mine, theirs) if is_server else (theirs, mine)
    writer.write(encode(Proof(_proof(door.secret, server, client, is_server))))
    async with asyncio.timeout(door.handshake_seconds):
        proof = await read_frame(reader, MAX_GREETING_BYTES)
    expected = _proof(door.secret, server, client, not is_server)
    if not isinstance(proof, Proof) or not hmac.compare_digest(proof.digest, expected):
        raise OverlayError("the other side has another secret, or none")
    return theirs


def _proof(secret: bytes | None, server: Hello, client: Hello, of_server: bool) -> bytes:
    """Return the HMAC over both greetings; without a secret it only proves that both sides saw the same greetings."""
    said = (b"server" if of_server else b"client") + _ENCODER.encode(server) + _ENCODER.encode(client)
    return hmac.digest(secret or b"", said, "sha256")
