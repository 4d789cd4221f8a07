"""Frames that no honest neighbour sends close the link with a reason and change nothing else; then the link heals."""

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker import Broker, CloseLink, Send
from contrada.broker.comparing import BUCKETS
from contrada.broker.frames import (
    VERSION,
    Close,
    Held,
    InStep,
    LinkAck,
    LinkHello,
    Publish,
    Reach,
    Refuse,
    Rename,
    Show,
    Shown,
    Subscribe,
    Unreach,
    Unsubscribe,
)
from contrada.broker.messages import MessageRows
from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.broker.simulation.topologies import chain
from contrada.broker.wire import decode, digest_of, encode
from contrada.cql2 import parse
from effort import examples

PREDICATE = parse("size > 1 AND S_INTERSECTS(area, POLYGON((0 0, 2 0, 2 2, 0 2, 0 0)))")
ROWS = pa.record_batch({"size": [2.0, 3.0]})
UNKNOWN = 1 << 40  # an id that no broker has used


def quiet_network(**settings):
    """Three brokers in a row, with subscriptions everywhere and some messages gone through."""
    network = NetworkSimulator(5, **settings)
    network.build(chain(3))
    for broker in ("b0", "b1", "b2"):
        network.subscribe(broker, f"{broker}.c", broker, f"size > {broker[1]}")
        network.subscribe(broker, f"{broker}.c", f"{broker}-", f"name = '{broker}'")
    network.run()
    network.publish("b0", ROWS, ["m0", "m1"])
    network.run()
    assert not network.closed
    return network


def position(network):
    """The number of the next command from b0 to b1, the id of something that b1 holds, and what b1 has sent."""
    received, sent = (network.records(one)["link", other].received for one, other in (("b1", "b0"), ("b0", "b1")))
    return received + 1, next(key[2] for key in network.records("b1") if key[:2] == ("theirs", "b0")), sent


def check_healed(network, extra="healed"):
    """Raise AssertionError unless the link works again and all brokers hold what they should."""
    network.heal("b0", "b1")
    network.run()
    network.subscribe("b0", "b0.late", extra, "size > 100")
    network.run()
    network.publish("b2", pa.table({"size": [101.0]}), [extra])
    network.run()
    assert len(network.delivered["b0.late", extra]) == 1
    for id, broker in network.brokers.items():
        for link in broker.links():
            assert link.phase == "up"
            told = {key[2] for key in network.records(id) if key[:2] == ("forwarded", link.neighbour)}
            assert told == {key[2] for key in network.records(link.neighbour) if key[:2] == ("theirs", id)}


def raw(kind, **fields):
    """A frame as bytes that the classes would not make."""
    return msgspec.msgpack.encode({"type": kind, **fields})


def subscribe(number, *constraint, id=7, digest=8):
    return raw("Subscribe", number=number, id=id, predicate=[[list(constraint)]], digest=digest)


BAD = {
    "no bytes": lambda n, known, sent: b"",
    "no MessagePack": lambda n, known, sent: b"\xc1nonsense",
    "deep": lambda n, known, sent: b"\x91" * 100_000,
    "unknown command": lambda n, known, sent: raw("Explode", number=n),
    "no fields": lambda n, known, sent: raw("Subscribe"),
    "a field too many": lambda n, known, sent: raw("LinkAck", number=0, more=1),
    "cut off": lambda n, known, sent: encode(Subscribe(n, 7, PREDICATE, digest_of(PREDICATE)))[:-3],
    "a number skipped": lambda n, known, sent: InStep(n + 1),
    "a text as number": lambda n, known, sent: raw("InStep", number="1"),
    "an unknown operator": lambda n, known, sent: subscribe(n, "size", "??", 1, False, False),
    "an operator without value": lambda n, known, sent: subscribe(n, "size", "<", None, False, False),
    "a range of texts and numbers": lambda n, known, sent: subscribe(n, "size", "between", [1, "a"], False, False),
    "no region": lambda n, known, sent: subscribe(n, "area", 255, 1, b"nothing", None),
    "an unknown CRS": lambda n, known, sent: subscribe(n, "area", 255, 0, b"", "EPSG:0"),
    "no relations": lambda n, known, sent: subscribe(n, "area", 0, 1, b"", None),
    "more than eight relations": lambda n, known, sent: subscribe(n, "area", 1 << 60, 1, b"", None),
    "no CQL2": lambda n, known, sent: subscribe(n, "size <"),
    "two constraints as text": lambda n, known, sent: subscribe(n, "size < 1 OR size > 2"),
    "a template": lambda n, known, sent: subscribe(n, "size < $limit"),
    "an attribute that is no text": lambda n, known, sent: subscribe(n, 7, "=", 1, False, False),
    "no filters": lambda n, known, sent: raw("Subscribe", number=n, id=7, predicate=[], digest=8),
    "an empty filter": lambda n, known, sent: raw("Subscribe", number=n, id=7, predicate=[[]], digest=8),
    "a predicate that is a number": lambda n, known, sent: raw("Subscribe", number=n, id=7, predicate=5, digest=8),
    "a negative id": lambda n, known, sent: subscribe(n, "size", "=", 1, False, False, id=-1),
    "an id of 64 bits": lambda n, known, sent: subscribe(n, "size", "=", 1, False, False, id=(1 << 64) - 1),
    "a negative digest": lambda n, known, sent: subscribe(n, "size", "=", 1, False, False, digest=-1),
    "a digest of 64 bits": lambda n, known, sent: subscribe(n, "size", "=", 1, False, False, digest=(1 << 64) - 1),
    "an unknown id": lambda n, known, sent: Unsubscribe(n, UNKNOWN),
    "an unknown id to rename": lambda n, known, sent: Rename(n, UNKNOWN, 3),
    "an id that is in use": lambda n, known, sent: Rename(n, known, known),
    "an advertisement": lambda n, known, sent: raw(
        "Advertise", number=n, id=7, predicate=[[["size", "=", 1, False, False]]], digest=8
    ),
    "digests that nobody asked for": lambda n, known, sent: Held((0,) * BUCKETS),
    "a question without need": lambda n, known, sent: Show((0,)),
    "an answer to no question": lambda n, known, sent: Shown((), (1,), (2,)),
    "an answer about a bucket": lambda n, known, sent: Shown((3,), (), ()),
    "an ack of what was not sent": lambda n, known, sent: LinkAck(sent + 1),
    "an ack of less than before": lambda n, known, sent: LinkAck(sent - 1),
    "an ack below zero": lambda n, known, sent: LinkAck(-5),
    "a second hello": lambda n, known, sent: LinkHello(1, "b0", 1, 2, 0, 0, 0, (("b0",),)),
    "an empty path": lambda n, known, sent: Reach(n, ((),)),
    "a path of somebody else": lambda n, known, sent: Reach(n, (("b9", "b8"),)),
    "more ids than messages": lambda n, known, sent: Publish(n, ("x", "y", "z"), MessageRows(ROWS)),
    "an empty id": lambda n, known, sent: Publish(n, ("", "y"), MessageRows(ROWS)),
    "fewer payloads than messages": lambda n, known, sent: Publish(n, ("x", "y"), MessageRows(ROWS), (b"p",)),
    "a mapping in a message": lambda n, known, sent: raw("Publish", number=n, ids=["x"], messages=[{"a": {"b": 1}}]),
    "a region without bytes": lambda n, known, sent: raw("Publish", number=n, ids=["x"], messages=[{"a": [1]}]),
    "a region of rubbish": lambda n, known, sent: raw(
        "Publish", number=n, ids=["x"], messages=[{"a": [1, b"rubbish", None]}]
    ),
    "a message that is none": lambda n, known, sent: raw("Publish", number=n, ids=["x"], messages=[7]),
    "a name that is none": lambda n, known, sent: raw("Publish", number=n, ids=["x"], messages=[{7: 7}]),
    "no Arrow": lambda n, known, sent: raw("Publish", number=n, ids=["x"], messages=b"nothing"),
    "nothing in place of Arrow": lambda n, known, sent: raw("Publish", number=n, ids=["x"], messages=None),
    "Arrow without rows": lambda n, known, sent: raw("Publish", number=n, ids=[], messages=stream(ROWS.schema)),
    "two batches": lambda n, known, sent: raw(
        "Publish", number=n, ids=["x", "y"], messages=stream(ROWS.schema, ROWS, ROWS)
    ),
}


def stream(schema, *batches):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_frame_closes_the_link_and_changes_nothing(name):
    network = quiet_network()
    frame = BAD[name](*position(network))
    frame = frame if isinstance(frame, bytes) else encode(frame)
    before, tables = dict(network.records("b1")), [len(broker) for broker in network.brokers.values()]
    effects = network.brokers["b1"].receive("b0", frame)
    assert [type(effect) for effect in effects] == [Send, CloseLink]
    assert isinstance(effects[0].frame, Close)
    assert effects[1].reason
    assert not effects[1].removed
    network.restart("b0")  # its host sees that the connection is gone
    network.restart("b1")
    network.run()
    assert [len(broker) for broker in network.brokers.values()] == tables
    links = ("link", "b0"), ("link", "b2")
    assert {key: value for key, value in network.records("b1").items() if key not in links} == {
        key: value for key, value in before.items() if key not in links
    }
    check_healed(network)


@pytest.mark.parametrize(
    "repeat",
    [
        lambda n, known: InStep(n),
        lambda n, known: Unsubscribe(n, known),
        lambda n, known: Subscribe(n, 5, PREDICATE, 6),
        lambda n, known: Publish(n, ("x", "y"), MessageRows(ROWS)),
        lambda n, known: InStep(-n),
    ],
)
def test_a_command_that_is_repeated_changes_nothing(repeat):
    network = quiet_network()
    number, known, _ = position(network)
    before = dict(network.records("b1"))
    network.inject("b0", "b1", repeat(number - 1, known))
    assert network.records("b1") == before
    network.run()
    assert not network.closed
    check_healed(network)


def test_a_wrong_digest_is_mended_when_both_sides_compare():
    network = quiet_network()
    number, known, _ = position(network)
    wanted = network.records("b0")["subscription", known].digest
    network.inject("b0", "b1", Subscribe(number, known, PREDICATE, 12345))
    network.lose("b0")
    network.run()
    digests = [value.digest for key, value in network.records("b1").items() if key[0] == "subscription"]
    assert wanted in digests
    assert 12345 not in digests
    check_healed(network)


@pytest.mark.parametrize(
    "path", [("b0", "b1"), ("b0", "b2"), ("b0", "b7", "b0"), ("b0", "b1", "b7"), ("b0", "b7", "b2"), ("b0", "b7")]
)
def test_a_path_that_lies_costs_at_most_a_link(path):
    """A broker cannot tell it from a cycle: the reason names the path, and the link can be made again."""
    network = quiet_network()
    number, _, _ = position(network)
    network.inject("b0", "b1", Reach(number, (path,)))
    network.run()
    for _, _, effect in network.closed:  # also because b0 has never sent what b1 acknowledges
        assert effect.removed == ("the link would close a cycle: b1 - b0" in effect.reason)
    for a, b in chain(3):
        for broker in (a, b):
            network.lose(broker)
        network.link(a, b)
    network.run()
    check_healed(network)


@pytest.mark.parametrize(
    "frame",
    [LinkAck(0), InStep(1), Held((0,) * BUCKETS), Shown((), (), ()), Unreach(1, ()), Refuse(1, 2, "why"), b"nonsense"],
)
def test_a_frame_before_the_greeting_closes_the_link(frame):
    broker = Broker("b0", 1)
    broker.link_up("b1")
    effects = broker.receive("b1", frame)
    assert [type(effect) for effect in effects] == [Send, CloseLink]
    assert broker.receive("b1", frame) == []  # the link is closed


@pytest.mark.parametrize(
    "change",
    [
        {"version": VERSION + 1}, {"broker": "b7"}, {"behind": ()}, {"behind": (("b7",),)}, {"behind": ((),)},
        {"received": 1 << 70}, {"received": -9}, {"sent": -7}, {"sent": 1 << 70}, {"acknowledged": 9},
    ],
)  # fmt: skip
def test_a_hello_that_lies_leaves_the_link_closed_or_in_step(change):
    """Numbers that fit nothing make both sides compare what they hold."""
    network = quiet_network()
    known = {one: network.records(other)["link", one].incarnation for one, other in (("b0", "b1"), ("b1", "b0"))}
    fields = {
        "version": VERSION, "broker": "b0", "incarnation": known["b0"], "knows": known["b1"], "received": 3, "sent": 3,
        "acknowledged": 3, "behind": (("b0",),),
    }  # fmt: skip
    broker = Broker.restore(dict(network.records("b1")))
    broker.link_up("b0")
    effects = broker.receive("b0", LinkHello(**(fields | change)))
    is_closed = any(isinstance(effect, CloseLink) for effect in effects)
    assert is_closed == bool(change.keys() & {"version", "broker", "behind"})


def real_frames():
    """Frames from b0 to b1 in a network in which b0 loses its state, publishes and restarts, as bytes."""
    found = []
    network = quiet_network()
    network.watch = lambda id, effects: found.extend(
        encode(effect.frame)
        for effect in effects
        if isinstance(effect, Send) and (id, effect.neighbour) == ("b0", "b1")
    )
    network.lose("b0")
    network.run()
    network.publish("b0", ROWS, ["m5", "m6"])
    network.unsubscribe("b0", "b0")
    network.run()
    network.restart("b0")
    network.run()
    return list(dict.fromkeys(found))


FRAMES = real_frames()


@settings(max_examples=examples(1000))
@given(data=st.data())
def test_mutated_bytes_never_raise(data):
    """A frame with changed, missing or added bytes closes the link, is ignored, or is one that could have been sent."""
    frame = bytearray(data.draw(st.sampled_from(FRAMES)))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(frame) - 1))
        size = data.draw(st.integers(0, 2))
        frame[place : place + size] = data.draw(st.binary(max_size=3))
        if not frame:
            break
    broker = Broker("b1", 2)
    for neighbour in ("b0", "b2"):
        broker.link_up(neighbour)
        behind = ((neighbour,),)
        broker.receive(neighbour, LinkHello(1, neighbour, 1, None, 0, -1, 0, behind))
    broker.subscribe("ann", 1, "size > 1")
    number = data.draw(st.sampled_from([0, 0, 1]))
    if number:
        broker.receive("b0", InStep(1))
    effects = broker.receive("b0", bytes(frame))
    if any(isinstance(effect, CloseLink) and not effect.removed for effect in effects):
        assert [type(effect) for effect in effects] == [Send, CloseLink]


def test_every_real_frame_survives_the_wire():
    assert len({type(decode(frame)) for frame in FRAMES}) >= 8
    for frame in FRAMES:
        assert encode(decode(frame)) == frame
