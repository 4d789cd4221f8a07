"""Tables are pickled and copied whole: the same answers, and no update of one shows in the other."""

import copy
import pickle
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada import ForwardingTable
from effort import examples
from generators.scalars import messages, predicates
from oracles.subscriptions import check_answers, subscribed, unsubscribe

WAYS = {"pickle": lambda table: pickle.loads(pickle.dumps(table)), "copy": copy.copy, "deepcopy": copy.deepcopy}


@settings(deadline=None, max_examples=examples(80))
@given(
    asked=st.lists(predicates(), max_size=8), sent=st.lists(messages(), min_size=1, max_size=4), gone=st.integers(0, 7)
)
def test_copies_give_the_same_answers(asked, sent, gone):
    table = ForwardingTable()
    model = subscribed(table, asked)
    unsubscribe(table, model, [gone])
    for way in WAYS.values():
        other = way(table)
        assert list(other) == list(table)
        check_answers(other, model, sent)


@pytest.mark.parametrize("way", WAYS)
def test_copies_are_independent(way):
    table = ForwardingTable()
    table.subscribe("ann", "S_INTERSECTS(area, BBOX(0, 0, 4, 4)) AND size > 1", key="k")
    other = WAYS[way](table)
    other.subscribe("bob", "size > 0")
    table.unsubscribe("k")
    message = {"size": 2, "area": ct.Region.box(1, 1, 2, 2)}
    assert other.match(message) == {"ann", "bob"}
    assert table.match(message) == set()
    other.pack()
    assert other.match(message) == {"ann", "bob"}


def test_a_table_by_subscriber_is_copied_with_its_report():
    table = ForwardingTable()
    table.subscribe("ann", "size > 1")
    table.subscribe("ann", "size > 3")
    shorter = table.simplified()
    other = pickle.loads(pickle.dumps(shorter))
    assert isinstance(other, ct.SubscriberTable)
    assert other.match({"size": 2}) == {"ann"}
    assert other.report == shorter.report


def test_another_process_reads_a_pickle(tmp_path):
    table = ForwardingTable()
    table.subscribe("ann", "size > 1")
    (tmp_path / "table.pickle").write_bytes(pickle.dumps(table))
    program = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).match({'size': 2}))"
    command = [sys.executable, "-c", program, tmp_path / "table.pickle"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.strip() == "{'ann'}"
