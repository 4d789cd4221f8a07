"""How the time per message grows with the number of mixed filters when the number of answers stays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import mixed_ours
from match_report import MatchReport
from match_sets import read_set
from mixed_python import SCALARS_FIRST, PythonPlans
from mixed_sets import mixed_messages, mixed_set, settle
from report import Row
from timing import say, take_turns

# Of 10,000 filters, the scalar constraints of only about 80 hold on average: a region can only leave fewer.
ANSWERS = 20
SECTION = f"Mixed filters, messages that {ANSWERS} of N filters match (time per message)"


def run(report: MatchReport) -> Iterator[Row]:
    """Time per message from 10,000 filters on; messages shrink so that the answer keeps its size."""
    polygons = read_set("LA", report)
    if polygons is None:
        return
    sizes = [10_000, 30_000] if report.quick else [10_000, 100_000, 1_000_000]
    times = []
    for size in sizes:
        filters = mixed_set(polygons, size, report.seed)
        peer = PythonPlans(filters).quickest
        messages = mixed_messages(filters, peer, 30 if report.quick else 300, report.seed, ANSWERS)
        table = mixed_ours.table_of(filters)
        ask = partial(mixed_ours.ask, table, mixed_ours.as_dicts(messages))
        found = take_turns({"ours": ask, "peer": partial(peer, messages)}, 5)
        ours, theirs = found["ours"], found["peer"]
        times.append(ours.seconds / len(messages))
        work = f"N = {size:,}"
        say(work)
        settled = settle((work, SCALARS_FIRST), filters, messages, ours.answer, theirs.answer)
        yield report.compare(SECTION, work, SCALARS_FIRST, times[-1], theirs.seconds / len(messages), settled, None)
    work = f"from N = {sizes[0]:,} to {sizes[-1]:,}"
    yield Row(SECTION, work, "ourselves", times[-1], times[0], times[-1] / times[0], "times the time", at_most=4)
