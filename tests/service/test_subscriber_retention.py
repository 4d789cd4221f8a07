"""Retention of a subscriber's own: what is too old for it is gone, counted and told, and nobody else loses anything."""

import asyncio
import random

import pytest

from contrada.client import AsyncClient
from contrada.errors import ContradaError
from contrada.service.core import TRIM_ROWS, NewSubscription
from contrada.service.cursors import Position
from contrada.service.feeds import Reset
from contrada.service.intake import Post
from contrada.service.service import Retention, Service
from contrada.service.store.sqlite import SqliteStore
from contrada.service.subscriber_retention import KeptFor
from serving import ADMIN, events, is_problem, next_reset, run, site, take, talk

NOON = 1_700_000_000_000


def test_a_subscriber_is_given_the_latest_messages_only(tmp_path):
    async def work():
        async with site(tmp_path) as here, AsyncClient(here.url, ADMIN) as client:
            for name in ("ann", "bob"):
                await here.subscribe(name, name, "depth > 0")
            made = await client.set_retention("ann", messages=3)
            assert (made.retention.messages, made.dropped) == (3, 0)
            await here.publish(*({"depth": depth} for depth in range(1, 11)))
            await here.server.context.service.tick()
            shown = (await here.ask("GET", "/subscribers/ann")).body
            assert (shown["dropped"], shown["oldest"], shown["lag"]) == (7, 8, 3)
            assert (shown["oldest_undelivered"], shown["retention"]) == (8, {"messages": 3})
            gone = await here.ask("GET", "/subscribers/ann/events?after=2.1&wait=0", Accept="application/json")
            assert is_problem(gone, 410, "gone")
            assert gone.body["oldest"] == 8
            async with here.stream("ann", "?from=1") as stream:
                assert await next_reset(stream) == {"oldest": 8}
                assert [one["sequence"] for one in await take(stream, 3)] == [8, 9, 10]
            async with talk(here) as one:
                await one.say("receive", subscriber="ann", **{"from": 5})
                assert (await one.hear())[0] == {"op": "reset", "subscriber": "ann", "oldest": 8}
                assert [frame["sequence"] for frame in await one.hear(3)] == [8, 9, 10]
            assert [one["sequence"] for one in await events(here, "ann", "?wait=0&from=oldest")] == [8, 9, 10]
            assert [one["sequence"] for one in await events(here, "bob")] == list(range(1, 11))
            text = (await here.ask("GET", "/metrics")).body.decode()
            assert 'contrada_subscriber_dropped_total{subscriber="ann",tenant="default"} 7.0' in text
            assert 'contrada_subscriber_oldest_sequence{subscriber="ann",tenant="default"} 8.0' in text
            assert 'contrada_subscriber_oldest_sequence{subscriber="bob",tenant="default"} 1.0' in text
            freed = await client.set_retention("ann")
            assert (freed.retention, freed.oldest) == (None, 8)
            await here.publish(*({"depth": depth} for depth in range(1, 6)))
            await here.server.context.service.tick()
            assert (await client.subscriber("ann")).oldest == 8

    run(work())


def test_bad_settings_are_refused(tmp_path):
    bad = [{"age": 0}, {"bytes": 0}, {"messages": -1}, {"count": 3}, {"age": "x"}, [], "7 days"]

    async def work():
        async with site(tmp_path) as here:
            for retention in bad:
                answer = await here.ask("PUT", "/subscribers/ann", {"retention": retention})
                assert is_problem(answer, 400, "bad-body")
            assert (await here.ask("PUT", "/subscribers/ann", {})).status == 400

    run(work())


LIMITS = {
    "age": (KeptFor(age=2_500), lambda log, now: [one for one in log if one.at >= now - 2_500]),
    "bytes": (KeptFor(bytes=60), lambda log, now: latest_bytes(log, 60)),
    "messages": (KeptFor(messages=4), lambda log, now: log[-4:]),
}


class Sent:
    """A message that a test published."""

    def __init__(self, sequence, at, size, depth):
        self.sequence, self.at, self.size, self.depth = sequence, at, size, depth


def latest_bytes(log, most):
    """Return the latest messages that have so many bytes together, the one at the edge included, as for the log."""
    later = [sum(one.size for one in log[place + 1 :]) for place in range(len(log))]
    return [one for one, size in zip(log, later, strict=True) if size < most]


@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_given_and_dropped_agrees_with_a_plain_log(tmp_path, limit):
    """Also over restarts, with the log's own retention and acknowledgements."""
    kept, left_of = LIMITS[limit]
    rng, now, log = random.Random(limit), [NOON], []

    async def work():
        def new():
            return Service(SqliteStore(tmp_path), clock=lambda: now[0], retention=Retention(6_000, 1 << 30))

        service = new()
        await service.start()
        for name in ("ann", "bob"):
            await service.put("t", name, NewSubscription(name, "depth > 1"))
        await service.set_retention("t", "ann", kept)
        first, acknowledged = 1, 0
        for _ in range(40):
            step = rng.random()
            if step < 0.6:
                depth = rng.randrange(4)
                body = b'{"depth": %d%b}' % (depth, b" " * rng.randrange(8))
                sequence = (await service.publish("t", Post("json", body))).first
                log.append(Sent(sequence, now[0], len(body), depth))
            elif step < 0.7 and log:
                acknowledged = max(acknowledged, rng.choice(log).sequence)
                await service.acknowledge("t", "ann", Position.after_message(acknowledged))
            elif step < 0.8:
                await service.stop()
                service = new()
                await service.start()
            now[0] += rng.randrange(1_000)
            await service.tick()
            left = [one.sequence for one in left_of(log, now[0])]
            # The last message stays in the log, whatever its age; a subscriber is not given it any more.
            first = max(first, left[0] if left else (log[-1].sequence + 1 if log else 1))
            whole = [one for one in log if one.at >= now[0] - 6_000] or log[-1:]
            for name, start in (("ann", first), ("bob", whole[0].sequence if whole else 1)):
                matching = [one.sequence for one in log if one.depth > 1]
                reader = await service.reader("t", name, Position(0, 0))
                found = await reader.read(100, wait=False)
                if any(sequence < start for sequence in matching):
                    assert found == Reset(max(start, service.oldest)), name
                    found = await reader.read(100, wait=False)
                assert [one.sequence for one in found] == [one for one in matching if one >= start], name
                reader.close()
        await service.stop()

    asyncio.run(work())


def test_only_what_nobody_had_counts_as_dropped(tmp_path):
    async def work():
        service = Service(SqliteStore(tmp_path), retention=Retention(1 << 40, 40))
        await service.start()
        await service.put("t", "k", NewSubscription("ann", "depth > 0"))
        await service.set_retention("t", "ann", KeptFor(messages=2))
        for _ in range(10):
            await service.publish("t", Post("json", b'{"depth": 1}'))
        await service.acknowledge("t", "ann", Position.after_message(5))
        await service.set_cursor("t", "ann", "hook", Position.after_message(3))
        await service.tick()
        dropped = [service.cursor("t", "ann", reader).dropped for reader in ("", "hook")]
        assert dropped == [3, 5]  # messages 6 to 8, and 4 to 8
        await service.tick()  # the log's own retention finds the same messages: they are not counted again
        assert service.oldest > 5
        assert [service.cursor("t", "ann", reader).dropped for reader in ("", "hook")] == dropped
        await service.stop()

    asyncio.run(work())


def test_a_tick_removes_all_that_is_due_in_parts(tmp_path):
    """More messages than one transaction removes: of the log for bob, of her own retention for ann."""
    count = 2 * TRIM_ROWS + 300

    async def work():
        now = [NOON]
        service = Service(SqliteStore(tmp_path), clock=lambda: now[0], retention=Retention(age=10_000))
        await service.start()
        for name in ("ann", "bob"):
            await service.put("t", name, NewSubscription(name, "depth > 0"))
        await service.publish("t", Post("ndjson", b'{"depth": 1}\n' * count))
        await service.set_retention("t", "ann", KeptFor(messages=10))
        await service.tick()
        assert (service.cursor("t", "ann").dropped, service.cursor("t", "bob").dropped) == (count - 10, 0)
        assert (service.oldest, service.oldest_of("t", "ann")) == (1, count - 9)
        now[0] += 10_001
        await service.publish("t", Post("json", b'{"depth": 1}'))
        await service.tick()
        assert service.oldest == count + 1
        assert (service.cursor("t", "ann").dropped, service.cursor("t", "bob").dropped) == (count, count)
        await service.stop()

    run(work())


@pytest.mark.parametrize("parts", [1, 2])
def test_a_removal_that_was_interrupted_counts_nothing_twice(tmp_path, parts):
    """The disk fails after some parts of the removal; when it is whole again, the rest is removed."""
    count = 2 * TRIM_ROWS + 300
    left: list[int | None] = [None]  # commits until the disk fails

    def before_commit():
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "no space left on device")

    async def work():
        now = [NOON]
        store = SqliteStore(tmp_path, before_commit=before_commit)
        service = Service(store, clock=lambda: now[0], retention=Retention(age=10_000))
        await service.start()
        await service.put("t", "bob", NewSubscription("bob", "depth > 0"))
        await service.publish("t", Post("ndjson", b'{"depth": 1}\n' * count))
        now[0] += 10_001
        await service.publish("t", Post("json", b'{"depth": 1}'))
        left[0] = parts
        with pytest.raises(ContradaError, match="no space left"):
            await service.tick()
        left[0] = None
        assert service.oldest == parts * TRIM_ROWS + 1
        await service.tick()
        assert (service.oldest, service.cursor("t", "bob").dropped) == (count + 1, count)
        await service.stop()

    run(work())
