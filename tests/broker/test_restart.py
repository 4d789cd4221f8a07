"""A broker that is restored from its records goes on where it was, and has nothing new to say."""

import pyarrow as pa
import pytest

from contrada import Constraint, Region, RelationSet
from contrada.broker import Broker, LinkOptions, Persist, Refused
from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import chain


def built(links=1, **settings):
    network = NetworkSimulator(7, **settings)
    network.build(chain(links + 1))
    return network


def test_commands_go_on_counting_after_a_restart():
    """The last number sent follows from the outbox: a record of the link may be older than the last command."""
    network = built()
    network.subscribe("b0", "ann", "one", "size > 1")
    network.run()
    network.subscribe("b0", "ann", "two", "name = 'a'")
    network.restart("b0")
    network.subscribe("b0", "ann", "three", "flag = TRUE")
    network.run()
    assert not network.closed
    assert [len(broker) for broker in network.brokers.values()] == [3, 3]


def test_an_advertisement_that_was_there_before_the_link_is_not_told_again():
    network = NetworkSimulator(7, advertises=True)
    for id in ("b0", "b1"):
        network.add(id)
    network.advertise("b0", "pia", "all", "size > 0")
    network.link("b0", "b1")
    network.run()
    before = network.counts.control
    network.restart("b0")
    network.run()
    assert network.counts.control == before
    assert any(key[:2] == ("forwarded", "b1") for key in network.records("b0"))


@pytest.mark.parametrize("after", range(4))
def test_a_message_survives_a_crash_after_it_is_durable(after):
    """Effects after Persist are lost with the crash: sends are repeated, deliveries are the host's."""
    network = built(2)
    for broker in ("b0", "b2"):
        network.subscribe(broker, f"client of {broker}", broker, "size > 1")
    network.run()
    network.crash("b1", after)
    network.publish("b0", pa.table({"size": [1, 2]}), ["m1", "m2"])
    network.run()
    assert "b1" not in network.brokers
    network.restart("b1")
    network.run()
    assert {pair: len(times) for pair, times in network.delivered.items()} == {
        ("client of b0", "m2"): 1,
        ("client of b2", "m2"): 1,
    }
    assert not network.closed


def deliveries(effects):
    """What each client gets, in no order."""
    return {one.client: dict(zip(one.ids, map(set, one.keys), strict=True)) for one in effects[1:]}


@pytest.mark.parametrize("mode", ["covering", "flooding"])
def test_a_restored_broker_gives_equal_answers(mode):
    options = LinkOptions(mode=mode)
    network = built(2, options=options)
    for number in range(20):
        network.subscribe(f"b{number % 3}", f"c{number % 5}-{number % 3}", number, f"size >= {number % 4}")
    network.unsubscribe("b0", 0)
    network.run()
    messages, ids = pa.table({"size": [0, 2, 9]}), ["x", "y", "z"]
    for id, broker in network.brokers.items():
        restored = Broker.restore(dict(network.records(id)))
        (said,) = restored.stop_waiting()
        assert isinstance(said, Persist)
        assert [key for key, _ in said.records] == [("broker",)]
        for link in network.brokers[id].links():
            restored.link_up(link.neighbour)
            broker.link_down(link.neighbour)
            broker.link_up(link.neighbour)
        first, second = broker.publish(messages, ids), restored.publish(messages, ids)
        assert deliveries(first) == deliveries(second)
        assert [key for key, _ in first[0].records] == [key for key, _ in second[0].records]


def test_ids_that_were_seen_stay_seen():
    network = built()
    network.subscribe("b1", "ann", 1, "size > 0")
    network.run()
    for _ in range(2):
        network.publish("b0", pa.table({"size": [1]}), ["m"])
        network.run()
        for id in ("b0", "b1"):
            network.restart(id)
    network.run()
    assert [len(times) for times in network.delivered.values()] == [1]


def test_a_later_cover_still_covers_after_a_restart():
    """Without withdrawal: `narrow` lost its first cover, and a later one covers it; it is not told after a restart."""
    network = built(options=LinkOptions(withdraw=False))
    for key, what in {"first": "size >= 3", "narrow": "size = 5", "later": "size <= 6"}.items():
        network.subscribe("b0", "ann", key, what)
    network.unsubscribe("b0", "first")
    network.run()
    before = network.counts.control
    assert len(network.brokers["b1"]) == 1
    network.restart("b0")
    network.run()
    assert network.counts.control == before
    assert len(network.brokers["b1"]) == 1


def test_a_refusal_finds_its_client_after_the_broker_of_the_client_lost_its_state():
    """Its neighbour keeps the subscription under the new id, so the refusal names that."""
    network = built(2)
    refused = []
    network.watch = lambda id, effects: refused.extend((id, one) for one in effects if isinstance(one, Refused))
    network.subscribe("b2", "bob", 1, Constraint("area", RelationSet.S_INTERSECTS, Region.box(0, 0, 1, 1, crs=4326)))
    network.cut("b0", "b1")
    network.cut("b1", "b2")
    network.run()
    network.subscribe("b0", "ann", 2, Constraint("area", RelationSet.S_INTERSECTS, Region.box(0, 0, 1, 1, crs=3857)))
    network.heal("b0", "b1")
    network.run()
    network.lose("b0")
    network.run()
    network.heal("b1", "b2")
    network.run()
    assert ("b0", "ann", 2) in [(id, one.client, one.key) for id, one in refused]
    assert not network.closed


def test_a_message_that_went_on_before_it_was_durable_is_neither_lost_nor_repeated():
    """The neighbour beyond has a number that the restored broker does not know, and would give to its next command."""
    went_on = 0
    for seed in range(12):
        network = NetworkSimulator(seed, relays_early=True)
        network.build(chain(3))
        network.subscribe("b2", "ann", "one", "size > 1")
        network.run()
        network.crash("b1", after=-1)
        network.publish("b0", pa.table({"size": [2]}), ["m"])
        network.run()
        went_on += ("ann", "m") in network.delivered
        network.restart("b1")
        network.subscribe("b1", "bea", "two", "size > 0")
        network.run()
        network.publish("b2", pa.table({"size": [3]}), ["n"])
        network.run()
        assert {pair: len(times) for pair, times in network.delivered.items()} == {
            ("ann", "m"): 1,
            ("bea", "m"): 1,
            ("ann", "n"): 1,
            ("bea", "n"): 1,
        }
        assert not network.closed
    assert 0 < went_on < 12  # the connection breaks with the broker, before the message has arrived or after it
