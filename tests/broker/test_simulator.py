"""The simulator: equal seeds give equal runs, frames keep their order, faults lose what they should, counts add up."""

import pyarrow as pa
import pytest

from contrada.broker import LinkOptions, Send
from contrada.broker.frames import LinkCommand, Publish
from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import balanced_tree, chain, random_tree, star
from contrada.errors import BrokerError, UnknownKeyError


def busy(seed, **settings):
    """A network of seven brokers after subscriptions, messages, a cut and a restart."""
    network = NetworkSimulator(seed, **settings)
    network.build(balanced_tree(7))
    for number in range(30):
        network.subscribe(
            f"b{number % 7}", f"c{number}", number, f"size >= {number % 5} AND kind = '{'ab'[number % 2]}'"
        )
    network.cut("b0", "b1")
    network.publish("b3", pa.table({"size": [1, 9], "kind": ["a", "b"]}), ["m1", "m2"])
    network.run(network.now + 0.1)
    network.restart("b2")
    network.heal("b0", "b1")
    network.run()
    return network


@pytest.mark.parametrize("wire", [False, True])
def test_equal_seeds_give_equal_runs(wire):
    one, other, third = busy(1, wire=wire), busy(1, wire=wire), busy(2, wire=wire)
    assert (one.delivered, one.counts, one.now) == (other.delivered, other.counts, other.now)
    assert one.now != third.now
    assert one.delivered.keys() == third.delivered.keys()


def test_encoding_changes_nothing_but_bytes():
    plain, encoded, sized = busy(1), busy(1, wire=True), busy(1, sizes=True)
    assert plain.delivered == encoded.delivered == sized.delivered
    assert plain.counts.bytes == 0 < encoded.counts.bytes == sized.counts.bytes
    assert plain.counts == encoded.counts._replace(bytes=0)


def test_counts_are_those_of_the_links():
    network = busy(1)
    sent = []
    network.watch = lambda id, effects: sent.extend(
        (id, effect.neighbour, effect.frame) for effect in effects if isinstance(effect, Send)
    )
    before = network.counts
    network.subscribe("b6", "late", "late", "size < 0")
    network.publish("b5", pa.table({"size": [3, 4], "kind": ["a", "x"]}), ["m3", "m4"])
    network.run()
    gone = network.counts.since(before)
    publications = [frame for _, _, frame in sent if isinstance(frame, Publish)]
    assert gone.publications == len(publications)
    assert gone.messages == sum(len(frame.ids) for frame in publications)
    assert gone.control == sum(isinstance(frame, LinkCommand) for _, _, frame in sent) - len(publications) == 6
    assert gone.signals == len(sent) - gone.control - gone.publications
    assert gone.entries == 7
    assert gone.lost == gone.false_positives == gone.missing == 0
    assert network.settled_at <= network.now


def test_a_message_that_nobody_wants_any_more_is_a_false_positive():
    network = NetworkSimulator(1, delay=(1.0, 1.0), tick=10)
    network.build(chain(2))
    network.subscribe("b1", "ann", 1, "size > 0")
    network.run()
    before = network.counts
    network.unsubscribe("b1", 1)
    network.publish("b0", pa.table({"size": [1]}), ["m"])
    network.run()
    gone = network.counts.since(before)
    assert (gone.messages, gone.false_positives, gone.matched, gone.deliveries) == (1, 1, 2, 0)


def test_a_loss_of_state_counts_what_is_missing():
    network = NetworkSimulator(1)
    network.build(chain(3))
    network.subscribe("b2", "ann", 1, "size > 0")
    network.run()
    network.cut("b1", "b2")
    network.publish("b0", pa.table({"size": [1, 2]}), ["m1", "m2"])
    network.run()
    network.lose("b1")
    network.heal("b1", "b2")
    network.run()
    assert not network.delivered
    assert [(one.broker, one.neighbour, one.message) for one in network.missing] == [
        ("b1", "b2", "m1"),
        ("b1", "b2", "m2"),
    ]
    assert network.counts.missing == 2
    network.publish("b0", pa.table({"size": [3]}), ["m3"])
    network.run()
    assert list(network.delivered) == [("ann", "m3")]


def test_a_broker_that_lost_its_state_holds_messages_until_it_need_not_wait():
    network = NetworkSimulator(1)
    network.build(star(4))
    network.subscribe("b1", "ann", 1, "size > 0")
    network.run()
    network.crash("b3")
    network.lose("b0")
    network.publish("b2", pa.table({"size": [1]}), ["m1"])
    network.run()
    network.publish("b0", pa.table({"size": [2]}), ["m2"])
    network.run()
    assert not network.delivered
    assert sum(key[0] == "held" for key in network.records("b0")) == 2
    network.restart("b0")
    network.stop_waiting("b0")
    network.run()
    assert sorted(network.delivered) == [("ann", "m1"), ("ann", "m2")]
    network.restart("b3")
    network.run()
    assert not network.closed
    assert [len(broker) for broker in network.brokers.values()] == [1, 1, 1, 1]


def test_frames_of_a_direction_keep_their_order_and_lose_an_end():
    """A receiver gets a prefix of what was sent over a connection, also when the connection is cut."""
    for seed in range(20):
        network = NetworkSimulator(seed, options=LinkOptions(mode="flooding"))
        network.build(chain(2))
        for number in range(10):
            network.subscribe("b0", "ann", number, f"size > {number}")
            network.run(network.now + 0.005)
        network.cut("b0", "b1")
        network.run()
        held = [key[2] for key in network.records("b1") if key[:2] == ("theirs", "b0")]
        told = [key[2] for key in network.records("b0") if key[:2] == ("forwarded", "b1")]
        assert held == told[: len(held)]
        network.heal("b0", "b1")
        network.run()
        assert len(network.brokers["b1"]) == 10


def test_wrong_uses_are_refused():
    network = NetworkSimulator(1, durable=False)
    network.build(chain(2))
    with pytest.raises(BrokerError, match="there is a broker 'b0' already"):
        network.add("b0")
    with pytest.raises(UnknownKeyError, match="no link between 'b0' and 'b7'"):
        network.cut("b0", "b7")
    with pytest.raises(UnknownKeyError, match="unknown broker 'b7'"):
        network.link("b0", "b7")
    with pytest.raises(BrokerError, match="keeps no records"):
        network.restart("b0")
    network.crash("b0")
    with pytest.raises(BrokerError, match="broker 'b0' has crashed"):
        network.publish("b0", pa.table({"size": [1]}), ["m"])


@pytest.mark.parametrize("links", [chain(9), star(9), balanced_tree(9, 3), random_tree(9, 4)])
def test_topologies_are_trees(links):
    network = NetworkSimulator(1)
    network.build(links)
    assert not network.closed
    assert len(network.brokers) == 9
    for broker in network.brokers.values():
        behind = [id for link in broker.links() for id in link.behind]
        assert sorted([*behind, broker.id]) == [f"b{k}" for k in range(9)]
