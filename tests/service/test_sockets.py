"""The WebSocket: events within credit, acknowledgements, publishing, and how bad frames end it."""

from __future__ import annotations

import json

import aiohttp
import pytest

from serving import ADMIN, run, site, talk


def test_events_never_exceed_credit(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.publish(*({"depth": depth} for depth in range(1, 11)))
            async with talk(here) as one:
                await one.say("receive", subscriber="ann", credit=3)
                found = await one.hear(3)
                assert [(frame["op"], frame["id"], frame["key"]) for frame in found] == [
                    ("event", "1.1", "a"), ("event", "2.1", "a"), ("event", "3.1", "a"),
                ]  # fmt: skip
                assert found[0]["message"] == {"depth": 1}
                assert found[0]["subscriber"] == "ann"
                assert await one.silence()
                await one.say("credit", subscriber="ann", count=2)
                assert [frame["id"] for frame in await one.hear(2)] == ["4.1", "5.1"]
                assert await one.silence()
                await one.say("ack", subscriber="ann", id="4.1")
                await one.say("stop", subscriber="ann")
                assert await one.silence()
            async with talk(here) as one:
                await one.say("receive", subscriber="ann", credit=1)
                assert [frame["id"] for frame in await one.hear()] == ["5.1"]
            async with talk(here) as one:
                await one.say("receive", subscriber="ann", **{"from": 9})
                assert [frame["id"] for frame in await one.hear(2)] == ["9.1", "10.1"]
                assert await one.silence()

    run(work())


def test_one_socket_serves_several_subscribers(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            for name in ("ann", "bob"):
                await here.subscribe(name, name, "depth > 0")
            async with talk(here) as one:
                for name in ("ann", "bob"):
                    await one.say("receive", subscriber=name)
                assert await one.silence()
                await one.say("publish", message={"depth": 1}, ref=1)
                found = sorted((frame["op"], frame.get("subscriber", "")) for frame in await one.hear(3))
                assert found == [("event", "ann"), ("event", "bob"), ("published", "")]
                await one.say("receive", subscriber="ann")
                (error,) = await one.hear()
                assert (error["op"], error["subscriber"], error["problem"]["status"]) == ("error", "ann", 409)

    run(work())


def test_publishing_is_answered_by_reference(tmp_path):
    async def work():
        async with site(tmp_path) as here, talk(here) as one:
            for ref in range(5):
                await one.say("publish", ref=ref, message={"depth": ref})
            assert await one.hear(5) == [{"op": "published", "ref": ref, "sequence": ref + 1} for ref in range(5)]
            await one.say("publish", ref="batch", messages=[{"depth": 1}, 7])
            (answer,) = await one.hear()
            assert (answer["first"], answer["last"], answer["count"]) == (6, 6, 1)
            assert [row["row"] for row in answer["rejected"]] == [1]
            await one.say("publish", ref="bad", message=[])
            await one.say("publish", ref="none")
            await one.say("publish", ref="id", message={"depth": 1}, id="x")
            await one.say("publish", ref="again", message={"depth": 1}, id="x")
            answers = {frame["ref"]: frame for frame in await one.hear(4)}
            assert answers["none"]["problem"]["status"] == 400
            assert answers["id"] == {"op": "published", "ref": "id", "sequence": 7}
            assert answers["again"] == {"op": "published", "ref": "again", "sequence": 7, "duplicate": True}

    run(work())


def test_hello_opens_a_socket_without_a_header(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.publish({"depth": 1})
            async with talk(here, None) as one:
                await one.say("hello", key=ADMIN)
                await one.say("receive", subscriber="ann")
                assert (await one.hear())[0]["id"] == "1.1"
            token = (await here.ask("POST", "/subscribers/ann/token")).body["token"]
            async with talk(here, None) as one:
                await one.say("hello", token=token, subscriber="ann")
                await one.say("receive", subscriber="ann")
                assert (await one.hear())[0]["id"] == "1.1"
                await one.say("receive", subscriber="bob")
                assert (await one.hear())[0]["problem"]["status"] == 403
                await one.say("publish", message={"depth": 1})
                assert (await one.hear())[0]["problem"]["status"] == 403
            async with talk(here, None) as one:
                await one.say("receive", subscriber="ann")
                assert (await one.hear())[0]["problem"]["status"] == 401
                assert await one.closed() == (1008, "Unauthorized")
            with pytest.raises(aiohttp.WSServerHandshakeError, match="401"):
                async with talk(here, "wrong"):
                    pass

    run(work())


BAD_FRAMES = [
    "{", "[]", '{"op": "nope"}', '{"op": "credit", "subscriber": "ann", "count": -1}', "[" * 100_000,
    '{"op": "ping", "more": 1}', '{"op": "receive"}',
]  # fmt: skip


def test_bad_frames_close_with_a_reason(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            for frame in BAD_FRAMES:
                async with talk(here) as one:
                    await one.socket.send_str(frame)
                    (error,) = await one.hear()
                    assert (error["op"], error["problem"]["type"]) == ("error", "/problems/bad-body"), frame
                    code, reason = await one.closed()
                    assert code == 1007
                    assert reason.startswith("bad frame")

    run(work())


def test_frames_beyond_the_limit_close(tmp_path):
    async def work():
        async with site(tmp_path, limits_body_bytes=1_000) as here, talk(here) as one:
            await one.socket.send_str(json.dumps({"op": "publish", "message": {"text": "x" * 2_000}}))
            assert (await one.closed())[0] == 1009

    run(work())


def test_what_retention_removed_is_told(tmp_path):
    async def work():
        async with site(tmp_path, retention_bytes=2_000) as here:
            oldest = await here.overfill("ann")
            async with talk(here) as one:
                await one.say("receive", subscriber="ann", after="1.1", credit=1)
                reset, event = await one.hear(2)
                assert reset == {"op": "reset", "subscriber": "ann", "oldest": oldest}
                assert event["sequence"] == oldest

    run(work())


def test_sockets_end_with_the_server_and_readers_with_sockets(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            async with talk(here) as one:
                await one.say("receive", subscriber="ann")
                assert await one.silence()
                assert (await here.ask("GET", "/subscribers/ann")).body["readers"] == 1
            await here.until_unread("ann")
            async with talk(here) as one:
                await one.say("receive", subscriber="ann")
                assert await one.silence()
                here.server.stop()
                assert await one.closed() == (1001, "the server stops")

    run(work())
