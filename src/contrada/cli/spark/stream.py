"""Run `contrada stream`: open source and sink, match, and show a line of progress."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import typer
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from contrada.cli.ending import FAILED, complain
from contrada.cli.spark.match import split_rows
from contrada.cli.spark.running import Interruption, interruptible
from contrada.cli.subscribing import Asking, Reject, no_subscription, table_of
from contrada.cli.summary import summary_of_run
from contrada.errors import ContradaError
from contrada.formats.records import Rejected
from contrada.formats.tables.row_files import row_text
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.pipeline.batch.compiling import Plan
from contrada.pipeline.kafka import kafka_settings
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.sizing import table_limits
from contrada.pipeline.partitioned.splitting import split
from contrada.pipeline.storage import Storage, full_place
from contrada.pipeline.stream.message_files import MessageFiles
from contrada.pipeline.stream.progress import StreamProgress
from contrada.pipeline.stream.running import Stream
from contrada.pipeline.stream.sinks import ConsoleSink, KafkaSink, ParquetSink
from contrada.pipeline.stream.streaming import match_stream
from contrada.pipeline.stream.tracking import track_stream
from contrada.pipeline.stream.worker import Decoding

KAFKA, RATE = "kafka:", "rate:"
POLL_SECONDS = 0.5  # seconds


class StreamPlan(NamedTuple):
    """The parameters of a stream: messages, subscriptions, changes, output and trigger."""

    messages: str
    asking: Asking | None
    checkpoint: str
    output: str
    changes: Path | None
    id: str | None
    format: str
    times: tuple[str, ...]
    files: int | None
    records: int | None
    servers: str
    by: By
    trigger: dict[str, Any]
    compact_after: int
    metrics: Path | None
    quiet: bool
    master: str | None
    jars: str | None
    plan: Plan = "auto"
    partitions: int | None = None
    keep: tuple[str, ...] = ()
    tracking: dict[str, Any] | None = None  # arguments of `track_stream`


def run(plan: StreamPlan) -> int:
    """Run the stream until it ends or is interrupted, and return the exit code."""
    resumed = f"run the same command to resume from checkpoint {plan.checkpoint}"
    with interruptible(f"stopped at once: {resumed}") as interruption:
        return _run(plan, resumed, interruption)


def _run(plan: StreamPlan, resumed: str, interruption: Interruption) -> int:
    line = BatchLine(plan.quiet, plan.metrics)
    summary_of_run().note(outputs=[plan.output] if plan.output != "-" else [], batches=0, messages=0, matches=0)
    spark = interruption.start(plan.master, _jars(plan))
    stream = None
    try:
        frame, decoding = _source(spark, plan)
        is_begun = Storage(plan.checkpoint).inner("contrada").names("versions")
        first = None if plan.asking is None or is_begun else _first_table(spark, plan, plan.asking)
        stream = _started(plan, frame, first, decoding, line)
        interruption.is_patient = True
        while not stream.wait(POLL_SECONDS):
            if interruption.number is not None:
                line.last(f"stopping after this batch (again: at once): {resumed}")
                stream.stop(finish=True)
                return interruption.code
    except PySparkException as error:
        complain(str(error).strip().partition(chr(10))[0])
        return FAILED
    finally:
        line.end([] if stream is None else stream.census.lines())
        spark.stop()
    return 0


def _started(plan: StreamPlan, frame: Any, first: Any, decoding: Decoding | None, line: BatchLine) -> Stream:
    """Start the stream, and tell which subscriptions cannot be watched."""
    common: dict[str, Any] = {"checkpoint": plan.checkpoint, "decoding": decoding, "trigger": plan.trigger}
    if plan.tracking is None:
        return match_stream(
            frame, first, plan.changes, sink=_sink(plan), by=plan.by, compact_after=plan.compact_after,
            progress=line.show, plan=plan.plan, keep=plan.keep, **common,
        )  # fmt: skip
    stream = track_stream(frame, first, plan.changes, sink=_sink(plan), progress=line.show, **plan.tracking, **common)
    for key, reason in stream.unwatched.items():
        typer.echo(f"not watched: subscription {key!r}: {reason}", err=True)
    return stream


def _first_table(spark: SparkSession, plan: StreamPlan, asking: Asking) -> ForwardingTable | PartitionedArtifact:
    """Return the table of a new checkpoint, in partitions if asked for, or if it is larger than a worker can hold."""
    most, each = table_limits(spark)
    reject: Reject = _tell_rejected
    place = f"{full_place(plan.checkpoint)}/contrada/artifacts"
    if plan.plan != "partitioned":
        table = table_of(asking, _tell_rejected)
        if plan.plan == "broadcast" or plan.tracking is not None or table.stats().nbytes <= most:
            return table
        reject = _ignore  # rejections were reported on the first reading
    rows = split_rows(asking, reject)
    count = plan.partitions or max(2, math.ceil(rows.table.nbytes / each))
    made, bad = split(rows.table, rows.template, place, count)
    late = [Rejected(*rows.origins[row], reason, row_text(rows.table, row)) for row, reason in bad]
    for item in late:
        reject(item)
    if not made.subscriptions:
        raise no_subscription(asking, rows.first or next(iter(late), None))
    return made


def _ignore(item: Rejected) -> None:
    pass


def _jars(plan: StreamPlan) -> dict[str, str]:
    """Return the settings for jars: those of --jars, or packages of the connector if Kafka is read or written."""
    if plan.jars is not None:
        return {"spark.jars": plan.jars}
    if not (plan.messages.startswith(KAFKA) or plan.output.startswith(KAFKA)):
        return {}
    import pyspark

    return kafka_settings(pyspark.__version__)


def _tell_rejected(item: Rejected) -> None:
    typer.echo(f"rejected subscription: {item}", err=True)


def _source(spark: SparkSession, plan: StreamPlan) -> tuple[DataFrame | MessageFiles, Decoding | None]:
    """Return the stream of messages, and how their texts are decoded, if they are texts."""
    options = {"times": plan.times} if plan.times else {}
    if plan.messages.startswith(KAFKA):
        ids = () if plan.id is None else (plan.id,)
        return _kafka(spark, plan), Decoding(ids, plan.id is not None, options)
    if plan.messages.startswith(RATE):
        rate = spark.readStream.format("rate").option("rowsPerSecond", plan.messages.removeprefix(RATE)).load()
        return rate.selectExpr("value AS message_id", "value", "timestamp"), None
    most: dict[str, Any] = {} if plan.files is None else {"maxFilesPerTrigger": plan.files}
    files = MessageFiles(spark, plan.messages, plan.format, id=plan.id, **most)
    return files, None if files.decoding is None else files.decoding._replace(options=options)


def _kafka(spark: SparkSession, plan: StreamPlan) -> DataFrame:
    """Read the records of a topic, from its beginning."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", plan.servers)
    reader = reader.option("subscribe", plan.messages.removeprefix(KAFKA)).option("startingOffsets", "earliest")
    if plan.records is not None:
        reader = reader.option("maxOffsetsPerTrigger", plan.records)
    try:
        frame = reader.load()
    except AnalysisException as error:
        raise ContradaError(
            f"Spark cannot read Kafka: its session has no connector; start a new one, or pass --jars: {error}"
        ) from error
    # Unique, and equal when a batch is replayed, so that readers of the matches can detect copies.
    return frame.selectExpr("concat(topic, '-', partition, '-', offset) AS message_id", "value")


def _sink(plan: StreamPlan) -> Any:
    if plan.output.startswith(KAFKA):
        return KafkaSink(plan.servers, plan.output.removeprefix(KAFKA))
    rows = "matches" if plan.tracking is None else "events"
    return ConsoleSink() if plan.output == "-" else ParquetSink(plan.output, rows)


class BatchLine:
    """A line of progress on standard error, overwritten on a terminal; and a file of metrics."""

    def __init__(self, quiet: bool, metrics: Path | None) -> None:
        self._quiet, self._metrics = quiet, metrics
        self._is_terminal = sys.stderr.isatty()
        self._is_open = False

    def show(self, progress: StreamProgress) -> None:
        """Show the progress after a batch, and count it."""
        run = summary_of_run()
        for name, count in (("batches", 1), ("messages", progress.messages), ("matches", progress.matches)):
            run.counts[name] = run.counts.get(name, 0) + count
        run.note(rejected=run.rejected + progress.rejected, subscriptions=progress.subscriptions)
        if self._metrics is not None:
            fresh = self._metrics.with_name(f".{self._metrics.name}.new")
            fresh.write_text(progress.metrics())
            fresh.replace(self._metrics)
        if self._quiet:
            return
        text = progress.line()
        print(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n", end="", file=sys.stderr, flush=True)
        self._is_open = self._is_terminal

    def last(self, text: str) -> None:
        """Replace the line by a last text; further progress is not shown."""
        print(f"\r\x1b[K{text}" if self._is_open else text, file=sys.stderr, flush=True)
        self._quiet, self._is_open = True, False

    def end(self, lines: list[str]) -> None:
        """End the line, and print `lines` below it."""
        if self._is_open:
            sys.stderr.write("\n")
        for text in [] if self._quiet else lines:
            sys.stderr.write(f"{text}\n")
