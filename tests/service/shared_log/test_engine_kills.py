"""Servers of one log as processes, with a real engine, all of which are killed: what was promised holds at all."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import signal
import sqlite3
import urllib.request
from collections import defaultdict
from contextlib import closing, contextmanager

import pytest

from effort import FULL, slow, thorough
from oracles.track_model import Fence, ModelFix, TrackModel
from served import Served
from verification.kill_load import PAUSE, NoAnswerError
from verification.shared_fleet import SharedFleet, store_faults
from verification.shared_log import clients, run_shared
from webhook_receivers import SECRET, receiving, until

ENGINES = [slow("nats"), slow("kafka")]
HOOKS = ("--webhooks-allow-private", "true", "--webhooks-retry-first", "0.01", "--webhooks-retry-most", "0.2")


@pytest.fixture
def engine(request):
    """A running engine, and the URL of a new log."""
    server = request.getfixturevalue(request.param)
    address = server.address if request.param == "kafka" else f"127.0.0.1:{server.port}"
    return server, f"{request.param}://{address}/kills-{secrets.token_hex(4)}"


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_nothing_that_was_acknowledged_is_lost_whatever_is_killed(tmp_path, engine):
    run = asyncio.run(run_shared(tmp_path, *engine, rounds=8 if FULL else 3, seed=1))
    assert run.faults == []
    assert run.messages > 50
    assert run.events > 500


@contextmanager
def fleet_of(folder, engine, count, *flags, seed=0):
    """Run servers on a log while a block runs."""
    fleet = SharedFleet(folder, *engine, random.Random(seed), *flags)
    try:
        fleet.start(count)
        yield fleet
    finally:
        fleet.end()


async def put(world, path, **asked):
    status, body = await world.ask("PUT", path, json.dumps(asked).encode(), Content_Type="application/json")
    assert status in (200, 201), body
    return body


async def publish(world, messages, at=None):
    """Publish messages in one post, again and again at any server until it is answered."""
    lines = b"\n".join(json.dumps(message).encode() for message in messages)
    while True:
        try:
            status, body = await world.ask("POST", "/messages", lines, at, Content_Type="application/x-ndjson")
            assert status in (200, 201), body
            return body
        except NoAnswerError:
            await asyncio.sleep(PAUSE)


async def events(world, url, subscriber):
    """Return all events that a server has for a subscriber."""
    found, place = [], "from=1"
    while True:
        path = f"/subscribers/{subscriber}/events?wait=0&limit=1000&{place}"
        status, page = await world.ask("GET", path, at=url)
        assert status == 200, page
        if not page["events"]:
            return found
        found += page["events"]
        place = f"after={page['next']}"


@pytest.mark.parametrize("engine", [slow("nats")], indirect=True)
def test_posts_that_fill_several_records_are_counted_although_others_come_between(tmp_path, engine):
    async def work(fleet):
        async with clients(fleet, random.Random(1)) as (world, _):
            await put(world, "/subscriptions/all", subscriber="ann", filter="n >= 0")
            rows = [{"n": number, "text": "x" * 100_000} for number in range(25)]
            answers = await asyncio.gather(*(publish(world, rows, fleet.urls[number % 2]) for number in range(6)))
            assert [answer["count"] for answer in answers] == [25] * 6
            assert all(answer["last"] - answer["first"] >= 24 for answer in answers)
            assert any(answer["last"] - answer["first"] > 24 for answer in answers)
            for url in fleet.urls:
                while len(found := await events(world, url, "ann")) < 150:
                    await asyncio.sleep(PAUSE)
                assert [one["sequence"] for one in found] == list(range(1, 151))

    with fleet_of(tmp_path, engine, 2) as fleet:
        asyncio.run(work(fleet))


# --- tracked objects ---

FENCES = {f"f{number}": Fence(number, number % 4, 3, 5) for number in range(8)}
DWELL = 1_000  # milliseconds
OBJECTS = 6  # few, so that all publishers move each of them, at all servers


class Movers:
    """Publishers that move the same objects at all servers."""

    def __init__(self, world, rng):
        self._world, self._rng, self.is_over, self.sent = world, rng, False, 0

    async def run(self):
        """Publish until it is over."""
        while not self.is_over:
            fixes = []
            for _ in range(self._rng.randrange(1, 4)):
                self.sent += 1
                fix = ModelFix(f"b{self._rng.randrange(OBJECTS)}", self._rng.randrange(12), self._rng.randrange(9))
                fixes.append(fix.feature() | {"id": self.sent})  # by which a fix that is sent again is known
            await publish(self._world, fixes)
            await asyncio.sleep(self._rng.uniform(0.0, 0.3))


def told_by_the_log(state):
    """Return what the model makes of the messages of a store: entries and exits, and visits with their two times."""
    with closing(sqlite3.connect(state / "contrada.sqlite")) as connection:
        rows = list(connection.execute("SELECT sequence, at, body FROM messages ORDER BY sequence"))
    model, told, visits, inside = TrackModel(), [], defaultdict(list), {}
    for key, fence in FENCES.items():
        model.put(key, fence)
    for sequence, at, body in rows:
        message = json.loads(body)
        if "geometry" not in message:  # one that time has made
            continue
        fix = ModelFix(message["properties"]["bus"], *message["geometry"]["coordinates"])
        for key, id, kind in model.fix(fix):
            told.append((sequence, key, id, kind))
            if kind == "enter":
                inside[key, id] = at
            else:
                visits[key, id].append((inside.pop((key, id)), at))
    return told, visits, inside


def dwells(found):
    """Return for each pair the visits in which a dwell was told, by number."""
    visit, told = defaultdict(int), defaultdict(list)
    for event in found:
        pair = event["key"], event["track"]["id"]
        if event["track"]["kind"] == "enter":
            visit[pair] += 1
        elif event["track"]["kind"] == "dwell":
            told[pair].append(visit[pair] - 1)
    return told


@pytest.mark.parametrize("engine", [slow("nats"), thorough("kafka")], indirect=True)
def test_tracks_are_never_split_between_servers(tmp_path, engine):
    async def work(fleet):
        rng = random.Random(7)
        async with clients(fleet, rng) as (world, _):
            for key, fence in FENCES.items():
                on = ["enter", "exit", {"dwell": "1s"}]
                await put(world, f"/subscriptions/{key}", subscriber="ann", filter=fence.filter, track="bus", on=on)
            movers = Movers(world, rng)
            moving = [asyncio.create_task(movers.run()) for _ in range(4)]
            for fault in fleet.faults[:3]:
                await asyncio.sleep(1.0)
                await asyncio.to_thread(fault)
            await asyncio.sleep(0.5)
            movers.is_over = True
            await asyncio.gather(*moving)
            await asyncio.sleep(2 * DWELL / 1_000)  # the last visits dwell
            final = await publish(world, [ModelFix("b0", 80, 80).feature()])
            while not all([await _has(world, url, final["last"]) for url in fleet.urls]):
                await asyncio.sleep(PAUSE)
            return [await events(world, url, "ann") for url in fleet.urls]

    with fleet_of(tmp_path, engine, 3, seed=3) as fleet:
        found = asyncio.run(work(fleet))
        fleet.stop()
    assert [*store_faults(fleet.servers)] == []
    assert all(one == found[0] for one in found)
    told, visits, inside = told_by_the_log(fleet.servers[0].state)
    changes = [(one["sequence"], one["key"], one["track"]["id"], one["track"]["kind"]) for one in found[0]]
    # An exit comes behind the entries of its message if a dwell that was due came first.
    assert sorted(one for one in changes if one[3] != "dwell") == sorted(told)
    dwelt, total = dwells(found[0]), 0
    for pair in {*visits, *inside}:
        lengths = [left - entered for entered, left in visits[pair]] + [2 * DWELL] * (pair in inside)
        needed = {number for number, length in enumerate(lengths) if length > DWELL}
        allowed = {number for number, length in enumerate(lengths) if length >= DWELL}
        assert needed <= set(dwelt[pair]) <= allowed
        assert len(dwelt[pair]) == len(set(dwelt[pair]))
        total += len(dwelt[pair])
    assert total > 3
    assert len(told) > 100


async def _has(world, url, sequence):
    """Return True once a server has applied a message: it waits for a place that it has not reached."""
    status, _ = await world.ask("GET", f"/subscribers/ann/events?wait=0&after={sequence}.0", at=url)
    return status == 200


# --- webhooks ---

COUNT = 100


@pytest.mark.parametrize("engine", [slow("nats")], indirect=True)
def test_another_server_delivers_when_the_one_that_did_is_killed(tmp_path, engine):
    async def work(fleet):
        async with clients(fleet, random.Random(1)) as (world, _), receiving() as receiver:
            await put(world, "/subscriptions/all", subscriber="ann", filter="n >= 0")
            hook = {"url": receiver.url("ann"), "secret": SECRET, "from": 1}
            await put(world, "/subscribers/ann/webhooks/main", **hook)
            for number in range(COUNT // 2):
                await publish(world, [{"n": number}])
            await until(lambda: len(receiver.got["ann"]) > 10)
            (server,) = [one for one in fleet.servers if delivers(one)]
            server.end()  # while it delivers the rest
            fleet.urls.remove(server.url)
            for number in range(COUNT // 2, COUNT):
                await publish(world, [{"n": number}])
            await until(lambda: receiver.got["ann"][-1].json["message"]["n"] == COUNT - 1)
            return [one.json for one in receiver.got["ann"]]

    with fleet_of(tmp_path, engine, 2, *HOOKS) as fleet:
        got = asyncio.run(work(fleet))
    reached, ids = 0, {}
    for one in got:  # an event may come again after a kill, but never one before those that precede it
        assert one["sequence"] <= reached + 1
        reached = max(reached, one["sequence"])
        assert ids.setdefault(one["id"], one["message"]) == one["message"]
    assert (reached, len(ids)) == (COUNT, COUNT)


def delivers(server):
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        return "contrada_log_delivers 1.0" in answer.read().decode()


# --- joining ---

ASKED = 600  # units of a log that were sent to a server and wait in its buffers, at most


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_a_log_that_was_cut_is_joined_by_its_snapshot(tmp_path, engine):
    async def fill(world, server, count):
        for number in range(count):
            await publish(world, [{"n": number, "text": secrets.token_hex(15_000)}], server.url)

    async def work(fleet):
        stays, away = fleet.servers
        async with clients(fleet, random.Random(1)) as (world, _):
            await put(world, "/subscriptions/all", subscriber="ann", filter="n >= 0")
            await fill(world, away, 5)
            await asyncio.to_thread(away.end, signal.SIGTERM)
            fleet.urls.remove(away.url)
            until_cut = 0
            while not is_cut(stays.state, away.state):
                await fill(world, stays, 20)
                until_cut += 20
                await asyncio.sleep(0.5)
            kept = await events(world, stays.url, "ann")
            assert len(kept) == until_cut + 5
            away.start()  # its place is not in the log any more
            await asyncio.to_thread(fleet.start, 1)  # an empty directory
            await asyncio.to_thread(away.wait_until_ready)
            fleet.urls.append(away.url)
            assert "reading a snapshot" in away.log.read_text()
            await fill(world, fleet.servers[2], 3)
            for server in fleet.servers:
                while len(found := await events(world, server.url, "ann")) < until_cut + 8:
                    await asyncio.sleep(PAUSE)
                assert found[: len(kept)] == kept

    flags = ("--log-snapshot-bytes", "100000", "--telemetry-log-level", "info")
    with fleet_of(tmp_path, engine, 2, *flags) as fleet:
        asyncio.run(work(fleet))
        fleet.stop()
        assert [*store_faults(fleet.servers)] == []


@pytest.mark.parametrize("engine", [slow("nats")], indirect=True)
def test_a_server_that_sleeps_until_the_log_is_cut_ends_and_starts_from_a_snapshot(tmp_path, engine):
    async def work(fleet):
        stays, sleeps = fleet.servers
        async with clients(fleet, random.Random(1)) as (world, _):
            await put(world, "/subscriptions/all", subscriber="ann", filter="n >= 0")
            sleeps.process.send_signal(signal.SIGSTOP)
            while not is_cut(stays.state, sleeps.state, ASKED):
                await publish(world, [{"n": 1, "text": secrets.token_hex(500)}], stays.url)
            sleeps.process.send_signal(signal.SIGCONT)
            assert await asyncio.to_thread(sleeps.process.wait, 60) != 0
            assert "start this server again" in sleeps.log.read_text()
            sleeps.start()
            await asyncio.to_thread(sleeps.wait_until_ready)
            assert await events(world, sleeps.url, "ann") == await events(world, stays.url, "ann")

    with fleet_of(tmp_path, engine, 2, "--log-snapshot-bytes", "100000") as fleet:
        asyncio.run(work(fleet))


def is_cut(state, old, asked=0):
    """Return True once a store says that the log was cut so many units after the place where another one stopped."""
    return place_of(state)["earlier"] > place_of(old)["position"] + asked


def place_of(state):
    import msgspec

    with closing(sqlite3.connect(state / "contrada.sqlite")) as connection:
        (value,) = connection.execute("SELECT value FROM records WHERE kind = 'log-place'").fetchone()
    return msgspec.msgpack.decode(value)


@pytest.mark.parametrize("engine", [slow("nats")], indirect=True)
def test_a_directory_of_another_log_is_refused(tmp_path, engine):
    async def work(fleet, count):
        async with clients(fleet, random.Random(1)) as (world, _):
            for number in range(count):
                await publish(world, [{"n": number}])

    server, log = engine
    with fleet_of(tmp_path / "one", engine, 1) as one, fleet_of(tmp_path / "two", (server, f"{log}-two"), 1) as two:
        asyncio.run(work(one, 3))
        asyncio.run(work(two, 40))
        one.stop()
        wrong = Served(one.servers[0].state, "--log", f"{log}-two")
        wrong.start()
        assert wrong.process.wait(60) != 0
        assert "has followed another log" in wrong.log.read_text()
        one.servers[0].start()  # nothing was changed in it
        one.servers[0].wait_until_ready()
