"""A key that is revoked or has expired ends what was opened with it, with a reason, and nothing else."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from contrada.client import AsyncClient, ProblemError
from contrada.service.access.open_streams import EXPIRED, REVOKED
from serving import is_problem, run, site, take, talk

KEY = {"name": "reader", "scopes": ["subscribe"]}


async def end_of(stream):
    """Return the data of the last event of a stream that ends, which tells why."""
    fields = [fields async for fields in stream]
    assert fields[-1]["event"] == "end"
    return json.loads(fields[-1]["data"])["reason"]


def test_a_revoked_key_ends_its_streams_sockets_and_polls(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            key = (await here.ask("POST", "/keys", KEY)).body["key"]
            made = await here.ask("POST", "/subscribers/ann/token", key=key)
            query = f"?token={made.body['token']}"
            async with (
                here.stream("ann", key=key) as own,
                here.stream("ann", query, key=None) as by_token,
                here.stream("ann") as others,
                talk(here, key) as socket,
                talk(here, None) as greeted,
                talk(here, None) as guest,
                talk(here) as admin,
            ):
                await greeted.say("hello", key=key)
                await guest.say("hello", token=made.body["token"], subscriber="ann")
                for one in (socket, greeted, guest, admin):
                    await one.say("receive", subscriber="ann")
                    assert await one.silence()
                await here.publish({"depth": 1})
                for stream in (own, by_token, others):
                    assert (await take(stream, 1))[0]["id"] == "1.1"
                for one in (socket, greeted, guest, admin):
                    assert (await one.hear())[0]["id"] == "1.1"
                poll = asyncio.create_task(
                    here.ask("GET", "/subscribers/ann/events?after=1.1&wait=30", key=key, Accept="application/json")
                )
                while here.server.context.gate.connections.total < 8:
                    await asyncio.sleep(0.01)
                assert (await here.ask("DELETE", "/keys/default/reader")).status == 204
                assert [await end_of(own), await end_of(by_token)] == [REVOKED] * 2
                for one in (socket, greeted, guest):
                    assert await one.closed() == (1008, REVOKED)
                answer = await poll
                assert is_problem(answer, 401, "unauthorized")
                assert answer.body["detail"] == REVOKED
                late = await here.ask("GET", f"/subscribers/ann/events{query}", key=None)
                assert is_problem(late, 401, "unauthorized")
                await here.publish({"depth": 2})  # those of other keys go on
                assert (await take(others, 1))[0]["id"] == "2.1"
                assert (await admin.hear())[0]["id"] == "2.1"
                assert (await here.ask("GET", "/subscribers/ann")).body["readers"] == 2
                assert here.server.context.gate.connections.total == 2

    run(work())


def test_a_key_that_expires_ends_its_streams(tmp_path):
    now = [1_800_000_000.0]

    async def work():
        async with site(tmp_path, options={"clock": lambda: now[0], "look": 0.01}) as here:
            asked = KEY | {"expires": datetime.fromtimestamp(now[0] + 60, UTC).isoformat()}
            key = (await here.ask("POST", "/keys", asked)).body["key"]
            token = (await here.ask("POST", "/subscribers/ann/token", key=key)).body["token"]
            async with (
                here.stream("ann", key=key) as own,
                here.stream("ann", f"?token={token}", key=None) as by_token,
                here.stream("ann") as others,
                talk(here, key) as socket,
            ):
                for stream in (own, by_token, others):
                    await anext(stream)
                now[0] += 59
                await asyncio.sleep(0.03)
                assert await socket.silence()
                now[0] += 1
                assert [await end_of(own), await end_of(by_token)] == [EXPIRED] * 2
                assert await socket.closed() == (1008, EXPIRED)
                await here.subscribe("a", "ann", "depth > 0")
                await here.publish({"depth": 1})
                assert (await take(others, 1))[0]["id"] == "1.1"

    run(work())


def test_a_client_hears_that_its_key_was_revoked(tmp_path):
    async def work():
        async with site(tmp_path) as here:
            await here.subscribe("a", "ann", "depth > 0")
            key = (await here.ask("POST", "/keys", KEY)).body["key"]
            async with AsyncClient(here.url, key) as client, client.matches("ann") as matches:
                await here.publish({"depth": 1})
                assert (await anext(matches)).id == "1.1"
                await here.ask("DELETE", "/keys/default/reader")
                with pytest.raises(ProblemError) as caught:
                    await anext(matches)
                assert caught.value.status == 401

    run(work())
