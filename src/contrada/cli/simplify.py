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
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, islice, tee
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.amounts import counted, rate
from contrada.cli import options, results
from contrada.cli.ending import FAULTS
from contrada.cli.options import WRITE, argument, check_paths, names_in, option
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.subscribing import Asking, FirstRejected, Parsed, good_subscriptions, no_subscription
from contrada.cli.summary import summary_of_run
from contrada.errors import FormatError
from contrada.model import Filter, Predicate
from contrada.simplification.simplifying import Simplification, simplified_groups

Row = tuple[results.Name | None, ...]  # names, and the filter of a written row
FilterGroup = tuple[Row, Sequence[Filter]]  # the names of a result, and the filters that are simplified together
BLOCK_ROWS = 1 << 16  # rows of a table written together


FILE_HELP = "Rows of key, subscriber and filter, or with --template any rows; - for standard input."

JSON_HELP = "Print the report as JSON: to standard output if --output names a file, else to standard error."


def simplify(
    file: Annotated[Path, argument(FILE_HELP)],
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
    across: Annotated[
        bool, option(WRITE, "Merge the subscriptions of each subscriber into one, without a key.", "--across")
    ] = False,
    as_json: Annotated[bool, option(WRITE, JSON_HELP, "--json")] = False,
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
    reading = {
        "key": key or "key", "subscriber": subscriber or "subscriber", "times": names_in(times),
        "crs": subscriptions_crs, "to_crs": to_crs, "buffer": buffer,
    }  # fmt: skip
    work = SimplifyCounts(across)
    scrolls = output is None and sys.stdout is not None and sys.stdout.isatty()
    with closing(Rejections(reject)) as rejections, ProgressLine(not scrolls and not quiet) as progress:
        good = _good(Asking(file, subscriptions_format, template, reading), rejections, work, progress)
        alone = (((item.key, item.subscriber), item.predicate.filters) for item in good)
        rows = _simplified(by_subscriber(good) if across else alone, work, progress)
        _write(output, results.chosen_format(format, output), across, rows)
    places = [place for place in (output, reject) if place is not None]
    found = {"subscriptions": work.read, "written": work.groups}
    summary_of_run().note(outputs=places, rejected=rejections.counts.total(), **found)
    if as_json and not quiet:  # on standard output, if that is free
        typer.echo(json.dumps(work.to_dict(rejections), ensure_ascii=False), err=output is None)
    for line in () if as_json or quiet else summary(work, rejections):
        typer.echo(line, err=True)
    raise typer.Exit(FAULTS if strict and rejections.counts.total() else 0)


@dataclass
class SimplifyCounts:
    """Counts of the subscriptions so far."""

    across: bool
    read: int = 0
    groups: int = 0
    report: Simplification = field(default_factory=Simplification)
    crs: dict[str, str | None] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)

    def line(self) -> str:
        """Return the line of progress."""
        return f"{counted(self.read, 'subscription')} read, {self.groups:,} simplified"

    def to_dict(self, rejections: Rejections) -> dict[str, Any]:
        """Return the report as JSON has it."""
        own = {"subscriptions": self.read, "rejected": rejections.counts.total(), "written": self.groups}
        return own | asdict(self.report) | {"crs": self.crs, "seconds": round(time.perf_counter() - self.began, 3)}


def _good(asking: Asking, rejections: Rejections, work: SimplifyCounts, progress: ProgressLine) -> Iterator[Parsed]:
    """Yield the good subscriptions; a file with bad ones only is an error."""
    note = FirstRejected(partial(rejections.add, what="subscription"))
    for item in good_subscriptions(asking, note, work.crs):
        work.read += 1
        progress.tell(work.line)
        yield item
    if note.first is not None and not work.read:
        raise no_subscription(asking, note.first)


def by_subscriber(items: Iterator[Parsed]) -> Iterator[FilterGroup]:
    """Group filters by subscriber, in the order of keys; subscriptions without a key come last, in input order."""
    asked: dict[results.Name, list[tuple[bool, bool, Any, Predicate]]] = {}
    for number, item in enumerate(items):
        key = number if item.key is None else item.key
        asked.setdefault(item.subscriber, []).append((item.key is None, isinstance(item.key, str), key, item.predicate))
    for subscriber, those in asked.items():
        those.sort(key=lambda one: one[:3])
        yield (subscriber,), [part for *_, predicate in those for part in predicate.filters]


def _simplified(groups: Iterator[FilterGroup], work: SimplifyCounts, progress: ProgressLine) -> Iterator[Row]:
    """Yield the rows of simplified groups."""

    def done(count: int) -> None:
        work.groups += count
        progress.tell(work.line)

    named, unnamed = tee(groups)
    filters = (own for _, own in unnamed)
    for one, (names, _) in zip(simplified_groups(filters, done), named, strict=True):
        work.report = work.report.plus(one.report)
        yield *names, str(Predicate(one.filters))


def _write(output: Path | None, format: results.ResultFormat, across: bool, rows: Iterator[Row]) -> None:
    """Write rows to a file or standard output."""
    first = list(islice(rows, 1))  # before the file is opened: a file with bad subscriptions only is an error
    columns = ["subscriber", "filter"] if across else ["key", "subscriber", "filter"]
    with closing(results.open_file(output, format)) as file:
        (_write_table if format in results.BINARY else _write_lines)(file, columns, chain(first, rows))


def _write_lines(file: results.ResultFile, columns: list[str], rows: Iterator[Row]) -> None:
    """Write rows as lines of JSON or CSV."""
    if file.format is results.ResultFormat.ndjson:
        for row in rows:
            file.write(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False).encode() + b"\n")
        return
    file.write(results.csv_line(columns))
    for row in rows:
        for name, value in zip(columns, row, strict=True):
            if isinstance(value, str) and ("\n" in value or "\r" in value):
                raise FormatError(
                    f"CSV cannot hold the line break in {name} {value[:60]!r}; use --format ndjson or parquet"
                )
        file.write(results.csv_line(list(row)))


def _write_table(file: results.ResultFile, columns: list[str], rows: Iterator[Row]) -> None:
    """Write rows of Parquet or Arrow at the end, when it is known whether names are integers."""
    import pyarrow as pa

    stored: list[Row] = []
    try:
        for row in rows:
            stored.append(row)  # rows before an error are written, too
    finally:
        values = {name: [row[k] for row in stored] for k, name in enumerate(columns)}
        for name, own in values.items():
            _refuse_alike(name, own)
        table = pa.table({name: results.name_column(own) for name, own in values.items()})
        with results.writer_of(file, table.schema) as writer:
            writer.write_table(table, BLOCK_ROWS)


def _refuse_alike(what: str, names: list[results.Name | None]) -> None:
    """Raise if an integer and a text are equal as text: a column that holds both is text."""
    numbers = {str(name) for name in names if isinstance(name, int)}
    for name in numbers.intersection(name for name in names if isinstance(name, str)):
        raise FormatError(f"the {what}s {name} and {name!r} would be equal in a table; use --format ndjson")


def summary(work: SimplifyCounts, rejections: Rejections) -> Iterator[str]:
    """Yield the lines of the summary: subscriptions, rules applied, speed, and rejections."""
    seconds = time.perf_counter() - work.began
    bad = rejections.counts.total()
    yield f"subscriptions: {work.read:,}" + (f", and {bad:,} rejected" if bad else "")
    if work.across:
        yield f"subscribers:   {work.groups:,}"
    yield from str(work.report).splitlines()
    for attribute, crs in work.crs.items():
        yield f"crs:           {attribute} is in {crs} (not part of the filters)"
    yield f"time:          {seconds:.2f} s, {rate(work.read, seconds, 'subscription')}"
    yield from rejections.lines()
