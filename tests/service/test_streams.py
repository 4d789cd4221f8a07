"""Receiving: Server-Sent Events, long poll, resumption, resets, restarts."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

from contrada.errors import ContradaError
from contrada.service.http.server import ServerRun
from contrada.service.settings import load_settings
from serving import ADMIN, next_reset, run, site, take


def test_events_come_in_order_to_each_subscriber(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("deep", "ann", "depth > 1")
            await here.subscribe("deeper", "ann", "depth > 2")
            await here.subscribe("bobs", "bob", "depth < 2")
            async with here.stream("ann") as ann, here.stream("bob") as bob:
                for depth in (1, 2, 3):
                    await here.publish({"depth": depth})
                found = await take(ann, 3)
                assert [(one["id"], one["sequence"], one["key"]) for one in found] == [
                    ("2.1", 2, "deep"), ("3.1", 3, "deep"), ("3.2", 3, "deeper"),
                ]  # fmt: skip
                assert found[0]["message"] == {"depth": 2}
                assert [one["message"]["depth"] for one in await take(bob, 1)] == [1]

    run(work())


def test_streams_resume_after_the_last_id(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.subscribe("b", "ann", "depth > 0")
            await here.publish(*({"depth": depth} for depth in range(1, 101)))
            async with here.stream("ann") as stream:
                first = await take(stream, 101)
            last = first[-1]["id"]
            # A browser repeats its query: the header weighs more.
            async with here.stream("ann", "?from=1", Last_Event_ID=last) as stream:
                second = await take(stream, 99)
            assert [one["id"] for one in first + second] == [f"{k}.{n}" for k in range(1, 101) for n in (1, 2)]
            # The id proved receipt: a consumer without a place goes on after it.
            async with here.stream("ann") as stream:
                assert (await take(stream, 1))[0]["id"] == second[0]["id"]

    run(work())


def test_places_are_chosen_by_the_query(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            for depth in range(1, 6):
                await here.publish({"depth": depth})

            async def sequences(query):
                answer = await here.ask("GET", f"/subscribers/ann/events?wait=0&{query}", Accept="application/json")
                return [event["sequence"] for event in answer.body["events"]] if answer.status == 200 else answer

            assert await sequences("from=3") == [3, 4, 5]
            assert await sequences("from=now") == []
            assert await sequences("from=oldest&limit=2") == [1, 2]
            assert await sequences("since=2020-01-01T00:00:00Z") == [1, 2, 3, 4, 5]
            assert await sequences("since=2100-01-01T00:00:00%2B01:00") == []
            assert await sequences("after=4.1") == [5]
            for query in ("from=x", "after=4", "since=yesterday", "from=1&after=1.1", "limit=0", "format=x"):
                answer = await sequences(query)
                assert (answer.status, answer.body["title"]) == (400, "Bad parameter"), query
            assert (await sequences("from=1&from=2")).status == 400
            answer = await here.ask("GET", "/subscribers/ann/events", Accept="image/png")
            assert (answer.status, answer.body["type"]) == (406, "/problems/not-acceptable")

    run(work())


def test_long_polls_wait_for_events(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            poll = asyncio.create_task(here.ask("GET", "/subscribers/ann/events?wait=30", Accept="application/json"))
            await asyncio.sleep(0.1)
            await here.publish({"depth": 1})
            answer = await poll
            assert [event["id"] for event in answer.body["events"]] == ["1.1"]
            assert answer.body["next"] == "1.1"
            empty = await here.ask("GET", "/subscribers/ann/events?wait=0.1&after=1.1", Accept="application/json")
            assert (empty.status, empty.body["events"]) == (200, [])
            await here.publish({"depth": 2})
            after = f"/subscribers/ann/events?after={empty.body['next']}"
            assert (await here.ask("GET", after, Accept="application/json")).body["next"] == "2.1"

    run(work())


def test_cloudevents_come_out(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.publish({"depth": 1})
            batch = await here.ask("GET", "/subscribers/ann/events", Accept="application/cloudevents-batch+json")
            assert batch.headers["Content-Type"] == "application/cloudevents-batch+json"
            assert batch.body == [
                {"specversion": "1.0", "id": "1.1", "source": "/subscribers/ann", "type": "org.contrada.match",
                 "subject": "a", "sequence": "1", "datacontenttype": "application/json", "data": {"depth": 1}}
            ]  # fmt: skip
            async with here.stream("ann", "?format=cloudevents") as stream:
                assert await take(stream, 1) == batch.body

    run(work())


def test_what_retention_removed_is_told(tmp_path):
    async def work():
        async with site(tmp_path, retention_bytes=2_000) as here:
            oldest = await here.overfill("ann")
            gone = await here.ask("GET", "/subscribers/ann/events?after=1.1&wait=0", Accept="application/json")
            assert (gone.status, gone.body["type"], gone.body["oldest"]) == (410, "/problems/gone", oldest)
            async with here.stream("ann", "?from=1") as stream:
                assert await next_reset(stream) == {"oldest": oldest}
                assert (await take(stream, 1))[0]["sequence"] == oldest
            # An id that this log has not reached is of another log: silence would lose everything.
            async with here.stream("ann", Last_Event_ID="999.1") as stream:
                assert await next_reset(stream) == {"oldest": oldest}
                assert (await take(stream, 1))[0]["sequence"] == oldest
            shown = (await here.ask("GET", "/subscribers/ann")).body
            assert shown["dropped"] == oldest - 1

    run(work())


def test_quiet_streams_have_comments_and_end_with_the_server(tmp_path):
    async def work():
        async with site(tmp_path, keep_alive=0.1) as here, here.stream("ann") as stream:
            assert (await anext(stream)).keys() == {"retry"}
            assert (await anext(stream)).keys() == {""}
            here.server.stop()
            rest = [fields async for fields in stream]
            assert rest[-1] == {"": "the server stops"}

    run(work())


def test_readers_are_closed_when_clients_go(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            async with here.stream("ann") as stream:
                await anext(stream)
                assert (await here.ask("GET", "/subscribers/ann")).body["readers"] == 1
            await here.until_unread("ann")
            assert here.server.context.gate.connections.total == 0

    run(work())


def test_a_slow_reader_slows_only_itself(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.subscribe("b", "bob", "depth > 0")
            small = socket.socket()
            small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            small.connect(("127.0.0.1", here.server.port))
            reader, writer = await asyncio.open_connection(sock=small, limit=1024)
            head = f"GET /subscribers/ann/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n"
            writer.write(head.encode())
            await reader.readuntil(b"retry")
            async with here.stream("bob") as bob:
                for depth in range(1, 61):  # 6 MB: more than sockets hold
                    assert (await here.publish({"depth": depth, "text": "x" * 100_000})).status == 201
                assert [one["sequence"] for one in await take(bob, 60)] == list(range(1, 61))
            found, rest = 0, b""
            while found < 60:  # and it misses nothing
                rest = rest[-10:] + await asyncio.wait_for(reader.read(1 << 20), 20)
                found += rest.count(b"\nid: ") - rest[:10].count(b"\nid: ")
            writer.close()
            await writer.wait_closed()

    run(work())


def test_stream_tokens_open_one_stream(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            await here.publish({"depth": 1})
            made = await here.ask("POST", "/subscribers/ann/token")
            token = made.body["token"]
            async with here.stream("ann", f"?token={token}", key=None) as stream:
                assert (await take(stream, 1))[0]["id"] == "1.1"
            answer = await here.ask("GET", f"/subscribers/bob/events?token={token}", key=None)
            assert (answer.status, answer.body["type"]) == (401, "/problems/unauthorized")
            assert (await here.ask("GET", f"/subscribers/ann?token={token}", key=None)).status == 401

    run(work())


def test_open_streams_are_limited(tmp_path):
    async def work():
        async with site(tmp_path, limits_tenant_connections=1) as here, here.stream("ann") as stream:
            await anext(stream)
            answer = await here.ask("GET", "/subscribers/bob/events")
            assert (answer.status, answer.body["type"]) == (429, "/problems/too-many-connections")
            assert "Retry-After" in answer.headers

    run(work())


def test_a_restart_keeps_everything(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            secret = (await here.ask("POST", "/keys", {"name": "s", "scopes": ["publish"]})).body["key"]
            await here.subscribe("a", "ann", "depth > 0")
            await here.publish({"depth": 1}, {"depth": 2})
            await here.ask("POST", "/subscribers/ann/ack", {"id": "1.1"})
        async with site(tmp_path) as here:
            assert (await here.publish({"depth": 3}, key=secret)).body == {"sequence": 3}
            async with here.stream("ann") as stream:
                assert [one["id"] for one in await take(stream, 2)] == ["2.1", "3.1"]
            assert (await here.ask("GET", "/subscriptions/a")).body["applies_from"] == 1

    run(work())


def test_two_servers_never_share_a_directory(tmp_path):
    async def work():
        async with site(tmp_path):
            with pytest.raises(ContradaError, match="another server uses this directory"):
                async with site(tmp_path):
                    pass

    run(work())


def test_a_first_start_makes_an_admin_key_once(tmp_path):
    async def said() -> list[str]:
        lines: list[str] = []
        server = ServerRun(load_settings(None, {}, {"port": 0, "state": str(tmp_path)}), lines.append)
        running = asyncio.create_task(server.serve())
        while not server.context.is_ready:
            await asyncio.sleep(0.02)
        keys = [line.rpartition(" ")[2] for line in lines if "ctr_" in line]
        if keys:
            headers = {"Authorization": f"Bearer {keys[0]}"}
            url = f"http://127.0.0.1:{server.port}/keys"
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
                assert answer.status == 200
        server.stop()
        await running
        return keys

    assert len(asyncio.run(said())) == 1
    assert asyncio.run(said()) == []


def test_a_port_that_is_in_use_is_an_error(tmp_path):
    async def work():
        async with site(tmp_path / "a") as here:
            with pytest.raises(ContradaError, match="Address already in use"):
                async with site(tmp_path / "b", port=here.server.port):
                    pass

    run(work())


def test_a_server_can_be_stopped_while_it_starts(tmp_path):
    async def work():
        server = ServerRun(load_settings(None, {}, {"port": 0, "state": str(tmp_path)}), lambda text: None)
        server.stop()
        await server.serve()
        assert not server.context.is_ready

    run(work())
