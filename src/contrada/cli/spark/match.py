"""`contrada match --spark`: the same files, options and answers, with messages matched by Spark's workers.

Spark itself reads Parquet, in as many splits as it chooses. Every other format is read by the same code as without
Spark, one file per task. The table is whole or in partitions, by --plan or by its size; few messages need none.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import typer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from contrada.amounts import byte_size, counted
from contrada.cli.match import MatchCounts, MatchPlan, concluded, subscribed
from contrada.cli.message_reader import MessageOptions
from contrada.cli.progress import ProgressLine
from contrada.cli.rejections import Rejections
from contrada.cli.results import ResultFormat, chosen_format, name_column
from contrada.cli.spark.files import FURTHER, Table, read_files
from contrada.cli.spark.running import interruptible
from contrada.cli.spark.scanning import may_scan, scan_rows
from contrada.cli.subscribing import Asking, FirstRejected, Parsed, Reject, good_subscriptions, no_subscription
from contrada.errors import ContradaError
from contrada.formats.records import IDENTIFIERS, SUFFIXES, Rejected, files_of
from contrada.formats.tables.row_files import row_text
from contrada.matching import ForwardingTable
from contrada.matching.census import Census
from contrada.pipeline import kept
from contrada.pipeline.answers import ID, answer_schema, name_types
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.batch.census import asked_census
from contrada.pipeline.batch.compiling import Plan
from contrada.pipeline.batch.matching import Matched, match
from contrada.pipeline.kept import checked_names, text_ids, unfolded
from contrada.pipeline.outputs import UNMARKED, complete_output, output_place
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.sizing import table_limits
from contrada.pipeline.partitioned.splitting import split
from contrada.pipeline.spark_types import artifacts_place
from contrada.pipeline.systems import common_systems, with_systems
from contrada.spark_names import quoted

WRITERS = {ResultFormat.parquet: "parquet", ResultFormat.csv: "csv", ResultFormat.ndjson: "json"}


# The answers to all messages: matches with `message_id`, `subscriber` and, by subscription, `key`; rejections with the
# fields of `Rejected`; totals, one row of good messages, matched messages and censuses as JSON; the persisted frame.
FileAnswers = tuple[DataFrame, DataFrame, DataFrame, DataFrame]


def run_on_spark(plan: MatchPlan, master: str | None, artifacts: str | None, wanted: PartitionPlan) -> int:
    """Match, write matches to a directory, print the summary, and return the exit code."""
    with interruptible() as interruption:
        format, files = _checked(plan), _message_files(plan)
        with closing(Rejections(plan.reject)) as rejections, ProgressLine(not plan.quiet) as progress:
            run = SparkRun(plan, wanted, files, rejections, progress)
            progress.tell(lambda: "starting Spark")
            spark = interruption.start(master)
            try:
                counts, told = run.matched(spark, artifacts_place(spark, artifacts), format)
            finally:
                spark.stop()
        if not plan.quiet:
            typer.echo(f"plan:          {told}", err=True)
        return concluded(plan, counts, rejections)


class SparkRun:
    """Messages and subscriptions of a run; subscriptions are read before Spark starts unless a scan is tried."""

    def __init__(
        self,
        plan: MatchPlan,
        wanted: PartitionPlan,
        files: list[str],
        rejections: Rejections,
        progress: ProgressLine,
    ) -> None:
        self._plan, self._files, self._rejections = plan, files, rejections
        self._is_parquet = _is_parquet(plan.reading, files)
        self._read = partial(SparkSubscriptions, plan, wanted, rejections, progress)
        is_tried = may_scan(plan, wanted.partitions, self._is_parquet)
        self._subscriptions = None if is_tried else self._read()

    def matched(self, spark: SparkSession, place: str, format: str) -> tuple[MatchCounts, str]:
        """Match and write the matches; return the counts, and the plan with its reason."""
        plan, trouble, counts = self._plan, "", MatchCounts()
        frame = _parquet_messages(spark, plan, self._files) if self._is_parquet else None
        checked_names("--keep", plan.keep, plan.keep if frame is None else frame.columns, ["message"])
        if self._subscriptions is None:
            assert frame is not None
            found = scan_rows(spark, plan, frame, partial(self._rejections.add, what="subscription"))
            if isinstance(found, Matched):
                assert found.compiled is not None
                assert found.scan is not None
                counts.subscriptions, counts.census = found.compiled.count, Census(found.scan.asked)
                _write(plan, _answers_of(found), format, self._rejections, counts)
                return counts, f"scan; {found.why}"
            trouble = f"{found}; " if found else ""
            self._subscriptions = self._read()
        table, why = self._subscriptions.placed(spark, place)
        counts = MatchCounts(subscriptions=table.subscriptions, census=asked_census(table))
        answers = _of_files(spark, plan, table, self._files) if frame is None else _of_parquet(frame, plan, table)
        _write(plan, answers, format, self._rejections, counts)
        parts = "" if isinstance(table, Artifact) else f", {counted(len(table.partitions), 'partition')}"
        return counts, f"{'partitioned' if parts else 'broadcast'}{parts}; {trouble}{why}"


def _checked(plan: MatchPlan) -> str:
    """Return Spark's name of the output format; raise for options that Spark does not support."""
    if plan.place is None:
        raise ContradaError("--spark needs --output, a directory")
    if plan.explain is not None:
        raise ContradaError("--explain does not work with --spark")
    if str(plan.messages) == "-":
        raise ContradaError("--spark cannot read standard input; use files")
    if plan.csv_safe:
        raise ContradaError("--csv-safe does not work with --spark")
    name = Path(plan.place)  # only its suffix counts
    format = plan.format or (chosen_format(None, name) if name.suffix else ResultFormat.parquet)
    if format not in WRITERS:
        raise ContradaError(f"--spark: need the format parquet, csv or ndjson, got {format}")
    return WRITERS[format]


def _message_files(plan: MatchPlan) -> list[str]:
    files = [str(path) for path in files_of(plan.messages)]
    if not files:
        raise ContradaError(f"{plan.messages}: no file has a known suffix; pass --messages-format")
    return files


def _write(plan: MatchPlan, answers: FileAnswers, format: str, rejections: Rejections, counts: MatchCounts) -> None:
    """Write the matches, add the rejected messages, and count."""
    matches, rejected, totals, persisted = answers
    names = [f.col(name).cast("string") for name in kept.NAMES if name in matches.columns]
    written = matches.select(f.col(ID).alias("message"), *(f.col(quoted(name)) for name in plan.keep), *names)
    writer = written.write.mode("errorifexists").options(**UNMARKED)
    writer.format(format).save(str(plan.place))
    for row in rejected.toLocalIterator():
        rejections.add(Rejected(*row), "message")
    *sums, censuses = totals.collect()[0]
    counts.messages, counts.matched = (int(total or 0) for total in sums)
    counts.matches = matches.count()
    for text in censuses:
        counts.census.merge(text)
    persisted.unpersist()
    assert plan.place is not None
    found = {"subscriptions": counts.subscriptions, "messages": counts.messages, "matches": counts.matches}
    complete_output(output_place(plan.place), {**found, **rejections.by_kind()}, written.sparkSession)


def _is_parquet(reading: MessageOptions, files: list[str]) -> bool:
    """Return True if Spark can read the messages itself: plain Parquet in one coordinate reference system."""
    formats = {reading.format or SUFFIXES.get(Path(path).suffix.lower()) for path in files}
    is_plain = formats == {"parquet"} and not any(value for name, value in reading.options.items() if name != "zones")
    return is_plain and common_systems(list(map(os.path.abspath, files))) is not None


def _parquet_messages(spark: SparkSession, plan: MatchPlan, files: list[str]) -> DataFrame:
    """Return the messages of Parquet files, identified as without Spark."""
    frame = spark.read.parquet(*files)
    place = f.col("_metadata.file_path"), f.col("_metadata.row_index")
    id = _identifier(frame, plan.reading.id, len(files) > 1, place[1])
    known = f.struct(id.alias("message"), place[0].alias("source"), place[1].alias("number"))
    systems = common_systems(list(map(os.path.abspath, files))) or {}
    own = {name: crs for name, crs in systems.items() if name in frame.columns}
    return with_systems(frame.withColumn(ID, known), own)


def _of_parquet(messages: DataFrame, plan: MatchPlan, artifact: Table) -> FileAnswers:
    return _answers_of(match(messages, artifact, by=plan.by, keep=plan.keep))


def _answers_of(found: Matched) -> FileAnswers:
    """Return the answers to messages of Parquet files."""
    matches = found.matches.withColumn(ID, f.col("message_id.message")).persist()  # distinct ones are found once
    place_of = "message_id.source", f.lit("row"), "message_id.number"
    rejected = found.rejected.select(*place_of, "reason", f.lit(""), f.lit(False))
    census, id = found.census(), f.col(f"{ID}.{ID}" if found.keep else ID)
    bad, good = (f.count_distinct(f.when(f.col("reason").isNotNull() == is_bad, id)) for is_bad in (True, False))
    totals = found.answers.select(f.lit(census.messages) - bad, good, f.array(f.lit(census.to_json())))
    return matches, rejected, totals, matches


def _identifier(frame: DataFrame, named: str | None, several: bool, row: Column) -> Column:
    """Return the identifier of a message: the named column, a usual one, or its row."""
    if named is not None and named not in frame.columns:
        raise ContradaError(f"need column {named!r} to identify messages; columns: {', '.join(frame.columns)}")
    names = [named] if named is not None else [name for name in IDENTIFIERS if name in frame.columns]
    by_row = row.cast("string")
    if several:
        file = f.element_at(f.split(f.col("_metadata.file_path"), "/"), -1)
        by_row = f.concat(file, f.lit(":"), by_row)
    return f.coalesce(*(f.col(quoted(name)).cast("string") for name in names), by_row)


def _of_files(spark: SparkSession, plan: MatchPlan, artifact: Table, files: list[str]) -> FileAnswers:
    """Match files of any format, one task per file."""
    rows = spark.createDataFrame([(path,) for path in files], "path string").repartition(len(files))
    read = partial(read_files, reading=plan.reading, table=artifact, by=plan.by, several=len(files) > 1, keep=plan.keep)
    ids = from_arrow_schema(pa.schema({ID: text_ids(plan.keep)}))
    schema = answer_schema(ids, name_types(artifact), plan.by, FURTHER)
    answers = rows.mapInArrow(read, schema).persist()
    found = answers.where("found IS NOT NULL").select(ID, f.inline("found"))
    matches = unfolded(found, plan.keep, (), found.columns[1:])
    rejected = answers.where("reason IS NOT NULL").select(*Rejected._fields)
    totals = answers.select(f.sum("read"), f.sum("matched"), f.collect_list("census"))
    return matches, rejected, totals, answers


class PartitionPlan(NamedTuple):
    """The plan, and the number of partitions, if given."""

    plan: Plan = "auto"
    partitions: int | None = None


class SparkSubscriptions:
    """The good subscriptions, read before Spark starts: as a table, or as rows for partitions."""

    def __init__(self, plan: MatchPlan, wanted: PartitionPlan, rejections: Rejections, progress: ProgressLine) -> None:
        self._asking, self._wanted, self._rejections = plan.asking, wanted, rejections
        self._found: ForwardingTable | SplitRows
        if wanted.plan == "partitioned":
            self._found = split_rows(plan.asking, partial(rejections.add, what="subscription"))
            if not self._found.table.num_rows:
                raise no_subscription(plan.asking, self._found.first)
        else:
            self._found = subscribed(plan, rejections, progress)

    def placed(self, spark: SparkSession, place: str) -> tuple[Table, str]:
        """Publish the subscriptions at `place`; return the table, and why it is whole or in partitions."""
        most, each = table_limits(spark)
        if isinstance(self._found, SplitRows):
            why = "as requested" + (", with the number of partitions" if self._wanted.partitions else "")
            return self._split(self._found, self._found.table.nbytes / each, place), why
        table = publish(self._found, place)
        if self._wanted.plan == "broadcast":
            return table, "as requested"
        fits = table.bytes <= most
        room = f"{'' if fits else 'no more than '}{byte_size(most)}"
        why = f"the table has {byte_size(table.bytes)}, a worker holds {room}"
        if fits:
            return table, why
        if str(self._asking.source) == "-":
            raise ContradaError(f"{why}, and standard input cannot be read again; pass --plan partitioned")
        rows = split_rows(self._asking, lambda item: None)  # rejections were reported on the first reading
        return self._split(rows, table.bytes / each, place), why

    def _split(self, rows: SplitRows, parts: float, place: str) -> PartitionedArtifact:
        made, bad = split(rows.table, rows.template, place, self._wanted.partitions or max(2, math.ceil(parts)))
        late = [Rejected(*rows.origins[row], reason, row_text(rows.table, row)) for row, reason in bad]
        for item in late if rows is self._found else ():  # else they were rejected on the first reading
            self._rejections.add(item, "subscription")
        if not made.subscriptions:
            raise no_subscription(self._asking, rows.first or next(iter(late), None))
        return made


class SplitRows(NamedTuple):
    """Subscriptions for `split`, their origins, and the first bad one."""

    table: Any
    template: Any
    origins: Sequence[tuple[str, str, int]]
    first: Rejected | None


def split_rows(asking: Asking, reject: Reject) -> SplitRows:
    """Read subscriptions as rows for `split`; bad ones are passed to `reject`."""
    note = FirstRejected(reject)
    if asking.template is not None:
        template, found = asking.rows()
        for item in found.rejected:
            note(item)
        return SplitRows(found.table, template, found.origins, note.first)
    good = list(good_subscriptions(asking, note))
    return SplitRows(_text_table(good), None, [one[:3] for one in good], note.first)


def _text_table(good: list[Parsed]) -> Any:
    """Return subscriptions as columns; those without a key get unused numbers."""
    used = {one.key for one in good}
    free = (number for number in range(2 * len(good) + 1) if number not in used)
    keys = name_column([next(free) if one.key is None else one.key for one in good])
    if len(keys.unique()) < len(keys):
        raise ContradaError("a key exists both as text and as a number; partitions need keys of one type")
    subscribers, filters = [one.subscriber for one in good], [str(one.predicate) for one in good]
    return pa.table({"key": keys, "subscriber": name_column(subscribers), "filter": name_column(filters)})
