"""The table against compiled counting, on a mixed set: the same data and messages, answers compared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import mixed_ours
from match_report import MatchReport
from match_sets import read_set
from mixed_python import PythonPlans
from mixed_sets import mixed_messages, mixed_set, settle
from report import Row
from timing import say, take_turns

from contrada.matching.counting import CountingMatcher

SECTION = "Mixed filters, about 100 answers: the table against compiled counting (time per message)"
ANSWERS = 100


def run(report: MatchReport) -> Iterator[Row]:
    """One by one, and in a batch."""
    polygons = read_set("LA", report)
    if polygons is None:
        return
    filters = mixed_set(polygons, 20_000 if report.quick else 1_000_000, report.seed)
    messages = mixed_messages(filters, PythonPlans(filters).quickest, 30 if report.quick else 100, report.seed, ANSWERS)
    table = mixed_ours.table_of(filters)
    say(f"table of {len(filters):,} mixed filters")
    asked = mixed_ours.as_dicts(messages)
    contenders = {
        "match_keys, one by one": partial(mixed_ours.ask, table, asked),
        "match_many, 1 thread": partial(mixed_ours.ask_many, table, asked, 1),
        "counting": partial(mixed_ours.ask, CountingMatcher(table), asked),
    }
    found = take_turns(contenders, 3 if report.quick else 7)
    peer = found.pop("counting")
    for name, ours in found.items():
        work = f"{len(filters):,} filters, {name}"
        settled = settle((work, "counting"), filters, messages, ours.answer, peer.answer)
        each = ours.seconds / len(messages), peer.seconds / len(messages)
        yield report.compare(SECTION, work, "compiled counting", *each, settled, 20)
