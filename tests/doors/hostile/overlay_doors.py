"""Doors of overlay peers: frames from the network, and the notes in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import msgspec

from contrada.formats.messages import message_of
from contrada.overlay import protocol
from contrada.overlay.interest import Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import Note
from contrada.overlay.rules import Rules
from contrada.overlay.wire import Hello, Offer, OfferAnswer, Proof, check_note, decode, encode
from generators.overlay import note_makers
from hostile.registry import Door


def overlay_doors() -> Iterator[Door]:
    """The door of frames."""
    yield Door("overlay frames", ("overlay frames",), _frame, frame_corpus, 6)


def _frame(content: bytes) -> object:
    """Decode a frame, check the note, and let a peer with neighbours handle it, then beat."""
    frame = decode(content)
    if isinstance(frame, Offer):
        return message_of(frame.body)
    if not isinstance(frame, Note):
        return repr(frame)
    check_note(frame, 2)
    peer = Peer(0, Rectangles([(0.0, 0.0, 4.0, 4.0)]), Rules(2, 4), 1)
    sent = list(peer.handle("stranger", frame, 0.0))
    for step in range(1, 4):
        sent += peer.handle(1, frame, float(step))
        sent += peer.tick(float(step))
    for _, note in sent:
        encode(note)
    return len(sent)


@cache
def frame_corpus() -> dict[str, Any]:
    """Frames without their length: notes of every kind three times, and greetings."""
    drawn = [(f"{name} {k}", make()) for k in range(3) for name, make in note_makers(Random(k)).items()]
    others = {
        "hello": Hello(1, "a", "b", b"n" * 32),
        "proof": Proof(b"d" * 32),
        "offer": Offer('{"a": 1}'),
        "offer of rubbish": Offer("[[["),
        "answer": OfferAnswer("key", None),
    }
    box = (0.0, 0.0, 1.0, 1.0)
    entry = protocol.ChildEntry(box, box)
    many = dict.fromkeys(range(11_000), entry)
    return {
        **{name: _framed(note) for name, note in [*drawn, *others.items()]},
        "nothing": b"",
        "deep arrays": lambda: b"\x91" * 500_000,
        "deep maps": lambda: b"\x81\xa1a" * 300_000,
        "array too long": b"\xdd\xff\xff\xff\xff",
        "text too long": b"\xdb\xff\xff\xff\xff",
        "many children": lambda: _framed(protocol.Report(1, 1, 0, entry, many, 2)),
        "many tables": lambda: _framed(protocol.Take(1, 0, [many], 1, 2, False)),
        "many levels": lambda: _framed(protocol.Take(1, 0, [{}] * 200_000, 1, 2, False)),
        "many contacts": lambda: _framed(protocol.Beat(0, entry, tuple(range(200_000)))),
        "many parts": lambda: _framed(protocol.Beat(0, protocol.ChildEntry(box, box, (box,) * 20_000))),
        "deep offer": lambda: _framed(Offer("[" * 400_000)),
        "long text": lambda: msgspec.msgpack.encode({"type": "Offer", "body": "a" * 900_000}),
    }  # fmt: skip


def _framed(note: Any) -> bytes:
    return encode(note)[4:]
