"""Clients at one broker: keys belong to one of them, and with advertisements they publish what they announced."""

import pyarrow as pa
import pytest

from contrada import Region
from contrada.broker import Broker, Deliver, RejectedMessages
from contrada.errors import KeyInUseError


def sent(broker, sizes, ids, publisher):
    """What a client gets of a batch, and the rows that the publisher gets back."""
    effects = broker.publish(pa.table({"size": sizes}), ids, publisher)
    delivered = [id for effect in effects if isinstance(effect, Deliver) for id in effect.ids]
    rejected = [item.row for effect in effects if isinstance(effect, RejectedMessages) for item in effect.rows]
    return delivered, rejected


def test_what_a_publisher_may_send_follows_its_advertisements():
    broker = Broker("b", incarnation=1, advertises=True)
    broker.subscribe("ann", "all", "size >= 0")
    broker.advertise("pia", "small", "size < 3")
    broker.advertise("ole", "large", "size > 7")
    assert sent(broker, [1, 5, 9], ["a1", "a2", "a3"], "pia") == (["a1"], [1, 2])
    assert sent(broker, [1, 5, 9], ["b1", "b2", "b3"], "ole") == (["b3"], [0, 1])
    assert sent(broker, [1, 5, 9], ["c1", "c2", "c3"], None) == (["c1", "c3"], [1])
    broker.advertise("pia", "small", "size < 6")
    assert sent(broker, [1, 5, 9], ["d1", "d2", "d3"], "pia") == (["d1", "d2"], [2])
    assert sent(broker, [1, 5, 9], ["e1", "e2", "e3"], None) == (["e1", "e2", "e3"], [])
    broker.unadvertise("small")
    assert sent(broker, [1, 5, 9], ["f1", "f2", "f3"], "pia") == ([], [0, 1, 2])
    assert sent(broker, [1, 5, 9], ["g1", "g2", "g3"], None) == (["g3"], [0, 1])
    assert sent(broker, [9], ["h"], "unknown") == ([], [0])


def test_a_key_belongs_to_one_client():
    broker = Broker("b", incarnation=1, advertises=True)
    for add, name in ((broker.subscribe, "a subscription"), (broker.advertise, "an advertisement")):
        assert add("ann", "k", "size > 1")
        assert add("ann", "k", "size > 1") == []
        with pytest.raises(KeyInUseError, match=f"another client has {name} with the key 'k'"):
            add("bob", "k", "size > 1")
        assert add("ann", "k", "size > 2")
    assert len(broker) == 1


def test_rejected_rows_are_those_of_the_publisher():
    """Rows count in the batch that was published, also if earlier rows were left out of it."""
    broker = Broker("b", incarnation=1, advertises=True)
    broker.subscribe("ann", "near", "S_INTERSECTS(area, BBOX(0, 0, 1, 1))")
    broker.advertise("pia", "small", "size < 3")
    table = pa.table({"size": [9, 1, 1], "area": pa.array([b"bad", Region.box(0, 0, 1, 1).to_wkb(), b"bad"])})
    effects = broker.publish(table, ["a", "b", "c"], "pia")
    rejected = [item.row for effect in effects if isinstance(effect, RejectedMessages) for item in effect.rows]
    delivered = [effect.ids for effect in effects if isinstance(effect, Deliver)]
    assert (rejected, delivered) == ([0, 2], [("b",)])
