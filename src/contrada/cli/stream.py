"""Match messages as they arrive, against subscriptions that change meanwhile. Runs until it is stopped.

Every batch uses one version of the subscriptions, which is stored beside the checkpoint before the batch runs. A \
stream that ended for any reason resumes from its checkpoint: no message is lost, and a directory of matches has no \
duplicates. Bad messages go to rejected/, or to the topic TOPIC-rejected. Needs Java and contrada[spark].

\b
Files that arrive in a directory; matches as Parquet:
  contrada stream incoming/ subscriptions.ndjson --checkpoint state --output out
Subscriptions that change while it runs (write a file under a name with a dot, then rename it):
  contrada stream incoming/ --changes changes/ --checkpoint state --output out
From Kafka to Kafka:
  contrada stream kafka:alerts subscriptions.ndjson --servers localhost:9092 --checkpoint state \\
    --output kafka:matches
More subscriptions than a host can hold, in partitions:
  contrada stream incoming/ subscriptions.ndjson --plan partitioned --checkpoint state --output out
When vehicles enter and leave depots:
  contrada stream fixes/ depots.ndjson --track vehicle --time at --on 'enter, exit' --checkpoint state --output out
Only the messages available now:
  contrada stream incoming/ subscriptions.ndjson --checkpoint state --output out --once

\b
Exit codes:
  0    with --once: done
  2    could not run, or not continue
  130  stopped with Ctrl-C, 143 with SIGTERM; the running batch is finished first, a second signal stops at once
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.cli import options
from contrada.cli.ending import require_spark
from contrada.cli.options import CARE, READ, RUNNING, WRITE, ByUnit, argument, check_exist, names_in, option
from contrada.cli.subscribing import Asking

StreamPlans = StrEnum("StreamPlans", ["auto", "broadcast", "partitioned"])


# Options of `stream`.
Beginning = Annotated[Path | None, argument("Subscriptions of a new checkpoint, as for match; default: none.")]
Checkpoint = Annotated[
    str, option(RUNNING, "Directory for the state of this stream, from which it resumes after a stop.")
]
Output = Annotated[str, option(WRITE, "Directory for Parquet, kafka:TOPIC, or - for lines of JSON.", "--output", "-o")]
Delay = Annotated[
    str | None, option(options.TRACKING, "With --track: how long dwells and expiries wait for late messages.")
]
Buckets = Annotated[
    int,
    option(options.TRACKING, "With --track: number of parts of the state of a new checkpoint.", min=1, max=4096),
]
PlanOption = Annotated[
    StreamPlans, option(RUNNING, "Table of a new checkpoint: on every host, or in partitions; auto: by its size.")
]
Partitions = Annotated[
    int | None, option(RUNNING, "With --plan partitioned: approximate number of partitions.", min=1, max=65535)
]
Every = Annotated[str | None, option(RUNNING, "Time between batches, such as '2 seconds'; default: no pause.")]
Jars = Annotated[
    str | None, option(RUNNING, "Jars of the Kafka connector, comma-separated; default: Maven fetches them.")
]
Keep = Annotated[str | None, option(WRITE, "Attributes of messages as further columns of matches, such as title,sent.")]


def stream(
    messages: Annotated[str, argument("Directory of files, kafka:TOPIC, or rate:ROWS_PER_SECOND.", metavar="MESSAGES")],
    subscriptions: Beginning = None,
    *,
    checkpoint: Checkpoint,
    output: Output,
    changes: Annotated[Path | None, option(READ, "Directory of subscribe and unsubscribe records.")] = None,
    template: options.Template = None,
    id: options.Id = None,
    format: Annotated[str, option(READ, "Format of files: ndjson (also GeoJSON lines) or parquet.")] = "ndjson",
    subscriptions_format: options.SubscriptionsFormat = None,
    times: options.Times = None,
    files: Annotated[int | None, option(READ, "Maximum number of files per batch.", min=1)] = None,
    records: Annotated[int | None, option(READ, "Maximum number of Kafka records per batch.", min=1)] = None,
    servers: Annotated[str, option(READ, "Kafka servers as host:port, ...")] = "localhost:9092",
    track: options.Track = None,
    on: options.On = None,
    time: options.EventTime = None,
    exit_buffer: options.ExitBuffer = 0.0,
    exit_after: options.ExitAfter = None,
    first: options.First = options.FirstFix.enter,
    late: options.Late = options.LateFixes.ignore,
    expire_after: options.ExpireAfter = None,
    delay: Delay = None,
    buckets: Buckets = 64,
    by: options.ByOption = ByUnit.subscription,
    plan: PlanOption = StreamPlans.auto,
    partitions: Partitions = None,
    every: Every = None,
    once: Annotated[bool, option(RUNNING, "Match the available messages and exit.", "--once")] = False,
    compact_after: Annotated[int, option(RUNNING, "Number of changes after which the table is rebuilt.", min=1)] = 1000,
    metrics: Annotated[Path | None, option(CARE, "File for metrics in Prometheus' text format.")] = None,
    quiet: options.Quiet = False,
    master: options.Master = None,
    jars: Jars = None,
    keep: Keep = None,
) -> None:
    """Match a stream; the docstring of this module is the help page."""
    if format not in ("ndjson", "parquet"):
        raise typer.BadParameter(f"--format: need ndjson or parquet, got {format:.60}")
    if once and every:
        raise typer.BadParameter("--once and --every cannot be combined")
    if partitions is not None and plan is not StreamPlans.partitioned:
        raise typer.BadParameter("--partitions needs --plan partitioned")
    watching = {"on": on, "exit_buffer": exit_buffer, "exit_after": exit_after, "first": first.value}
    timing = {"time": time, "late": late.value, "expire_after": expire_after, "delay": delay, "buckets": buckets}
    check_tracking(track, watching, timing, by is not ByUnit.subscription or plan is StreamPlans.partitioned)
    check_exist((subscriptions, changes))
    require_spark()
    from contrada.cli.spark.stream import StreamPlan, run

    asking = None if subscriptions is None else Asking(subscriptions, subscriptions_format, template, {})
    wanted: Any = plan.value
    trigger = {"availableNow": True} if once else {"processingTime": every or "0 seconds"}
    work = StreamPlan(
        messages, asking, checkpoint, output, changes, id, format, tuple(names_in(times)), files, records, servers,
        by.value, trigger, compact_after, metrics, quiet, master, jars, wanted, partitions, tuple(names_in(keep)),
        None if track is None else {"track": track, **watching, **timing},
    )  # fmt: skip
    raise typer.Exit(run(work))


def check_tracking(track: str | None, watching: dict[str, Any], timing: dict[str, Any], is_other: bool) -> None:
    """Raise BadParameter for options that need --track, and for others that do not go with it."""
    needing = ("on", "exit_buffer", "exit_after", "time", "expire_after")
    if track is None and any(map({**watching, **timing}.get, needing)):
        raise typer.BadParameter("--on, --time, --exit-buffer, --exit-after and --expire-after need --track")
    if track is not None and (is_other or not watching["on"] or not timing["time"]):
        raise typer.BadParameter("--track needs --on and --time, and no --by subscriber and --plan partitioned")
