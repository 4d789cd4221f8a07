"""Peers as processes of their own: fifty on loopback, a third of them killed, and still nobody misses a message."""

import json
import os
import random
import time
from contextlib import contextmanager

import pytest
from commands import start

import contrada as ct
from console import python, read_lines, wait_for
from contrada.model.evaluate import truth

COMMAND = ["-m", "contrada.cli.main", "overlay"]
SHARED = ["--dimensions", "price,size", "--degree", "2,5"]


class Process:
    """One peer; its standard output and error go to files."""

    def __init__(self, folder, name, asked, joins, period):
        self.asked = asked
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.err"
        joined = [part for address in joins for part in ("--join", address)]
        secret = ["--secret-file", folder / "secret"]
        command = [*COMMAND, "peer", "--subscribe", asked, *secret, *(joined or [*SHARED, "--period", period])]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = start(*command, stdout=out, stderr=err)

    def address(self):
        """Where it listens, once it does."""
        for line in self.err.read_text().splitlines():
            if line.startswith("listening on "):
                return line.removeprefix("listening on ")
        assert self.process.poll() is None, self.err.read_text()
        return None

    def delivered(self):
        return [row["key"] for row in read_lines(self.out)]

    def end(self):
        self.process.kill()
        self.process.wait()


@contextmanager
def piped(folder, *further):
    """A peer that wants every price and writes to pipes of this process; it is ended after the block."""
    command = [*COMMAND, "peer", "--subscribe", "price > 0", "--secret-file", folder / "secret", *further]
    with start(*command) as process:
        try:
            yield process, process.stderr.readline().split()[-1]
        finally:
            process.kill()


def publish(folder, to, messages):
    command = [*COMMAND, "publish", "--to", to, "--secret-file", folder / "secret"]
    return python(*command, *map(json.dumps, messages)).stdout.split()


@pytest.fixture
def peers(tmp_path):
    """Peers that a test starts; all share a secret, and end after it."""
    (tmp_path / "secret").write_text("a secret of this test\n")
    started = []
    yield started
    for peer in started:
        peer.end()


def start_peers(folder, peers, count, rng, period):
    for number in range(count):
        low = rng.randrange(20)
        asked = f"price BETWEEN {low} AND {low + rng.randrange(1, 6)} OR size = {number}"
        known = [peer.address() for peer in rng.sample(peers, min(3, len(peers)))]
        peers.append(Process(folder, f"peer{number}", asked, [address for address in known if address], period))
        if number % 5 == 0:  # as many at a time as there is room for
            wait_for(lambda: all(peer.address() for peer in peers), 120)
    wait_for(lambda: all(peer.address() for peer in peers), 120)


def wanted_by(peers, message):
    def holds(part):
        return all(truth(constraint, message.get(constraint.attribute)) for constraint in part)

    return {peer for peer in peers if any(map(holds, ct.parse(peer.asked)))}


def all_hear(folder, peers, rng):
    """Publish one message that every peer wants through each of several peers; whether all have got all."""
    messages = [{"price": rng.randrange(24), "size": rng.randrange(len(peers))} for _ in range(12)]
    keys = publish(folder, rng.choice(peers).address(), messages)
    expected = {(peer, key) for key, one in zip(keys, messages, strict=True) for peer in wanted_by(peers, one)}
    end = time.monotonic() + 5
    while time.monotonic() < end:
        got = {(peer, key) for peer in peers for key in peer.delivered()}
        if expected <= got:
            break
        time.sleep(0.2)
    relevant = {(peer, key) for peer, key in got if key in keys}
    assert relevant <= expected, "nobody gets what it does not want"
    return expected <= got


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="fifty processes need more than one core")
@pytest.mark.parametrize(("count", "killed", "period"), [(6, 2, "0.3"), (50, 17, "1.5")])
def test_processes_of_which_a_third_is_killed(tmp_path, peers, count, killed, period):
    rng = random.Random(1)
    start_peers(tmp_path, peers, count, rng, period)
    wait_for(lambda: all_hear(tmp_path, peers, rng), 120)
    victims = rng.sample(peers, killed)
    for victim in victims:
        victim.process.kill()
    alive = [peer for peer in peers if peer not in victims]
    wait_for(lambda: all(all_hear(tmp_path, alive, rng) for _ in range(3)), 240)  # it is whole, and stays so
    alive[0].process.terminate()
    assert alive[0].process.wait(20) == 0, alive[0].err.read_text()


@pytest.mark.slow
def test_a_peer_whose_output_is_closed_leaves_in_order(tmp_path, peers):
    # A neighbour that is silent is given up after 3.5 heartbeats, 70 seconds: what is heard sooner was said in order.
    first = Process(tmp_path, "first", "price > 0", [], "20")
    peers.append(first)
    wait_for(first.address, 60)
    keys = []

    def published(price):
        keys.extend(publish(tmp_path, first.address(), [{"price": price}]))
        time.sleep(1)
        return True

    with piped(tmp_path, "--join", first.address()) as (closing, address):
        third = Process(tmp_path, "third", "price > 0", [address], "20")
        peers.append(third)
        wait_for(third.address, 60)
        # Notes of the joining may be lost, and are said again a heartbeat later.
        wait_for(lambda: published(1) and third.delivered(), 240)
        closing.stdout.close()
        wait_for(lambda: published(2) and closing.poll() is not None, 60)
        assert closing.returncode == 141
        assert "Traceback" not in closing.stderr.read()
    wait_for(lambda: keys[-1] in first.delivered() and keys[-1] in third.delivered(), 50)
    (key,) = publish(tmp_path, third.address(), [{"price": 3}])
    wait_for(lambda: key in first.delivered() and key in third.delivered(), 50)


@pytest.mark.slow
@pytest.mark.usefixtures("peers")
def test_a_slow_reader_does_not_keep_a_peer_silent(tmp_path):
    with piped(tmp_path, *SHARED) as (peer, address):
        messages = [{"price": 1, "size": 1, "text": "x" * 50_000}] * 6  # more than a pipe holds
        keys = publish(tmp_path, address, messages)
        assert len(keys) == 6, "it answers though nobody reads what it delivers"
        assert [json.loads(peer.stdout.readline())["key"] for _ in keys] == keys
        keys = publish(tmp_path, address, messages)
        peer.terminate()
        assert peer.wait(60) == 0
        assert "5 messages were not written" in peer.stderr.read()
