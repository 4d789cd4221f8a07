"""Links that would close a cycle are refused with the path in the reason, also when several are made at once."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import chain, random_tree
from effort import examples


def reach(links, start, without):
    """The brokers that `start` reaches without passing `without`."""
    found, todo = {start}, [start]
    while todo:
        here = todo.pop()
        near = {b if a == here else a for a, b in links if here in (a, b)} - found - {without}
        found |= near
        todo += near
    return found


def check_forest(network):
    """Raise AssertionError unless the links have no cycle, and every broker knows who is behind which neighbour."""
    for _, _, effect in network.closed:
        assert effect.removed
        path = re.fullmatch("the link would close a cycle: (.*)", effect.reason)[1].split(" - ")
        assert path[0] == path[-1]
        assert len(set(path)) == len(path) - 1 >= 3
    links = network.links
    for id, broker in network.brokers.items():
        views = broker.links()
        assert {view.neighbour for view in views} == {b if a == id else a for a, b in links if id in (a, b)}
        for view in views:
            assert set(view.behind) == reach(links, view.neighbour, id)
            assert id not in view.behind


@pytest.mark.parametrize("length", [3, 4, 7])
def test_the_last_link_of_a_cycle_is_refused_and_names_the_path(length):
    network = NetworkSimulator(3)
    network.build(chain(length))
    network.subscribe("b0", "ann", 1, "size > 0")
    network.link("b0", f"b{length - 1}")
    network.run()
    ring = [f"b{k}" for k in range(length)]
    expected = {" - ".join(["b0", *reversed(ring)]), " - ".join([ring[-1], *ring])}
    assert {effect.reason.removeprefix("the link would close a cycle: ") for _, _, effect in network.closed} <= expected
    assert network.links == chain(length)
    assert all(len(broker) == 1 for broker in network.brokers.values())
    check_forest(network)


def test_two_links_that_close_a_cycle_together_are_not_both_kept():
    for seed in range(20):
        network = NetworkSimulator(seed)
        network.build([("b0", "b1"), ("b2", "b3")])
        network.link("b0", "b2")
        network.link("b1", "b3")
        network.run()
        assert len(network.links) < 4
        check_forest(network)
        if len(network.links) == 2:  # both were given up; either can be made again
            network.link("b0", "b2")
            network.run()
            assert len(network.links) == 3


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 1 << 32))
def test_links_made_at_any_time_never_close_a_cycle(seed):
    rng = random.Random(seed)
    count = rng.randint(3, 8)
    ids = [f"b{k}" for k in range(count)]
    links = {frozenset(pair): pair for pair in random_tree(count, seed)}
    for _ in range(rng.randint(1, 4)):
        pair = rng.sample(ids, 2)
        links.setdefault(frozenset(pair), tuple(pair))
    network = NetworkSimulator(seed)
    for id in ids:
        network.add(id)
    for pair in rng.sample(list(links.values()), len(links)):
        network.link(*pair)
        if rng.random() < 0.4:
            network.run(network.now + rng.choice([0.005, 0.02, 0.1, 5]))
    network.run()
    check_forest(network)


def test_a_link_that_was_removed_can_be_made_elsewhere():
    network = NetworkSimulator(4)
    network.build(chain(4))
    network.unlink("b1", "b2")
    network.run()
    network.link("b0", "b3")
    network.run()
    assert len(network.closed) == 2  # both ends, by the command
    assert sorted(network.links) == [("b0", "b1"), ("b0", "b3"), ("b2", "b3")]
    network.closed.clear()
    check_forest(network)
