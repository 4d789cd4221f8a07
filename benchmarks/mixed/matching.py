"""Filters on scalars and a region: our table against compiled counting, DuckDB and Python with one STRtree.

Filters on scalars alone: against the npm package Koncorde and the Rust crate a-tree, each in a process of its own.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import pyarrow as pa

import contrada as ct
from benchmarks.mixed import sets
from benchmarks.mixed.sets import Filters, Messages, mixed_messages, mixed_set, settle_filters
from benchmarks.peers.programs import atree, beside_program, database, koncorde
from benchmarks.peers.python_plans import SCALARS_FIRST, PythonPlans
from benchmarks.polygons import read_set
from benchmarks.report import Report, Row
from benchmarks.timing import Timed, race, say, take_turns
from contrada.papers.spatial.counting import CountingMatcher

COUNTING = "Mixed filters, about 100 answers: the table against compiled counting (time per message)"
ENGINES = "Mixed filters, about 100 answers: against DuckDB and Python (time per message)"
ANSWERS = 100
# Of 10,000 filters, the scalar constraints of only about 80 hold on average: a region can only leave fewer.
FEW_ANSWERS = 20
GROWTH = f"Mixed filters, messages that {FEW_ANSWERS} of N filters match (time per message)"
BAR = 20
COUNTING_BAR, DUCKDB_BAR = 21, 28  # of batches


class Work(NamedTuple):
    """Filters, messages with about ANSWERS answers each, and the two that find them."""

    filters: Filters
    messages: Messages
    python: PythonPlans
    table: ct.ForwardingTable

    def compare(
        self, report: Report, section: str, how: str, against: str, ours: Timed, peer: Timed, bar: float = BAR
    ) -> Row:
        """Return the row of one peer."""
        work = f"{len(self.filters):,} filters, {how}"
        return report.compare(section, work, against, ours, peer, settle_filters(self.filters, self.messages), bar)


@cache
def prepared(seed: int, quick: bool) -> Work:
    """Make the large mixed set, which takes minutes, once; whoever changes the table comes last."""
    polygons = read_set("LA", seed)
    filters = mixed_set(polygons, 20_000 if quick else 1_000_000, seed)
    python = PythonPlans(filters)
    count = 30 if quick else 100
    messages = mixed_messages(filters, python.quickest, count, seed, ANSWERS)
    say(f"{len(filters):,} mixed filters and {count} messages")
    table = sets.table_of(filters)
    # Tables learn from the messages they see: here others of the same kind.
    sets.ask(table, sets.as_dicts(mixed_messages(filters, python.quickest, count, seed + 1, ANSWERS)))
    table.pack()
    say("the table")
    return Work(filters, messages, python, table)


def against_counting(report: Report) -> Iterator[Row]:
    """Measure one by one, and in a batch."""
    work = prepared(report.seed, report.quick)
    asked = sets.as_dicts(work.messages)
    counting = partial(sets.ask, CountingMatcher(work.table), asked)
    contenders = {**sets.both_ways(work.table, asked), "counting": counting}
    found = take_turns(contenders, 3 if report.quick else 25, len(asked))
    peer = found.pop("counting")
    for name, ours in found.items():
        bar = COUNTING_BAR if name == sets.BATCH else BAR
        yield work.compare(report, COUNTING, name, "compiled counting", ours, peer, bar)


def against_engines(report: Report) -> Iterator[Row]:
    """Measure our match_keys against the plans in Python and DuckDB's best one."""
    work = prepared(report.seed, report.quick)
    filters, messages, python, table = work
    ask = partial(sets.ask, table, sets.as_dicts(messages))
    plans = {name: partial(plan, messages) for name, plan in python.plans().items()}
    found = take_turns({"ours": ask, **plans}, 3 if report.quick else 5, len(messages))
    ours = found.pop("ours")
    for name, peer in found.items():
        yield work.compare(report, ENGINES, "match_keys, one by one", name, ours, peer)
    assert filters.polygons is not None
    inputs = {
        "filters": pa.table({**sets.scalar_columns(filters), "geometry": filters.polygons.wkb}),
        "messages": pa.table({**sets.message_columns(messages), "geometry": list(messages.regions or ())}),
    }
    calls = sets.both_ways(table, sets.as_dicts(messages))
    again, peer, told = beside_program(calls, 5, len(messages), "DuckDB", database("duckdb", "mixed"), inputs)
    say(f"DuckDB: {told['plans']}")
    for name, ours in again.items():
        bar = DUCKDB_BAR if name == sets.BATCH else BAR
        yield work.compare(report, ENGINES, name, f"DuckDB: {told['plan']}", ours, peer, bar)


def growth(report: Report) -> Iterator[Row]:
    """Time per message from 10,000 filters on; messages shrink so that the answer keeps its size."""
    polygons = read_set("LA", report.seed)
    sizes = [10_000, 30_000] if report.quick else [10_000, 100_000, 1_000_000]
    times = []
    for size in sizes:
        filters = mixed_set(polygons, size, report.seed)
        peer = PythonPlans(filters).quickest
        messages = mixed_messages(filters, peer, 30 if report.quick else 300, report.seed, FEW_ANSWERS)
        ask = partial(sets.ask, sets.table_of(filters), sets.as_dicts(messages))
        ours, theirs = race(ask, partial(peer, messages), 5, len(messages))
        times.append(ours.seconds)
        settle = settle_filters(filters, messages)
        yield report.compare(GROWTH, f"N = {size:,}", SCALARS_FIRST, ours, theirs, settle)
    yield Row.growing(GROWTH, sizes, times)


SCALARS = "Scalar filters alone, 2 to 5 constraints each (time per message)"
KINDS: tuple[sets.Kind, ...] = ("equality", "range")
PASSES, PER_TREE = "5", "20000"
LIMIT = 900  # seconds for loading and matching


def scalar_filters(report: Report) -> Iterator[Row]:
    """Both kinds and all sizes, against each peer that is there; a peer that takes too long is named as skipped."""
    peers = {"Koncorde": (koncorde("koncorde_scalars.js"), PASSES), "a-tree": (atree(), PASSES, PER_TREE)}
    report.skipped += [f"{name}: {reason}" for name, (reason, *_) in peers.items() if isinstance(reason, str)]
    there = {name: called for name, called in peers.items() if not isinstance(called[0], str)}
    for kind in KINDS:
        for count in (1_000, 10_000) if report.quick else (10_000, 1_000_000):
            yield from scalar_set(kind, count, there, report)


def scalar_set(kind: sets.Kind, count: int, peers: dict[str, tuple], report: Report) -> Iterator[Row]:
    """Our match_keys and match_many against each peer; a bar for match_keys, as peers take messages one by one."""
    filters = sets.scalar_set(count, kind, report.seed)
    messages = sets.scalar_messages(filters, min(1_000, 30_000_000 // count), report.seed)
    ours = sets.both_ways(sets.table_of(filters), sets.as_dicts(messages))
    inputs = {"filters": sets.filter_lines(filters), "messages": sets.message_lines(messages)}
    for peer, (program, *options) in peers.items():
        title = f"{peer}, {kind}, {count:,} filters"
        with report.skipping():
            found, theirs, told = beside_program(ours, 3, len(messages), title, program, inputs, *options, limit=LIMIT)
            say(f"{title}: loaded in {told['registering']:.1f} s")
            for name, timed in found.items():
                work, against = f"{kind}-heavy, {count:,} filters, {name}", f"{peer}: {told['form']}"
                bar = 1 if name.startswith("match_keys") else None
                yield report.compare(SCALARS, work, against, timed, theirs, settle_filters(filters, messages), bar)
