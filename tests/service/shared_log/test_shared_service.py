"""Servers that follow one log hold the same, whoever took a message or a subscription, over faults and restarts."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import asynccontextmanager
from random import Random

import pytest

from contrada.errors import ContradaError, LimitError
from contrada.service.core import NewSubscription
from contrada.service.cursors import Position
from contrada.service.feeds import Reset
from contrada.service.intake import Post
from contrada.service.service import Service, ServiceLimits
from contrada.service.shared_log.shared_log import SharedLogError
from contrada.service.store.sqlite import SqliteStore
from contrada.service.tracks.asking import DwellAsked, TrackAsked
from memory_log import MemoryEngine
from serving import run

NOON = 1_700_000_000_000


class Clock:
    """A clock that tests set."""

    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


@asynccontextmanager
async def servers(folder, engine, count=2, **options):
    found = []
    try:
        for number in range(count):
            log = engine.log()
            log.open()
            found.append(Service(SqliteStore(folder / str(number)), log=log, **options))
            await found[-1].start()
        yield found
    finally:
        for service in found:
            await service.stop()


def post(*messages):
    if len(messages) == 1:
        return Post("json", json.dumps(messages[0]).encode())
    return Post("ndjson", b"\n".join(json.dumps(message).encode() for message in messages))


async def caught_up(services):
    """Wait until all servers have applied the same."""
    for _ in range(1_000):
        places = {(service.newest, service.following.position) for service in services}
        if len(places) == 1 and not any(service.waiting for service in services):
            return
        await asyncio.sleep(0.01)
    raise AssertionError([service.newest for service in services])


async def everything(service, tenant, subscriber):
    """Return ids, keys and what is said of objects, of all events of a subscriber."""
    reader = await service.reader(tenant, subscriber, Position.after_message(0))
    found = []
    try:
        while events := await reader.read(limit=100, wait=False):
            assert not isinstance(events, Reset)
            found += [(event.position.id, event.key, event.body, event.track) for event in events]
        return found
    finally:
        reader.close()


def test_what_one_server_takes_all_deliver(tmp_path):
    async def work():
        async with servers(tmp_path, MemoryEngine(), 3) as (north, south, west):
            one = await north.put("t", "high", NewSubscription("ann", "severity >= 3"))
            two = await south.put("t", "all", NewSubscription("bob", "severity >= 0"))
            assert (one.number, two.number, one.applies_from, two.applies_from) == (1, 2, 1, 1)
            answers = [
                await north.publish("t", post({"severity": 1}, {"severity": 5})),
                await south.publish("t", post({"severity": 4})),
                await west.publish("t", Post("ndjson", b'{"severity": 9}\n{"severity":\n{"severity": 2}')),
            ]
            assert [(answer.first, answer.last) for answer in answers] == [(1, 2), (3, 3), (4, 5)]
            assert [refusal.row for refusal in answers[2].rejected] == [1]
            await caught_up([north, south, west])
            for service in (north, south, west):
                assert [id for id, *_ in await everything(service, "t", "ann")] == ["2.1", "3.1", "4.1"]
                assert len(await everything(service, "t", "bob")) == 5

    run(work())


def test_an_upload_that_is_larger_than_a_record_becomes_several(tmp_path):
    async def work():
        async with servers(tmp_path, MemoryEngine(most_bytes=2_000)) as (north, south):
            asked = [(f"k{number}", NewSubscription("ann", f"severity >= {number}")) for number in range(40)]
            asked[7] = ("k7", NewSubscription("ann", f"name = '{'x' * 2_000}'"))
            found = await north.put_many("t", asked)
            assert [number for number, one in enumerate(found) if isinstance(one, LimitError)] == [7]
            await south.publish("t", post({"severity": 20}))
            expected = {f"k{number}" for number in range(21) if number != 7}
            await caught_up([north, south])
            for service in (north, south):
                assert {key for _, key, *_ in await everything(service, "t", "ann")} == expected

    run(work())


class Life:
    """What is known of a subscription: the filter, and the messages that it applies to."""

    def __init__(self, subscriber, least, first):
        self.subscriber, self.least, self.first, self.last = subscriber, least, first, None


async def _one_server(service, random, name, lives, count):
    """Publish, subscribe and unsubscribe at one server; note what the answers promise."""
    own = {}
    for number in range(count):
        drawn = random.random()
        if drawn < 0.2:
            key, least = f"{name}{random.randrange(3)}", random.randrange(6)
            put = await service.put("t", key, NewSubscription(random.choice("ab"), f"severity >= {least}"))
            if key in own:
                own[key].last = put.applies_from - 1
            own[key] = Life(put.subscriber, least, put.applies_from)
            lives.append((key, own[key]))
        elif drawn < 0.3 and own:
            key = random.choice(sorted(own))
            own.pop(key).last = await service.delete("t", key)
        else:
            messages = [{"severity": random.randrange(6), "n": number} for _ in range(random.randrange(1, 5))]
            given = post(*messages)
            if len(messages) == 1 and random.random() < 0.5:
                given = given._replace(id=f"{random.randrange(4)}")
            await service.publish("t", given)


async def _expected(service, lives):
    """Return the events of a and b by what the answers promised, from the messages of the log alone."""
    history = await service.history(1, 10_000)
    assert [one.sequence for one in history] == list(range(1, len(history) + 1))
    found = {"a": [], "b": []}
    for one in history:
        severity = json.loads(one.body)["severity"]
        for key, life in lives:
            is_ended = life.last is not None and one.sequence > life.last  # the last is 0 if none came before it ended
            if life.first <= one.sequence and not is_ended and severity >= life.least:
                found[life.subscriber].append((one.sequence, key))
    return {subscriber: sorted(events) for subscriber, events in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_servers_that_work_at_once_deliver_what_their_answers_promise(tmp_path, seed):
    async def work():
        random, engine, lives = Random(seed), MemoryEngine(), []
        engine.delay = random.choice([0.0, 0.002])
        async with servers(tmp_path, engine, 3) as found:
            engine.double = 5
            draws = [Random(f"{seed} {number}") for number in range(3)]
            names = zip(found, draws, "xyz", strict=True)
            await asyncio.gather(*(_one_server(service, draw, name, lives, 40) for service, draw, name in names))
            await caught_up(found)
            expected = await _expected(found[0], lives)
            assert sum(map(len, expected.values())) > 50
            histories = [await service.history(1, 10_000) for service in found]
            assert histories[0] == histories[1] == histories[2]
            for service in found:
                for subscriber, events in expected.items():
                    got = [(int(id.split(".")[0]), key) for id, key, *_ in await everything(service, "t", subscriber)]
                    assert sorted(got) == events
                    assert [sequence for sequence, _ in got] == sorted(sequence for sequence, _ in got)

    run(work())


def test_faults_of_the_engine_lose_nothing_that_was_acknowledged(tmp_path):
    async def work():
        engine = MemoryEngine()
        async with servers(tmp_path, engine, 2) as (north, south):
            await north.put("t", "all", NewSubscription("ann", "n >= 0"))
            engine.lose = 1  # the answer is lost, the message is not
            with pytest.raises(ContradaError):
                await north.publish("t", post({"n": 0})._replace(id="zero"))
            again = await south.publish("t", post({"n": 0})._replace(id="zero"))
            assert (again.first, again.duplicates) == (0, ((0, 1),))
            engine.refuse = 1
            with pytest.raises(ContradaError):
                await north.publish("t", post({"n": 1}))
            engine.down = "the engine is away"
            await _until(lambda: north.fault is not None)
            with pytest.raises(ContradaError, match="away"):
                await north.publish("t", post({"n": 2}))
            assert len(await everything(south, "t", "ann")) == 1  # what is here can be read
            engine.down = None
            await _until(lambda: north.fault is None and south.fault is None)
            assert (await north.publish("t", post({"n": 3}))).first == 2
            await caught_up([north, south])
            assert await everything(north, "t", "ann") == await everything(south, "t", "ann")

    run(work())


async def _until(holds):
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come to hold")


def test_a_store_that_takes_nothing_for_a_while_applies_the_log_afterwards(tmp_path):
    async def work():
        engine, is_full = MemoryEngine(), False

        def fail():
            if is_full:
                raise sqlite3.OperationalError("database or disk is full")

        async with servers(tmp_path, engine, 1) as (north,):
            log = engine.log()
            log.open()
            south = Service(SqliteStore(tmp_path / "south", before_commit=fail), log=log)
            await south.start()
            try:
                await south.put("t", "all", NewSubscription("ann", "n >= 0"))
                is_full = True
                for n in range(5):
                    await north.publish("t", post({"n": n}, {"n": n}))
                await _until(lambda: south.fault is not None)
                with pytest.raises(ContradaError, match="full"):
                    await south.publish("t", post({"n": 9}))
                is_full = False
                await caught_up([north, south])
                assert len(await everything(south, "t", "ann")) == 10
                assert await everything(north, "t", "ann") == await everything(south, "t", "ann")
                assert (await south.publish("t", post({"n": 9}))).first == 11
            finally:
                await south.stop()

    run(work())


@pytest.mark.parametrize("fault", [sqlite3.OperationalError("database or disk is full"), RuntimeError("a bug")])
def test_who_waits_for_a_transaction_that_fails_hears_of_it(tmp_path, fault):
    async def work():
        is_failing = False

        def fail():
            if is_failing:
                raise fault

        log = MemoryEngine().log()
        log.open()
        service = Service(SqliteStore(tmp_path, before_commit=fail), log=log)
        await service.start()
        async with asyncio.timeout(60):
            await service.put("t", "all", NewSubscription("ann", "n >= 0"))
            is_failing = True
            asked = [service.publish("t", post({"n": 1})), service.put("t", "b", NewSubscription("bob", "n >= 1"))]
            for answer in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(answer, ContradaError), answer
            is_failing = False
            await _until(lambda: service.fault is None)
            assert (await service.publish("t", post({"n": 2}))).last == 2  # the first is in the log, and was applied
            is_failing = True
            with pytest.raises(ContradaError):
                await service.publish("t", post({"n": 3}))
            await service.stop()  # does not wait for the store

    run(work())


def test_tracked_objects_are_the_same_at_all_servers_over_restarts(tmp_path):
    async def work():
        engine, clock, random = MemoryEngine(), Clock(), Random(5)
        asked = TrackAsked("id", ("enter", "exit", DwellAsked("5s")))
        box = "S_INTERSECTS(geometry, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))"
        for _ in range(3):
            async with servers(tmp_path, engine, 3, clock=clock) as found:
                await found[0].put("t", "box", NewSubscription("ann", box, "enter", track=asked))
                for _ in range(40):
                    clock.now += random.choice([0, 700, 2_500])
                    fixes = [
                        {
                            "type": "Feature", "properties": {"id": f"o{random.randrange(4)}"},
                            "geometry": {"type": "Point", "coordinates": [random.randrange(9), random.randrange(9)]},
                        }
                        for _ in range(random.randrange(1, 4))
                    ]  # fmt: skip
                    await random.choice(found).publish("t", post(*fixes))
                await caught_up(found)
                histories = [await service.history(1, 10_000) for service in found]
                assert histories[0] == histories[1] == histories[2]
                events = await everything(found[0], "t", "ann")
                kinds = {json.loads(track)["kind"] for *_, track in events if track}
                assert {"enter", "exit", "dwell"} <= kinds
                assert events == await everything(found[2], "t", "ann")
                if random.random() < 0.5:
                    await found[1].delete("t", "box")

    run(work())


def test_servers_with_other_settings_are_refused(tmp_path):
    async def work():
        engine = MemoryEngine()
        async with servers(tmp_path, engine, 1):
            log = engine.log()
            log.open()
            other = Service(SqliteStore(tmp_path / "other"), log=log, limits=ServiceLimits(window=5))
            with pytest.raises(SharedLogError, match="message_ids=5"):
                await other.start()
            await other.stop()

    run(work())


def test_what_does_not_fit_into_one_record_is_written_as_several_or_refused(tmp_path):
    async def work():
        engine = MemoryEngine(most_bytes=4_000)
        async with servers(tmp_path, engine, 2) as (north, south):
            many = [(f"k{number}", NewSubscription("ann", f"severity >= {number}")) for number in range(500)]
            answers = await north.put_many("t", many)
            assert [answer.number for answer in answers] == list(range(1, 501))
            records = [("letter", f"{number:03}", bytes(1_000)) for number in range(20)]
            assert await north.write_records(records)
            with pytest.raises(LimitError, match="4,000 at most"):
                await north.put("t", "large", NewSubscription("ann", f"text = '{'x' * 5_000}'"))
            refused = await north.publish("t", post({"severity": 1}, {"text": "x" * 5_000}, {"severity": 2}))
            assert (refused.first, refused.last, [one.row for one in refused.rejected]) == (1, 2, [1])
            assert "3,750 at most" in refused.rejected[0].reason
            await caught_up([north, south])
            assert [name for name, _ in await south.records("letter")] == [name for _, name, _ in records]

    run(work())
