"""Servers of one log over HTTP: a client may connect to any of them."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from linked import got, until
from memory_log import MemoryEngine
from serving import events, run, site, take

URL = "nats://127.0.0.1:4222/alerts"  # of which tests use the memory


@asynccontextmanager
async def sites(folder, engine, count=3, lag=0.0, **flags):
    """Run servers on one log, each in a directory of its own; all but the first read it late."""
    async with AsyncExitStack() as stack:
        lags = iter([0.0, *[lag] * count])
        options = {"shared_log": lambda settings: engine.log(lag=next(lags))}
        found = [
            await stack.enter_async_context(site(folder / str(number), options=options, log=URL, **flags))
            for number in range(count)
        ]
        yield found


def test_a_client_reads_at_any_server_what_was_published_at_another(tmp_path):
    async def work():
        async with sites(tmp_path, MemoryEngine()) as (north, south, west):
            assert (await north.subscribe("high", "ann", "severity >= 3")).body["applies_from"] == 1
            async with west.stream("ann") as stream:
                for severity in range(6):
                    answer = await (north, south)[severity % 2].publish({"severity": severity})
                    assert (answer.status, answer.body["sequence"]) == (201, severity + 1), answer
                taken = await take(stream, 3)
            assert [one["message"]["severity"] for one in taken] == [3, 4, 5]
            acknowledged = await west.ask("POST", "/subscribers/ann/ack", {"id": taken[1]["id"]})
            assert acknowledged.status < 300
            await until(lambda: _begins_with(north, taken[2]["id"]))  # after what was acknowledged elsewhere
            assert (await south.ask("DELETE", "/subscriptions/high")).status < 300
            assert (await north.publish({"severity": 9})).body["sequence"] == 7
            assert len(await events(north, "ann", "?wait=0&from=1")) == 3

    run(work())


async def _begins_with(here, id):
    return [one["id"] for one in await events(here, "ann", "?wait=0")] == [id]


def test_a_consumer_goes_on_at_a_server_that_has_not_read_its_place_yet(tmp_path):
    async def work():
        async with sites(tmp_path, MemoryEngine(), 2, lag=0.05) as (north, south):
            await north.subscribe("all", "ann", "n >= 0")
            await north.publish({"n": 5})
            (*_, last) = await events(north, "ann", "?wait=0&from=1")
            assert await events(south, "ann", f"?wait=0&after={last['id']}") == []
            await north.publish({"n": 6})
            (*_, last) = await events(north, "ann", "?wait=0&from=1")
            assert (await south.ask("POST", "/subscribers/ann/ack", {"id": last["id"]})).status == 204
            await north.publish({"n": 7})
            (*_, last) = await events(north, "ann", "?wait=0&from=1")
            async with south.stream("ann", f"?after={last['id']}") as stream:
                await north.publish({"n": 8})
                (event,) = await take(stream, 1)
            assert event["message"] == {"n": 8}
            never = await south.ask("POST", "/subscribers/ann/ack", {"id": "99.1"})
            assert never.status == 400, never

    run(work())


def test_keys_are_good_at_all_servers_and_end_at_all(tmp_path):
    async def work():
        async with sites(tmp_path, MemoryEngine(), 2) as (north, south):
            made = await north.ask("POST", "/keys", {"name": "sensor", "tenant": "default", "scopes": ["publish"]})
            key = made.body["key"]
            await until(lambda: _is_taken(south, key))
            assert (await south.ask("DELETE", "/keys/default/sensor")).status == 204
            await until(lambda: _is_refused(north, key))

    run(work())


async def _is_taken(here, key):
    return (await here.ask("POST", "/messages", {"depth": 1}, key=key)).status == 201


async def _is_refused(here, key):
    return (await here.ask("POST", "/messages", {"depth": 1}, key=key)).status == 401


def test_a_new_server_starts_from_a_snapshot_and_has_everything(tmp_path):
    async def work():
        engine = MemoryEngine()
        async with sites(tmp_path, engine, 2, log_snapshot_bytes=20_000) as (north, south):
            await north.subscribe("all", "ann", "severity >= 0")
            count = 0
            while not engine.trimmed:  # two snapshots are there then
                await (north, south)[count % 2].publish({"severity": count, "text": "x" * 50_000})
                count += 1
                await asyncio.sleep(0.01)
            expected = await got(north, "ann", count)
            assert len(expected) == count
            async with sites(tmp_path / "later", engine, 1, log_snapshot_bytes=20_000) as (west,):
                assert await got(west, "ann", count) == expected
                assert (await west.publish({"severity": 60})).body["sequence"] == count + 1
                assert (await west.ask("GET", "/subscriptions/all")).body["filter"] == "severity >= 0"

    run(work())


class Receiver:
    """An HTTP endpoint that takes everything, and notes what came."""

    def __init__(self):
        self.ids = []

    async def take(self, request):
        self.ids.append(request.headers["webhook-id"])
        return web.Response(status=204)

    @asynccontextmanager
    async def running(self):
        application = web.Application()
        application.router.add_post("/", self.take)
        runner = web.AppRunner(application)
        await runner.setup()
        place = web.TCPSite(runner, "127.0.0.1", 0)
        await place.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
        finally:
            await runner.cleanup()


def test_one_server_delivers_to_webhooks_and_another_goes_on_after_it(tmp_path):
    async def work():
        receiver, engine = Receiver(), MemoryEngine()
        async with receiver.running() as url, sites(tmp_path, engine, 2, webhooks_allow_private=True) as (south, north):
            await until(lambda: asyncio.sleep(0, south.server.context.started_duty.is_ours))
            await north.subscribe("all", "ann", "depth > 0")
            made = await north.ask("PUT", "/subscribers/ann/webhooks/main", {"url": url, "from": "oldest"})
            assert made.status < 300, made
            for depth in range(1, 6):
                await north.publish({"depth": depth})
            await until(lambda: asyncio.sleep(0, len(receiver.ids) == 5))
            elsewhere = await north.ask("POST", "/subscribers/ann/webhooks/main/dead-letters/replay")
            assert elsewhere.status == 409, elsewhere
            assert "deliveries are made by" in elsewhere.body["detail"]
            await until(lambda: _has_acknowledged(north, 5))
            await south.server.context.started_duty.stop()  # as at the end of a server
            await until(lambda: asyncio.sleep(0, north.server.context.started_duty.is_ours))
            for depth in range(6, 9):
                await south.publish({"depth": depth})
            await until(lambda: asyncio.sleep(0, len(receiver.ids) >= 8))
            assert receiver.ids == sorted(set(receiver.ids))  # in order, none twice

    run(work())


async def _has_acknowledged(here, sequence):
    view = (await here.ask("GET", "/subscribers/ann/webhooks/main")).body
    return view["acknowledged"] is not None and view["acknowledged"].startswith(f"{sequence}.")


def test_metrics_tell_how_far_the_log_is_applied_and_who_delivers(tmp_path):
    async def work():
        engine = MemoryEngine()
        async with sites(tmp_path, engine, 2) as found:
            await found[0].subscribe("all", "ann", "depth > 0")
            await found[1].publish({"depth": 1})
            await until(lambda: _delivering(found, 1))
            text = (await found[0].ask("GET", "/metrics")).body.decode()
            position = float(text.partition("\ncontrada_log_position ")[2].partition("\n")[0])
            assert 3 <= position <= engine.end()
            assert "contrada_log_foreign_records_total 0.0" in text

    run(work())


async def _delivering(found, count):
    texts = [(await here.ask("GET", "/metrics")).body.decode() for here in found]
    return sum("\ncontrada_log_delivers 1.0" in text for text in texts) == count
