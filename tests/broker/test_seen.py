"""Ids of messages already seen: a bounded window within which nothing is delivered twice."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.seen import SeenIds
from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import chain


@given(st.integers(1, 6), st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=5), max_size=12))
def test_the_window_holds_the_latest_ids(window, batches):
    """At least `window` of the latest ids, and fewer than a batch more; whole batches are forgotten."""
    seen, kept = SeenIds(window), {}
    for batch in batches:
        known = {id for ids in kept.values() for id in ids}
        new = [id for place, id in enumerate(batch) if id not in known and id not in batch[:place]]
        assert [batch[place] for place in seen.fresh(batch)] == new
        number, forgotten = seen.add(new)
        kept[number] = new
        for old in forgotten:
            assert old == min(kept)
            del kept[old]
        assert len(seen) == sum(map(len, kept.values()))
        assert not forgotten or len(seen) >= window
        assert len(seen) - len(kept[min(kept)]) < window


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), max_size=12), st.integers(0, 1 << 16))
def test_an_id_within_the_window_is_delivered_once(batches, seed):
    """The second time within the window an id goes nowhere, also after restarts."""
    window = 5
    network = NetworkSimulator(seed, window=window)
    network.build(chain(3))
    network.subscribe("b2", "ann", 1, "size >= 0")
    network.run()
    delivered = []
    for number, batch in enumerate(batches):
        ids = [f"m{id}" for id in batch]
        before = {pair: len(times) for pair, times in network.delivered.items()}
        network.publish("b0", pa.table({"size": batch}), ids)
        network.run()
        if number % 3 == 2:
            network.restart("b0")
            network.restart("b2")
            network.run()
        new = [id for (_, id), times in network.delivered.items() if len(times) > before.get(("ann", id), 0)]
        assert not set(new) & set(delivered[-window:])
        assert set(new) >= set(ids) - set(delivered)
        delivered += new
    for broker in network.brokers:
        kept = [len(ids) for key, ids in network.records(broker).items() if key[0] == "seen"]
        assert sum(kept) < window + max(kept, default=0)


def test_an_id_that_two_brokers_publish_is_delivered_once():
    network = NetworkSimulator(1)
    network.build(chain(4))
    network.subscribe("b1", "ann", 1, "size > 0")
    network.run()
    for broker in ("b0", "b3", "b1"):
        network.publish(broker, pa.table({"size": [1]}), ["m"])
    network.run()
    assert [len(times) for times in network.delivered.values()] == [1]
