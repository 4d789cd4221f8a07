"""Peers over sockets in one process: they find each other, keep strangers and rubbish out, and deliver."""

import asyncio
import json
import shutil
import ssl
import subprocess

import msgspec
import pytest

from contrada.errors import LimitError, OverlayError
from contrada.limits import limit
from contrada.overlay.connecting import Door
from contrada.overlay.rules import Rules
from contrada.overlay.serving import discover, named, offer
from contrada.overlay.space import Space
from contrada.overlay.wire import Offer, decode, encode
from servers import RULES, SPACE, RecordingServer, eventually, joined


def all_got(servers, count=1):
    return all(len(each.got) == count for each in servers)


def overlay(texts, door=None):
    return joined(*(RecordingServer(text, door) for text in texts))


async def test_messages_arrive_where_they_are_wanted():
    async with overlay([f"price BETWEEN {k} AND {k + 2}" for k in range(8)]) as servers:
        answers = await offer(servers[5].id, ['{"price": 4}', '{"price": 40}', '{"price":', "[1]"], Door())
        assert [answer.reason is None for answer in answers] == [True, True, False, False]
        servers[0].publish('{"price": 0}')
        await eventually(lambda: all_got([servers[k] for k in (0, 2, 3, 4)]))
        await asyncio.sleep(0.2)
        assert [len(each.got) for each in servers] == [1, 0, 1, 1, 1, 0, 0, 0]
        assert json.loads(servers[3].got[0].body) == {"price": 4}
        assert [each.complaints for each in servers if each.complaints] == []


async def test_a_peer_leaves_and_another_vanishes():
    async with overlay(["price > 0"] * 7) as servers:
        await servers[2].leave()
        for gone in (servers[2], servers[0]):
            await gone.__aexit__()
        left = [servers[k].got for k in (1, 3, 4, 5, 6)]

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


async def test_a_parent_that_vanishes_costs_no_message():
    hasty = Rules(2, 4, period=0.1, patience=0.6, retention=30.0)
    async with joined(*(RecordingServer("price > 0", rules=hasty) for _ in range(7))) as servers:
        await eventually(lambda: all(each.peer.state.parent or each.peer.state.top for each in servers))
        victim = max(servers, key=lambda each: each.peer.state.top)
        left = [each for each in servers if each is not victim]
        keys = []
        for k in range(30):
            keys.append(left[k % 6].publish(f'{{"price": {k + 1}}}'))
            if k == 10:
                await victim.__aexit__()
            await asyncio.sleep(0.02)
        await eventually(lambda: all_got(left, 30))
        await asyncio.sleep(0.5)
        for each in left:
            assert sorted(message.key for message in each.got) == sorted(keys)


async def test_messages_that_are_kept_too_short_are_complained_of():
    async with joined(RecordingServer(rules=Rules(2, 4, kept=2, period=0.1, patience=3.0))) as (server,):
        for k in range(5):
            server.publish(f'{{"price": {k + 1}}}')
        await eventually(lambda: server.complaints)
        assert server.complaints[0].startswith("3 messages are not kept for 20 seconds")


async def test_the_door_is_shut_to_those_without_the_secret():
    async with overlay(["price > 0", "price > 1"], Door(b"open sesame")) as servers:
        one = servers[0]
        for door in (Door(b"wrong"), Door()):
            with pytest.raises(OverlayError, match=r"has another secret|did not answer"):
                await offer(one.id, ['{"price": 5}'], door)
        assert (await offer(one.id, ['{"price": 5}'], Door(b"open sesame")))[0].reason is None
        await eventually(lambda: all_got(servers))
        async with RecordingServer(door=Door(b"wrong")) as stranger:
            stranger.join(one.id)
            await asyncio.sleep(0.5)
            assert stranger.peer.state.parent is None


async def test_other_overlays_are_kept_apart():
    async with overlay(["price > 0"]) as servers:
        async with RecordingServer("x > 0", space=Space.parse("x")) as other:
            other.join(servers[0].id)
            await eventually(lambda: other.complaints)
        assert "is in overlay" in other.complaints[0]


async def test_newcomers_learn_the_rules():
    async with overlay(["price > 0"], Door(b"open sesame")) as servers:
        space, rules = await discover(["127.0.0.1:9", servers[0].id], Door(b"open sesame"))
        assert (str(space), rules) == (str(SPACE), RULES)
        with pytest.raises(OverlayError, match=r"secret|no greeting"):
            await discover([servers[0].id], Door(b"wrong"))
        with pytest.raises(OverlayError, match="127"):
            await discover(["127.0.0.1:9"], Door())
    for wrong in ("", "price", "price {}x", 'price {"least": 9}', 'price {"explode": 1}', "price:x {}"):
        with pytest.raises(OverlayError):
            named(wrong)


def test_frames_are_limited():
    with pytest.raises(LimitError, match="CONTRADA_MAX_FRAME_BYTES"):
        encode(Offer("x" * limit("frame_bytes")))
    with pytest.raises(OverlayError, match="invalid frame"):
        decode(msgspec.msgpack.encode({"type": "Explode"}))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")
async def test_tls_guards_the_door(tmp_path):
    def authority(name):
        folder = tmp_path / name
        folder.mkdir()
        key, certificate = folder / "key.pem", folder / "cert.pem"
        request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        further = ["-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", certificate]
        subprocess.run([*request, *further], check=True, capture_output=True)
        return certificate, key, certificate

    from contrada.cli.overlay_peer import door_from_files

    ours, theirs = door_from_files(None, *authority("ours")), door_from_files(None, *authority("theirs"))

    async with overlay(["price > 0", "price > 1"], ours) as servers:
        assert (await offer(servers[0].id, ['{"price": 5}'], ours))[0].reason is None
        await eventually(lambda: all_got(servers))
        for door in (theirs, Door()):
            with pytest.raises((ssl.SSLError, OverlayError, ConnectionError, TimeoutError)):
                await offer(servers[0].id, ['{"price": 5}'], door)
