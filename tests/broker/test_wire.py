"""Predicates of every kind survive the wire, and so does their digest."""

from datetime import UTC, date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Network

import numpy as np
import pytest
from hypothesis import given, settings

import contrada as ct
from contrada import Constraint, Filter, Point, Predicate, Region, RelationSet
from contrada.broker.frames import Advertise, Publish, Subscribe
from contrada.broker.messages import MessageRows
from contrada.broker.wire import decode, digest_of, encode, travels
from contrada.errors import BrokerError
from contrada.model import ValueType
from contrada.model.types import forget_types
from effort import examples
from generators import scalars
from oracles.plain import predicate_holds


def sent(predicate, kind=Subscribe):
    """The predicate that arrives."""
    frame = decode(encode(kind(1, 2, predicate, digest_of(predicate, kind is Advertise))))
    assert type(frame) is kind
    return frame.predicate


def is_plain_text(predicate):
    """True unless a text has lone surrogates, which UTF-8 cannot carry."""
    try:
        str(predicate).encode()
    except UnicodeEncodeError:
        return False
    return True


@settings(max_examples=examples(1000))
@given(scalars.predicates().filter(is_plain_text), scalars.messages())
def test_predicates_of_every_kind_survive(predicate, message):
    arrived = sent(predicate)
    assert arrived == predicate
    assert predicate_holds(arrived, message) == predicate_holds(predicate, message)


def sent_alone(message):
    """The attributes of a message that can be sent in a mapping; texts with lone surrogates cannot be sent at all."""
    return {
        name: value
        for name, value in message.items()
        if travels([{name: value}]) and is_plain_text(name) and is_plain_text(value)
    }


@settings(max_examples=examples(500))
@given(scalars.predicates(), scalars.messages().map(sent_alone))
def test_messages_as_mappings_survive(predicate, message):
    frame = decode(encode(Publish(1, ("m", "n"), MessageRows([{}, message, message], np.array([0, 2])))))
    assert len(frame.messages) == 2
    empty, arrived = frame.messages.batch
    assert (empty, arrived.keys()) == ({}, message.keys())
    assert predicate_holds(predicate, arrived) == predicate_holds(predicate, message)


def test_regions_and_lists_in_mappings_survive():
    message = {"area": HOLE, "place": Point(1, 2, crs="EPSG:3035"), "names": ["a"], "none": None, "size": 2**62}
    (arrived,) = decode(encode(Publish(1, ("m",), MessageRows([message])))).messages.batch
    assert arrived == message | {"names": []}
    assert arrived["place"].crs == message["place"].crs
    for value in (2**63, 10**30, datetime(2026, 1, 2, tzinfo=UTC), Decimal(1), {"a": 1}):
        assert not travels([message, {"value": value}])


AREA = Region.box(0, 0, 1, 2)
HOLE = Region.from_wkt("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))")
CASES = [
    Constraint("size", "=", 2**63), Constraint("size", "<", -(2**63) - 1), Constraint("size", "=", 10**400),
    Constraint("size", "=", Decimal("0.1")), Constraint("size", "=", 1), Constraint("size", "=", 1.0),
    Constraint("size", "<", float("inf")), Constraint("size", ">=", -0.0), Constraint("size", "in", (1, 2.5, 2**70)),
    Constraint("at", ">", datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)), Constraint("at", "=", date(2026, 1, 2)),
    Constraint("at", "between", (date(2026, 1, 2), datetime(2026, 5, 2, tzinfo=UTC))),
    Constraint("name", "like", "a%b_"), Constraint("name", "like", r"100\%%"), Constraint("name", "not like", "_é%"),
    Constraint("name", "like", "Ab%", casei=True, accenti=True), Constraint("name", "prefix", "it's \"q\""),
    Constraint("name", "in", ("a", "b'")), Constraint("name", "=", ""), Constraint("name", "=", "\x00\n"),
    Constraint("a name with 'quotes'.and.dots", "=", "x"), Constraint("flag", "!=", True),
    Constraint("flag", "is null"), Constraint("area", "is not null"),
    Constraint("area", RelationSet.S_INTERSECTS, AREA), Constraint("area", RelationSet.S_WITHIN, HOLE),
    Constraint("area", RelationSet.S_INTERSECTS, Point(0.1, -0.0)),
    Constraint("area", RelationSet.S_DISJOINT, Region.box(0, 0, 1, 2, crs="EPSG:3857")),
    Constraint("area", RelationSet.S_CONTAINS, Point(7, 8, crs="EPSG:4326")),
]  # fmt: skip


@pytest.mark.parametrize("constraint", CASES, ids=str)
@pytest.mark.parametrize("kind", [Subscribe, Advertise])
def test_awkward_values_survive(constraint, kind):
    predicate = Predicate([Filter([constraint]), Filter([Constraint("other", "=", 1), constraint])])
    arrived = sent(predicate, kind)
    assert arrived == predicate
    crs = [getattr(one.value, "crs", None) for part in arrived for one in part]
    assert crs == [getattr(one.value, "crs", None) for part in predicate for one in part]


class Address(ValueType):
    """A type that users add."""

    name, operators = "address", ("in network",)

    def accepts(self, value):
        return isinstance(value, IPv4Address)

    def takes(self, operator, operand):
        return isinstance(operand, IPv4Network)

    def holds(self, operator, operand, value):
        return value in operand

    def dump(self, operand):
        return str(operand)

    def load(self, dumped):
        return IPv4Network(dumped)


def test_a_constraint_of_a_registered_type_survives(own_types):
    ct.register_type(Address())
    network = Constraint("from", "in network", IPv4Network("10.0.0.0/8"))
    predicate = Predicate([Filter([network, Constraint("size", ">", 1)])])
    assert sent(predicate) == predicate
    data = encode(Subscribe(1, 2, predicate, 3))
    forget_types()
    with pytest.raises(BrokerError, match="unknown type 'address'"):
        decode(data)


def test_distinct_predicates_have_distinct_digests():
    digests = {digest_of(Predicate([Filter([one])]), is_ad) for one in CASES for is_ad in (False, True)}
    assert len(digests) == 2 * len(CASES)
    assert all(0 <= digest < 1 << 63 for digest in digests)
