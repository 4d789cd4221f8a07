"""Webhooks in simulated time: retries, dead letters, restarts, retention, and order under random failures."""

import asyncio
import datetime
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contrada.errors import LimitError, UnknownKeyError
from contrada.service.deliveries.outcomes import Outcome
from contrada.service.service import Retention
from contrada.service.store.message_store import StoreError
from contrada.service.webhooks import EndpointRequest, RetryPolicy, WebhookLimits
from effort import examples
from webhook_receivers import SECRET, Disk, SimulatedNetwork, SimulatedTime, publish, serving, subscribe, until

HOUR = 3_600_000


def endpoint(path="a", **options):
    return EndpointRequest(url=f"http://hooks.example/{path}", secret=SECRET, **options)


def simulated(time, seed=1):
    return {"clock": time.clock, "sleep": time.sleep, "random": random.Random(seed).random}


def ids(first, last):
    return [f"{sequence}.1" for sequence in range(first, last + 1)]


def test_an_endpoint_that_was_away_for_an_hour_gets_everything_in_order(tmp_path):
    async def run():
        time = SimulatedTime()
        back = time.now + HOUR
        network = SimulatedNetwork(lambda request, count: Outcome(200 if time.now >= back else 0, "cannot connect"))
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint())
            for start in range(0, 500, 50):
                await publish(service, *range(start, start + 50))
            await until(lambda: webhooks.counts.sent == 500)
            assert webhooks.counts.dead == 0
            return network, time.now - back

    network, late = asyncio.run(run())
    assert network.taken_ids("a") == ids(1, 500)
    assert late <= 300_000  # the longest delay
    delays = [b.timestamp - a.timestamp for a, b in zip(network.attempts["a"], network.attempts["a"][1:], strict=False)]
    assert max(delays) <= 301
    assert delays[0] <= 2


def test_an_event_is_given_up_after_its_attempts_and_the_next_is_delivered(tmp_path):
    async def run():
        time = SimulatedTime()
        network = SimulatedNetwork(lambda request, count: Outcome(500 if request.id == "2.1" else 200))
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(attempts=4))
            await publish(service, 10, 11, 12)
            await until(lambda: webhooks.counts.sent == 2)
            (letter,) = (await webhooks.dead_letters("t", "ann", "a")).letters
            assert (letter.id, letter.key, letter.attempts, letter.type) == ("2.1", "all", 4, "match")
            assert letter.reason == "the endpoint answered 500"
            assert bytes(letter.message) == b'{"n": 11, "padding": ""}'
            counts = webhooks.counts
            assert (counts.dead, counts.failed, counts.retried) == (1, 4, 3)
            assert webhooks.get("t", "ann", "a").dead_letters == 1
            return network

    network = asyncio.run(run())
    assert network.taken_ids("a") == ["1.1", "3.1"]
    assert len({request.body for request in network.attempts["a"] if request.id == "2.1"}) == 1


def test_an_event_is_given_up_at_an_age(tmp_path):
    async def run():
        time = SimulatedTime()
        network = SimulatedNetwork(lambda request, count: Outcome(500))
        async with serving(tmp_path, network, policy=RetryPolicy(age=7_200), **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint())
            await publish(service, 1)
            await until(lambda: webhooks.counts.dead == 1)
            (letter,) = (await webhooks.dead_letters("t", "ann", "a")).letters
            assert 7_200_000 <= letter.at - letter.since <= 7_500_000

    asyncio.run(run())


def test_dead_letters_are_replayed(tmp_path):
    async def run():
        time, statuses = SimulatedTime(), {"status": 500}
        network = SimulatedNetwork(lambda request, count: Outcome(statuses["status"]))
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(attempts=1))
            await publish(service, *range(12))
            await until(lambda: webhooks.counts.dead == 12)
            failed = await webhooks.replay("t", "ann", "a")
            assert (failed.sent, failed.left, failed.failed) == (0, 12, "the endpoint answered 500")
            statuses["status"] = 200
            one = await webhooks.replay("t", "ann", "a", "5.1")
            assert (one.sent, one.left, one.failed) == (1, 11, None)
            with pytest.raises(UnknownKeyError, match="no dead letter"):
                await webhooks.replay("t", "ann", "a", "5.1")
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            page = await webhooks.dead_letters("t", "ann", "a", limit=5)
            rest = await webhooks.dead_letters("t", "ann", "a", after=page.next)
            assert [letter.id for letter in page.letters + rest.letters] == ids(1, 4) + ids(6, 12)
            assert rest.next is None
            some = await webhooks.replay("t", "ann", "a", limit=4)
            assert (some.sent, some.left) == (4, 7)
            assert (await webhooks.replay("t", "ann", "a")).left == 0
            assert webhooks.get("t", "ann", "a").dead_letters == 0
        return network

    network = asyncio.run(run())
    assert network.taken_ids("a") == ["5.1", *ids(1, 4), *ids(6, 12)]


def test_the_oldest_dead_letters_make_room(tmp_path):
    async def run():
        time = SimulatedTime()
        network = SimulatedNetwork(lambda request, count: Outcome(500))
        limits = WebhookLimits(dead_letters=3)
        async with serving(tmp_path, network, limits=limits, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(attempts=1))
            await publish(service, *range(8))
            await until(lambda: webhooks.counts.dead == 8)
            page = await webhooks.dead_letters("t", "ann", "a")
            assert [letter.id for letter in page.letters] == ids(6, 8)
            assert webhooks.get("t", "ann", "a").dead_letters == 3
            assert webhooks.counts.discarded == 5

    asyncio.run(run())


def test_an_endpoint_that_is_gone_is_paused_until_it_is_resumed(tmp_path):
    async def run():
        time = SimulatedTime()
        network = SimulatedNetwork(lambda request, count: Outcome(410 if count == 2 else 200))
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint())
            await publish(service, 1, 2, 3)
            await until(lambda: webhooks.get("t", "ann", "a").paused)
            assert "410" in webhooks.get("t", "ann", "a").reason
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            view = webhooks.get("t", "ann", "a")
            assert (view.paused, view.lag, view.acknowledged) == (True, 2, "1.1")
            assert len(network.attempts["a"]) == 2
            await webhooks.resume("t", "ann", "a")
            await until(lambda: webhooks.counts.sent == 2)
            assert webhooks.get("t", "ann", "a").reason is None
        return network

    assert asyncio.run(run()).taken_ids("a") == ids(1, 3)


def test_events_wait_while_an_endpoint_is_paused(tmp_path):
    async def run():
        network = SimulatedNetwork()
        async with serving(tmp_path, network, **simulated(SimulatedTime())) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(paused=True))
            await webhooks.put("t", "ann", "b", endpoint("b"))
            await publish(service, 1, 2)
            await until(lambda: len(network.taken["b"]) == 2)
            assert not network.attempts["a"]
            await webhooks.resume("t", "ann", "a")
            await until(lambda: len(network.taken["a"]) == 2)
            await webhooks.pause("t", "ann", "a")
            await publish(service, 3)
            await until(lambda: len(network.taken["b"]) == 3)
            assert network.taken_ids("a") == ids(1, 2)
            assert webhooks.get("t", "ann", "a").lag == 1

    asyncio.run(run())


def test_a_restart_does_not_begin_to_count_attempts_again(tmp_path):
    async def run():
        time = SimulatedTime()
        network = SimulatedNetwork(lambda request, count: Outcome(500))
        held = asyncio.Event()

        async def sleep(seconds):
            await time.sleep(seconds)
            if len(network.attempts["a"]) == 3:
                await held.wait()

        options = {"clock": time.clock, "random": lambda: 1.0}
        async with serving(tmp_path, network, sleep=sleep, **options) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(attempts=5))
            await publish(service, 1)
            await until(lambda: (failing := webhooks.get("t", "ann", "a").failing) and failing.attempts == 3)
        async with serving(tmp_path, network, sleep=time.sleep, **options) as (service, webhooks):
            await until(lambda: webhooks.counts.dead == 1)
            assert len(network.attempts["a"]) == 5

    asyncio.run(run())


def test_a_crash_between_sending_and_noting_sends_again_with_the_same_id(tmp_path):
    async def run():
        network, disk = SimulatedNetwork(), Disk()
        with suppress(StoreError):
            async with serving(tmp_path, network, disk=disk, **simulated(SimulatedTime())) as (service, webhooks):
                await subscribe(service)
                await webhooks.put("t", "ann", "a", endpoint())
                await publish(service, 1, 2)
                await until(lambda: len(network.taken["a"]) == 2)
                await service.tick()
                disk.is_full = True
                network.answer = lambda request, count: Outcome(200)
        assert network.taken_ids("a") == ids(1, 2)
        disk = Disk()
        with suppress(StoreError):
            async with serving(tmp_path, network, disk=disk, **simulated(SimulatedTime())) as (service, webhooks):
                await publish(service, 3, 4)
                disk.is_full = True  # what is taken now is never noted
                await until(lambda: len(network.taken["a"]) == 4)
        async with serving(tmp_path, network, **simulated(SimulatedTime())) as (service, webhooks):
            await until(lambda: len(network.taken["a"]) == 6)
        return network

    network = asyncio.run(run())
    assert network.taken_ids("a") == [*ids(1, 4), *ids(3, 4)]
    assert network.taken["a"][2].body == network.taken["a"][4].body


def test_events_lost_to_retention_become_a_reset(tmp_path):
    async def run():
        time = SimulatedTime()
        network = SimulatedNetwork()
        service_options = {"retention": Retention(age=HOUR), "clock": time.clock}
        async with serving(tmp_path, network, service=service_options, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(paused=True))
            await publish(service, *range(10))
            time.now += 2 * HOUR
            await publish(service, *range(10, 13))
            await service.tick()
            assert service.oldest == 11
            assert webhooks.get("t", "ann", "a").dropped == 10
            network.answer = lambda request, count: Outcome(500 if count < 3 else 200)
            await webhooks.resume("t", "ann", "a")
            await until(lambda: len(network.taken["a"]) == 4)
            await webhooks.put("t", "ann", "b", endpoint("b", start=3, format="cloudevents", batch=True))
            await until(lambda: len(network.taken["b"]) == 2)
        async with serving(tmp_path, network, service=service_options, **simulated(time)) as (service, webhooks):
            await publish(service, 13)
            await until(lambda: len(network.taken["a"]) == 5)
        return network

    network = asyncio.run(run())
    assert [request.id for request in network.attempts["a"]] == ["reset.11"] * 3 + ids(11, 14)
    assert network.taken["a"][0].json == {"id": "reset.11", "type": "reset", "oldest": 11}
    (reset,) = network.taken["b"][0].json
    assert (reset["type"], reset["data"]) == ("contrada.reset", {"oldest": 11})
    assert network.taken["b"][1].ids == ids(11, 13)


def test_where_a_new_endpoint_starts(tmp_path):
    async def run():
        time, network = SimulatedTime(), SimulatedNetwork()
        async with serving(tmp_path, network, service={"clock": time.clock}, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await publish(service, 1, 2)
            time.now += 60_000
            since = datetime.datetime.fromtimestamp(time.now / 1_000, datetime.UTC)
            await publish(service, 3, 4)
            for name, options in {
                "default": {},
                "now": {"start": "now"},
                "oldest": {"start": "oldest"},
                "second": {"start": 2},
                "since": {"since": since},
            }.items():
                await webhooks.put("t", "ann", name, endpoint(name, **options))
            await publish(service, 5)
            await until(lambda: all(lag == 0 for lag in webhooks.lags().values()))
            assert {name: network.taken_ids(name) for name in ("default", "now", "oldest", "second", "since")} == {
                "default": ids(5, 5),
                "now": ids(5, 5),
                "oldest": ids(1, 5),
                "second": ids(2, 5),
                "since": ids(3, 5),
            }
            await webhooks.put("t", "ann", "now", endpoint("now", start=4))  # replays
            await webhooks.put("t", "ann", "default", endpoint("default"))  # stays where it is
            await until(lambda: len(network.taken["now"]) == 3)
            assert network.taken_ids("now") == [*ids(5, 5), *ids(4, 5)]
            assert network.taken_ids("default") == ids(5, 5)

    asyncio.run(run())


def test_a_removed_endpoint_leaves_nothing_behind(tmp_path):
    async def run():
        time, network = SimulatedTime(), SimulatedNetwork(lambda request, count: Outcome(500))
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(attempts=1))
            await publish(service, *range(150))
            await until(lambda: webhooks.counts.dead == 150)
            await webhooks.remove("t", "ann", "a")
            with pytest.raises(UnknownKeyError, match="has no webhook 'a'"):
                webhooks.get("t", "ann", "a")
            for kind in ("webhook", "webhook-progress", "dead-letter"):
                assert await service.records(kind) == []
            network.answer = lambda request, count: Outcome(200)
            await webhooks.put("t", "ann", "a", endpoint())
            await publish(service, 1)
            await until(lambda: len(network.taken["a"]) == 1)
            assert network.taken_ids("a") == ["151.1"]

    asyncio.run(run())


def test_endpoints_of_tenants_are_apart(tmp_path):
    async def run():
        network = SimulatedNetwork()
        limits = WebhookLimits(endpoints=2)
        async with serving(tmp_path, network, limits=limits, **simulated(SimulatedTime())) as (service, webhooks):
            await subscribe(service)
            for tenant, name in (("t", "a"), ("t", "b"), ("u", "a")):
                await webhooks.put(tenant, "ann", name, endpoint(f"{tenant}-{name}"))
            with pytest.raises(LimitError, match="has 2 webhooks"):
                await webhooks.put("t", "bob", "c", endpoint("c"))
            assert [view.name for view in webhooks.list("t")] == ["a", "b"]
            assert [view.name for view in webhooks.list("u", "ann")] == ["a"]
            assert webhooks.list("u", "bob") == []
            with pytest.raises(UnknownKeyError):
                await webhooks.dead_letters("u", "ann", "b")
            await publish(service, 1)
            await until(lambda: all(network.taken[path] for path in ("t-a", "t-b")))
            assert not network.attempts["u-a"]

    asyncio.run(run())


def test_batches_keep_their_id_and_shrink_to_find_the_event_at_fault(tmp_path):
    async def run():
        time = SimulatedTime()

        def answer(request, count):
            if count <= 2:
                return Outcome(503)
            return Outcome(422 if "6.1" in request.ids else 200)

        network = SimulatedNetwork(answer)
        async with serving(tmp_path, network, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await publish(service, *range(8))
            await webhooks.put("t", "ann", "a", endpoint(batch=8, attempts=12, start="oldest"))
            await until(lambda: webhooks.counts.dead == 1 and webhooks.counts.sent == 7)
            (letter,) = (await webhooks.dead_letters("t", "ann", "a")).letters
            assert letter.id == "6.1"
        return network

    network = asyncio.run(run())
    assert network.taken_ids("a") == [*ids(1, 5), *ids(7, 8)]
    assert [request.id for request in network.attempts["a"][:4]] == ["1.1-8.1"] * 3 + ["1.1-4.1"]
    bodies = {}
    for request in network.attempts["a"]:
        assert bodies.setdefault(request.id, request.body) == request.body


def test_batches_are_bounded_in_bytes(tmp_path):
    async def run():
        network = SimulatedNetwork()
        async with serving(tmp_path, network, **simulated(SimulatedTime())) as (service, webhooks):
            await subscribe(service)
            for _ in range(6):
                await publish(service, 1, padding="x" * 400_000)
            await webhooks.put("t", "ann", "a", endpoint(batch=1_000, start="oldest"))
            await until(lambda: webhooks.counts.sent == 6)
        return network

    network = asyncio.run(run())
    assert [len(request.ids) for request in network.taken["a"]] == [2, 2, 2]


def test_messages_of_others_are_acknowledged_too(tmp_path):
    async def run():
        network = SimulatedNetwork()
        async with serving(tmp_path, network, **simulated(SimulatedTime())) as (service, webhooks):
            await subscribe(service, "ann", "n < 0", "few")
            await webhooks.put("t", "ann", "a", endpoint())
            await publish(service, -1, *range(20))
            await until(lambda: len(network.taken["a"]) == 1 and webhooks.get("t", "ann", "a").lag == 0)
            assert webhooks.get("t", "ann", "a").acknowledged == "1.1"
            webhooks.note_idle()
            assert webhooks.get("t", "ann", "a").acknowledged.startswith("21.")
            await publish(service, -2)
            await until(lambda: len(network.taken["a"]) == 2)

    asyncio.run(run())


def test_stopping_finishes_what_is_in_flight(tmp_path):
    async def run():
        network, released = SimulatedNetwork(), asyncio.Event()
        post = network.post

        async def slow_post(url, headers, body):
            await released.wait()
            return await post(url, headers, body)

        network.post = slow_post
        async with serving(tmp_path, network, **simulated(SimulatedTime())) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint())
            await publish(service, 1, 2)
            await until(lambda: webhooks.counts.in_flight == 1)
            stopping = asyncio.create_task(webhooks.stop())
            await asyncio.sleep(0)
            assert not stopping.done()
            released.set()
            await stopping
            assert service.cursor("t", "ann", "a").position.id == "1.1"
        async with serving(tmp_path, network, **simulated(SimulatedTime())) as (service, webhooks):
            await until(lambda: webhooks.counts.sent == 1)
        return network

    assert asyncio.run(run()).taken_ids("a") == ids(1, 2)


def test_a_store_that_fails_for_a_while_delays_deliveries_only(tmp_path, caplog):
    async def run():
        network, disk = SimulatedNetwork(lambda request, count: Outcome(500 if count < 4 else 200)), Disk()
        time = SimulatedTime()
        pauses = 0

        async def sleep(seconds):
            nonlocal pauses
            pauses += 1
            disk.is_full = pauses < 3
            await time.sleep(seconds)

        async with serving(tmp_path, network, disk=disk, clock=time.clock, sleep=sleep) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint())
            await publish(service, 1, 2)
            await until(lambda: webhooks.counts.sent == 2)
        return network

    assert asyncio.run(run()).taken_ids("a") == ids(1, 2)


def test_an_event_is_not_lost_when_its_dead_letter_cannot_be_written(tmp_path):
    async def run():
        network, disk, time = SimulatedNetwork(), Disk(), SimulatedTime()

        def answer(request, count):
            disk.is_full = count == 2  # the dead letter after the second attempt is not written
            return Outcome(500)

        network.answer = answer
        async with serving(tmp_path, network, disk=disk, **simulated(time)) as (service, webhooks):
            await subscribe(service)
            await webhooks.put("t", "ann", "a", endpoint(attempts=2))
            await publish(service, 1)
            await until(lambda: webhooks.counts.dead == 1)
            assert len(network.attempts["a"]) == 3
            assert [letter.id for letter in (await webhooks.dead_letters("t", "ann", "a")).letters] == ["1.1"]
            assert webhooks.get("t", "ann", "a").dead_letters == 1

    asyncio.run(run())


# --- order and completeness ---

steps = st.lists(
    st.one_of(
        st.lists(st.integers(0, 99), min_size=1, max_size=12),  # published
        st.sampled_from(["crash", "stop", "wait"]),
    ),
    min_size=1,
    max_size=8,
)
FILTERS = {"low": "n < 60", "high": "n >= 40", "odd": "n = 41 OR n = 43 OR n = 59"}
MATCHES = {"low": lambda n: n < 60, "high": lambda n: n >= 40, "odd": lambda n: n in (41, 43, 59)}


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.integers(0, 1 << 30), st.sampled_from([0.0, 0.2, 0.7]), st.sampled_from([False, 1, 4]))
def test_every_event_is_taken_in_order_whatever_fails(steps, seed, failures, batch):
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check_order(Path(directory), steps, random.Random(seed), failures, batch))


async def check_order(directory, steps, chance, failures, batch):
    def answer(request, count):
        if chance.random() < failures:
            return Outcome(chance.choice([0, 301, 400, 404, 429, 500]), "no answer", chance.choice([None, "3"]))
        return Outcome(204)

    time, network, expected, runs = SimulatedTime(), SimulatedNetwork(answer), [], {"a": [[]], "b": [[]]}
    remaining = list(steps)
    is_new = True
    sequence = 0
    while True:
        disk = Disk()
        with suppress(StoreError):
            async with serving(directory, network, disk=disk, **simulated(time, chance.random())) as (
                service,
                webhooks,
            ):
                if is_new:
                    for key, filter in FILTERS.items():
                        await subscribe(service, "ann", filter, key)
                    for name in runs:
                        await webhooks.put("t", "ann", name, endpoint(name, batch=batch if name == "a" else False))
                    is_new = False
                while remaining:
                    step = remaining.pop(0)
                    if isinstance(step, list):
                        await publish(service, *step)
                        for n in step:
                            sequence += 1
                            found = [number for number, key in enumerate(FILTERS, 1) if MATCHES[key](n)]
                            expected += [f"{sequence}.{number}" for number in found]
                    elif step == "wait":
                        await asyncio.sleep(0.01)
                    else:
                        disk.is_full = step == "crash"
                        break
                else:
                    await until(lambda: all(lag == 0 for lag in webhooks.lags().values()))
        for name, taken in runs.items():
            done = sum(len(part) for part in taken)
            taken.append(network.taken_ids(name)[done:])
        if not remaining and not disk.is_full and all(end_reached(taken, expected) for taken in runs.values()):
            break
    places = {id: place for place, id in enumerate(expected)}
    for taken in runs.values():
        reached = 0
        for part in taken:  # after a restart it may begin again with what it had, but it leaves nothing out
            if part:
                start = places[part[0]]
                assert start <= reached
                assert part == expected[start : start + len(part)]
                reached = max(reached, start + len(part))
        assert reached == len(expected)


def end_reached(taken, expected):
    return not expected or any(part and part[-1] == expected[-1] for part in taken)
