"""Large messages against subscriptions with random operators: us and the best Shapely plan in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from match_report import MatchReport
from match_sets import (
    FILES,
    KINDS,
    Answer,
    PolygonSet,
    ask_regions,
    large_messages,
    read_set,
    settle_answers,
    table_of,
    with_operators,
)
from match_shapely import PLANS
from report import Row
from timing import say, take_turns, time_once

from generators import synthetic

SECTION = "Random operators, messages of 1 to 25 % of the universe (time per message)"
TOGETHER = "Shapely: the quickest plan for each kind"
AT_LEAST = {"London": 6, "Rhône-Alpes": 12, "SoCal": 15, "LA": 35, "synthetic": 12}
SYNTHETIC = 10_000


def run(report: MatchReport) -> Iterator[Row]:
    """Rows for each set and kind of message."""
    names = list(FILES)[: 3 if report.quick else 4]
    for polygons in [*(read_set(name, report) for name in names), synthetic_set(report.seed)]:
        if polygons is not None:
            yield from one_set(polygons, report)


def synthetic_set(seed: int, count: int = SYNTHETIC) -> PolygonSet:
    """The paper's worst case: regions of at least 10 % of the universe."""
    rng = np.random.default_rng(seed)
    return with_operators("synthetic", synthetic.paper_regions(rng, count).to_wkb(), rng)


def one_set(polygons: PolygonSet, report: MatchReport) -> Iterator[Row]:
    """All kinds of messages against one set."""
    table = table_of(polygons)
    plans = [plan(polygons.shapes, polygons.operators) for plan in PLANS]
    count = 9 if report.quick else 30
    best_of_kinds = []
    for kind in KINDS:
        messages = large_messages(polygons, kind, count, report.seed)
        best = [quickest(plans[:-1], messages[:3]), plans[-1]]
        contenders: dict[str, Any] = {plan.name: partial(ask_plan, plan.match, messages) for plan in best}
        contenders["ours"] = partial(ask_regions, table, messages)
        found = take_turns(contenders, 2 if report.quick else 5)
        ours = found.pop("ours")
        size = np.mean([len(rows) for rows in ours.answer])
        fastest = min(found, key=lambda name: found[name].seconds)
        best_of_kinds.append((ours.seconds / count, found[fastest].seconds / count))
        say(f"{polygons.name}, kind {kind}: {fastest}")
        for name, theirs in found.items():
            work = f"{polygons.name}, {len(polygons.shapes):,} polygons, kind {kind}, {size:,.0f} matches"
            settled = settle_answers((work, name), polygons, messages, ours.answer, theirs.answer)
            each = ours.seconds / count, theirs.seconds / count
            yield report.compare(SECTION, work, name, *each, settled, None)
    mine, others = np.mean(best_of_kinds, axis=0).tolist()
    work = f"{polygons.name}, {len(polygons.shapes):,} polygons, kinds A, B, C"
    yield Row(SECTION, work, TOGETHER, mine, others, others / mine, at_least=AT_LEAST[polygons.name])


def quickest(plans: Sequence[Any], messages: Sequence[bytes]) -> Any:
    """The plan that needs least time for a few messages, after one to warm up."""
    for plan in plans:
        plan.match(messages[0])
    return min(plans, key=lambda plan: time_once(partial(ask_plan, plan.match, messages)))


def ask_plan(match: Callable[[bytes], Answer], messages: Sequence[bytes]) -> list[Answer]:
    """A peer's rows for each message."""
    return [match(message) for message in messages]
