"""A type that a user adds: its constraints are matched like those on regions, in every state of a table."""

from bisect import bisect_right
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.errors import TableError
from contrada.model import types
from effort import examples


class Address(ct.ValueType):
    """IPv4 addresses, and networks that hold them; an index by the networks' first addresses."""

    name, operators = "address", ("in network", "=")
    built = 0

    def accepts(self, value):
        return isinstance(value, IPv4Address)

    def takes(self, operator, operand):
        return isinstance(operand, IPv4Network if operator == "in network" else IPv4Address)

    def holds(self, operator, operand, value):
        return value in operand if operator == "in network" else value == operand

    def matcher(self, asked):
        Address.built += 1
        spans = sorted(
            (int(ip_network(operand)[0]), int(ip_network(operand)[-1]), k) for k, (_, operand) in enumerate(asked)
        )
        firsts = [first for first, _, _ in spans]

        def find(value):
            return [k for _, last, k in spans[: bisect_right(firsts, int(value))] if int(value) <= last]

        return find

    def share(self, operator, operand):
        return ip_network(operand).num_addresses / 2**32

    def dump(self, operand):
        return str(operand)

    def load(self, dumped):
        return ip_network(dumped) if "/" in dumped else ip_address(dumped)


@pytest.fixture(autouse=True)
def _registered(own_types):
    ct.register_type(Address())


addresses = st.integers(0, 7).map(lambda k: IPv4Address(k << 28 | k))
networks = st.builds(lambda k, bits: IPv4Network((k << 28, bits)), st.integers(0, 7), st.integers(4, 6))
own = st.builds(ct.Constraint, st.just("from"), st.just("in network"), networks) | st.builds(
    ct.Constraint, st.just("from"), st.just("="), addresses
)
others = st.sampled_from([
    ct.Constraint("size", ">", 3),
    ct.Constraint("from", "is not null"),
    ct.Constraint("area", ct.Relation.OVERLAPS, ct.Region.box(0, 0, 2, 2)),
])  # fmt: skip
filters = st.lists(own | others, min_size=1, max_size=3).map(ct.Filter)
area = st.just(ct.Region.box(1, 1, 3, 3))
optional = {"from": addresses | st.just("text"), "size": st.integers(2, 5), "area": area}
messages = st.fixed_dictionaries({}, optional=optional)


def holds(constraint, message):
    value = message.get(constraint.attribute)
    if constraint.operator == "is not null":
        return value is not None
    if constraint.attribute == "from":
        return isinstance(value, IPv4Address) and Address().holds(constraint.operator, constraint.value, value)
    return value is not None and (constraint.attribute == "area" or value > 3)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(filters, min_size=1, max_size=12), st.lists(messages, min_size=1, max_size=6), st.data())
def test_answers_are_those_of_plain_evaluation(made, asked, data):
    table = ct.ForwardingTable()
    for key, one in enumerate(made):
        table.subscribe("somebody", one, key=key)

    def check(living):
        table.check()
        many = table.match_many(asked, by="subscription")
        for k, message in enumerate(asked):
            right = {key for key in living if all(holds(part, message) for part in made[key])}
            assert set(table.match_keys(message)) == set(many.keys(k)) == right

    living = set(range(len(made)))
    for leaving in (set(), data.draw(st.sets(st.sampled_from(sorted(living))))):
        living -= leaving
        for key in leaving:
            table.unsubscribe(key)
        for _ in range(2):  # as they are, and packed
            check(living)
            table.pack()


def test_the_type_has_its_own_index_and_is_saved(tmp_path):
    table = ct.ForwardingTable()
    for k in range(8):
        table.subscribe(f"net{k}", ct.Constraint("from", "in network", ip_network(f"10.{k}.0.0/16")))
    before = Address.built
    table.pack()
    assert Address.built == before + 1
    table.save(tmp_path / "saved")
    opened = ct.ForwardingTable.open(tmp_path / "saved")
    assert set(opened.match({"from": ip_address("10.3.9.9")})) == {"net3"}
    assert set(opened.match({"from": "10.3.9.9"})) == set()
    opened.subscribe("later", ct.Constraint("from", "=", ip_address("10.3.9.9")))
    assert set(opened.match({"from": ip_address("10.3.9.9")})) == {"net3", "later"}


class Word(ct.ValueType):
    """Text in capitals; its estimate is of no use."""

    name, operators = "word", ("shouts",)

    def accepts(self, value):
        return isinstance(value, str)

    def holds(self, operator, operand, value):
        return value == operand.upper()

    def share(self, operator, operand):
        return float("nan")

    def dump(self, operand):
        return operand

    def load(self, dumped):
        return dumped


def test_a_useless_estimate_loses_no_filter_and_batches_read_the_attribute(tmp_path):
    ct.register_type(Word())
    table = ct.ForwardingTable()
    table.subscribe("both", ct.Filter([ct.Constraint("w", "shouts", "ab"), ct.Constraint("n", "!=", 1)]))
    table.subscribe("one", ct.Constraint("w", "shouts", "ab"))
    for _ in range(2):
        assert set(table.match({"w": "AB", "n": 2})) == {"both", "one"}
        assert table.match_many(pa.table({"w": ["AB", "ab"]}), by="subscription").rows.tolist() == [1]
        table.pack()
        table.check()
    table.save(tmp_path / "saved")
    types.forget_types()
    with pytest.raises(TableError, match="needs a type that is not registered: unknown type 'word'"):
        ct.ForwardingTable.open(tmp_path / "saved")


def test_what_a_type_lacks_is_a_clear_error(tmp_path):
    class Bare(Address):
        name = "bare"
        dump = ct.ValueType.dump

    ct.register_type(Bare())
    table = ct.ForwardingTable()
    constraint = ct.Constraint("from", "in network", ip_network("10.0.0.0/8"))
    assert constraint.kind == "bare"
    assert str(constraint) == "in_network(from, '10.0.0.0/8')"
    table.subscribe("a", constraint)
    with pytest.raises(TableError, match="constraints of type 'bare' cannot be saved: the type has no dump and load"):
        table.save(tmp_path / "saved")
    with pytest.raises(ct.FilterError, match="cannot register type 'region'"):
        ct.register_type(type("Mine", (Address,), {"name": "region"})())


def test_constraints_on_added_types_cover_equal_ones():
    index = ct.CoveringIndex(withdraw=True)
    wide, narrow = (ct.Constraint("source", "in network", IPv4Network(f"10.0.0.0/{bits}")) for bits in (8, 16))
    assert index.subscribe("wide", ct.Filter([wide, ct.Constraint("x", ">", 1)])).forward
    assert index.subscribe("again", ct.Filter([ct.Constraint("x", ">", 2), wide])).covered_by == ("wide",)
    assert index.subscribe("narrow", ct.Filter([narrow, ct.Constraint("x", ">", 2)])).forward  # not known to be inside
    assert index.subscribe("any", ct.Constraint("source", "is not null")).withdraw == ("wide", "narrow")
    assert index.predicate("narrow") == ct.Predicate([ct.Filter([narrow, ct.Constraint("x", ">", 2)])])
    assert index.unsubscribe("any").forward == ("wide", "narrow")
