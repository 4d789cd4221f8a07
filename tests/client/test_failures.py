"""Clients while the server is killed and connections are cut: every message once, every match once, in order."""

import asyncio
import random
import threading
from contextlib import contextmanager
from itertools import count as count_up
from itertools import islice

import pytest

from console import wait_for
from contrada.client import AsyncClient, Client, Match, MatchReset, ResetError
from server_process import CuttingProxy, ServerProcess, serving


def publish_all(url, key, name, batches):
    """Publish batches one after the other; a batch of one number is a single message."""
    with Client(url, key, patience=600) as client:
        for numbers in batches:
            messages = [{"at": name, "n": n} for n in numbers]
            receipt = client.publish(messages if len(numbers) > 1 else messages[0])
            taken = receipt.count + len(receipt.duplicates)
            assert (taken, receipt.rejected) == (len(numbers), [])


def batches_of(count, seed):
    """Cut the numbers from 0 to count into batches of 1 to 30."""
    draw, start = random.Random(seed), 0
    while start < count:
        stop = min(count, start + draw.choice([1, 1, 1, 5, 30]))
        yield range(start, stop)
        start = stop


@contextmanager
def publishing(*arguments):
    """Publish in a thread while a block runs; what fails there fails here."""
    failures = []

    def run():
        try:
            publish_all(*arguments)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        thread.join()
        assert failures == []


def check(matches, name, count):
    """All matches of two subscriptions that take everything: each number twice, in order, with different ids."""
    assert [match.message["n"] for match in matches] == [n for n in range(count) for _ in range(2)]
    assert [match.key for match in matches] == [f"{name}-a", f"{name}-b"] * count
    assert len({match.id for match in matches}) == len(matches)
    sequences = [match.sequence for match in matches]
    assert sequences == sorted(sequences)


def subscribe_twice(client, name):
    for letter in "ab":
        client.subscribe(f"{name}-{letter}", name, f"at = '{name}'")


def kill_rounds(tmp_path, rounds, count, seed):
    server = ServerProcess(tmp_path)
    server.start()
    draw = random.Random(seed)
    try:
        with Client(server.url, server.key, patience=600) as client:
            subscribe_twice(client, "ann")
            with publishing(server.url, server.key, "ann", batches_of(count, seed)), client.matches("ann") as matches:
                found = []
                for k in range(rounds):
                    found += islice(matches, draw.randint(0, 2 * count // (rounds + 1)))
                    server.kill()
                    server.start(wait=k % 2 == 0)
                found += islice(matches, 2 * count - len(found))
            check(found, "ann", count)
            assert client.subscriber("ann").lag == 0
            last = client.publish({"at": "ann", "n": count}).sequence
            assert last == found[-1].sequence + 1  # no message was taken twice
    finally:
        server.stop()


@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "count"), [(2, 400), (6, 3_000)])
def test_a_server_that_is_killed_under_a_running_iterator(tmp_path, rounds, count):
    kill_rounds(tmp_path, rounds, count, seed=rounds)


def cut_run(server, name, count, seed, most):
    draw = random.Random(seed)
    with CuttingProxy(server.port, (draw.randint(0, most) for _ in count_up())) as proxy:
        with Client(server.url, server.key) as client:
            subscribe_twice(client, name)
            before = client.publish({}).sequence
        with (
            publishing(proxy.url, server.key, name, batches_of(count, seed)),
            Client(proxy.url, server.key) as client,
            client.matches(name) as matches,
        ):
            check(list(islice(matches, 2 * count)), name, count)
        assert proxy.cuts > 0
    with Client(server.url, server.key) as client:
        assert client.publish({}).sequence == before + count + 1  # no message was taken twice


@pytest.mark.parametrize(("most", "count"), [(800, 20), (20_000, 400)])
def test_connections_that_are_cut_at_random_bytes(server, most, count):
    cut_run(server, f"cut {most}", count, most, most)


def test_any_byte_may_be_the_last_of_a_connection(server):
    """The answer of a stream is cut at many places, in the middle of heads and events."""
    name, count = "cut everywhere", 6

    async def run():
        async with AsyncClient(server.url, server.key) as client:
            for letter in "ab":
                await client.subscribe(f"{name}-{letter}", name, f"at = '{name}'")
            first = (await client.publish([{"at": name, "n": n} for n in range(count)])).first
        for place in range(0, 1_600, 80):
            with CuttingProxy(server.port, [place]) as proxy:
                async with AsyncClient(proxy.url, server.key) as client, client.matches(name, start=first) as matches:
                    check([await anext(matches) for _ in range(2 * count)], name, count)

    asyncio.run(run())


def test_what_retention_removed_is_told(tmp_path):
    with serving(tmp_path, "--retention-bytes", "2000") as server, Client(server.url, server.key) as client:
        client.subscribe("all", "ann", "n >= 0")
        for start in range(0, 500, 50):
            last = client.publish([{"n": n} for n in range(start, start + 50)]).last
        wait_for(lambda: client.subscriber("ann").dropped, 60)
        with client.matches("ann", start=1) as matches:
            with pytest.raises(ResetError) as caught:
                next(matches)
            oldest = caught.value.oldest
            assert 1 < oldest <= last
            found = [next(matches)]
            while found[-1].sequence < last:
                found.append(next(matches))
        # Retention may remove more between the reset and the matches after it, which is told again.
        assert [match.sequence for match in found] == list(range(found[0].sequence, last + 1))
        assert found[0].sequence >= oldest
        with client.matches("ann", "1.1", on_reset="yield") as late:
            items = list(islice(late, 2))
        assert [type(item) for item in items] == [MatchReset, Match]
