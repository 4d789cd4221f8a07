"""Neighbours that speak garbage or another version, connections that break in the middle, a store that fails."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from msgspec import structs

from contrada.broker import frames
from contrada.broker.wire import encode
from contrada.service.access.keys import digest_of
from contrada.service.links.greeting import (
    GREETING_VERSION,
    CallerHello,
    LinkError,
    LinkKey,
    check_greeting,
    decode_greeting,
    encode_greeting,
    new_nonce,
)
from contrada.service.links.meeting import ClientWire, meet_called
from contrada.service.links.pieces import PieceJoiner, pieces_of
from contrada.service.store.sqlite import SqliteStore
from effort import slow
from link_proxy import LinkProxy
from linked import broker, got, link_url, network, until, until_settled
from serving import ADMIN, SECONDS, events, run

KEY = LinkKey(digest_of(ADMIN))
HELLO = frames.LinkHello(frames.VERSION, "fake", 7, None, 0, -1, 0, (("fake",),))


@asynccontextmanager
async def calling(here, name="fake"):
    """A connection to a server as a broker makes it, after the greeting; None as the name: before it."""
    async with here.session.ws_connect(link_url(here) + "/link") as socket:
        if name is not None:
            await meet_called(ClientWire(socket), name, KEY)
        yield socket


async def end_of(socket):
    """Return the reason with which a server closes a socket."""
    while True:
        message = await socket.receive(SECONDS)
        if message.type is aiohttp.WSMsgType.CLOSE:
            return message.extra
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message


async def say(socket, frame):
    for piece in pieces_of(frame if isinstance(frame, bytes) else encode(frame), 100):
        await socket.send_bytes(piece)


HELLOS = {
    "text": "garbage",
    "bytes": b"\x00\xff",
    "too long": "[" * 5_000,
    "another type": '{"greeting":"proof","proof":"00000000000000000000"}',
    "another version": encode_greeting(CallerHello(9, "fake", KEY.name, new_nonce())),
    "an unknown key": encode_greeting(CallerHello(GREETING_VERSION, "fake", "0" * 16, new_nonce())),
    "our own name": encode_greeting(CallerHello(GREETING_VERSION, "north", KEY.name, new_nonce())),
    "a reserved name": encode_greeting(CallerHello(GREETING_VERSION, "subscribers", KEY.name, new_nonce())),
    "no name": encode_greeting(CallerHello(GREETING_VERSION, "", KEY.name, new_nonce())),
}
FRAMES = {
    "garbage": (b"garbage", "not a frame of this protocol"),
    "an older version": (structs.replace(HELLO, version=1), "version 1"),
    "another name": (structs.replace(HELLO, broker="other", behind=(("other",),)), "the neighbour is"),
    "no hello": (frames.LinkAck(3), "a frame before the greeting"),
}


def test_callers_that_do_not_greet_are_closed_with_a_reason_and_disturb_no_link(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("all", "ann", "depth > 0")
            await until_settled(north, south)
            for name, hello in HELLOS.items():
                async with calling(north, None) as socket:
                    await (socket.send_str(hello) if isinstance(hello, str) else socket.send_bytes(hello))
                    assert await end_of(socket), name
            async with calling(north, None) as socket:  # a key whose digest it knows, but not the key
                await socket.send_str(encode_greeting(CallerHello(GREETING_VERSION, "fake", KEY.name, new_nonce())))
                assert json.loads((await socket.receive()).data)["greeting"] == "welcome"
                await socket.send_str(json.dumps({"greeting": "proof", "proof": "0" * 64}))
                assert await end_of(socket) == "the caller does not know the key"
            for frame, reason in FRAMES.values():
                async with calling(north) as socket:
                    await say(socket, frame)
                    assert reason in await end_of(socket)
            async with calling(north) as socket:
                await socket.send_bytes(b"\x07no piece")
                assert "no piece of a frame" in await end_of(socket)
            async with calling(north) as socket:
                await say(socket, HELLO)
                await say(socket, frames.Unsubscribe(1, 5))
                assert await end_of(socket)
            await north.publish({"depth": 1})
            assert await got(south, "ann", 1) == [{"depth": 1}]

    run(work())


def test_a_connection_that_another_replaces_ends(tmp_path):
    async def work():
        async with broker(tmp_path, "north") as north, calling(north) as first, calling(north) as second:
            assert "another connection" in await end_of(first)
            await say(second, b"garbage")
            assert "not a frame" in await end_of(second)

    run(work())


def test_a_silent_neighbour_is_given_up_and_called_again(tmp_path):
    async def work():
        async with broker(tmp_path, "north", links_ping=0.05) as north, calling(north) as socket:
            assert "nothing was heard" in await end_of(socket)

    run(work())


@asynccontextmanager
async def fake_broker(answer):
    """A server whose WebSocket at /link does what `answer` does."""

    async def serve(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await answer(socket)
        return socket

    application = web.Application()
    application.router.add_get("/link", serve)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"ws://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def closing(socket):
    await socket.close()


async def garbage(socket):
    await socket.send_str("garbage")
    await socket.receive()


async def flooding(socket):
    await socket.send_bytes(bytes(1 << 20))
    await socket.receive()


async def later_version(socket):
    await socket.receive()
    await socket.send_str('{"greeting":"refusal","reason":"the neighbour greets in version 1, this broker in 2"}')
    await socket.receive()


async def pretending(socket):
    """Answer without knowing the key."""
    await socket.receive()
    welcome = {"greeting": "welcome", "version": 1, "broker": "evil", "nonce": "0" * 64, "proof": "0" * 64, "piece": 9}
    await socket.send_str(json.dumps(welcome))
    await socket.receive()


def test_called_brokers_that_do_not_greet_are_called_again_with_pauses_and_disturb_no_link(tmp_path):
    async def work():
        async with AsyncExitStack() as stack:
            answers = (closing, garbage, flooding, later_version, pretending)
            urls = [await stack.enter_async_context(fake_broker(answer)) for answer in answers]
            north = await stack.enter_async_context(broker(tmp_path, "north"))
            south = await stack.enter_async_context(broker(tmp_path, "south", *urls, link_url(north), key=ADMIN))
            await south.subscribe("all", "ann", "depth > 0")
            await until(lambda: _is_connected(south, len(urls)))
            for number in range(len(urls)):
                await until(lambda number=number: _attempts(south, 3, number))
            *bad, good = (await network(south))["calls"]
            assert {one["state"] for one in bad} <= {"waiting", "calling"}
            assert (good["state"], good["attempts"]) == ("connected", 1)
            await until_settled(north, south)
            await north.publish({"depth": 1})
            assert await got(south, "ann", 1) == [{"depth": 1}]

    run(work())


async def _is_connected(here, place):
    return (await network(here))["calls"][place]["state"] == "connected"


async def _attempts(here, count, place=0):
    call = (await network(here))["calls"][place]
    return call["attempts"] >= count and call["reason"]


@pytest.mark.parametrize("seconds", [1.5, slow(60.0)])
def test_a_link_that_flaps_loses_nothing(tmp_path, seconds):
    async def work():
        async with (
            broker(tmp_path, "north") as north, LinkProxy(north.server.port) as proxy,
            broker(tmp_path, "south", proxy.url) as south,
        ):  # fmt: skip
            for here, name in ((north, "bob"), (south, "ann")):
                await here.subscribe("all", name, "depth > 0")
            await until_settled(north, south)
            loop, depth = asyncio.get_running_loop(), 0
            end = loop.time() + seconds
            while loop.time() < end:
                depth += 1
                await (north if depth % 2 else south).publish({"depth": depth})
                if depth % 5 == 0:
                    proxy.close_all()
                    await asyncio.sleep(0.05)
                elif depth % 7 == 0:
                    proxy.change = lambda data: bytes(byte ^ 0x55 for byte in data)
                    await asyncio.sleep(0.02)
                    proxy.change = None
            await until_settled(north, south)
            for here, name in ((north, "bob"), (south, "ann")):
                depths = [message["depth"] for message in await got(here, name, depth)]
                assert sorted(depths) == list(range(1, depth + 1))  # those from afar come later than one's own

    run(work())


def test_a_store_that_fails_breaks_links_and_loses_nothing(tmp_path):
    async def work():
        is_full = False

        def fail():
            if is_full:
                raise OSError("no space left")

        options = {"store": lambda settings: SqliteStore(Path(settings.server.state), before_commit=fail)}
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north, options=options) as south:
            await south.subscribe("all", "ann", "depth > 0")
            await until_settled(north, south)
            is_full = True
            await north.publish({"depth": 1})
            await asyncio.sleep(0.3)
            await north.publish({"depth": 2})
            is_full = False
            assert await got(south, "ann", 2) == [{"depth": 1}, {"depth": 2}]
            await until_settled(north, south)

    run(work())


def test_a_message_passes_a_broker_whose_disk_is_slow_and_then_fails_once(tmp_path):
    """The middle passes it on before its own commit; what it says to its neighbours waits for that."""

    async def work():
        stalled, release, is_full = threading.Event(), threading.Event(), False

        def slow_down():
            if is_full:
                stalled.set()
                release.wait(SECONDS)
                raise OSError("no space left")

        options = {"store": lambda settings: SqliteStore(Path(settings.server.state), before_commit=slow_down)}
        async with (
            broker(tmp_path, "north") as north, broker(tmp_path, "middle", north, options=options) as middle,
            broker(tmp_path, "south", middle) as south,
        ):  # fmt: skip
            for here, name in ((middle, "bob"), (south, "ann")):
                await here.subscribe("all", name, "depth > 0")
            await until_settled(north, middle, south)
            is_full = True
            await north.publish({"depth": 1})
            assert await got(south, "ann", 1) == [{"depth": 1}]
            assert await asyncio.to_thread(stalled.wait, SECONDS)
            assert not await events(middle, "bob", "?wait=0&from=oldest")  # it is not durable there
            is_full = False
            release.set()
            await until_settled(north, middle, south)
            await north.publish({"depth": 2})
            for here, name in ((middle, "bob"), (south, "ann")):
                assert await got(here, name, 2) == [{"depth": 1}, {"depth": 2}]

    run(work())


def test_pieces_make_frames_and_nothing_else():
    for size in (2, 3, 7, 1000):
        for length in (0, 1, 2, 6, 7, 13):
            frame, joiner = bytes(range(length)), PieceJoiner()
            found = [joiner.add(piece) for piece in pieces_of(frame, size)]
            assert found == [None] * (len(found) - 1) + [frame]
            assert all(len(piece) <= size for piece in pieces_of(frame, size))


def test_greetings_are_checked():
    with pytest.raises(LinkError, match="version"):
        check_greeting(2, "north", "south")
    with pytest.raises(LinkError, match="name of this broker"):
        check_greeting(GREETING_VERSION, "south", "south")
    with pytest.raises(LinkError, match="refuses the link: 'no'"):
        decode_greeting(CallerHello, '{"greeting":"refusal","reason":"no"}')
    hello = CallerHello(GREETING_VERSION, "south", KEY.name, new_nonce())
    proof = KEY.proof("caller", hello, "north", "ab")
    KEY.check(proof, "caller", hello, "north", "ab")
    for other in (("called", hello, "north", "ab"), ("caller", hello, "east", "ab"), ("caller", hello, "north", "ac")):
        with pytest.raises(LinkError, match="does not know the key"):
            KEY.check(proof, *other)
    with pytest.raises(LinkError):
        LinkKey(digest_of("other")).check(proof, "caller", hello, "north", "ab")
