"""The results of the network experiment as Markdown, and which of the expected findings hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from contrada.papers.exhibit import Row
from contrada.papers.network.peers import PEER_MODES
from contrada.papers.network.run import MODES
from contrada.papers.network.sweeps import (
    AXIS_MODES,
    AXIS_WORKLOAD,
    EXACT_MODES,
    SHAPES,
    Sweep,
    find,
    is_contained,
    value_of,
)
from contrada.papers.network.workload import RECTANGLES

HALF = 0.5  # covering needs at most this share of flooding's control messages where many regions are contained

FINDINGS = (
    "covering needs at most half of flooding's control messages on contained regions",
    "covering needs at most flooding's control messages",
    "withdrawal has at most covering's table entries",
    "advertisements have at most withdrawal's table entries",
    "no false-positive traffic without merging",
    "no false negative in the overlay",
)
COUNTS = {"Control messages": "control", "Table entries": "entries", "Bytes of control": "control_bytes"}


class Results(NamedTuple):
    """The rows of one seed, with the sweep that they belong to."""

    rows: list[Row]
    sweep: Sweep
    seed: int

    def base(self, workload: str, mode: str) -> Row | None:
        """Return the row of a workload and a mode at the size at which they are compared."""
        return find(self.rows, self.sweep.base(workload, mode, self.seed))

    def share(self, workload: str, mode: str, name: str) -> float:
        """Return a count in relation to flooding's."""
        whole = value_of(self.base(workload, "flooding"), name)
        return value_of(self.base(workload, mode), name) / whole if whole else math.nan

    def workloads(self) -> list[str]:
        """Return the workloads that were measured."""
        return [name for name in self.sweep.workloads if self.base(name, "flooding") is not None]

    def contained(self) -> Iterator[tuple[str, float]]:
        """Yield the workloads of contained regions, and control messages of covering in relation to flooding's."""
        for name in filter(is_contained, self.sweep.workloads):
            settings = (self.sweep.base(name, mode, self.seed) for mode in ("covering", "flooding"))
            rows = [
                find(self.rows, replace(each, subscriptions=self.sweep.contained_subscriptions)) for each in settings
            ]
            if None not in rows:
                yield name, value_of(rows[0], "control") / value_of(rows[1], "control")

    def axis(self, mode: str, **varied: Any) -> Row | None:
        """Return a row of the workload along the axes."""
        return find(self.rows, replace(self.sweep.base(AXIS_WORKLOAD, mode, self.seed), **varied))


def findings(results: Results) -> dict[str, bool]:
    """Return what was expected, and whether it holds in every row that it is about."""
    workloads = results.workloads()
    contained = [share for _, share in results.contained()]
    exact = [row for row in results.rows if row["mode"] in EXACT_MODES]

    def at_most(first: str, second: str, count: str) -> bool:
        pairs = [(results.share(name, first, count), results.share(name, second, count)) for name in workloads]
        return all(one <= other for one, other in pairs if not math.isnan(one + other))

    holds = (
        bool(contained) and max(contained) <= HALF,
        at_most("covering", "flooding", "control"),
        at_most("withdrawal", "covering", "entries"),
        at_most("advertisements", "withdrawal", "entries"),
        all(row["false_crossings"] == 0 for row in exact),
        all(row.get("false_negatives", 0) == 0 for row in results.rows),
    )
    return dict(zip(FINDINGS, holds, strict=True))


def tables(results: Results) -> str:
    """Return all tables, as the documentation shows them."""
    parts = (_modes, _by_workload, _brokers, _subscriptions, _overlay)
    return "\n\n".join("\n".join(part(results)) for part in parts)


def _modes(results: Results) -> Iterator[str]:
    """All counts of all modes on one workload."""
    sweep = results.sweep
    yield (
        f"**{AXIS_WORKLOAD}**: {sweep.subscriptions:,} subscriptions, a fifth of which leave, and {sweep.messages:,} "
        f"messages on a balanced tree of {sweep.brokers} brokers."
    )
    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "control messages": ("control", _whole),
        "of them leaving": ("control_unsubscribing", _whole),
        "control, kB": ("control_bytes", lambda count: _whole(count / 1000)),
        "table entries": ("entries", _whole),
        "largest table": ("entries_largest", _whole),
        "brokers per message": ("matched_per_message", "{:.2f}".format),
        "entries met per message": ("entries_met_per_message", _whole),
        "false-positive traffic": ("false_share", _percent),
        "settled after, mean": ("settling.mean", _seconds),
        "at most": ("settling.max", _seconds),
    }
    yield from _head("mode", *columns)
    for mode in MODES:
        row = results.base(AXIS_WORKLOAD, mode)
        if row is not None:
            yield _line(mode, *(form(value_of(row, name)) for name, form in columns.values()))


def _by_workload(results: Results) -> Iterator[str]:
    """Control messages, entries and false-positive traffic by workload and mode."""
    modes = [mode for mode in MODES if mode != "flooding"]
    for title, count in COUNTS.items():
        yield f"**{title}, % of flooding's.**"
        yield from _head("workload", "flooding", *modes)
        for name in results.workloads():
            whole = _whole(value_of(results.base(name, "flooding"), count))
            yield _line(name, whole, *(_percent(results.share(name, mode, count)) for mode in modes))
        yield ""
    size = results.sweep.contained_subscriptions
    yield f"**Control messages of covering with {size:,} subscriptions, % of flooding's.**"
    found = list(results.contained())
    yield from _head("", *(name for name, _ in found))
    yield _line("covering", *(_percent(share) for _, share in found))
    yield ""
    merging = [mode for mode in MODES if mode not in EXACT_MODES]
    yield "**False-positive traffic of merging, % of the crossings of links by messages.** Other modes have none."
    yield from _head("workload", *merging)
    for name in results.workloads():
        if name not in RECTANGLES:
            yield _line(name, *(_percent(value_of(results.base(name, mode), "false_share")) for mode in merging))


def _brokers(results: Results) -> Iterator[str]:
    """Control messages per subscription by the number of brokers and the shape."""
    axis = results.sweep.brokers_axis
    yield f"**Growth with brokers**, {AXIS_WORKLOAD}, {results.sweep.subscriptions:,} subscriptions: control messages."
    yield from _head("brokers", *map(str, axis))
    for mode in AXIS_MODES:
        rows = [results.axis(mode, brokers=count) for count in axis]
        yield _line(f"tree, {mode}", *(_whole(value_of(row, "control")) for row in rows))
    for shape in SHAPES:
        for mode in ("flooding", "covering"):
            rows = [results.axis(mode, brokers=count, topology=shape) for count in axis]
            yield _line(f"{shape}, {mode}", *(_whole(value_of(row, "control")) for row in rows))
    for name, label in (("settling.mean", "mean"), ("settling.max", "at most")):
        rows = [results.axis("flooding", brokers=count) for count in axis]
        yield _line(f"tree, flooding: settled after, {label}", *(_seconds(value_of(row, name)) for row in rows))


def _subscriptions(results: Results) -> Iterator[str]:
    """Control messages and entries by the number of subscriptions."""
    axis, brokers = results.sweep.sizes, results.sweep.axis_brokers
    yield f"**Growth with subscriptions**, {AXIS_WORKLOAD}, a balanced tree of {brokers} brokers."
    yield from _head("subscriptions", *(f"{count:,}" for count in axis))
    for name, label in (("control", "control messages"), ("entries", "table entries"), ("suppressed", "suppressed")):
        for mode in AXIS_MODES:
            rows = [results.axis(mode, brokers=brokers, subscriptions=count) for count in axis]
            yield _line(f"{mode}: {label}", *(_whole(value_of(row, name)) for row in rows))


def _overlay(results: Results) -> Iterator[str]:
    """The DR-tree beside brokers, on rectangles."""
    yield f"**The DR-tree beside brokers**, {results.sweep.subscriptions:,} rectangles."
    columns = ("nodes", "control messages", "of them leaving", "state per node", "largest", "nodes per message")
    yield from _head("workload", "", *columns, "of them in vain", "hops, mean", "at most")
    for name in RECTANGLES:
        for mode in ("flooding", "withdrawal", *PEER_MODES):
            row = results.base(name, mode)
            if row is None:
                continue
            counts = [_whole(row[count]) for count in ("nodes", "control", "control_unsubscribing")]
            state = f"{row['entries'] / row['nodes']:,.1f}", _whole(row["entries_largest"])
            work = f"{row['matched_per_message']:.1f}", _percent(row["passing_share"])
            hops = f"{row['hops']['mean']:.1f}", str(row["hops"]["max"])
            yield _line(name, mode if mode in PEER_MODES else f"brokers: {mode}", *counts, *state, *work, *hops)


def _head(*names: str) -> Iterator[str]:
    """The head of a table, after an empty line."""
    yield ""
    yield _line(*names)
    yield _line(*["---"] * len(names)).replace(" ", "")


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _whole(count: float) -> str:
    return "" if math.isnan(count) else f"{count:,.0f}"


def _seconds(seconds: float) -> str:
    return "" if math.isnan(seconds) else f"{seconds:.2f} s"


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f} %"
