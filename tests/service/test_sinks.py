"""Sinks over a real service and topics in memory: order, repetitions, dead letters, restarts."""

import asyncio
import json
import random
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contrada.errors import UnknownKeyError
from contrada.service.deliveries.outcomes import TAKEN, Outcome
from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.service import Retention, Service
from contrada.service.sinks import TopicSinks
from contrada.service.store.message_store import StoreError
from contrada.service.store.sqlite import SqliteStore
from contrada.service.table_settings import SinkTable
from effort import examples
from topics import TakingTopic
from webhook_receivers import Disk, SimulatedTime, publish, subscribe, until


def table(**more):
    given = {"name": "out", "url": "kafka://nowhere/floods", "subscriber": "ann", "tenant": "t", "start": "oldest"}
    return SinkTable(**{**given, **more})


@asynccontextmanager
async def sinking(directory, topic, *tables, disk=None, service=None, **options):
    """Run a service with sinks that all write to one topic."""
    time = SimulatedTime()
    store = SqliteStore(directory, before_commit=(disk or Disk()).before_commit)
    served = Service(store, **(service or {}))
    await served.start()
    given = {"clock": time.clock, "sleep": time.sleep, "random": random.Random(1).random, **options}
    sinks = TopicSinks(served, tables or [table()], open_client=lambda asked: topic, **given)
    await sinks.start()
    try:
        yield served, sinks
    finally:
        await sinks.stop(0.0)
        with suppress(StoreError):
            await served.stop()


def ids(first, last):
    return [f"{sequence}.1" for sequence in range(first, last + 1)]


def test_events_come_in_order_with_their_ids_and_a_restart_goes_on(tmp_path):
    topic = TakingTopic()

    async def run():
        async with sinking(tmp_path, topic, table(batch=4)) as (service, sinks):
            await subscribe(service)
            await publish(service, *range(10))
            await until(lambda: sinks.counts.sent == 10)
            await until(lambda: sinks.get("out").state == "idle")
            assert (sinks.get("out").acknowledged, sinks.get("out").lag) == ("10.1", 0)
        assert topic.is_closed
        async with sinking(tmp_path, topic, table(batch=4)) as (service, sinks):
            await publish(service, *range(3))
            await until(lambda: sinks.counts.sent == 3)

    asyncio.run(run())
    assert topic.ids == ids(1, 13)
    assert max(map(len, topic.attempts)) == 4
    first = topic.taken[0]
    assert json.loads(first.body) == {"id": "1.1", "sequence": 1, "key": "all", "message": {"n": 0, "padding": ""}}
    assert first.headers == {"content-type": "application/json", "contrada-id": "1.1"}
    assert {record.key for record in topic.taken} == {"ann"}
    assert len({record.mark for record in topic.taken}) == 13


def test_a_new_sink_starts_now_unless_it_asks_for_the_oldest_event(tmp_path):
    topic = TakingTopic()

    async def run():
        async with sinking(tmp_path, topic, table(start="now")) as (service, sinks):
            await subscribe(service)
            await publish(service, 1)
            await until(lambda: sinks.counts.sent == 1)
        late, early = TakingTopic(), TakingTopic()
        async with sinking(tmp_path, late, table(name="late", start="now")) as (service, sinks):
            await publish(service, 2)
            await until(lambda: sinks.counts.sent == 1)
        async with sinking(tmp_path, early, table(name="early", format="cloudevents")) as (service, sinks):
            await until(lambda: sinks.counts.sent == 2)
        return late, early

    late, early = asyncio.run(run())
    assert (topic.ids, late.ids, early.ids) == (["1.1"], ["2.1"], ["1.1", "2.1"])
    event = json.loads(early.taken[0].body)
    assert (event["id"], event["source"], event["type"]) == ("1.1", "/subscribers/ann", "contrada.match")
    assert early.taken[0].headers["content-type"] == "application/cloudevents+json"


def test_records_before_one_that_fails_are_not_sent_again(tmp_path):
    def judge(records, count):
        return Outcome(0, "broken", taken=min(3, len(records) - 1)) if count % 2 else Outcome(TAKEN)

    topic = TakingTopic(judge)

    async def run():
        async with sinking(tmp_path, topic, table(batch=8)) as (service, sinks):
            await subscribe(service)
            await publish(service, *range(20))
            await until(lambda: sinks.counts.sent == 20)
            assert sinks.counts.dead == 0

    asyncio.run(run())
    assert topic.ids == ids(1, 20)


def test_an_event_that_the_topic_never_takes_is_dead_at_once_and_the_rest_goes_on(tmp_path):
    def judge(records, count):
        bad = next((place for place, one in enumerate(records) if one.id in ("3.1", "5.1")), None)
        return Outcome(TAKEN) if bad is None else Outcome(0, "too large", taken=bad, is_final=True)

    topic = TakingTopic(judge)

    async def run():
        async with sinking(tmp_path, topic) as (service, sinks):
            await subscribe(service)
            await publish(service, *range(6))
            await until(lambda: sinks.counts.sent == 4)
            page = await sinks.dead_letters("out")
            assert [(letter.id, letter.reason, letter.attempts) for letter in page.letters] == [
                ("3.1", "too large", 1),
                ("5.1", "too large", 1),
            ]
            assert sinks.get("out").dead_letters == 2
            assert (await sinks.replay("out")).failed == "too large"
            topic.judge = lambda records, count: Outcome(TAKEN)
            answer = await sinks.replay("out", "5.1")
            assert (answer.sent, answer.left) == (1, 1)
            with pytest.raises(UnknownKeyError, match=r"sink 'out' has no dead letter '5.1'"):
                await sinks.replay("out", "5.1")
            with pytest.raises(UnknownKeyError, match="no sink is called 'other'"):
                await sinks.dead_letters("other")

    asyncio.run(run())
    assert topic.ids == ["1.1", "2.1", "4.1", "6.1", "5.1"]


def test_a_topic_that_is_away_gets_everything_and_gives_up_after_its_age(tmp_path):
    topic = TakingTopic(lambda records, count: Outcome(0, "cannot connect") if count <= 5 else Outcome(TAKEN))

    async def run():
        async with sinking(tmp_path, topic, table(age=3_600.0)) as (service, sinks):
            await subscribe(service)
            await publish(service, *range(4))
            await until(lambda: sinks.counts.sent == 4)
            assert (sinks.counts.failed, sinks.counts.dead) == (5, 0)
            topic.judge = lambda records, count: Outcome(0, "cannot connect")
            await publish(service, 5)
            await until(lambda: sinks.get("out").failing is not None)
            assert (sinks.get("out").state, sinks.get("out").failing.reason) == ("failing", "cannot connect")
            await until(lambda: sinks.counts.dead == 1)

    asyncio.run(run())
    assert topic.ids == ids(1, 4)


def test_retention_shows_as_a_reset(tmp_path):
    topic = TakingTopic(lambda records, count: Outcome(0, "away") if count <= 2 else Outcome(TAKEN))

    async def run():
        kept = {"retention": Retention(bytes=2_000)}
        held = asyncio.Event()

        async def sleep(seconds):
            await held.wait()

        async with sinking(tmp_path, topic, service=kept, sleep=sleep) as (service, sinks):
            await subscribe(service)
            for number in range(8):
                await publish(service, number, padding="x" * 500)
            await until(lambda: topic.attempts)
            await service.tick()
            held.set()
            await until(lambda: sinks.get("out").state == "idle")
            assert sinks.get("out").dropped > 0
            return service.oldest

    oldest = asyncio.run(run())
    assert topic.ids[0] == f"reset.{oldest}"
    assert json.loads(topic.taken[0].body) == {"id": f"reset.{oldest}", "type": "reset", "oldest": oldest}
    assert topic.ids[1:] == ids(oldest, 8)


def test_a_webhook_and_a_sink_may_have_the_same_name(tmp_path):
    from contrada.service.webhooks import EndpointRequest, Webhooks
    from webhook_receivers import SECRET, SimulatedNetwork

    topic, network = TakingTopic(), SimulatedNetwork()

    async def run():
        async with sinking(tmp_path, topic) as (service, sinks):
            await subscribe(service)
            webhooks = Webhooks(service, network)
            await webhooks.start()
            await webhooks.put("t", "ann", "out", EndpointRequest(url="http://h.example/a", secret=SECRET))
            await publish(service, 1, 2)
            await until(lambda: sinks.counts.sent == 2 and webhooks.counts.sent == 2)
            await webhooks.remove("t", "ann", "out")
            await publish(service, 3)
            await until(lambda: sinks.counts.sent == 3)
            await webhooks.stop()

    asyncio.run(run())
    assert topic.ids == ids(1, 3)


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["ok", "part", "fail", "lost", "final", "large"]), st.integers(0, 5)), max_size=30
    ),
    st.integers(1, 6),
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
)
def test_whatever_a_topic_does_first_copies_are_in_order_and_none_is_left_out(plan, batch, crashes):
    """Kills are a disk that takes nothing more: everything after the last commit is forgotten."""
    stored = []  # what the topic has, with copies of which the answer was lost
    steps = iter(plan)

    def judge(records, count):
        kind, place = next(steps, ("ok", 0))
        part = min(place, len(records) - 1)
        stored.extend(records if kind in ("ok", "lost") else records[:part] if kind in ("part", "final") else [])
        if kind == "ok":
            return Outcome(TAKEN)
        if kind == "large":
            return Outcome(413, "too large")
        return Outcome(0, kind, taken=part if kind in ("part", "final") else 0, is_final=kind == "final")

    async def run(directory):
        total = 0
        for crash in crashes:
            disk, topic = Disk(), TakingTopic(judge)
            async with sinking(directory, topic, table(batch=batch, age=1e9), disk=disk) as (service, sinks):
                if not total:
                    await subscribe(service)
                await publish(service, *range(crash))
                total += crash
                await until(lambda topic=topic, sinks=sinks: bool(topic.attempts) or sinks.get("out").state == "idle")
                disk.is_full = True
        topic = TakingTopic(lambda records, count: stored.extend(records) or Outcome(TAKEN))
        async with sinking(directory, topic, table(batch=batch)) as (service, sinks):
            await until(lambda: sinks.get("out").state == "idle")
            dead = {letter.id for letter in (await sinks.dead_letters("out", limit=1_000)).letters}
        return total, dead

    with tempfile.TemporaryDirectory() as directory:
        total, dead = asyncio.run(run(Path(directory)))
    firsts = list(dict.fromkeys(record.id for record in stored))
    assert [int(id.split(".")[0]) for id in firsts] == sorted(int(id.split(".")[0]) for id in firsts)
    assert set(firsts) | dead == set(ids(1, total))
    assert len({(record.id, record.body, record.mark) for record in stored}) == len(firsts)


def test_the_policy_of_a_sink_is_its_own():
    assert RetryPolicy().limited(3, None) == RetryPolicy(attempts=3)
    assert RetryPolicy(attempts=4).limited(None, 60.0) == RetryPolicy(attempts=4, age=60.0)
