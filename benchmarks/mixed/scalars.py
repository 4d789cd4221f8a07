"""Scalar filters alone, against the npm package Koncorde and the Rust crate a-tree, each in a process of its own."""

from collections.abc import Iterator
from functools import partial

from benchmarks.mixed import tables
from benchmarks.mixed.sets import Kind, filter_lines, message_lines, scalar_messages, scalar_set, settle_filters
from benchmarks.peers.programs import atree, beside_program, koncorde
from benchmarks.report import Report, Row, SkippedError
from benchmarks.timing import say

SECTION = "Scalar filters alone, 2 to 5 constraints each (time per message)"
KINDS: tuple[Kind, ...] = ("equality", "range")
PASSES, PER_TREE = "5", "20000"
LIMIT = 900  # seconds for loading and matching


def run(report: Report) -> Iterator[Row]:
    """Both kinds and all sizes, against each peer that is there; a peer that takes too long is named as skipped."""
    peers = {"Koncorde": (koncorde("koncorde_scalars.js"), PASSES), "a-tree": (atree(), PASSES, PER_TREE)}
    report.skipped += [f"{name}: {reason}" for name, (reason, *_) in peers.items() if isinstance(reason, str)]
    there = {name: called for name, called in peers.items() if not isinstance(called[0], str)}
    for kind in KINDS:
        for count in (1_000, 10_000) if report.quick else (10_000, 1_000_000):
            yield from one_set(kind, count, there, report)


def one_set(kind: Kind, count: int, peers: dict[str, tuple], report: Report) -> Iterator[Row]:
    """Our match_keys and match_many against each peer; a bar for match_keys, as peers take messages one by one."""
    filters = scalar_set(count, kind, report.seed)
    messages = scalar_messages(filters, min(1_000, 30_000_000 // count), report.seed)
    table, asked = tables.table_of(filters), tables.as_dicts(messages)
    contenders = {
        "match_keys, one by one": partial(tables.ask, table, asked),
        "match_many, 1 thread": partial(tables.ask_many, table, asked, 1),
    }
    inputs = {"filters": filter_lines(filters), "messages": message_lines(messages)}
    for peer, (program, *options) in peers.items():
        title = f"{peer}, {kind}, {count:,} filters"
        try:
            found, theirs, told = beside_program(
                contenders, 3, len(messages), title, program, inputs, *options, limit=LIMIT
            )
        except SkippedError as reason:
            report.skipped.append(str(reason))
            continue
        say(f"{title}: loaded in {told['registering']:.1f} s")
        for name, ours in found.items():
            work, against = f"{kind}-heavy, {count:,} filters, {name}", f"{peer}: {told['form']}"
            bar = 1 if name.startswith("match_keys") else None
            yield report.compare(SECTION, work, against, ours, theirs, partial(settle_filters, filters, messages), bar)
