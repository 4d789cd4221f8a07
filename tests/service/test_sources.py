"""Sources over a real service and topics in memory: each record is published once, whatever comes again."""

import asyncio
import json
import random
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contrada.errors import FormatError, UnknownKeyError
from contrada.service.service import Service, ServiceLimits
from contrada.service.sources import TopicSources
from contrada.service.sources.records import SourceProgress, SourceRecord
from contrada.service.store.message_store import StoreError
from contrada.service.store.sqlite import SqliteStore
from contrada.service.table_settings import SourceTable
from effort import examples
from topics import GivingTopic
from webhook_receivers import Disk, SimulatedTime, until


def table(**more):
    return SourceTable(**{"name": "in", "url": "kafka://nowhere/a", "tenant": "t", "batch": 3, **more})


@asynccontextmanager
async def reading(where, topic, asked=None, disk=None, service=None, **options):
    """Run a service with one source, on the store of a place or on SQLite in a directory."""
    time = SimulatedTime()
    is_directory = isinstance(where, Path)
    store = SqliteStore(where, before_commit=(disk or Disk()).before_commit) if is_directory else where.open()
    served = Service(store, **(service or {}))
    await served.start()
    given = {"clock": time.clock, "sleep": time.sleep, "random": random.Random(1).random, **options}
    sources = TopicSources(served, [asked or table()], open_client=lambda one: topic, **given)
    sources.start()
    try:
        yield served, sources
    finally:
        await sources.stop()
        with suppress(StoreError):
            await served.stop()


def body(number):
    return json.dumps({"n": number}).encode()


async def published(service):
    """The messages of the log."""
    return [json.loads(one.body) for one in await service.history(1, 10_000)]


def numbers(messages):
    return [message["n"] for message in messages]


def test_records_are_published_in_order_and_committed_after_that(tmp_path):
    async def run():
        topic = GivingTopic()
        topic.give(*map(body, range(7)))
        async with reading(tmp_path, topic) as (service, sources):
            await until(lambda: sources.counts.messages == 7)
            await until(lambda: len(topic.committed) == 7)
            assert numbers(await published(service)) == [*range(7)]
            (view,) = sources.views()
            assert (view.state, view.places, view.dead_letters, view.failing) == ("reading", {"a/0": 6}, 0, None)
            topic.give(body(7))
            await until(lambda: service.newest == 8)
            stored = [one.id for one in await service.history(1, 10)]
            assert stored[0] == 'at:["in/0/a/0@0",0]'

    asyncio.run(run())


def test_a_replay_of_the_whole_topic_publishes_nothing_twice(place):
    async def run():
        for start in (0, 5):  # the second time only the ids of the last message are remembered
            topic = GivingTopic()
            topic.give(*map(body, range(10 + start)))
            topic.again["a/0"] = 0
            limits = {"limits": ServiceLimits(window=1)}
            async with reading(place, topic, service=limits) as (service, sources):
                total = 10 + start
                await until(lambda topic=topic, total=total: len(topic.committed) == total)
                assert numbers(await published(service)) == [*range(10 + start)]
        assert sources.counts.repeated == 10

    asyncio.run(run())


def test_equal_bodies_at_two_places_are_two_messages(tmp_path):
    async def run():
        topic = GivingTopic()
        topic.give(b'{"id": "v1", "n": 1}', b'{"id": "v1", "n": 1}', b'{"n": 1}', b'{"n": 1}')
        async with reading(tmp_path, topic) as (service, _):
            await until(lambda: service.newest == 4)

    asyncio.run(run())


def test_lanes_are_read_beside_each_other(tmp_path):
    async def run():
        topic = GivingTopic()
        topic.give(*map(body, range(5)))
        topic.give(*map(body, range(100, 104)), lane="a/1")
        async with reading(tmp_path, topic) as (service, sources):
            await until(lambda: service.newest == 9)
            found = numbers(await published(service))
            assert [one for one in found if one < 100] == [*range(5)]
            assert [one for one in found if one >= 100] == [*range(100, 104)]
            assert sources.views()[0].places == {"a/0": 4, "a/1": 3}

    asyncio.run(run())


def test_bad_records_are_dead_letters_and_do_not_stop_the_rest(place):
    async def run():
        topic = GivingTopic()
        topic.give(body(0), b"{", b"", b"\xff\x00", body(1), b"x" * 101, b'{"n": 2}')
        topic.give(body(3), headers={"content-type": "text/csv"})
        async with reading(place, topic, most_bytes=100) as (service, sources):
            await until(lambda: len(topic.committed) == 8)
            assert numbers(await published(service)) == [0, 1, 2]
            letters, after = await sources.dead_letters("in")
            assert [letter.offset for letter in letters] == [1, 2, 3, 5, 7]
            assert [letter.number for letter in letters] == [1, 2, 3, 4, 5]
            assert after is None
            assert "limits.body_bytes" in letters[3].reason
            assert "text/csv" in letters[4].reason
            assert letters[2].body == b"\xff\x00"
            assert (sources.views()[0].dead_letters, sources.counts.dead) == (5, 5)
            page, after = await sources.dead_letters("in", limit=2)
            rest, _ = await sources.dead_letters("in", after)
            assert [letter.number for letter in page + rest] == [1, 2, 3, 4, 5]
            answer = await sources.replay("in")
            assert (answer.sent, answer.left, bool(answer.failed)) == (0, 5, True)
            with pytest.raises(UnknownKeyError, match="has no dead letter '9'"):
                await sources.replay("in", "9")
            with pytest.raises(FormatError):
                await sources.replay("in", "../1")
            with pytest.raises(UnknownKeyError, match="no source is called 'x'"):
                await sources.replay("x")
        async with reading(place, topic, most_bytes=1_000) as (service, sources):
            await until(lambda: topic.opened == 2)
            assert (await sources.replay("in", "4")).failed  # it is no JSON either
            topic.give(b'{"n": 9}')
            await until(lambda: service.newest == 4)

    asyncio.run(run())


def test_a_letter_is_published_once_it_can_be(place):
    big = json.dumps({"n": 7, "text": "x" * 200}).encode()

    async def run():
        topic = GivingTopic()
        topic.give(body(1), big, body(2))
        async with reading(place, topic, most_bytes=100) as (service, sources):
            await until(lambda: len(topic.committed) == 3)
        async with reading(place, topic) as (service, sources):
            answer = await sources.replay("in")
            assert (answer.sent, answer.left, answer.failed) == (1, 0, None)
            assert numbers(await published(service)) == [1, 2, 7]
            assert (await sources.replay("in")).sent == 0
            assert sources.views()[0].dead_letters == 0

    asyncio.run(run())


def test_the_oldest_letters_make_room(tmp_path):
    async def run():
        topic = GivingTopic()
        topic.give(*[b"{"] * 10)
        async with reading(tmp_path, topic, most_letters=4) as (_, sources):
            await until(lambda: len(topic.committed) == 10)
            letters, _ = await sources.dead_letters("in")
            assert [letter.number for letter in letters] == [7, 8, 9, 10]
            assert (sources.views()[0].dead_letters, sources.counts.discarded) == (4, 6)

    asyncio.run(run())


def test_a_body_of_several_messages_and_events_of_every_format(tmp_path):
    event = {"specversion": "1.0", "id": "7", "source": "/buoy", "type": "t", "data": {"n": 5}}

    async def run():
        topic = GivingTopic()
        topic.give(body(1) + b"\n{\n" + body(2), headers={"content-type": "application/x-ndjson"})
        topic.give(json.dumps(event).encode(), json.dumps(event).encode())  # a producer that tried twice
        binary = {"ce-specversion": "1.0", "ce-id": "8", "ce-source": "/buoy", "ce-type": "t"}
        topic.give(body(6), headers={**binary, "content-type": "application/json"})
        async with reading(tmp_path, topic) as (service, sources):
            await until(lambda: len(topic.committed) == 4)
            found = await published(service)
            assert [message.get("n", message.get("data")) for message in found] == [1, 2, {"n": 5}, {"n": 6}]
            (letter,), _ = await sources.dead_letters("in")
            assert letter.reason.startswith("message 1: ")
            assert (await sources.replay("in")).failed  # the other two are known by their place
            assert service.newest == 4

    asyncio.run(run())


def test_a_topic_that_is_away_is_tried_again(tmp_path):
    async def run():
        topic = GivingTopic()
        topic.faults = {1: OSError("no route"), 2: OSError("no route"), 4: TimeoutError()}
        topic.give(*map(body, range(9)))
        async with reading(tmp_path, topic) as (service, sources):
            await until(lambda: service.newest == 9)
            assert (topic.opened, sources.counts.failed) == (4, 3)
            assert numbers(await published(service)) == [*range(9)]
            assert sources.views()[0].failing is None

    asyncio.run(run())


def test_a_failure_is_shown_while_it_lasts(tmp_path):
    async def run():
        topic, held = GivingTopic(), asyncio.Event()
        topic.faults = {1: OSError("no route")}

        async def sleep(seconds):
            await held.wait()

        async with reading(tmp_path, topic, sleep=sleep) as (_, sources):
            await until(lambda: sources.views()[0].state == "failing")
            assert sources.views()[0].failing.reason == "no route"
            held.set()
            await until(lambda: sources.views()[0].state == "reading")

    asyncio.run(run())


def test_a_store_that_takes_nothing_for_a_while_loses_and_repeats_nothing(tmp_path):
    async def run():
        topic, disk = GivingTopic(), Disk()
        topic.give(*map(body, range(30)))
        async with reading(tmp_path, topic, disk=disk) as (service, sources):
            await until(lambda: service.newest >= 3)
            disk.is_full = True
            await until(lambda: sources.counts.failed >= 2)
            disk.is_full = False
            await until(lambda: service.newest == 30)
            assert numbers(await published(service)) == [*range(30)]

    asyncio.run(run())


def test_a_lane_that_begins_anew_is_read_from_its_beginning(place):
    async def run():
        topic = GivingTopic()
        topic.give(*map(body, range(5)))
        async with reading(place, topic) as (service, sources):
            await until(lambda: service.newest == 5)
            topic.begin_anew("a/0", *map(body, range(50, 53)))
            await until(lambda: service.newest == 8)
            assert numbers(await published(service))[5:] == [50, 51, 52]
            assert sources.views()[0].places == {"a/0": 2}

    asyncio.run(run())


def test_a_message_without_a_place_is_known_by_its_flag_packet_and_digest():
    def message(text, packet, is_again=False):
        return SourceRecord("t", -1, text, {}, None, bytes([packet]) + text, is_again)

    first, twin = message(b"open", 1), message(b"open", 2)
    progress = SourceProgress().after([first, twin], 10)
    assert progress.fresh([message(b"open", 1, True)]) == []
    assert len(progress.fresh([message(b"open", 1)])) == 1  # the same text, and sent for the first time
    assert len(progress.fresh([message(b"shut", 1, True)])) == 1  # sent before, but not published here
    assert progress.after([message(b"x", 3)], 2).marks == (twin.mark, b"\x03x")


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(0, 40), min_size=4, max_size=4),
    st.lists(st.integers(1, 40), max_size=6, unique=True),
    st.integers(1, 5),
)
def test_whatever_happens_every_record_is_published_once_and_in_order(parts, again, faults, page):
    """Kills are a disk that takes nothing more at some moment; then the topic starts anywhere before the place."""

    async def run(directory):
        total = 0
        topic = GivingTopic(page)
        topic.faults = {number: OSError("broken") for number in faults}
        for part, start in zip(parts, again, strict=False):
            disk = Disk()
            async with reading(directory, topic, disk=disk, service={"limits": ServiceLimits(window=1)}) as (
                service,
                _,
            ):
                topic.give(*map(body, range(total, total + part)))
                total += part
                await until(lambda service=service, total=total: topic.reads > 2 or service.newest == total)
                disk.is_full = True
            topic.again = {"a/0": min(start, total)} if start % 2 else {}
            topic.again = {lane: min(first, service.newest) for lane, first in topic.again.items()}
        async with reading(directory, topic) as (service, _):
            await until(lambda: service.newest >= total)
            return total, numbers(await published(service))

    with tempfile.TemporaryDirectory() as directory:
        total, found = asyncio.run(run(Path(directory)))
    assert found == [*range(total)]
