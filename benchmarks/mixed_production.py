"""The table against compiled counting, on a mixed set: the same data and messages, answers compared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import mixed_ours
from match_report import MatchReport
from mixed_sets import settle
from mixed_work import prepared
from report import Row
from timing import take_turns

from contrada.papers.spatial.counting import CountingMatcher

SECTION = "Mixed filters, about 100 answers: the table against compiled counting (time per message)"


def run(report: MatchReport) -> Iterator[Row]:
    """One by one, and in a batch."""
    prepared_work = prepared(report)
    if prepared_work is None:
        return
    filters, messages, _, table = prepared_work
    asked = mixed_ours.as_dicts(messages)
    contenders = {
        "match_keys, one by one": partial(mixed_ours.ask, table, asked),
        "match_many, 1 thread": partial(mixed_ours.ask_many, table, asked, 1),
        "counting": partial(mixed_ours.ask, CountingMatcher(table), asked),
    }
    found = take_turns(contenders, 3 if report.quick else 25)
    peer = found.pop("counting")
    for name, ours in found.items():
        work = f"{len(filters):,} filters, {name}"
        settled = settle((work, "counting"), filters, messages, ours.answer, peer.answer)
        each = ours.seconds / len(messages), peer.seconds / len(messages)
        yield report.compare(SECTION, work, "compiled counting", *each, settled, 20)
