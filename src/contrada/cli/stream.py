"""`contrada stream`: what can be said on the command line. What it does is in `contrada.cli.stream_run`."""

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
        metavar="MESSAGES", help="A directory of files, kafka:TOPIC, or rate:ROWS_PER_SECOND.", show_default=False
    ),
]
Subscriptions = Annotated[
    Path | None,
    typer.Argument(help="What a new checkpoint begins with, as for match; else nothing.", show_default=False),
]
Checkpoint = Annotated[
    str, typer.Option(help="Where the stream goes on after a stop: a directory of its own.", rich_help_panel=RUNNING)
]
Output = Annotated[
    str,
    typer.Option(
        "--output", "-o", help="A directory for Parquet, kafka:TOPIC, or - for lines of JSON.", rich_help_panel=WRITE
    ),
]
Changes = Annotated[
    Path | None,
    typer.Option(help="A directory of records that subscribe and unsubscribe.", rich_help_panel=READ),
]
Format = Annotated[
    str, typer.Option("--format", help="Of files: ndjson (also GeoJSON by lines) or parquet.", rich_help_panel=READ)
]
Files = Annotated[int | None, typer.Option(min=1, help="Files in a batch, at most.", rich_help_panel=READ)]
Records = Annotated[int | None, typer.Option(min=1, help="Records of Kafka in a batch, at most.", rich_help_panel=READ)]
Servers = Annotated[str, typer.Option(help="Of Kafka: host:port, ...", rich_help_panel=READ)]
Every = Annotated[
    str | None, typer.Option(help="Time between batches: '2 seconds'; else at once.", rich_help_panel=RUNNING)
]
Once = Annotated[bool, typer.Option("--once", help="Take what is there, and end.", rich_help_panel=RUNNING)]
Compact = Annotated[
    int, typer.Option(min=1, help="Changes after which the table is made anew.", rich_help_panel=RUNNING)
]
Metrics = Annotated[
    Path | None, typer.Option(help="Keep the numbers here, as Prometheus reads them.", rich_help_panel=CARE)
]
Master = Annotated[str | None, typer.Option(help="Where Spark runs; else here, on all cores.", rich_help_panel=RUNNING)]
Jars = Annotated[
    str | None, typer.Option(help="Jars of the Kafka connector, with commas between.", rich_help_panel=RUNNING)
]

HELP = """\
Match messages as they come, against subscriptions that change meanwhile. Runs until it is stopped.

Every batch has one version of the subscriptions, which is written beside the checkpoint before it runs. A stream that \
ended, however it did, goes on from its checkpoint: no message is lost, and in a directory none is there twice. Bad \
messages go to rejected/, or the topic TOPIC-rejected. Needs Java and contrada[spark].

\b
Files that come into a directory; matches become Parquet:
  contrada stream incoming/ subscriptions.ndjson --checkpoint state --output out
People subscribe while it runs (write a file under a name with a dot, then rename it):
  contrada stream incoming/ --changes changes/ --checkpoint state --output out
From Kafka to Kafka:
  contrada stream kafka:alerts subscriptions.ndjson --servers localhost:9092 --checkpoint state \\
    --output kafka:matches --jars spark-sql-kafka.jar,kafka-clients.jar,...
What is there now, and no more:
  contrada stream incoming/ subscriptions.ndjson --checkpoint state --output out --once

\b
Exit codes:
  0    with --once: done
  2    it could not run, or not go on
  130  stopped with Ctrl-C, 143 with SIGTERM; the batch that runs is finished first, a second signal stops at once
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
    """Match a stream; HELP says it to people."""
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
