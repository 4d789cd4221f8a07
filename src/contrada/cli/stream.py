"""`contrada stream`: arguments, options and help; the command itself is in `contrada.cli.stream_run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrada.cli.ending import errors_told, require_spark
from contrada.cli.match import CARE, READ, WRITE, By, ByOption, Id, Quiet, SubscriptionsFormat, Template, Times

RUNNING = "Running"

Source = Annotated[
    str,
    typer.Argument(
        metavar="MESSAGES", help="Directory of files, kafka:TOPIC, or rate:ROWS_PER_SECOND.", show_default=False
    ),
]
Subscriptions = Annotated[
    Path | None,
    typer.Argument(help="Subscriptions of a new checkpoint, as for match; default: none.", show_default=False),
]
Checkpoint = Annotated[
    str,
    typer.Option(
        help="Directory for the state of this stream, from which it resumes after a stop.", rich_help_panel=RUNNING
    ),
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", help="Directory for Parquet, kafka:TOPIC, or - for lines of JSON.", rich_help_panel=WRITE
    ),
]
Changes = Annotated[
    Path | None,
    typer.Option(help="Directory of subscribe and unsubscribe records.", rich_help_panel=READ),
]
Format = Annotated[
    str, typer.Option("--format", help="Format of files: ndjson (also GeoJSON lines) or parquet.", rich_help_panel=READ)
]
Files = Annotated[int | None, typer.Option(min=1, help="Maximum number of files per batch.", rich_help_panel=READ)]
Records = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of Kafka records per batch.", rich_help_panel=READ)
]
Servers = Annotated[str, typer.Option(help="Kafka servers as host:port, ...", rich_help_panel=READ)]
Every = Annotated[
    str | None,
    typer.Option(help="Time between batches, such as '2 seconds'; default: no pause.", rich_help_panel=RUNNING),
]
Once = Annotated[bool, typer.Option("--once", help="Match the available messages and exit.", rich_help_panel=RUNNING)]
Compact = Annotated[
    int, typer.Option(min=1, help="Number of changes after which the table is rebuilt.", rich_help_panel=RUNNING)
]
Metrics = Annotated[
    Path | None, typer.Option(help="File for metrics in Prometheus' text format.", rich_help_panel=CARE)
]
Master = Annotated[
    str | None, typer.Option(help="Spark master; default: all cores of this machine.", rich_help_panel=RUNNING)
]
Jars = Annotated[
    str | None, typer.Option(help="Jars of the Kafka connector, comma-separated.", rich_help_panel=RUNNING)
]

HELP = """\
Match messages as they arrive, against subscriptions that change meanwhile. Runs until it is stopped.

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
    --output kafka:matches --jars spark-sql-kafka.jar,kafka-clients.jar,...
Only the messages available now:
  contrada stream incoming/ subscriptions.ndjson --checkpoint state --output out --once

\b
Exit codes:
  0    with --once: done
  2    could not run, or not continue
  130  stopped with Ctrl-C, 143 with SIGTERM; the running batch is finished first, a second signal stops at once
"""


def stream(
    messages: Source,
    subscriptions: Subscriptions = None,
    *,
    checkpoint: Checkpoint,
    output: Output,
    changes: Changes = None,
    template: Template = None,
    id: Id = None,
    format: Format = "ndjson",
    subscriptions_format: SubscriptionsFormat = None,
    times: Times = None,
    files: Files = None,
    records: Records = None,
    servers: Servers = "localhost:9092",
    by: ByOption = By.subscription,
    every: Every = None,
    once: Once = False,
    compact_after: Compact = 1000,
    metrics: Metrics = None,
    quiet: Quiet = False,
    master: Master = None,
    jars: Jars = None,
) -> None:
    """Match a stream; the help text is HELP."""
    if format not in ("ndjson", "parquet"):
        raise typer.BadParameter(f"--format is ndjson or parquet, not {format}")
    if once and every:
        raise typer.BadParameter("--once and --every exclude each other")
    for path in (subscriptions, changes):
        if path is not None and not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    with errors_told():
        require_spark()
        from contrada.cli.match import names_in
        from contrada.cli.stream_run import StreamPlan, run
        from contrada.cli.subscribing import Asking

        asking = None if subscriptions is None else Asking(subscriptions, subscriptions_format, template, {})
        trigger = {"availableNow": True} if once else {"processingTime": every or "0 seconds"}
        plan = StreamPlan(
            messages, asking, checkpoint, output, changes, id, format, tuple(names_in(times)), files, records, servers,
            by.value, trigger, compact_after, metrics, quiet, master, jars,
        )  # fmt: skip
        raise typer.Exit(run(plan))
