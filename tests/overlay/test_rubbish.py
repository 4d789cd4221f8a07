"""Notes that no peer would send: a peer survives them, and the tree heals."""

import random

import pytest

from contrada.overlay import protocol as notes
from contrada.overlay.interest import Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.network import Network
from contrada.overlay.simulation.simulator import Simulator
from contrada.overlay.wire import check_note, decode, encode
from effort import examples
from generators.boxes import draw_box, draw_point

IDS = [*range(12), "stranger"]


def draw_note(rng):
    def some():
        return rng.choice(IDS)

    def level():
        return rng.choice([0, 0, 1, 1, 2, 3, 7, 60])

    def entry():
        box = draw_box(rng)
        return notes.ChildEntry(box, box, tuple(draw_box(rng) for _ in range(rng.randrange(3))))

    def table():
        return {some(): entry() for _ in range(rng.randrange(6))}

    def tables():
        return [table() for _ in range(rng.randrange(4))]

    def join():
        return notes.Join(some(), level(), entry(), rng.random() < 0.5, rng.choice([None, some()]), rng.randrange(16))

    publication = notes.Publication(f"rubbish {rng.randrange(5)}", draw_point(rng), "{}")
    return rng.choice(
        [
            join,
            lambda: notes.Place(join(), level()),
            lambda: notes.Adopted(level(), some(), entry(), some(), (some(),)),
            lambda: notes.Report(level(), some(), some(), entry(), table(), rng.randrange(16)),
            lambda: notes.Take(level(), some(), tables(), some(), some(), rng.random() < 0.5),
            lambda: notes.Replace(level(), some(), some(), some(), entry()),
            lambda: notes.Leave(level(), some()),
            lambda: notes.Orphaned(level(), rng.choice([None, some()]), some()),
            lambda: notes.Yield(some()),
            lambda: notes.Beat(level(), entry(), (some(),)),
            lambda: notes.Ack(level(), (some(), some())),
            lambda: notes.Disown(level()),
            lambda: notes.Up(publication, rng.choice([None, level()]), some()),
            lambda: notes.Down(publication, level()),
        ]
    )()


@pytest.mark.effort
@pytest.mark.parametrize("seed", range(examples(12)))
def test_a_peer_survives_any_note(seed):
    rng = random.Random(seed)
    rules = Rules(2, 4, *[("r", "quadratic"), ("rstar", "rstar")][seed % 2], sketch=3 * (seed % 3))
    peer = Peer(0, Rectangles([draw_box(rng)]), rules, seed)
    for step in range(400):
        note = draw_note(rng)
        check_note(decode(encode(note)[4:]), 2)
        sent = peer.handle(rng.choice(IDS), note, float(step))
        if rng.random() < 0.2:
            sent = sent + peer.tick(float(step))
        assert len(sent) < 1000
        for level in range(1, peer.state.top + 1):
            assert len(peer.state.nodes[level]) <= rules.most or peer.state.id in peer.state.nodes[level]


@pytest.mark.effort
@pytest.mark.parametrize("seed", range(examples(8)))
def test_an_overlay_heals_from_rubbish(seed):
    rng = random.Random(seed)
    simulator = Simulator(Rules(2, 4), seed, Network(0.05, 0.05))
    for _ in range(12):
        simulator.add([draw_box(rng)])
        simulator.run(0.5)
    for _ in range(150):
        peer = simulator.peers[rng.randrange(12)]
        simulator.inject(peer.id, rng.choice(IDS), draw_note(rng))
        simulator.run(0.02)
    assert simulator.run_until_sound(90) is not None, simulator.faults()[:5]
    spreads = [simulator.publish(draw_point(rng)) for _ in range(10)]
    simulator.run(2.0)
    assert not any(spread.missed for spread in spreads)
