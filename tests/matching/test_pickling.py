"""Tables are pickled and copied whole: no update of one shows in the other."""

import copy
import pickle
import subprocess
import sys

import pytest

import contrada as ct
from contrada import ForwardingTable


def pickled(table):
    return pickle.loads(pickle.dumps(table))


@pytest.mark.parametrize("way", [pickled, copy.copy, copy.deepcopy])
def test_copies_are_independent(way):
    table = ForwardingTable()
    table.subscribe("ann", "S_INTERSECTS(area, BBOX(0, 0, 4, 4)) AND size > 1", key="k")
    other = way(table)
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
    other = pickled(shorter)
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
