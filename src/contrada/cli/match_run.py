"""Run `contrada match`: build a table of subscriptions, match messages in batches, write matches and a summary."""

from __future__ import annotations

import difflib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import typer
from numpy.typing import NDArray

from contrada.amounts import counted, rate
from contrada.cli.ending import FAULTS, INTERRUPTED
from contrada.cli.message_reader import Intake, MessageBatch, MessageOptions
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import By, MatchLines, MatchTables, ResultFormat, chosen_format, open_results
from contrada.cli.subscribing import Asking, table_of
from contrada.errors import ContradaError, UnknownKeyError
from contrada.formats.records import Rejected
from contrada.matching import ForwardingTable
from contrada.matching.census import Census


@dataclass(frozen=True)
class MatchPlan:
    """The parameters of a run: messages, subscriptions, output and limits."""

    messages: Path
    reading: MessageOptions
    asking: Asking
    output: Path | None = None
    format: ResultFormat | None = None
    by: By = "subscription"
    reject: Path | None = None
    strict: bool = False
    quiet: bool = False
    threads: int | None = None
    explain: str | None = None
    limit: int = 0
    csv_safe: bool = False


@dataclass
class MatchCounts:
    """Counts of messages and matches."""

    messages: int = 0
    matched: int = 0
    matches: int = 0
    subscriptions: int = 0
    census: Census = field(default_factory=Census)
    began: float = field(default_factory=time.perf_counter)

    def line(self) -> str:
        """Return the line of progress."""
        return f"{counted(self.messages, 'message')}, {counted(self.matches, 'match', 'matches')}"


class Enough(Exception):
    """The limit on messages is reached."""


def run(plan: MatchPlan) -> int:
    """Match, print the summary, and return the exit code."""
    rejections = Rejections(plan.reject)
    counts = MatchCounts()
    code = 0
    scrolls = plan.output is None and sys.stdout is not None and sys.stdout.isatty()
    try:
        with ProgressLine(not scrolls and not plan.quiet) as progress:
            table = subscribed(plan, rejections, progress)
            counts = MatchCounts(subscriptions=len(table), census=Census(table.asked_kinds()))
            kind: type[MatchRun | Explained] = MatchRun if plan.explain is None else Explained
            work = kind(plan, table, rejections, counts)
            try:
                work.run(progress)
            except KeyboardInterrupt:  # the usual end of a live stream
                code = INTERRUPTED
            finally:
                work.close()
    finally:
        rejections.close()
    found = concluded(plan, counts, rejections)
    return code or found


def subscribed(plan: MatchPlan, rejections: Rejections, progress: ProgressLine) -> ForwardingTable:
    """Build the table of the good subscriptions; the others are rejected."""
    table = table_of(
        plan.asking,
        lambda item: rejections.add(item, "subscription"),
        lambda count: progress.tell(lambda: counted(count, "subscription")),
    )
    rejections.flush()  # messages may be long in coming
    return table


def concluded(plan: MatchPlan, counts: MatchCounts, rejections: Rejections) -> int:
    """Print the summary; return 1 if rows were rejected with --strict, or if all messages were."""
    if not plan.quiet:
        for line in summary(plan, counts, rejections):
            typer.echo(line, err=True)
    only_bad = rejections.counts["message"] and not counts.messages
    return FAULTS if only_bad or (plan.strict and rejections.counts.total()) else 0


def summary(plan: MatchPlan, counts: MatchCounts, rejections: Rejections) -> Iterator[str]:
    """Yield the lines of the summary: messages, matches, speed, and rejections."""
    seconds = time.perf_counter() - counts.began
    for what, read in (("subscription", counts.subscriptions), ("message", counts.messages)):
        bad = rejections.counts[what]
        yield f"{what + 's:':<15}{read:,}" + (f", and {bad:,} rejected" if bad else "")
    if plan.explain is None:
        kind = "" if plan.by == "subscription" else " (by subscriber)"
        yield f"matches:       {counts.matches:,}{kind}, for {counts.matched:,} of the messages"
        yield f"time:          {seconds:.2f} s, {rate(counts.messages, seconds, 'message')}"
        yield from counts.census.lines()
    if rejections.counts:
        yield "rejected:"
        yield from rejections.lines()


def answered(
    table: ForwardingTable, batch: MessageBatch, by: By, threads: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Rejected]]:
    """Match a batch; return the number of matches per message, the matched rows, and the bad messages."""
    answer = table.match_many(batch.messages, by, threads)
    per_message, rows = np.diff(answer.offsets), answer.rows
    bad = {**batch.bad, **{item.row: item.reason for item in answer.rejected}}
    if batch.bad:  # bad messages match nothing
        kept = ~np.isin(np.arange(len(per_message)), list(batch.bad))
        rows = rows[np.repeat(kept, per_message)]
        per_message = np.where(kept, per_message, 0)
    return per_message, rows, [Rejected(*batch.places[k], bad[k], batch.raw(k)) for k in sorted(bad)]


class MatchRun:
    """Reads messages and writes matches."""

    def __init__(self, plan: MatchPlan, table: ForwardingTable, rejections: Rejections, counts: MatchCounts) -> None:
        self._plan, self._table, self._rejections, self._counts = plan, table, rejections, counts
        self._results: MatchLines | MatchTables = open_results(
            plan.output, chosen_format(plan.format, plan.output), table, plan.by, plan.csv_safe
        )
        self._progress = ProgressLine(False)
        self._intake = Intake(
            plan.reading, self._take, lambda item: rejections.add(item, "message"), pause=rejections.flush
        )

    def run(self, progress: ProgressLine) -> None:
        """Read and match all messages."""
        self._progress = progress
        self._intake.run(self._plan.messages)

    def close(self) -> None:
        """Finish the results."""
        self._results.close()

    def _take(self, batch: MessageBatch) -> None:
        per_message, rows, bad = answered(self._table, batch, self._plan.by, self._plan.threads)
        for item in bad:
            self._rejections.add(item, "message")
        self._counts.census.add(batch.messages)
        self._results.write(list(batch.ids), per_message, rows)
        self._counts.messages += len(batch.ids) - len(bad)
        self._counts.matches += len(rows)
        self._counts.matched += int(np.count_nonzero(per_message))
        self._progress.tell(self._counts.line, self._intake.position)


class Explained:
    """Reads messages and writes why each matches a subscription or not."""

    def __init__(self, plan: MatchPlan, table: ForwardingTable, rejections: Rejections, counts: MatchCounts) -> None:
        self._plan, self._table, self._rejections, self._counts = plan, table, rejections, counts
        self._key = _key_in(table, plan.explain or "")
        self._is_json = chosen_format(plan.format, plan.output) is ResultFormat.ndjson and (
            plan.format is not None or plan.output is not None
        )
        self._out: IO[str] = sys.stdout if plan.output is None else plan.output.open("w", encoding="utf-8")
        self._intake = Intake(
            plan.reading,
            self._take,
            lambda item: rejections.add(item, "message"),
            by_rows=False,
            pause=rejections.flush,
        )

    def run(self, progress: ProgressLine) -> None:
        """Read messages, up to the limit."""
        try:
            self._intake.run(self._plan.messages)
        except Enough:
            return

    def close(self) -> None:
        """Finish the output."""
        self._out.flush()
        if self._plan.output is not None:
            self._out.close()

    def _take(self, batch: MessageBatch) -> None:
        for k, message in enumerate(batch.messages):
            try:
                why = self._table.explain(message, self._key)
            except ContradaError as error:
                self._rejections.add(Rejected(*batch.places[k], str(error), batch.raw(k)), "message")
                continue
            source, unit, number = batch.places[k]
            if self._is_json:
                own: dict[str, Any] = {"message": batch.ids[k], **why.to_dict()}
                self._out.write(json.dumps(own, ensure_ascii=False) + "\n")
            else:
                self._out.write(f"message {batch.ids[k]} ({source}, {unit} {number})\n{why}\n\n")
            self._counts.messages += 1
            if self._counts.messages == self._plan.limit:
                raise Enough
        self._out.flush()


def _key_in(table: ForwardingTable, text: str) -> str | int:
    """Return the key for the text on the command line: the text itself, or the integer in it."""
    if text in table:
        return text
    if text.lstrip("-").isdecimal() and int(text) in table:
        return int(text)
    close = difflib.get_close_matches(text, map(str, table), 3) if len(table) <= 100_000 else []
    raise UnknownKeyError(
        f"no subscription has the key {text!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
    )
