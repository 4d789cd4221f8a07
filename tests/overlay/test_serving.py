"""Peers over sockets in one process: they find each other, keep strangers and rubbish out, and deliver."""

import asyncio
import json
import shutil
import ssl
import struct
import subprocess
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
import pytest

import contrada as ct
from contrada.errors import LimitError, OverlayError
from contrada.limits import limit
from contrada.overlay.connecting import Door, address_of
from contrada.overlay.protocol import Beat, ChildEntry, Down, Join, Publication, Report
from contrada.overlay.rules import Rules
from contrada.overlay.serving import PeerServer, discover, named, offer
from contrada.overlay.space import PeerQueries, Space
from contrada.overlay.wire import Offer, check_note, decode, encode, shake_hands

SPACE = Space.parse("price,size")
RULES = Rules(2, 4, period=0.1, patience=3.0)  # longer than a busy machine stands still


def server(text, got, door=None, listen="127.0.0.1:0"):
    return PeerServer(listen, PeerQueries([ct.parse(text)], SPACE), SPACE, RULES, got.append, door)


async def eventually(holds, seconds=20.0):
    for _ in range(int(seconds / 0.05)):
        if holds():
            return
        await asyncio.sleep(0.05)
    assert holds()


def connected(servers):
    roots = [each for each in servers if each.peer.state.parent is None]
    return len(roots) == 1


@asynccontextmanager
async def overlay(texts, door=None):
    """Running servers, each with what it has got; they are closed whatever happens, or later tests would be blamed."""
    servers, boxes = [], []
    async with AsyncExitStack() as opened:
        for text in texts:
            got = []
            one = await opened.enter_async_context(server(text, got, door))
            one.complaints = []
            one.complain = one.complaints.append
            if servers:
                one.join(*(other.id for other in servers[:3]))
            servers.append(one)
            boxes.append(got)
        await eventually(lambda: connected(servers))
        yield servers, boxes


def test_messages_arrive_where_they_are_wanted():
    async def check():
        async with overlay([f"price BETWEEN {k} AND {k + 2}" for k in range(8)]) as (servers, boxes):
            answers = await offer(servers[5].id, ['{"price": 4}', '{"price": 40}', '{"price":', "[1]"], Door())
            assert [answer.reason is None for answer in answers] == [True, True, False, False]
            servers[0].publish('{"price": 0}')
            await eventually(lambda: all(len(boxes[k]) == 1 for k in (0, 2, 3, 4)))
            await asyncio.sleep(0.2)
            assert [len(got) for got in boxes] == [1, 0, 1, 1, 1, 0, 0, 0]
            assert json.loads(boxes[3][0].body) == {"price": 4}
            assert [each.complaints for each in servers if each.complaints] == []

    asyncio.run(check())


def test_a_peer_leaves_and_another_vanishes():
    async def check():
        async with overlay(["price > 0"] * 7) as (servers, boxes):
            await servers[2].leave()
            for gone in (servers[2], servers[0]):
                await gone.__aexit__()
            left = [boxes[k] for k in (1, 3, 4, 5, 6)]

            async def all_hear():
                before = [len(got) for got in left]
                servers[1].publish('{"price": 1}')
                await asyncio.sleep(0.3)
                return all(len(got) > count for got, count in zip(left, before, strict=True))

            in_a_row = 0  # a machine that stands still for longer than a peer's patience divides a whole overlay again
            for _ in range(200):
                in_a_row = in_a_row + 1 if await all_hear() else 0
                if in_a_row == 3:
                    break
            assert in_a_row == 3

    asyncio.run(check())


def test_the_door_is_shut_to_those_without_the_secret():
    async def check():
        async with overlay(["price > 0", "price > 1"], Door(b"open sesame")) as (servers, boxes):
            one = servers[0]
            for door in (Door(b"wrong"), Door()):
                with pytest.raises(OverlayError, match=r"does not know the secret|no answer"):
                    await offer(one.id, ['{"price": 5}'], door)
            assert (await offer(one.id, ['{"price": 5}'], Door(b"open sesame")))[0].reason is None
            await eventually(lambda: all(len(got) == 1 for got in boxes))
            stranger = server("price > 0", [], Door(b"wrong"))
            async with stranger:
                stranger.complain = lambda text: None
                stranger.join(one.id)
                await asyncio.sleep(0.5)
                assert stranger.peer.state.parent is None

    asyncio.run(check())


def test_other_overlays_are_kept_apart():
    async def check():
        async with overlay(["price > 0"]) as (servers, _):
            other = PeerServer(
                "127.0.0.1:0", PeerQueries([ct.parse("x > 0")], Space.parse("x")), Space.parse("x"), RULES, print
            )
            said = []
            async with other:
                other.complain = said.append
                other.join(servers[0].id)
                await eventually(lambda: said)
            assert "is of the overlay" in said[0]

    asyncio.run(check())


@pytest.mark.parametrize(
    "rubbish",
    [
        b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", limit("frame_bytes") + 1), struct.pack(">I", 0),
        struct.pack(">I", 3) + b"\xff\xff\xff", encode(Offer("{}")), b"", b"\x00",
    ],
)  # fmt: skip
def test_rubbish_gets_a_peer_dropped(rubbish):
    async def check():
        async with overlay(["price > 0", "price > 1"]) as (servers, boxes):
            reader, writer = await asyncio.open_connection(*address_of(servers[0].id))
            writer.write(rubbish)
            writer.write_eof()
            while await reader.read(1000):
                pass
            writer.close()
            servers[0].publish('{"price": 5}')
            await eventually(lambda: all(len(got) == 1 for got in boxes))

    asyncio.run(check())


ENTRY = ChildEntry((0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0))


@pytest.mark.parametrize(
    "note",
    [
        Beat(0, ChildEntry((0.0, 1.0), (0.0, 1.0))), Beat(-1, ENTRY), Beat(10**6, ENTRY),
        Beat(0, ChildEntry((1.0, 0.0, 0.0, 1.0), ENTRY.own)), Beat(0, ChildEntry((float("nan"),) * 4, ENTRY.own)),
        Report(0, "a", "b", ENTRY, {"c": ChildEntry((0.0,), (0.0,))}), Join("x", 0, ENTRY, True, hops=-5),
        Down(Publication(1, ENTRY.box, {"not": "text"}), 0), Down(Publication(1, (0.0,), "{}"), 0), Offer("{}"),
    ],
)  # fmt: skip
def test_notes_that_make_no_sense_are_refused(note):
    with pytest.raises(OverlayError):
        check_note(decode(encode(note)[4:]), 2)

    async def check():
        async with overlay(["price > 0", "price > 1"]) as (servers, boxes):
            reader, writer = await asyncio.open_connection(*address_of(servers[0].id))
            await shake_hands(reader, writer, "127.0.0.1:1", servers[0].overlay, None, is_server=False)
            writer.write(encode(note))
            assert await reader.read() == b"", "the connection is closed"
            writer.close()
            assert servers[0].complaints
            servers[1].publish('{"price": 5}')
            await eventually(lambda: all(len(got) == 1 for got in boxes))

    asyncio.run(check())


def test_good_notes_pass():
    for note in (Beat(3, ENTRY, ("a", 5)), Join("x", 0, ENTRY, True), Down(Publication("k", ENTRY.box, "{}"), 2)):
        again = decode(encode(note)[4:])
        check_note(again, 2)
        assert again == note


def test_newcomers_learn_the_rules():
    async def check():
        async with overlay(["price > 0"], Door(b"open sesame")) as (servers, _):
            space, rules = await discover(["127.0.0.1:9", servers[0].id], Door(b"open sesame"))
            assert (str(space), rules) == (str(SPACE), RULES)
            with pytest.raises(OverlayError, match=r"secret|no greeting"):
                await discover([servers[0].id], Door(b"wrong"))
            with pytest.raises(OverlayError, match="127"):
                await discover(["127.0.0.1:9"], Door())

    asyncio.run(check())
    for wrong in ("", "price", "price {}x", 'price {"least": 9}', 'price {"explode": 1}', "price:x {}"):
        with pytest.raises(OverlayError):
            named(wrong)


def test_frames_are_limited():
    with pytest.raises(LimitError, match="CONTRADA_MAX_FRAME_BYTES"):
        encode(Offer("x" * limit("frame_bytes")))
    with pytest.raises(OverlayError, match="no frame"):
        decode(msgspec.msgpack.encode({"type": "Explode"}))


@pytest.mark.parametrize("text", ["localhost", ":80", "host:", "host:x", "host:70000"])
def test_wrong_addresses_are_refused(text):
    with pytest.raises(OverlayError, match="HOST:PORT"):
        address_of(text)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")
def test_tls_guards_the_door(tmp_path):
    def authority(name):
        folder = tmp_path / name
        folder.mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
             "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True,
        )  # fmt: skip
        return folder / "cert.pem", folder / "key.pem", folder / "cert.pem"

    from contrada.cli.overlay_peer import _door

    ours, theirs = _door(None, *authority("ours")), _door(None, *authority("theirs"))

    async def check():
        async with overlay(["price > 0", "price > 1"], ours) as (servers, boxes):
            assert (await offer(servers[0].id, ['{"price": 5}'], ours))[0].reason is None
            await eventually(lambda: all(len(got) == 1 for got in boxes))
            for door in (theirs, Door()):
                with pytest.raises((ssl.SSLError, OverlayError, ConnectionError, TimeoutError)):
                    await offer(servers[0].id, ['{"price": 5}'], door)

    asyncio.run(check())
