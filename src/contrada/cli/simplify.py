"""Simplify subscriptions: remove what is redundant, so that every message matches as before.

Filters that no message satisfies, constraints that others imply and filters that another one covers are removed; \
ranges, sets and relations are merged. Rows of key, subscriber and filter (CQL2) go to standard output, one JSON \
object per line, or to --output; the report goes to standard error. Bad rows are counted, and the rest are simplified. \
A subscription that no message can match is kept, in its shortest form.

\b
Each subscription by itself; keys and subscribers stay:
  contrada simplify subscriptions.ndjson --output shorter.ndjson
All subscriptions of a subscriber as one; rows have subscriber and filter only:
  contrada simplify subscriptions.ndjson --across --output shorter.parquet
The rows of a table, with a template:
  contrada simplify facilities.geojson --key id --template 'S_INTERSECTS(area, $geometry) AND severity >= $least'
How much was redundant?
  contrada simplify subscriptions.ndjson --output shorter.ndjson --json | jq .rules

\b
Exit codes:
  0  done; rejected rows are in the report
  1  a row was rejected, with --strict
  2  could not run: wrong usage, missing file, no good subscription
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from contrada.amounts import counted, rate
from contrada.cli import options
from contrada.cli.ending import FAULTS, errors_told
from contrada.cli.options import WRITE, argument, check_paths, names_in, option
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import BINARY, ResultFormat, chosen_format, csv_line, open_file, type_of, writer_of
from contrada.cli.subscribing import Asking, Parsed, parsed_subscriptions
from contrada.errors import FormatError
from contrada.formats.records import Rejected
from contrada.model import Filter, Predicate
from contrada.simplification.simplifying import Simplification, simplified_groups

Name = str | int
BLOCK_ROWS = 1 << 16  # rows of a table written together


FILE_HELP = "Rows of key, subscriber and filter, or with --template any rows; - for standard input."
File = Annotated[Path, argument(FILE_HELP)]
Across = Annotated[
    bool, option(WRITE, "Merge the subscriptions of each subscriber into one, without a key.", "--across")
]

JSON_HELP = "Print the report as JSON: to standard output if --output names a file, else to standard error."
Json = Annotated[bool, option(WRITE, JSON_HELP, "--json")]


def simplify(
    file: File,
    template: options.Template = None,
    key: options.Key = None,
    subscriber: options.Subscriber = None,
    subscriptions_format: options.SubscriptionsFormat = None,
    times: options.Times = None,
    subscriptions_crs: options.SubscriptionsCrs = None,
    to_crs: options.ToCrs = None,
    buffer: options.Buffer = None,
    output: options.Output = None,
    format: options.Format = None,
    across: Across = False,
    as_json: Json = False,
    reject: options.RejectFile = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
) -> None:
    """Simplify the subscriptions of a file; the docstring of this module is the help page."""
    if template is None and (key or subscriber or subscriptions_crs or to_crs or buffer is not None or times):
        raise typer.BadParameter(
            "--key, --subscriber, --times, --subscriptions-crs, --to-crs and --buffer need --template"
        )
    check_paths([file], [output, reject])
    with errors_told():
        reading = {
            "key": key or "key", "subscriber": subscriber or "subscriber", "times": names_in(times),
            "crs": subscriptions_crs, "to_crs": to_crs, "buffer": buffer,
        }  # fmt: skip
        asking = Asking(file, subscriptions_format, template, reading)
        raise typer.Exit(run(SimplifyPlan(asking, across, output, format, as_json, reject, strict, quiet)))


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
    work = SimplifyCounts()
    scrolls = plan.output is None and sys.stdout is not None and sys.stdout.isatty()
    with closing(Rejections(plan.reject)) as rejections, ProgressLine(not scrolls and not plan.quiet) as progress:
        good = _good(plan, rejections, work, progress)
        alone = (FilterGroup((item.key, item.subscriber), item.predicate.filters) for item in good)
        _write(plan, by_subscriber(good) if plan.across else alone, work, progress)
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
        raise FormatError(f"no valid subscription; the first: {first}")


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
        self._file = open_file(output, format)
        self._columns, self._is_csv = _columns(across), format is ResultFormat.csv
        if self._is_csv:
            self._file.write(csv_line(self._columns))

    def add(self, names: tuple[Name | None, ...], filter: str) -> None:
        """Write a row."""
        row = dict(zip(self._columns, (*names, filter), strict=True))
        if not self._is_csv:
            self._file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            return
        for name, value in row.items():
            if isinstance(value, str) and ("\n" in value or "\r" in value):
                raise FormatError(
                    f"CSV cannot hold the line break in {name} {value[:60]!r}; use --format ndjson or parquet"
                )
        self._file.write(csv_line(list(row.values())))

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class FilterTables:
    """Writes rows of Parquet or Arrow at the end, when it is known whether names are integers."""

    def __init__(self, output: Path | None, format: ResultFormat, across: bool) -> None:
        self._file, self._format = open_file(output, format), format
        self._values: dict[str, list[Any]] = {name: [] for name in _columns(across)}

    def add(self, names: tuple[Name | None, ...], filter: str) -> None:
        """Store a row."""
        for values, value in zip(self._values.values(), (*names, filter), strict=True):
            values.append(value)

    def close(self) -> None:
        """Write all rows and finish the file, which is unreadable without its end."""
        try:
            table = self._table()
            with writer_of(self._file, table.schema, self._format) as writer:
                writer.write_table(table, BLOCK_ROWS)
        finally:
            self._file.close()

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
        raise FormatError(f"the {what}s {name} and {name!r} would be equal in a table; use --format ndjson")


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
        yield f"crs:           {attribute} is in {crs} (not part of the filters)"
    yield f"time:          {seconds:.2f} s, {rate(work.read, seconds, 'subscription')}"
    if bad:
        yield "rejected:"
        yield from rejections.lines()
