"""Large messages against subscriptions with random operators: us, the best Shapely plan, DuckDB spatial and PostGIS.

Shapely takes turns with us; the databases run in processes of their own.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.answers import ask_plan, ask_regions, settle_answers, table_of
from benchmarks.peers.programs import beside_program, database
from benchmarks.peers.shapely_plans import PLANS
from benchmarks.polygons import KINDS, PolygonSet, all_sets, large_messages
from benchmarks.report import Report, Row, SkippedError
from benchmarks.timing import measured, say, take_turns

SECTION = "Random operators, messages of 1 to 25 % of the universe (time per message)"
TOGETHER = "Shapely: the quickest plan for each kind"
AT_LEAST = {"London": 6, "Rhône-Alpes": 12, "SoCal": 15, "LA": 35, "synthetic": 12}


def run(report: Report) -> Iterator[Row]:
    """Yield rows for each set and kind of message."""
    for polygons in all_sets(report):
        yield from one_set(polygons, report)


def one_set(polygons: PolygonSet, report: Report) -> Iterator[Row]:
    """Measure all kinds of messages against one set."""
    table = table_of(polygons)
    plans = [plan(polygons.shapes, polygons.operators) for plan in PLANS]
    count = 9 if report.quick else 30
    best_of_kinds = []
    title = f"{polygons.name}, {len(polygons.shapes):,} polygons"
    for kind in KINDS:
        messages = large_messages(polygons, kind, count, report.seed)
        best = [quickest(plans[:-1], messages[:3]), plans[-1]]
        contenders: dict[str, Any] = {plan.name: partial(ask_plan, plan.match, messages) for plan in best}
        contenders["ours"] = partial(ask_regions, table, messages)
        found = take_turns(contenders, 2 if report.quick else 5, count)
        ours = found.pop("ours")
        size = np.mean([len(rows) for rows in ours.answer])
        best_of_kinds.append((ours.seconds, min(timed.seconds for timed in found.values())))
        for name, theirs in found.items():
            work = f"{title}, kind {kind}, {size:,.0f} matches"
            yield report.compare(SECTION, work, name, ours, theirs, settle_answers(polygons, messages))
    both = np.mean(best_of_kinds, axis=0).tolist()
    yield Row.versus(SECTION, f"{title}, kinds A, B, C", TOGETHER, *both, AT_LEAST[polygons.name])


def quickest(plans: Sequence[Any], messages: Sequence[bytes]) -> Any:
    """Return the plan that needs least time for a few messages."""
    return min(plans, key=lambda plan: measured(partial(ask_plan, plan.match, messages)).seconds)


DATABASES = "Random operators, messages of 1 to 25 % of the universe, databases (time per message)"
ENGINES = {"DuckDB spatial": ("duckdb", "operators"), "PostGIS": ("postgis",)}


def run_databases(report: Report) -> Iterator[Row]:
    """Yield rows for each set and engine; an engine that fails is not asked again."""
    engines = dict(ENGINES)
    for polygons in all_sets(report):
        if engines:
            yield from ask_databases(polygons, engines, report)


def ask_databases(polygons: PolygonSet, engines: dict[str, tuple[str, ...]], report: Report) -> Iterator[Row]:
    """Yield all kinds of messages together; we run before and after each engine, as the machine may change its pace."""
    count = 3 if report.quick else 30
    messages = [wkb for kind in KINDS for wkb in large_messages(polygons, kind, count, report.seed)]
    rows = np.arange(len(polygons.wkb), dtype=np.int32)
    inputs = {
        "polygons": pa.table({"row": rows, "operator": polygons.operators, "geometry": polygons.wkb}),
        "messages": pa.table({"geometry": pa.array(messages, pa.binary())}),
    }
    ours = {"ours": partial(ask_regions, table_of(polygons), messages)}
    for engine, program in list(engines.items()):
        try:
            found, theirs, told = beside_program(ours, 5, len(messages), engine, database(*program), inputs)
        except SkippedError as reason:
            report.skipped.append(str(reason))
            del engines[engine]
            continue
        against = f"{engine}: {told['plan']}"
        say(f"{polygons.name}: {against} {told['plans']}")
        work = f"{polygons.name}, {len(polygons.shapes):,} polygons, kinds A, B, C"
        settle = settle_answers(polygons, messages)
        bar = 20 if polygons.name == "synthetic" else 30
        yield report.compare(DATABASES, work, against, found["ours"], theirs, settle, bar)
