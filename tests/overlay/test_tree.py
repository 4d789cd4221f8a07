"""Without failures: after every step one balanced tree with tight boxes, and every message goes where it is wanted."""

import random

import pytest

from contrada.errors import OverlayError, UnknownKeyError
from contrada.overlay.interest import Rectangles
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import Adopted, Join, Leave, Replace, Report
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.simulator import Simulator
from generators.overlay import draw_box, draw_point

HOW = [("r", "quadratic"), ("r", "linear"), ("rstar", "rstar"), ("rstar", "quadratic"), ("r", "rstar")]
DEGREES = [(1, 2), (1, 3), (2, 3), (2, 5), (5, 10)]
COVERS = [("mbr", 0), ("own", 0), ("mbr", 3)]
EVERY_RULE = [(*degrees, *how, *cover) for degrees in DEGREES for how in HOW for cover in COVERS]


def grown(boxes, *rules, seed=0):
    """A tree of peers with these boxes, one subscription each."""
    simulator = Simulator(Rules(*rules), seed)
    for box in boxes:
        simulator.add([box])
    return simulator


def drawn(rng, count, *dimensions):
    return [draw_box(rng, *dimensions) for _ in range(count)]


def come_and_go(simulator, rng, steps, *dimensions):
    """Add or remove a random peer in each of `steps`, which says how likely a peer leaves; yield who is alive."""
    alive = []
    for leaving in steps:
        if alive and rng.random() < leaving:
            simulator.remove(alive.pop(rng.randrange(len(alive))))
        else:
            alive.append(simulator.add([draw_box(rng, *dimensions)]))
        simulator.check()
        yield alive


# Every seventh has each pair of degrees, each way to choose and split and each cover at least once.
@pytest.mark.parametrize(
    "rules", [pytest.param(rules, marks=[pytest.mark.slow] if k % 7 else []) for k, rules in enumerate(EVERY_RULE)]
)
def test_peers_come_and_go(rules):
    rng = random.Random("".join(map(str, rules)))
    simulator = Simulator(Rules(*rules), seed=rng.randrange(1000))
    # First the tree grows, then it shrinks to nothing.
    for alive in come_and_go(simulator, rng, [0.2] * 90 + [0.8] * 70):
        if alive:
            assert not simulator.publish(draw_point(rng), at=rng.choice(alive)).missed
    for id in list(simulator.peers):
        simulator.remove(id)
        simulator.check()
    assert not simulator.peers


@pytest.mark.parametrize(("seed", "steps"), [(0, 80), (2, 100), (105, 300), (133, 100)])
def test_heartbeats_mend_what_notes_that_overtake_each_other_leave(seed, steps):
    rng = random.Random(seed)
    simulator = Simulator(Rules(2, 3, "rstar", "quadratic"), seed)
    for _ in come_and_go(simulator, rng, [0.3] * steps, 4):
        pass
    assert simulator.heartbeats > 0, "these seeds were chosen because some are needed"
    assert not any(simulator.publish(draw_point(rng, 4)).missed for _ in range(50))


def test_a_child_that_believes_in_the_former_parent_is_told():
    entries = {name: Peer(name, Rectangles([(0.0, 5.0)]), Rules(2, 4)).state.entries[0] for name in "abc"}
    for note in (Replace(0, "b", "c", "before", entries["c"]), Report(0, "b", "before", entries["b"])):
        peer = Peer("a", Rectangles([(0.0, 5.0)]), Rules(2, 4))
        peer.state.push({"b": entries["b"]})
        child = "c" if isinstance(note, Replace) else "b"
        assert (child, Adopted(0, child, entries[child], "a", ("before",))) in peer.handle("before", note)
        assert child in peer.state.nodes[1]


def test_sketches_route_several_subscriptions_of_one_peer_apart():
    bothered = {}
    for sketch in (0, 4):
        simulator = Simulator(Rules(2, 4, sketch=sketch))
        ids = [simulator.add([(float(k), k + 1.0), (k + 50.0, k + 50.5)]) for k in range(30)]
        simulator.check()
        spreads = [simulator.publish((place, place)) for place in (55.25, 31.5, 40.0, 45.0, 49.0)]
        assert [spread.wanted for spread in spreads] == [{ids[5]}, set(), set(), set(), set()]
        assert not any(spread.missed for spread in spreads)
        bothered[sketch] = sum(spread.bothered for spread in spreads)
    assert bothered[4] < bothered[0] / 2


def test_the_height_grows_like_a_logarithm():
    rng = random.Random(1)
    simulator = grown(drawn(rng, 600), 5, 10)
    assert simulator.peers[simulator.root].state.top <= 4  # 5 ** 4 = 625
    deepest = max(max(simulator.publish(draw_point(rng), simulator.root).reached.values()) for _ in range(20))
    assert deepest <= 4


def test_a_message_from_anywhere_reaches_the_same_peers_once():
    rng = random.Random(2)
    simulator = grown(drawn(rng, 80), 2, 5)
    where, wanted, seen = draw_point(rng), set(), []
    simulator.watch = lambda now, sender, to, note: seen.append(to)
    for id in simulator.peers:
        seen.clear()
        spread = simulator.publish(where, at=id)
        assert not spread.missed
        assert len(seen) == len(set(seen))
        wanted.add(frozenset(spread.wanted))
    assert len(wanted) == 1


def test_the_same_seed_gives_the_same_tree():
    twins = [grown(drawn(random.Random(5), 80), 2, 4, "rstar", "rstar", seed=1) for _ in range(2)]
    one, other = ({id: peer.state.nodes for id, peer in simulator.peers.items()} for simulator in twins)
    assert one == other


def test_the_largest_box_holds_a_node():
    simulator = grown([(float(k), k + 1.0) for k in range(4)], 2, 4)
    widest = simulator.add([(0.0, 5.0)])
    assert simulator.peers[widest].state.top >= 1, "what covers the others stands above them"


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda _: Simulator().root, OverlayError, "no peers"),
        (lambda one: one.add([(0.0, 0.0, 1.0, 1.0)]), OverlayError, "need 1 dimensions, got 2"),
        (lambda one: one.crash(7), UnknownKeyError, "unknown peer 7"),
        (lambda one: one.run(1), OverlayError, "run needs a network"),
        (lambda _: Rectangles([]), OverlayError, "at least one subscription"),
        (lambda _: Rectangles([(0.0, 1.0), (0.0, 0.0, 1.0, 1.0)]), OverlayError, "same dimensions"),
    ],
)
def test_wrong_use_is_an_error_that_says_so(use, error, message):
    with pytest.raises(error, match=message):
        use(grown([(0.0, 1.0)]))


def test_wrong_rules_are_refused():
    wrong = {"least": 0, "most": 8, "split": "cubic", "choose": "x", "cover": "y", "patience": 0.5, "sketch": 99}
    for name, value in wrong.items():
        with pytest.raises(OverlayError):
            Rules(**{name: value})


def test_a_fault_is_found():
    simulator = grown([(float(k), k + 3.0) for k in range(12)], 2, 4)
    root = simulator.peers[simulator.root].state
    table = root.nodes[-1]
    other = next(child for child in table if child != root.id)
    for spoil, word in [
        (lambda: table.pop(other), "does not know it"),
        (lambda: table.__setitem__(99, table[other]), "is gone"),
        (lambda: setattr(root, "parent", other), "0 roots"),
    ]:
        kept, parent = dict(table), root.parent
        spoil()
        with pytest.raises(OverlayError, match=word):
            simulator.check()
        table.clear()
        table.update(kept)
        root.parent = parent
    simulator.check()


def test_who_has_left_stays_away():
    peers = {name: Peer(name, Rectangles([box]), Rules(2, 4)) for name, box in [("a", (0.0, 5.0)), ("b", (4.0, 6.0))]}

    def settle(sender, sent):
        for to, note in sent:
            settle(to, peers[to].handle(sender, note))

    settle("b", peers["b"].join("a"))
    settle("b", peers["b"].leave())
    assert peers["a"].state.top == 0
    entry = peers["b"].state.entries[0]
    assert peers["b"].handle("a", Adopted(0, "b", entry, "a")) == [("a", Leave(0, "b"))]
    assert peers["b"].tick(1.0) == []
    (passed_on,) = peers["b"].handle("c", Join("c", 0, entry, True))
    assert passed_on[0] == "a", "who asks here is sent on"
