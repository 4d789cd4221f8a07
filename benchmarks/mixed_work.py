"""The large mixed set that several sections of benchmarks/mixed.py match: made once, since that takes minutes."""

from __future__ import annotations

from typing import NamedTuple

import mixed_ours
from match_report import MatchReport
from match_sets import read_set
from mixed_python import PythonPlans
from mixed_sets import Filters, Messages, mixed_messages, mixed_set
from timing import say

import contrada as ct

ANSWERS = 100


class Work(NamedTuple):
    """Filters, messages with about ANSWERS answers each, and the two that find them."""

    filters: Filters
    messages: Messages
    python: PythonPlans
    table: ct.ForwardingTable


_made: dict[int, Work] = {}


def prepared(report: MatchReport) -> Work | None:
    """The work of a run, None without its polygons; whoever changes the table comes last."""
    if report.seed not in _made:
        polygons = read_set("LA", report)
        if polygons is None:
            return None
        filters = mixed_set(polygons, 20_000 if report.quick else 1_000_000, report.seed)
        python = PythonPlans(filters)
        count = 30 if report.quick else 100
        messages = mixed_messages(filters, python.quickest, count, report.seed, ANSWERS)
        say(f"{len(filters):,} mixed filters and {count} messages")
        table = mixed_ours.table_of(filters)
        # Tables learn from the messages they see: here others of the same kind.
        others = mixed_messages(filters, python.quickest, count, report.seed + 1, ANSWERS)
        mixed_ours.ask(table, mixed_ours.as_dicts(others))
        table.pack()
        _made[report.seed] = Work(filters, messages, python, table)
        say("the table")
    return _made[report.seed]
