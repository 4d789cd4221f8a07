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
from generators.boxes import draw_box, draw_point
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


def _notes(rng: Random) -> dict[str, Any]:
    def entry() -> Any:
        box = draw_box(rng)
        return protocol.ChildEntry(box, box, tuple(draw_box(rng) for _ in range(rng.randrange(3))))

    table = {k: entry() for k in (1, 2, "stranger")}
    join = protocol.Join("stranger", 0, entry(), True, None, 3)
    publication = protocol.Publication("key", draw_point(rng), '{"a": 1}')
    return {
        "join": join,
        "place": protocol.Place(join, 1),
        "adopted": protocol.Adopted(1, 0, entry(), "stranger", (1,)),
        "report": protocol.Report(1, 1, 0, entry(), table, 2),
        "take": protocol.Take(1, 0, [table, table], "stranger", 2, False),
        "replace": protocol.Replace(1, 1, 2, 0, entry()),
        "leave": protocol.Leave(1, 1),
        "orphaned": protocol.Orphaned(1, None, 2),
        "yield": protocol.Yield(2),
        "beat": protocol.Beat(0, entry(), (1, "stranger")),
        "ack": protocol.Ack(0, (1, 2)),
        "disown": protocol.Disown(0),
        "up": protocol.Up(publication, None, 1),
        "down": protocol.Down(publication, 1),
        "hello": Hello(1, "a", "b", b"n" * 32),
        "proof": Proof(b"d" * 32),
        "offer": Offer('{"a": 1}'),
        "offer of rubbish": Offer("[[["),
        "answer": OfferAnswer("key", None),
    }


@cache
def frame_corpus() -> dict[str, Any]:
    """Frames without their length."""
    found: dict[str, Any] = {name: encode(note)[4:] for name, note in _notes(Random(5)).items()}
    box = (0.0, 0.0, 1.0, 1.0)
    many = {k: protocol.ChildEntry(box, box) for k in range(11_000)}
    return {
        **found,
        "nothing": b"",
        "deep arrays": lambda: b"\x91" * 500_000,
        "deep maps": lambda: b"\x81\xa1a" * 300_000,
        "array too long": b"\xdd\xff\xff\xff\xff",
        "text too long": b"\xdb\xff\xff\xff\xff",
        "many children": lambda: encode(protocol.Report(1, 1, 0, protocol.ChildEntry(box, box), many, 2))[4:],
        "many tables": lambda: encode(protocol.Take(1, 0, [many], 1, 2, False))[4:],
        "many levels": lambda: encode(protocol.Take(1, 0, [{}] * 200_000, 1, 2, False))[4:],
        "many contacts": lambda: encode(protocol.Beat(0, protocol.ChildEntry(box, box), tuple(range(200_000))))[4:],
        "many parts": lambda: encode(protocol.Beat(0, protocol.ChildEntry(box, box, (box,) * 20_000)))[4:],
        "deep offer": lambda: encode(Offer("[" * 400_000))[4:],
        "long text": lambda: msgspec.msgpack.encode({"type": "Offer", "body": "a" * 900_000}),
    }  # fmt: skip
