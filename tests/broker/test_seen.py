"""Ids of messages already seen: a bounded window within which nothing is delivered twice."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.seen import Seen
from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import chain


@given(st.integers(1, 6), st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=5), max_size=12))
def test_the_window_holds_the_latest_ids(window, batches):
    seen, latest = Seen(window), []
    for batch in batches:
        new = [id for place, id in enumerate(batch) if id not in latest and id not in batch[:place]]
        places = seen.fresh(batch)
        assert [batch[place] for place in places] == new
        forgotten = seen.add(new)
        latest += new
        assert forgotten == latest[: max(0, len(latest) - window)]
        latest = latest[max(0, len(latest) - window) :]
        assert list(seen) == latest
        assert len(seen) <= window


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), max_size=12), st.integers(0, 1 << 16))
def test_an_id_within_the_window_is_delivered_once(batches, seed):
    """Published twice, at any brokers: the second time within the window goes nowhere, also after restarts."""
    window = 5
    network = NetworkSimulator(seed, window=window)
    network.build(chain(3))
    network.subscribe("b2", "ann", 1, "size >= 0")
    network.run()
    latest, expected = [], []
    for number, batch in enumerate(batches):
        ids = [f"m{id}" for id in batch]
        network.publish("b0", pa.table({"size": batch}), ids)
        network.run()
        if number % 3 == 2:
            network.restart("b0")
            network.restart("b2")
            network.run()
        new = [id for place, id in enumerate(ids) if id not in latest and id not in ids[:place]]
        latest, expected = (latest + new)[-window:], expected + new
    for broker in network.brokers:
        assert sum(key[0] == "seen" for key in network.records(broker)) <= window
    assert sorted(id for (_, id), times in network.delivered.items() for _ in times) == sorted(expected)


def test_an_id_that_two_brokers_publish_is_delivered_once():
    network = NetworkSimulator(1)
    network.build(chain(4))
    network.subscribe("b1", "ann", 1, "size > 0")
    network.run()
    for broker in ("b0", "b3", "b1"):
        network.publish(broker, pa.table({"size": [1]}), ["m"])
    network.run()
    assert [len(times) for times in network.delivered.values()] == [1]
