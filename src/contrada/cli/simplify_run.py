"""Run `contrada simplify`: read subscriptions, simplify them in bulk, write rows and a report."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import typer

from contrada.amounts import counted, rate
from contrada.cli.ending import FAULTS
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import BINARY, ResultFormat, chosen_format, csv_line, opened_sink, type_of, writer_of
from contrada.cli.subscribing import Asking, Parsed, parsed_subscriptions
from contrada.errors import FormatError
from contrada.formats.records import Rejected
from contrada.model import Filter, Predicate
from contrada.simplification.simplifying import Simplification, simplified_groups

Name = str | int
BLOCK_ROWS = 1 << 16  # rows of a table written together


@dataclass(frozen=True)
class SimplifyPlan:
    """The parameters of a run: subscriptions, output and report."""

    asking: Asking
    across: bool = False
    output: Path | None = None
    format: ResultFormat | None = None
    as_json: bool = False
    reject: Path | None = None
    strict: bool = False
    quiet: bool = False


class FilterGroup(NamedTuple):
    """Filters that are simplified together, and the names of the result."""

    names: tuple[Name | None, ...]
    filters: Sequence[Filter]


@dataclass
class SimplifyCounts:
    """Counts of the subscriptions so far."""

    read: int = 0
    groups: int = 0
    report: Simplification = field(default_factory=Simplification)
    crs: dict[str, str | None] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)


def run(plan: SimplifyPlan) -> int:
    """Simplify, print the report, and return the exit code."""
    rejections, work = Rejections(plan.reject), SimplifyCounts()
    scrolls = plan.output is None and sys.stdout is not None and sys.stdout.isatty()
    try:
        with ProgressLine(not scrolls and not plan.quiet) as progress:
            good = _good(plan, rejections, work, progress)
            groups = by_subscriber(good) if plan.across else map(_alone, good)
            _write(plan, groups, work, progress)
    finally:
        rejections.close()
    if not plan.quiet:
        _tell(plan, work, rejections)
    return FAULTS if plan.strict and rejections.counts.total() else 0


def _good(plan: SimplifyPlan, rejections: Rejections, work: SimplifyCounts, progress: ProgressLine) -> Iterator[Parsed]:
    """Yield the good subscriptions; a file with bad ones only is an error."""
    first: Rejected | None = None
    for item in parsed_subscriptions(plan.asking, work.crs):
        if isinstance(item, Rejected):
            first = first or item
            rejections.add(item, "subscription")
            continue
        work.read += 1
        progress.tell(lambda: f"{counted(work.read, 'subscription')} read, {work.groups:,} simplified")
        yield item
    if first is not None and not work.read:
        raise FormatError(f"no subscription is good; the first: {first}")


def _alone(item: Parsed) -> FilterGroup:
    return FilterGroup((item.key, item.subscriber), item.predicate.filters)


def by_subscriber(items: Iterator[Parsed]) -> Iterator[FilterGroup]:
    """Group filters by subscriber, in the order of keys; subscriptions without a key come last, in input order."""
    asked: dict[Name, list[tuple[bool, bool, Any, Predicate]]] = {}
    for number, item in enumerate(items):
        key = number if item.key is None else item.key
        asked.setdefault(item.subscriber, []).append((item.key is None, isinstance(item.key, str), key, item.predicate))
    for subscriber, those in asked.items():
        those.sort(key=lambda one: one[:3])
        yield FilterGroup((subscriber,), [part for *_, predicate in those for part in predicate.filters])


def _write(plan: SimplifyPlan, groups: Iterator[FilterGroup], work: SimplifyCounts, progress: ProgressLine) -> None:
    """Simplify groups and write the results."""
    waiting: deque[FilterGroup] = deque()

    def noted() -> Iterator[Sequence[Filter]]:
        for group in groups:
            waiting.append(group)
            yield group.filters

    def done(count: int) -> None:
        work.groups += count
        progress.tell(lambda: f"{counted(work.read, 'subscription')} read, {work.groups:,} simplified")

    format = chosen_format(plan.format, plan.output)
    results: FilterLines | FilterTables | None = None

    def opened() -> FilterLines | FilterTables:  # opened once there is a good subscription
        return (FilterTables if format in BINARY else FilterLines)(plan.output, format, plan.across)

    try:
        for one in simplified_groups(noted(), done):
            results = results or opened()
            results.add(waiting.popleft().names, str(Predicate(one.filters)))
            work.report = work.report.plus(one.report)
        results = results or opened()
    finally:
        if results is not None:
            results.close()


class FilterLines:
    """Writes rows as lines of JSON or CSV."""

    def __init__(self, output: Path | None, format: ResultFormat, across: bool) -> None:
        self._sink, self._is_own = opened_sink(output, format), output is not None
        self._columns = _columns(across)
        self._line: Callable[[list[Any]], bytes] = self._csv if format is ResultFormat.csv else self._json
        if format is ResultFormat.csv:
            self._sink.write(csv_line(self._columns))

    def add(self, names: tuple[Name | None, ...], filter: str) -> None:
        """Write a row."""
        self._sink.write(self._line([*names, filter]))

    def close(self) -> None:
        """Finish the file."""
        self._sink.flush()
        if self._is_own:
            self._sink.close()

    def _json(self, row: list[Any]) -> bytes:
        return json.dumps(dict(zip(self._columns, row, strict=True)), ensure_ascii=False).encode() + b"\n"

    def _csv(self, row: list[Any]) -> bytes:
        for name, value in zip(self._columns, row, strict=True):
            if isinstance(value, str) and ("\n" in value or "\r" in value):
                raise FormatError(
                    f"a {name} has a line break, which CSV cannot hold: write ndjson or parquet; {value[:60]!r}"
                )
        return csv_line(row)


class FilterTables:
    """Writes rows of Parquet or Arrow at the end, when it is known whether names are integers."""

    def __init__(self, output: Path | None, format: ResultFormat, across: bool) -> None:
        self._sink, self._is_own, self._format = opened_sink(output, format), output is not None, format
        self._values: dict[str, list[Any]] = {name: [] for name in _columns(across)}

    def add(self, names: tuple[Name | None, ...], filter: str) -> None:
        """Store a row."""
        for values, value in zip(self._values.values(), (*names, filter), strict=True):
            values.append(value)

    def close(self) -> None:
        """Write all rows and finish the file, which is unreadable without its end."""
        try:
            table = self._table()
            writer = writer_of(self._sink, table.schema, self._format)
            writer.write_table(table, BLOCK_ROWS)
            writer.close()
            self._sink.flush()
        finally:
            if self._is_own:
                self._sink.close()

    def _table(self) -> Any:
        import pyarrow as pa

        columns = {}
        for name, values in self._values.items():
            if name == "filter":
                kind = pa.string()
            else:
                _refuse_alike(name, values)
                kind = type_of([one for one in values if one is not None])
            is_text = pa.types.is_string(kind)
            columns[name] = pa.array([str(one) if is_text and one is not None else one for one in values], kind)
        return pa.table(columns)


def _refuse_alike(what: str, names: list[Name | None]) -> None:
    """Raise if an integer and a text are equal as text: a column that holds both is text."""
    numbers = {str(name) for name in names if isinstance(name, int)}
    for name in numbers.intersection(name for name in names if isinstance(name, str)):
        raise FormatError(f"the {what}s {name} and {name!r} would be the same in a table: write ndjson")


def _columns(across: bool) -> list[str]:
    return ["subscriber", "filter"] if across else ["key", "subscriber", "filter"]


def _tell(plan: SimplifyPlan, work: SimplifyCounts, rejections: Rejections) -> None:
    """Print the report on standard error, or as JSON on standard output if that is free."""
    if not plan.as_json:
        for line in summary(plan, work, rejections):
            typer.echo(line, err=True)
        return
    own: dict[str, Any] = {"subscriptions": work.read, "rejected": rejections.counts.total(), "written": work.groups}
    own |= {**asdict(work.report), "crs": work.crs, "seconds": round(time.perf_counter() - work.began, 3)}
    typer.echo(json.dumps(own, ensure_ascii=False), err=plan.output is None)


def summary(plan: SimplifyPlan, work: SimplifyCounts, rejections: Rejections) -> Iterator[str]:
    """Yield the lines of the summary: subscriptions, rules applied, speed, and rejections."""
    seconds = time.perf_counter() - work.began
    bad = rejections.counts.total()
    yield f"subscriptions: {work.read:,}" + (f", and {bad:,} rejected" if bad else "")
    if plan.across:
        yield f"subscribers:   {work.groups:,}"
    yield from str(work.report).splitlines()
    for attribute, crs in work.crs.items():
        yield f"crs:           {attribute} is in {crs}, which the text of filters does not say"
    yield f"time:          {seconds:.2f} s, {rate(work.read, seconds, 'subscription')}"
    if bad:
        yield "rejected:"
        yield from rejections.lines()
