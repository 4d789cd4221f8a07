"""Messages are kept and sent again: whoever lives from publishing to repair gets each wanted message exactly once."""

import random
from dataclasses import replace

import pytest

from contrada.errors import OverlayError
from contrada.overlay.interest import Rectangles
from contrada.overlay.keeping import OVERHEAD_BYTES, KeptMessages
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import Ack, Beat, ChildEntry, Down, Publication, Up
from contrada.overlay.rules import MAX_KEPT, Rules
from contrada.overlay.simulation.churn import Churn, count_losses, run_churn
from contrada.overlay.simulation.network import Network
from contrada.overlay.simulation.simulator import Simulator
from contrada.overlay.wire import MAX_KEY_CHARACTERS, check_note
from effort import examples
from generators.overlay import draw_box, draw_point

QUIET = Network(0.05, 0.05)
LONG = 60.0  # retention: two thirds of a small overlay may take half a minute to replace
EVERYWHERE = (0.0, 0.0, 28.0, 28.0)
ENTRY = ChildEntry((0.0, 9.0), (0.0, 9.0))


def grown(seed, count, rules=None, dimensions=2):
    rng = random.Random(seed)
    simulator = Simulator(Rules(2, 4) if rules is None else rules, seed, QUIET)
    for _ in range(count):
        simulator.add([draw_box(rng, dimensions)])
        simulator.run(0.3)
    assert simulator.run_until_sound(60) is not None
    return simulator, rng


def assert_exactly_once(simulator, spreads):
    """Whoever wanted a message and still lives has got it once, unless all vanished who had it."""
    for spread in spreads:
        alive = spread.wanted & simulator.peers.keys()
        assert set(spread.delivered.values()) <= {1}
        for late in (spread.delivered.keys() - spread.wanted) & simulator.peers.keys():
            # A message counts as published when it reached the first peer that kept it: notes have no clock.
            assert simulator.peers[late].state.joined - spread.published < 2.0
        assert spread.is_extinct or alive <= spread.delivered.keys()


def heal(simulator):
    simulator.network = QUIET
    assert simulator.run_until_sound(90) is not None
    simulator.run(5)


@pytest.mark.effort
@pytest.mark.parametrize("victims", range(1, examples(40) + 1))
def test_crashes_at_any_step_of_a_message(victims):
    """Crash one to three peers that hold nodes at a step of the way of a message that every peer wants."""
    rng = random.Random(victims)
    simulator = Simulator(Rules(2, 4, retention=LONG), victims, QUIET)
    for _ in range(20):
        simulator.add([EVERYWHERE])
        simulator.run(0.3)
    assert simulator.run_until_sound(60) is not None
    spreads = []
    for _ in range(6):
        spreads.append(simulator.publish(draw_point(rng)))
        simulator.run(rng.random() * 0.4)  # a message takes up to 0.4 s
        holders = [id for id, peer in simulator.peers.items() if peer.state.top]
        for id in rng.sample(holders, min(len(holders), 1 + victims % 3)):
            simulator.crash(id)
        simulator.run(rng.random() * 3)
    heal(simulator)
    assert_exactly_once(simulator, spreads)


@pytest.mark.effort
@pytest.mark.parametrize("seed", range(examples(30)))
def test_whoever_lives_gets_every_message_once(seed):
    network = [QUIET, Network(0.05, 0.3, 0.1, 0.1), Network(0.05, 0.05, 0.05, resend=0.2)][seed % 3]
    rules = [Rules(2, 4, retention=LONG), Rules(2, 5, "rstar", "rstar", sketch=4, retention=LONG)][seed % 2]
    simulator, rng = grown(seed, 40, rules)
    simulator.network = network
    churn = Churn(1, 0.5, 0.7, 0.2 * (seed % 2), 4)
    spreads = run_churn(simulator, churn, 12, lambda: draw_box(rng), lambda: draw_point(rng))
    heal(simulator)
    assert_exactly_once(simulator, spreads)
    assert count_losses(simulator, spreads).wanted > 30


def test_without_keeping_messages_are_missed():
    """The same property does not hold with the paper's protocol, so the tests above can fail."""
    simulator, rng = grown(1, 40, Rules(2, 4, kept=0))
    simulator.network = Network(0.05, 0.05, 0.1)
    spreads = run_churn(simulator, Churn(0.5, 0, 0.5, 0, 5), 20, lambda: draw_box(rng), lambda: draw_point(rng))
    heal(simulator)
    assert count_losses(simulator, spreads).missed > 10


def test_a_message_that_only_a_crashed_peer_had_is_counted_apart():
    simulator, _ = grown(1, 10)
    source = simulator.random_id()
    simulator.network = replace(QUIET, loss=0.999)
    spread = simulator.publish((5.0, 5.0, 5.0, 5.0), at=source)
    simulator.run(0.2)
    simulator.crash(source)
    heal(simulator)
    assert spread.is_extinct
    losses = count_losses(simulator, [spread])
    assert (losses.missed, losses.extinct) == (0, len(spread.wanted - {source}))


def test_a_quiet_network_resends_nothing():
    simulator, rng = grown(3, 30)
    seen = []
    simulator.watch = lambda now, sender, to, note: seen.append((to, note))
    for _ in range(20):
        simulator.publish(draw_point(rng))
        simulator.run(0.7)
    simulator.run(5)
    carried = [(to, note.publication.key) for to, note in seen if isinstance(note, Up | Down)]
    assert len(carried) == len(set(carried)) > 50
    assert not any(note.lacks for _, note in seen if isinstance(note, Ack))


def test_the_buffer_is_bounded():
    rules = Rules(kept=10, retention=5.0)
    peer = Peer(0, Rectangles([(0.0, 9.0)]), rules)
    for key in range(1000):
        peer.handle(1, Down(Publication(key, (float(key % 10),) * 2, "x" * 88), 0), key * 0.01)
    kept = peer.state.kept
    assert list(kept) == list(range(990, 1000))
    assert (kept.dropped, kept.bytes) == (990, 10 * (OVERHEAD_BYTES + 88))
    assert len(peer.take_deliveries()) == 1000
    peer.tick(12.0)
    assert len(peer.state.seen) <= 16 * 10
    peer.handle(1, Down(Publication(999, (1.0, 1.0)), 0), 12.0)
    assert not peer.take_deliveries(), "it is remembered longer than it is kept"
    peer.tick(16.0)
    assert (len(kept), kept.bytes, kept.dropped) == (0, 0, 990)
    peer.tick(60.0)
    assert not peer.state.seen


def test_the_buffer_is_bounded_in_bytes(limited):
    limited(kept_bytes=3 * (OVERHEAD_BYTES + 100))
    kept = KeptMessages(Rules())
    for key in range(5):
        kept.keep(Publication(key, (0.0, 0.0), "x" * 100), 0.0, 0.0)
    assert (list(kept), kept.dropped) == ([2, 3, 4], 2)


def test_a_parent_sends_what_the_list_of_a_child_lacks_and_asks_for_what_it_lacks_itself():
    peer = Peer("a", Rectangles([(0.0, 9.0)]), Rules(2, 4))
    peer.state.push({"b": ENTRY})
    for key, place in enumerate((1.0, 20.0, 2.0)):  # the second lies outside of the child's box
        peer.publish(Publication(key, (place, place)), 1.0)
    sent = peer.handle("b", Beat(0, ENTRY, (), (0, "new"), 7, 99.0), 3.0)
    assert [(to, note.publication.key, note.age) for to, note in sent if isinstance(note, Down)] == [("b", 2, 2.0)]
    (ack,) = (note for _, note in sent if isinstance(note, Ack))
    assert (ack.upto, ack.lacks) == (7, ("new",))
    grown_entry = ChildEntry((0.0, 30.0), (0.0, 9.0))
    sent = peer.handle("b", Beat(0, grown_entry, (), (2,), 8, 99.0), 4.0)
    assert [note.publication.key for _, note in sent if isinstance(note, Down)] == [1]


def test_a_child_lists_everything_to_a_new_parent():
    peer = Peer("a", Rectangles([(0.0, 9.0)]), Rules(2, 4))
    peer.state.follow("b")
    peer.publish(Publication("m", (1.0, 1.0)), 0.0)

    def listed(now):
        return [note.got for _, note in peer.tick(now) if isinstance(note, Beat)]

    assert listed(1.0) == [("m",)]
    assert listed(2.0) == [("m",)], "until it is answered"
    assert peer.handle("b", Ack(0, (), 0, ()), 2.0) == []
    assert listed(3.0) == [()]
    peer.state.follow("c")
    assert listed(4.0) == [("m",)]
    ((to, note),) = peer.handle("c", Ack(0, (), 0, ("m",)), 4.0)
    assert (to, note.publication.key, note.age) == ("c", "m", 4.0)


@pytest.mark.parametrize(
    "wrong", [{"kept": -1}, {"kept": MAX_KEPT + 1}, {"retention": -1}, {"retention": float("nan")}]
)
def test_wrong_rules_are_refused(wrong):
    with pytest.raises(OverlayError):
        Rules(**wrong)


def test_wrong_lists_and_ages_are_refused():
    box = (0.0, 0.0, 1.0, 1.0)
    entry = ChildEntry(box, box)
    good = Publication("k", box, "{}")
    for note in (
        Beat(0, entry, (), ("x" * (MAX_KEY_CHARACTERS + 1),)),
        Beat(0, entry, (), ("x",) * (MAX_KEPT + 1)),
        Beat(0, entry, age=-1.0),
        Beat(0, entry, age=float("nan")),
        Ack(0, (), 0, ("x" * 100,)),
        Up(good, age=float("inf")),
        Down(good, 0, age=-0.5),
        Down(Publication("x" * 100, box, "{}"), 0),
    ):
        with pytest.raises(OverlayError):
            check_note(note, 2)
    for note in (Beat(0, entry, (), ("x",), 3, float("inf")), Ack(0, (), 3, (1, "y")), Up(good, age=3.0)):
        check_note(note, 2)
