"""The live stream of the map: what happens is told once, in order, after a cut too, and never fills the memory."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import AsyncExitStack, asynccontextmanager

import shapely

from contrada.service.map.schemas import LostEvent
from contrada.service.map.viewers import Viewer
from contrada.service.map.watching import Watcher, WatchLimits
from contrada.service.store.message_store import StoredMessage
from map_watching import watching
from memory_log import MemoryEngine
from serving import SECONDS, feature, is_problem, run, site

BOX = "S_INTERSECTS(geometry, BBOX(0, 0, 1, 1))"


async def open_maps(here):
    return here.server.context.map.watching


def test_messages_and_subscriptions_are_told_as_they_happen(tmp_path):
    async def work():
        async with site(tmp_path) as here, watching(here) as watch:
            await here.subscribe("a", "ann", BOX)
            event = await watch.next()
            assert (event.name, event.id) == ("subscription", None)
            assert (event.data["change"], event.data["key"]) == ("put", "a")
            assert event.data["subscription"]["bounds"] == [0, 0, 1, 1]
            await here.publish(feature(0.5, 0.5, depth=2))
            (message,) = await watch.messages(1)
            assert (message["sequence"], message["matched"], message["attributes"]) == (1, ["a"], {"depth": 2})
            await here.ask("POST", "/subscriptions/a/pause")
            event = await watch.next()
            assert event.data["subscription"]["paused"] is True
            await here.publish(feature(0.5, 0.5))
            assert (await watch.messages(1))[0]["matched"] == []
            await here.ask("DELETE", "/subscriptions/a")
            event = await watch.next()
            assert event.data == {"change": "deleted", "key": "a", "subscription": None}

    run(work())


def test_live_messages_are_those_of_the_pages(tmp_path, store_flags):
    async def work():
        async with site(tmp_path, **store_flags("a")) as here, watching(here) as watch:
            await here.subscribe("a", "ann", BOX)
            await here.subscribe("bus", "eve", "S_WITHIN(geometry, BBOX(0, 0, 1, 1))", track="bus")
            for number in range(6):
                await here.publish(feature(number / 3, 0.5, n=number, bus="b7"))
            await here.ask("DELETE", "/subscriptions/bus")
            told = await watch.messages(6)
            page = await here.ask("GET", "/map/messages")
            assert told == page.body["messages"]
            assert [one["kind"] for each in told for one in each["transitions"]] == ["enter", "exit"]

    run(work())


def test_a_watcher_that_was_cut_off_goes_on_where_it_was(tmp_path, store_flags):
    async def work():
        async with site(tmp_path, **store_flags("a")) as here:
            async with watching(here) as watch:
                await here.publish({"n": 1})
                await watch.messages(1)
            await here.publish({"n": 2}, {"n": 3})
            async with watching(here, last=1) as watch:
                event = await watch.next()
                assert (event.name, event.data) == ("lost", {"what": "subscriptions", "reason": "resumed"})
                assert [one["attributes"]["n"] for one in await watch.messages(2)] == [2, 3]
                await here.publish({"n": 4})
                assert (await watch.messages(1))[0]["sequence"] == 4
            async with watching(here, "?after=0") as watch:
                assert [one["sequence"] for one in await watch.messages(4)] == [1, 2, 3, 4]
            async with watching(here, last=99) as watch:  # of a log that this server does not have
                lost = [await watch.next(), await watch.next()]
                assert [(one.name, one.data["reason"]) for one in lost] == [("lost", "resumed"), ("lost", "gone")]
                await here.publish({"n": 5})
                assert (await watch.messages(1))[0]["sequence"] == 5

    run(work())


def test_a_watcher_who_asks_for_what_retention_removed_is_told(tmp_path):
    async def work():
        async with site(tmp_path, retention_bytes=2_000) as here:
            oldest = await here.overfill("ann")
            async with watching(here, last=0) as watch:
                assert (await watch.next()).data["what"] == "subscriptions"
                gone = (await watch.next()).data
                assert gone == {"what": "messages", "reason": "gone", "from": 1, "to": oldest - 1}
                assert (await watch.messages(1))[0]["sequence"] == oldest

    run(work())


@asynccontextmanager
async def raw_stream(here, received=None):
    """Open the stream of the map on a socket that takes only so many bytes before it is read."""
    sock = socket.socket()
    if received is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", here.server.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 20)
    try:
        writer.write(b"GET /map/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer test-admin-key\r\n\r\n")
        await asyncio.wait_for(reader.readuntil(b"hello"), SECONDS)
        yield reader
    finally:
        writer.close()


async def read_messages(reader, count):
    """Read until this many messages have come."""
    seen = 0
    while seen < count:
        line = await asyncio.wait_for(reader.readline(), SECONDS)
        assert line
        seen += line == b"event: message\n"


def test_a_client_that_reads_nothing_is_told_what_it_lost_and_holds_no_memory(tmp_path):
    async def work():
        async with site(tmp_path) as here, raw_stream(here, 1 << 16) as reader:
            ring = shapely.Point(0, 0).buffer(10, quad_segs=600)  # 100 kB of vertices
            body = {"geometry": json.loads(shapely.to_geojson(ring))}
            lines = (json.dumps(body) + "\n") * 9

            async def publish(posts):
                for _ in range(posts):
                    answer = await here.ask("POST", "/messages", data=lines, kind="application/x-ndjson")
                    assert answer.status == 201  # publishing is not held up

            # 10 MB are more than sockets hold and less than the watcher does: once a client that reads has them all,
            # the server waits for the one that does not.
            async with raw_stream(here) as other:
                await asyncio.gather(read_messages(other, 99), publish(11))
            await publish(30)
            seen = b""
            while b"event: lost" not in seen[-400_000:] and len(seen) < 50_000_000:
                part = await asyncio.wait_for(reader.read(1 << 20), 20)
                assert part
                assert part != b":\n\n", "all was told"
                seen += part
            lost = seen[seen.index(b"event: lost") :].split(b"\n")[1]
            found = json.loads(lost.removeprefix(b"data: "))
            assert (found["what"], found["reason"]) == ("messages", "slow")
            assert 1 < found["from"] <= found["to"] <= 369

    run(work())


def stored(sequence, size=10):
    return StoredMessage(sequence, 0, "t", "", "json", b"x" * size, b"", 0)


def test_what_waits_for_a_watcher_is_bounded():
    async def work():
        watcher = Watcher(Viewer("t", frozenset()), WatchLimits(messages=5, bytes=1_000, changes=3))
        watcher.offer([stored(number) for number in range(1, 5)], ["a", "b"])
        assert [one.sequence for one in watcher.take(3).messages] == [1, 2, 3]
        watcher.offer([stored(5, 400), stored(6, 400)], [])
        assert [one.sequence for one in watcher.take(3, most=500).messages] == [4, 5]
        assert [one.sequence for one in watcher.take(3, most=100).messages] == [6]
        watcher.offer([stored(number) for number in range(7, 13)], [])  # six wait: all go
        taken = watcher.take(10)
        assert (taken.messages, taken.lost) == ([], [LostEvent("messages", "many", 7, 12)])
        watcher.is_writing = True
        watcher.offer([stored(13, 2_000)], [])
        watcher.is_writing = False
        watcher.offer([stored(14, 2_000)], [])
        assert watcher.take(10).lost == [LostEvent("messages", "slow", 13, 14)]
        watcher.offer([], ["a", "b", "c", "d"])
        taken = watcher.take(10)
        assert (taken.keys, taken.lost) == ([], [LostEvent("subscriptions", "many")])
        assert await watcher.wait(0.01) is False
        watcher.offer([], ["a", "a"])
        assert await watcher.wait(0.01) is True
        assert watcher.take(10).keys == ["a"]

    run(work())


def test_a_bulk_change_is_told_key_by_key_or_as_a_loss(tmp_path):
    async def work():
        async with site(tmp_path) as here, watching(here) as watch:
            keys = {f"k{number}" for number in range(1_500)}
            rows = "\n".join(json.dumps({"key": key, "filter": BOX}) for key in keys)
            await here.ask("POST", "/subscriptions", data=rows, kind="application/x-ndjson")
            while keys and (event := await watch.next()).name == "subscription":
                keys.remove(event.data["key"])
            assert not keys or event.data == {"what": "subscriptions", "reason": "many"}

    run(work())


def test_tenants_see_nothing_of_each_other(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            asked = {"name": "other", "tenant": "other", "scopes": ["publish", "subscribe"]}
            other = (await here.ask("POST", "/keys", asked)).body["key"]
            async with watching(here) as ours, watching(here, key=other) as theirs:
                await here.subscribe("a", "ann", BOX)
                await here.ask("PUT", "/subscriptions/b", {"subscriber": "bob", "filter": BOX}, key=other)
                await here.publish(feature(0.5, 0.5, whose="ours"))
                await here.publish(feature(0.5, 0.5, whose="theirs"), key=other)
                seen = [await ours.next(), await ours.next()]
                assert {one.name for one in seen} == {"subscription", "message"}
                assert [one.data["key"] for one in seen if one.name == "subscription"] == ["a"]
                (message,) = [one.data for one in seen if one.name == "message"]
                assert (message["attributes"]["whose"], message["matched"]) == ("ours", ["a"])
                assert (await theirs.next()).data["key"] == "b"
                assert (await theirs.messages(1))[0]["matched"] == ["b"]
            page = await here.ask("GET", "/map/messages", key=other)
            assert [one["attributes"]["whose"] for one in page.body["messages"]] == ["theirs"]
            assert is_problem(await here.ask("GET", "/map/subscriptions/a", key=other), 404, "unknown-key")
            answer = await here.ask("POST", "/map/explain", {"key": "b", "sequence": 1}, key=other)
            assert is_problem(answer, 404, "not-found")
            counts = await here.ask("GET", "/map/counts?step=3600", key=other)
            assert (sum(counts.body["messages"]), sum(counts.body["matches"])) == (1, 1)
            assert (await here.ask("GET", "/map/settings", key=other)).body["subscriptions"] == 1

    run(work())


def test_a_token_opens_the_stream_of_the_map_alone(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            made = await here.ask("POST", "/map/token")
            assert made.status == 201
            async with watching(here, f"?token={made.body['token']}", key=None) as watch:
                await here.publish({"n": 1})
                assert len(await watch.messages(1)) == 1
            token = made.body["token"]
            assert (await here.ask("GET", f"/subscribers/ann/events?token={token}", key=None)).status == 401
            other = (await here.ask("POST", "/subscribers/ann/token")).body["token"]
            assert is_problem(await here.ask("GET", f"/map/events?token={other}", key=None), 401, "unauthorized")

    run(work())


def test_a_key_that_is_revoked_ends_the_stream(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            made = (await here.ask("POST", "/keys", {"name": "screen", "scopes": ["subscribe"]})).body["key"]
            assert is_problem(await here.ask("GET", "/map/events", key="wrong"), 401, "unauthorized")
            publisher = (await here.ask("POST", "/keys", {"name": "buoy", "scopes": ["publish"]})).body["key"]
            assert is_problem(await here.ask("GET", "/map/events", key=publisher), 403, "forbidden")
            async with watching(here, key=made) as watch:
                await here.ask("DELETE", "/keys/default/screen")
                assert (await watch.until("end")).data == {"reason": "the key was revoked"}
            assert await open_maps(here) == 0

    run(work())


def test_nothing_looks_at_changes_once_nobody_watches(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            async with AsyncExitStack() as stack:
                for _ in range(3):
                    await stack.enter_async_context(watching(here))
                assert await open_maps(here) == 3
            for _ in range(200):
                if not await open_maps(here):
                    break
                await asyncio.sleep(0.05)
            assert await open_maps(here) == 0

    run(work())


def test_servers_of_one_log_tell_what_happened_at_another(tmp_path):
    async def work():
        engine = MemoryEngine()
        options = {"shared_log": lambda settings: engine.log()}
        log = "nats://127.0.0.1:4222/alerts"
        async with (
            site(tmp_path / "north", options=options, log=log) as north,
            site(tmp_path / "south", options=options, log=log) as south,
            watching(south) as watch,
        ):
            await north.subscribe("a", "ann", BOX)
            assert (await watch.until("subscription")).data["key"] == "a"
            await north.publish(feature(0.5, 0.5))
            (message,) = await watch.messages(1)
            assert message["matched"] == ["a"]
            found = await south.ask("POST", "/map/explain", {"key": "a", "sequence": message["sequence"]})
            assert (found.body["matches"], found.body["note"]) == (True, None)
            async with watching(south, last=0) as again:
                assert await again.messages(1) == [message]

    run(work())


def test_a_quiet_stream_sends_comments(tmp_path):
    async def work():
        async with site(tmp_path, keep_alive=0.05) as here, watching(here) as watch:
            line = await asyncio.wait_for(watch.answer.content.readline(), 20)
            assert line == b":\n"

    run(work())
