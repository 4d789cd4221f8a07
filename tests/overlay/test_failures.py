"""Failures: whatever happened, when the network is quiet again there is one sound tree, and nobody misses a message."""

import random

import pytest

from contrada.errors import OverlayError
from contrada.overlay.interest import Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.churn import Churn, count_losses, run_churn
from contrada.overlay.simulation.network import Network
from contrada.overlay.simulation.simulator import Simulator
from contrada.overlay.simulation.trace import TracedSimulator, replay
from contrada.overlay.wire import check_note, decode, encode
from effort import examples
from generators.overlay import IDS, draw_box, draw_note, draw_point

QUIET = Network(0.05, 0.05)
HOW = [("r", "quadratic"), ("r", "linear"), ("rstar", "rstar")]
DEGREES = [(2, 4), (2, 5), (5, 10)]


def grown(seed, count, least=2, most=5, choose="r", split="quadratic", network=QUIET, sketch=0):
    rng = random.Random(seed)
    simulator = Simulator(Rules(least, most, choose, split, sketch=sketch), seed, network)
    for _ in range(count):
        simulator.add([draw_box(rng)])
        simulator.run(0.3)
    return simulator, rng


def assert_heals(simulator, rng, most=60):
    """The tree becomes sound, stays so, and routes without a false negative."""
    simulator.network = QUIET
    assert simulator.run_until_sound(most) is not None, simulator.faults()[:5]
    for _ in range(10):
        simulator.run(0.7)
        simulator.check()
    spreads = [simulator.publish(draw_point(rng)) for _ in range(15)]
    simulator.run(2.0)
    assert not any(spread.missed for spread in spreads)


@pytest.mark.effort
@pytest.mark.parametrize("seed", range(examples(12)))
def test_everything_at_once(seed):
    rules = *DEGREES[seed % 3], *HOW[(seed + seed // 3) % 3]
    simulator, rng = grown(seed, 40, *rules, Network(0.05, 0.3, 0.1, 0.1), 4 * (seed % 2))
    spreads = run_churn(simulator, Churn(1, 0.5, 0.5, 0.5, 3), 15, lambda: draw_box(rng), lambda: draw_point(rng))
    assert len(spreads) > 10
    assert_heals(simulator, rng)
    losses = count_losses(simulator, spreads)
    assert losses.missed <= 0.02 * losses.wanted
    assert not losses.repeated


def crash_a_third(simulator, rng):
    for _ in range(len(simulator.peers) // 3):
        simulator.crash(simulator.random_id())


def crash_the_root_again_and_again(simulator, rng):
    for _ in range(5):
        simulator.crash(simulator.root)
        simulator.run(rng.random() * 5)


def corrupt_half_of_the_tables(simulator, rng):
    simulator.run_until_sound(30)
    for id in list(simulator.peers)[::2]:
        simulator.corrupt(id)


def send_rubbish(simulator, rng):
    for _ in range(150):
        simulator.inject(simulator.random_id(), rng.choice(IDS), draw_note(rng))
        simulator.run(0.02)


HARMS = [(crash_a_third, 90, 8), (crash_the_root_again_and_again, 40, 4), (corrupt_half_of_the_tables, 40, 12),
         (send_rubbish, 12, 8)]  # fmt: skip


@pytest.mark.effort
@pytest.mark.parametrize(
    ("harm", "count", "seed"), [(harm, count, seed) for harm, count, tries in HARMS for seed in range(examples(tries))]
)
def test_an_overlay_heals(harm, count, seed):
    simulator, rng = grown(seed, count, *DEGREES[seed % 3], *HOW[(seed + seed // 3) % 3])
    harm(simulator, rng)
    left = len(simulator.peers)
    assert_heals(simulator, rng, 90)
    assert len(simulator.peers) == left


@pytest.mark.effort
@pytest.mark.parametrize("seed", range(examples(12)))
def test_a_peer_survives_any_note(seed):
    rng = random.Random(seed)
    rules = Rules(2, 4, *HOW[2 * (seed % 2)], sketch=3 * (seed % 3))
    peer = Peer(0, Rectangles([draw_box(rng)]), rules, seed)
    for step in range(400):
        note = draw_note(rng)
        again = decode(encode(note)[4:])
        check_note(again, 2)
        assert again == note
        sent = peer.handle(rng.choice(IDS), note, float(step))
        if rng.random() < 0.2:
            sent = sent + peer.tick(float(step))
        assert len(sent) < 1000
        for level in range(1, peer.state.top + 1):
            assert len(peer.state.nodes[level]) <= rules.most or peer.state.id in peer.state.nodes[level]


def test_two_overlays_become_one():
    rng = random.Random(1)
    simulator = Simulator(Rules(2, 4), 1, QUIET)
    first = simulator.add([draw_box(rng)])
    second = simulator.add([draw_box(rng)], via=first)
    simulator.crash(first)  # each of the two groups begins with a peer that knows nobody
    other = simulator.add([draw_box(rng)], via=second)
    simulator.crash(second)
    simulator.peers[other].state.follow(None)
    apart = simulator.add([draw_box(rng)], via=other)
    simulator.peers[apart].state.bootstrap = ()
    for base in (other, apart):
        for _ in range(15):
            simulator.add([draw_box(rng)], via=base)
            simulator.run(0.2)
    assert_heals(simulator, rng)


@pytest.mark.effort
@pytest.mark.parametrize("seed", range(examples(4)))
def test_leaving_in_order_costs_no_message_in_a_good_network(seed):
    simulator, rng = grown(seed, 40)
    assert simulator.run_until_sound(30) is not None
    for _ in range(10):
        simulator.remove(simulator.random_id())
        simulator.run(8.0)
        spread = simulator.publish(draw_point(rng))
        simulator.run(1.0)
        assert not spread.missed


def test_mild_churn_loses_nothing():
    simulator, rng = grown(5, 80, 5, 10)
    spreads = run_churn(simulator, Churn(0.2, 0.1, 0.1, 0, 10), 30, lambda: draw_box(rng), lambda: draw_point(rng))
    assert_heals(simulator, rng)
    losses = count_losses(simulator, spreads)
    assert losses.wanted > 300
    assert losses.missed == losses.repeated == 0


def test_a_trace_replays(tmp_path):
    rng = random.Random(8)
    path = tmp_path / "trace.ndjson"
    with path.open("w") as target:
        traced = TracedSimulator(target, Rules(2, 4), 8, Network(0.05, 0.3, 0.1, 0.1))
        ids = []
        for _ in range(15):
            ids.append(traced.add([draw_box(rng)]))
            traced.run(0.5)
        traced.remove(ids[3])
        traced.crash(ids[4])
        traced.corrupt(ids[5])
        traced.publish(draw_point(rng))
        traced.change_network(QUIET)
        traced.run(20.0)
    again = replay(path)
    assert again.now == traced.simulator.now
    here, there = ({id: peer.state.nodes for id, peer in one.peers.items()} for one in (again, traced.simulator))
    assert here == there
    first, *others = path.read_text().splitlines(keepends=True)
    spoilt = [k for k, line in enumerate(others) if '"note"' in line][40]
    others[spoilt] = others[spoilt].replace('"note": [', '"note": [1')
    for text, word in [
        ("".join([first, *others]), f"line {spoilt + 2}: the replay did not send this note"),
        ("", "not a trace"),
        ("[1]\n", "not an object"),
        ("{\n", "not valid JSON"),
        ('{"do": ["x"]}\n', "not a trace"),
        (f'{first}{{"do": ["explode"]}}\n', "line 2: unknown action"),
    ]:
        path.write_text(text)
        with pytest.raises(OverlayError, match=word):
            replay(path)


def test_wrong_networks_are_refused():
    for wrong in ({"loss": 1.0}, {"latency": -1}, {"jitter": -1}, {"doubling": 2}):
        with pytest.raises(OverlayError):
            Network(**wrong)
