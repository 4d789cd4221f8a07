"""Find the subscriptions that each message matches.

Matches go to standard output, one JSON object per line, ordered by message and then by subscription; progress and the \
summary go to standard error. Bad rows are counted, and the rest are matched.

\b
Messages and subscriptions in newline JSON:
  contrada match alerts.ndjson subscriptions.ndjson | jq .subscriber
One filter for all facilities, with the region and number of each:
  contrada match alerts.ndjson facilities.geojson --key id \\
    --template 'S_INTERSECTS(area, $geometry) AND severity >= $min_severity'
Facilities as regions, 500 m around their points:
  contrada match alerts/ facilities.geojson --template 'S_INTERSECTS(area, $geometry)' \\
    --to-crs EPSG:3035 --buffer 500
A live feed, answered as messages arrive:
  tail -f feed.ndjson | contrada match - subscriptions.ndjson
Why does nothing match?
  contrada match alerts.ndjson subscriptions.ndjson --explain k17 --limit 3
Write rejected rows to a file, and matches as Parquet:
  contrada match a.parquet s.ndjson --reject bad.ndjson --output matches.parquet
Few messages and many regions, which are read past the messages (auto chooses that by numbers):
  contrada match alerts.ndjson parcels.parquet --template 'S_INTERSECTS(area, $geometry)' --plan scan
A hundred million messages on Spark; matches become a directory of Parquet files:
  contrada match messages/ s.ndjson --spark --master spark://host:7077 --artifacts /shared/tables --output out
The title and time of each message beside its matches:
  contrada match messages/ s.ndjson --spark --keep title,sent --output out
A table larger than a worker's memory, in fifty partitions:
  contrada match messages/ s.ndjson --spark --plan partitioned --partitions 50 --output out
When vehicles enter and leave depots, instead of every position:
  contrada match positions.ndjson depots.geojson --template 'S_WITHIN(geometry, $geometry)' \\
    --track vehicle --time at --on 'enter, exit, dwell(5m)' --exit-buffer 20

Warnings and facilities on either side of the date line:
  contrada match alerts.ndjson subscriptions.ndjson --wrap area=longitude

\b
Exit codes:
  0  done, with or without matches; rejected rows are in the summary
  1  a row was rejected, with --strict; or all messages were rejected
  2  could not run: wrong usage, missing file, no good subscription
"""

from __future__ import annotations

import difflib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from contrada.amounts import counted, rate
from contrada.cli import options
from contrada.cli.ending import FAULTS, INTERRUPTED, require_spark
from contrada.cli.message_reader import Intake, MessageBatch, MessageOptions
from contrada.cli.options import (
    CARE,
    COORDINATES,
    READ,
    SPARK,
    WRITE,
    ByUnit,
    FirstFix,
    LateFixes,
    argument,
    check_paths,
    names_in,
    option,
)
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import NamedRows, ResultFormat, chosen_format, open_file, open_results
from contrada.cli.scanning import FirstMessages, max_messages, scan
from contrada.cli.subscribing import Asking, table_of
from contrada.cli.summary import summary_of_run
from contrada.cli.tracking import EventWriter, TrackedRun, Tracking, tracking_of
from contrada.errors import ContradaError, UnknownKeyError
from contrada.formats.reading import read_zones
from contrada.formats.records import Rejected
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.matching.census import Census
from contrada.matching.row_scan import BatchMatches

INPUT_FORMATS = "ndjson, json, geojson, geojsonseq, cap, parquet, arrow or csv"


class MatchingPlan(StrEnum):
    """Plans for matching in this process, and for distributing tables and messages on Spark."""

    auto = "auto"
    table = "table"
    scan = "scan"
    broadcast = "broadcast"
    partitioned = "partitioned"


Buffered = StrEnum("Buffered", ["both", "messages", "subscriptions"])  # the geometry that --buffer applies to


ZonesFile = Annotated[Path | None, option(READ, "Regions of codes in CAP areas: rows of valueName, value, geometry.")]
Artifacts = Annotated[
    str | None, option(SPARK, "With --master: directory or URI, shared by all machines, for the compiled table.")
]
OutputPlace = Annotated[
    str | None,
    option(WRITE, "Output file; default: standard output. With --spark, a directory or URI.", "--output", "-o"),
]
PlanOption = Annotated[
    MatchingPlan,
    option(
        CARE,
        "table indexes all subscriptions, scan reads them past few messages; with --spark, a broadcast table is whole "
        "in every worker, of a partitioned one each has a part; auto goes by numbers and size.",
    ),
]
Partitions = Annotated[
    int | None, option(SPARK, "With --plan partitioned: approximate number of partitions.", min=1, max=65535)
]


Keep = Annotated[
    str | None, option(SPARK, "With --spark: attributes of messages as further columns of matches, such as title,sent.")
]


def match(
    messages: Annotated[Path, argument("File, directory of files, or - for standard input.")],
    subscriptions: Annotated[Path, argument("Rows of key, subscriber and filter; with --template, any rows.")],
    template: options.Template = None,
    key: options.Key = None,
    subscriber: options.Subscriber = None,
    id: options.Id = None,
    messages_format: Annotated[str | None, option(READ, f"{INPUT_FORMATS}; default: by suffix or first bytes.")] = None,
    subscriptions_format: options.SubscriptionsFormat = None,
    times: options.Times = None,
    zones: ZonesFile = None,
    crs: Annotated[str | None, option(COORDINATES, "CRS of messages that name none; 'none' for plain numbers.")] = None,
    subscriptions_crs: options.SubscriptionsCrs = None,
    to_crs: options.ToCrs = None,
    buffer: options.Buffer = None,
    wrap: options.Wrap = None,
    buffer_of: Annotated[Buffered, option(COORDINATES, "What --buffer applies to.")] = Buffered.both,
    output: OutputPlace = None,
    format: options.Format = None,
    csv_safe: Annotated[bool, option(WRITE, "CSV: put an apostrophe before formulas.", "--csv-safe")] = False,
    by: options.ByOption = ByUnit.subscription,
    explain: Annotated[str | None, option(WRITE, "Explain why each message matches this key or not, instead.")] = None,
    limit: Annotated[int, option(WRITE, "With --explain: maximum number of messages; 0 for all.", min=0)] = 20,
    reject: options.RejectFile = None,
    strict: options.Strict = False,
    quiet: options.Quiet = False,
    threads: Annotated[int | None, option(CARE, "Number of threads; default: one per core.", min=1)] = None,
    spark: Annotated[bool, option(SPARK, "Match on Spark: on all cores, or at --master.", "--spark")] = False,
    master: Annotated[str | None, option(SPARK, "With --spark: the master, such as spark://host:7077 or yarn.")] = None,
    artifacts: Artifacts = None,
    plan: PlanOption = MatchingPlan.auto,
    partitions: Partitions = None,
    keep: Keep = None,
    track: options.Track = None,
    on: options.On = None,
    time: options.EventTime = None,
    exit_buffer: options.ExitBuffer = 0.0,
    exit_after: options.ExitAfter = None,
    first: options.First = FirstFix.enter,
    late: options.Late = LateFixes.ignore,
    expire_after: options.ExpireAfter = None,
) -> None:
    """Match messages with subscriptions; the docstring of this module is the help page."""
    if str(messages) == str(subscriptions) == "-":
        raise typer.BadParameter("messages and subscriptions cannot both come from standard input")
    if template is None and (key or subscriber or subscriptions_crs):
        raise typer.BadParameter("--key, --subscriber and --subscriptions-crs need --template")
    check_spark(spark, [master, artifacts, partitions, keep], plan, partitions, wrap)
    file, uri = output_of(output, spark)
    check_paths([messages, subscriptions, zones], [file, reject])
    asked = {"on": on, "exit_buffer": exit_buffer, "exit_after": exit_after, "first": first.value}
    tracking = tracking_of(track, {"time": time, "late": late.value, "expire_after": expire_after}, asked)
    check_tracking(tracking, spark or explain is not None or by is not ByUnit.subscription, asked)
    read = {"times": names_in(times), "to_crs": to_crs, "wrap": options.wrap_of(wrap)}
    reading = reading_of(messages_format, id, {**read, "crs": crs}, zones, buffer, buffer_of)
    of_rows = {**read, "key": key or "key", "subscriber": subscriber or "subscriber", "crs": subscriptions_crs}
    asking = Asking(subscriptions, subscriptions_format, template, {**of_rows, "buffer": _of_rows(buffer, buffer_of)})
    rest = (reject, strict, quiet, threads, explain, limit, csv_safe, plan.value, tracking)
    work = MatchPlan(messages, reading, asking, file, format, by.value, *rest, uri, tuple(names_in(keep)))
    raise typer.Exit(run_on_spark(work, master, artifacts, plan, partitions) if spark else run(work))


def output_of(output: str | None, spark: bool) -> tuple[Path | None, str | None]:
    """Return the output as a path, or as a URI, which needs --spark."""
    if output is None or "://" not in output:
        return None if output is None else Path(output), None
    if not spark:
        raise typer.BadParameter(f"--output {output:.200}: a URI needs --spark")
    return None, output.rstrip("/")


def reading_of(
    format: str | None, id: str | None, read: dict[str, Any], zones: Path | None, buffer: float | None, of: Buffered
) -> MessageOptions:
    """Return how messages are read."""
    known = None if zones is None else read_zones(zones)
    around = None if of is Buffered.subscriptions else buffer
    return MessageOptions(format, {**read, "zones": known, "buffer": around}, id)


def _of_rows(buffer: float | None, of: Buffered) -> float | None:
    """Return the buffer around subscriptions."""
    return None if of is Buffered.messages else buffer


def run_on_spark(
    work: MatchPlan, master: str | None, artifacts: str | None, plan: MatchingPlan, partitions: int | None
) -> int:
    """Match on Spark; return the exit code."""
    require_spark()
    from contrada.cli.spark import match as spark_match

    wanted: Any = plan.value if plan in (MatchingPlan.broadcast, MatchingPlan.partitioned) else "auto"
    return spark_match.run_on_spark(work, master, artifacts, spark_match.PartitionPlan(wanted, partitions))


def check_tracking(tracking: Tracking | None, is_other: bool, asked: dict[str, Any]) -> None:
    """Raise BadParameter for options that need --track, and for others that do not go with it."""
    if tracking is None and (asked["on"] or asked["exit_buffer"] or asked["exit_after"]):
        raise typer.BadParameter("--on, --exit-buffer and --exit-after need --track")
    if tracking is not None and (is_other or not asked["on"]):
        raise typer.BadParameter("--track needs --on, and does not go with --spark, --explain and --by subscriber")


def check_spark(
    spark: bool, options: list[str | int | None], plan: MatchingPlan, partitions: int | None, wrap: str | None
) -> None:
    """Raise BadParameter for options that need --spark or do not go with it, and for partitions without their plan."""
    if spark and wrap:
        raise typer.BadParameter("--wrap does not go with --spark; use pipeline.match(wrap=), or ingest --wrap")
    is_shared = plan in (MatchingPlan.broadcast, MatchingPlan.partitioned)
    if not spark and (any(options) or is_shared):
        raise typer.BadParameter(
            "--master, --artifacts, --plan broadcast or partitioned, --partitions and --keep need --spark"
        )
    if partitions and plan in (MatchingPlan.broadcast, MatchingPlan.scan):
        raise typer.BadParameter("--partitions needs --plan partitioned, table or auto")


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
    plan: str = "auto"
    tracking: Tracking | None = None
    uri: str | None = None  # an output of Spark in another store
    keep: tuple[str, ...] = ()

    @property
    def place(self) -> Path | str | None:
        """Return where matches go, None for standard output."""
        return self.uri or self.output


@dataclass
class MatchCounts:
    """Counts of messages and matches."""

    messages: int = 0
    matched: int = 0
    matches: int = 0
    objects: int = 0  # that are tracked
    subscriptions: int = 0
    census: Census = field(default_factory=Census)
    began: float = field(default_factory=time.perf_counter)
    is_matching: bool = False

    def start(self, subscriptions: int, asked: dict[str, list[str]]) -> None:
        """Begin to count messages for so many subscriptions, which ask for kinds of values by attribute."""
        self.subscriptions, self.census, self.is_matching = subscriptions, Census(asked), True

    def line(self) -> str:
        """Return the line of progress."""
        return f"{counted(self.messages, 'message')}, {counted(self.matches, 'match', 'matches')}"


class Enough(Exception):
    """The limit on messages is reached."""


def run(plan: MatchPlan) -> int:
    """Match, print the summary, and return the exit code."""
    code = 0
    work = _match_messages if plan.explain is None else _explain_messages
    work = work if plan.tracking is None else _track_messages
    scrolls = plan.output is None and sys.stdout is not None and sys.stdout.isatty()
    with closing(Rejections(plan.reject)) as rejections, ProgressLine(not scrolls and not plan.quiet) as progress:
        counts = MatchCounts()
        try:
            work(plan, rejections, counts, progress)
        except KeyboardInterrupt:  # the usual end of a live stream
            if not counts.is_matching:
                raise
            code = INTERRUPTED
    found = concluded(plan, counts, rejections)
    return code or found


def subscribed(plan: MatchPlan, rejections: Rejections, progress: ProgressLine) -> ForwardingTable:
    """Build the table of the good subscriptions; the others are rejected."""

    def added(count: int) -> None:
        progress.tell(lambda: counted(count, "subscription"))

    table = table_of(plan.asking, partial(rejections.add, what="subscription"), added)
    rejections.flush()  # messages may be long in coming
    return table


def concluded(plan: MatchPlan, counts: MatchCounts, rejections: Rejections) -> int:
    """Print the summary; return 1 if rows were rejected with --strict, or if all messages were."""
    if not plan.quiet:
        for line in summary(plan, counts, rejections):
            typer.echo(line, err=True)
    note_counts(plan, counts, rejections)
    only_bad = rejections.counts["message"] and not counts.messages
    return FAULTS if only_bad or (plan.strict and rejections.counts.total()) else 0


def note_counts(plan: MatchPlan, counts: MatchCounts, rejections: Rejections) -> None:
    """Add the counts of a run to the summary of the command."""
    found = {"subscriptions": counts.subscriptions, "messages": counts.messages}
    if plan.tracking is not None:
        found |= {"events": counts.matches, "objects": counts.objects}
    elif plan.explain is None:
        found |= {"matches": counts.matches, "matched_messages": counts.matched}
    places = [place for place in (plan.place, plan.reject) if place is not None]
    summary_of_run().note(outputs=places, rejected=rejections.counts.total(), **found, **rejections.by_kind())


def summary(plan: MatchPlan, counts: MatchCounts, rejections: Rejections) -> Iterator[str]:
    """Yield the lines of the summary: messages, matches, speed, and rejections."""
    seconds = time.perf_counter() - counts.began
    for what, read in (("subscription", counts.subscriptions), ("message", counts.messages)):
        bad = rejections.counts[what]
        yield f"{what + 's:':<15}{read:,}" + (f", and {bad:,} rejected" if bad else "")
    if plan.tracking is not None:
        yield f"events:        {counts.matches:,}, of {counts.objects:,} objects"
        yield f"time:          {seconds:.2f} s, {rate(counts.messages, seconds, 'message')}"
    elif plan.explain is None:
        kind = "" if plan.by == "subscription" else " (by subscriber)"
        yield f"matches:       {counts.matches:,}{kind}, for {counts.matched:,} of the messages"
        yield f"time:          {seconds:.2f} s, {rate(counts.messages, seconds, 'message')}"
        yield from counts.census.lines()
    yield from rejections.lines()


def answered(
    table: ForwardingTable, batch: MessageBatch, by: By, threads: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Rejected]]:
    """Match a batch; return the number of matches per message, the matched rows, and the bad messages."""
    answer = table.match_many(batch.messages, by, threads)
    rejected = {item.row: item.reason for item in answer.rejected}
    return without_bad(batch, BatchMatches(np.diff(answer.offsets), answer.rows, rejected))


def without_bad(
    batch: MessageBatch, found: BatchMatches
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Rejected]]:
    """Return the matches without those of bad messages: numbers per message, rows, and the bad messages."""
    per_message, rows, rejected = found
    bad = {**batch.bad, **rejected}
    if batch.bad:  # bad messages match nothing
        kept = ~np.isin(np.arange(len(per_message)), list(batch.bad))
        rows = rows[np.repeat(kept, per_message)]
        per_message = np.where(kept, per_message, 0)
    return per_message, rows, [Rejected(*batch.places[k], bad[k], batch.raw(k)) for k in sorted(bad)]


class MatchWriter:
    """Writes the matches of batches, and counts them; `names` has the names of matched rows."""

    def __init__(self, plan: MatchPlan, names: NamedRows, rejections: Rejections, counts: MatchCounts) -> None:
        self._rejections, self._counts = rejections, counts
        format = chosen_format(plan.format, plan.output)
        self._results = open_results(plan.output, format, names, plan.by, plan.csv_safe)

    def write(
        self, batch: MessageBatch, per_message: NDArray[np.int64], rows: NDArray[np.int64], bad: list[Rejected]
    ) -> None:
        """Write what `answered` returns for a batch."""
        counts = self._counts
        for item in bad:
            self._rejections.add(item, "message")
        counts.census.add(batch.messages)
        self._results.write(batch.ids, per_message, rows)
        counts.messages += len(batch.ids) - len(bad)
        counts.matches += len(rows)
        counts.matched += int(np.count_nonzero(per_message))

    def close(self) -> None:
        """Finish the file."""
        self._results.close()


def _match_messages(plan: MatchPlan, rejections: Rejections, counts: MatchCounts, progress: ProgressLine) -> None:
    """Match messages, and write the matches: few messages by a scan of the subscriptions, others by a table."""
    with ExitStack() as opened:

        def begin() -> Callable[[MessageBatch], None]:
            table = subscribed(plan, rejections, progress)
            counts.began = time.perf_counter()
            counts.start(len(table), table.asked_kinds())
            writer = opened.enter_context(closing(MatchWriter(plan, table, rejections, counts)))

            def take(batch: MessageBatch) -> None:
                writer.write(batch, *answered(table, batch, plan.by, plan.threads))
                progress.tell(counts.line, intake.position)

            return take

        most = max_messages(plan.asking, plan.plan)
        held = FirstMessages(most, begin, partial(rejections.add, what="message"))
        waits = held.release if plan.plan == "auto" else lambda: None  # a live stream is answered as it arrives
        intake = _intake(plan, held.take, held.reject, rejections.flush, waits)
        if not most:
            held.release()
        try:
            intake.run(plan.messages)
        except Exception:
            held.release()  # errors and matches come in the order in which a table tells them
            raise
        if held.are_held and not _scan_held(plan, held, rejections, counts, progress):
            held.release()


def _scan_held(
    plan: MatchPlan, held: FirstMessages, rejections: Rejections, counts: MatchCounts, progress: ProgressLine
) -> bool:
    """Match the held messages by a scan of the subscriptions; return False if a table is necessary."""

    def read(rows: int) -> None:
        progress.tell(lambda: counted(rows, "subscription"))

    reject = partial(rejections.add, what="subscription")
    found = scan(plan.asking, held.batches, reject, read, plan.threads)
    if found is None:
        return False
    counts.start(found.good, found.asked)
    matches = found.matches(plan.by)
    with closing(MatchWriter(plan, found.names, rejections, counts)) as writer:
        held.replay(lambda batch: writer.write(batch, *without_bad(batch, next(matches))))
    return True


def _track_messages(plan: MatchPlan, rejections: Rejections, counts: MatchCounts, progress: ProgressLine) -> None:
    """Write what tracked objects do."""
    assert plan.tracking is not None
    tracked = TrackedRun(plan.tracking, plan.asking, partial(rejections.add, what="subscription"))
    rejections.flush()
    counts.start(len(tracked.tracker), {})
    file = open_file(plan.output, chosen_format(plan.format, plan.output))
    with closing(EventWriter(file, plan.csv_safe)) as writer:

        def take(batch: MessageBatch) -> None:
            events, bad = tracked.take(batch, plan.threads)
            for item in bad:
                rejections.add(item, "message")
            writer.write(events)
            counts.messages += len(batch.ids) - len(bad)
            counts.matches += len(events)
            counts.objects = tracked.tracker.tracks.objects
            progress.tell(counts.line, intake.position)

        intake = _intake(plan, take, partial(rejections.add, what="message"), rejections.flush)
        intake.run(plan.messages)
        last = tracked.finish()
        writer.write(last)
        counts.matches += len(last)


def _explain_messages(plan: MatchPlan, rejections: Rejections, counts: MatchCounts, progress: ProgressLine) -> None:
    """Write why each message matches a subscription or not, up to the limit."""
    table = subscribed(plan, rejections, progress)
    counts.start(len(table), table.asked_kinds())
    key = _key_in(table, plan.explain or "")
    is_chosen = plan.format is not None or plan.output is not None
    is_json = chosen_format(plan.format, plan.output) is ResultFormat.ndjson and is_chosen
    opened: AbstractContextManager[IO[str]] = (
        nullcontext(sys.stdout) if plan.output is None else plan.output.open("w", encoding="utf-8")
    )

    def take(batch: MessageBatch) -> None:
        for k, message in enumerate(batch.messages):
            source, unit, number = batch.places[k]
            try:
                why = table.explain(message, key)
            except ContradaError as error:
                rejections.add(Rejected(source, unit, number, str(error), batch.raw(k)), "message")
                continue
            if is_json:
                own: dict[str, Any] = {"message": batch.ids[k], **why.to_dict()}
                out.write(json.dumps(own, ensure_ascii=False) + "\n")
            else:
                out.write(f"message {batch.ids[k]} ({source}, {unit} {number})\n{why}\n\n")
            counts.messages += 1
            if counts.messages == plan.limit:
                raise Enough
        out.flush()

    with opened as out, suppress(Enough):
        _intake(plan, take, partial(rejections.add, what="message"), rejections.flush).run(plan.messages)


def _intake(
    plan: MatchPlan,
    take: Callable[[MessageBatch], None],
    reject: Callable[[Rejected], None],
    pause: Callable[[], None],
    waits: Callable[[], None] = lambda: None,
) -> Intake:
    """Return the reader of a run's messages."""
    by_rows = plan.explain is None
    return Intake(plan.reading, take, reject, by_rows=by_rows, pause=pause, waits=waits, threads=plan.threads)


def _key_in(table: ForwardingTable, text: str) -> str | int:
    """Return the key for the text on the command line: the text itself, or the integer in it."""
    if text in table:
        return text
    if text.lstrip("-").isdecimal() and int(text) in table:
        return int(text)
    close = difflib.get_close_matches(text, map(str, table), 3) if len(table) <= 100_000 else []
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    raise UnknownKeyError(f"no subscription has the key {text!r}{hint}")
