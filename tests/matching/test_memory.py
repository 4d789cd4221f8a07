"""Memory does not grow with the number of messages."""

from pathlib import Path

import pytest

import contrada as ct

STATUS = Path("/proc/self/statm")
PAGE = 4096  # at least


@pytest.mark.skipif(not STATUS.exists(), reason="this system does not tell what a process holds")
def test_grids_over_messages_are_freed():
    table = ct.ForwardingTable()
    for k in range(100):  # so many regions that a grid over the message pays
        near = ct.Constraint("area", ct.RelationSet.S_INTERSECTS, ct.Region.box(k / 100, 0, k / 100 + 1, 1))
        table.subscribe("x", ct.Filter([near, ct.Constraint("severity", "=", 3)]))
    table.pack()
    messages = [{"severity": 3, "area": ct.Region([(0, 0), (3, 0), (2, 1), (3, 2), (0, 2)])}] * 1000
    assert len(table.match_many(messages, by="subscription").rows) == 100 * 1000
    before = held()
    for _ in range(20):
        table.match_many(messages, by="subscription")
    assert held() - before < 20e6, "5 kB for each of 20,000 messages would be 100 MB"


def held():
    return int(STATUS.read_text().split()[1]) * PAGE
