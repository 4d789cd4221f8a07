"""`contrada match`: what can be said on the command line. What it does is in `contrada.cli.match_run`."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.cli.ending import errors_told, require_spark
from contrada.cli.results import ResultFormat

if TYPE_CHECKING:
    from contrada.cli.match_run import MatchPlan

READ, WRITE, COORDINATES, CARE, SPARK = "Reading", "Writing", "Coordinates", "Care", "Spark"
INPUT_FORMATS = "ndjson, json, geojson, geojsonseq, cap, parquet, arrow or csv"


class By(StrEnum):
    """What one line of the answer is about."""

    subscription = "subscription"
    subscriber = "subscriber"


class SparkPlan(StrEnum):
    """Where tables and messages meet on Spark."""

    auto = "auto"
    broadcast = "broadcast"
    partitioned = "partitioned"


class Buffered(StrEnum):
    """What a buffer is put around."""

    both = "both"
    messages = "messages"
    subscriptions = "subscriptions"


Messages = Annotated[
    Path, typer.Argument(help="A file, a directory of files, or - for standard input.", show_default=False)
]
Subscriptions = Annotated[
    Path,
    typer.Argument(help="Rows of key, subscriber and filter; with --template any rows.", show_default=False),
]
Template = Annotated[
    str | None,
    typer.Option(help="What every row asks, in CQL2; $name is its column of that name.", rich_help_panel=READ),
]
Key = Annotated[str | None, typer.Option(help="With --template: the column of keys; else key.", rich_help_panel=READ)]
Subscriber = Annotated[
    str | None,
    typer.Option(help="With --template: the column of subscribers; else subscriber.", rich_help_panel=READ),
]
Id = Annotated[
    str | None,
    typer.Option(
        help="The attribute that identifies a message; else id, identifier or ce.id, or its line or row.",
        rich_help_panel=READ,
    ),
]
MessagesFormat = Annotated[
    str | None,
    typer.Option(help=f"{INPUT_FORMATS}; else told by suffix or first bytes.", rich_help_panel=READ),
]
SubscriptionsFormat = Annotated[str | None, typer.Option(help="The same for subscriptions.", rich_help_panel=READ)]
Times = Annotated[
    str | None, typer.Option(help="Attributes whose text is a timestamp: onset,expires.", rich_help_panel=READ)
]
ZonesFile = Annotated[
    Path | None,
    typer.Option(help="Regions of the codes in CAP areas: rows of valueName, value, geometry.", rich_help_panel=READ),
]
Crs = Annotated[
    str | None,
    typer.Option(help="What messages are in that do not say so; none: plain numbers.", rich_help_panel=COORDINATES),
]
SubscriptionsCrs = Annotated[
    str | None, typer.Option(help="The same for the rows of a template.", rich_help_panel=COORDINATES)
]
ToCrs = Annotated[
    str | None, typer.Option(help="Reproject messages and rows of a template.", rich_help_panel=COORDINATES)
]
Buffer = Annotated[
    float | None,
    typer.Option(
        help="Turn points and lines into regions: this far around them, in units of the CRS.",
        rich_help_panel=COORDINATES,
    ),
]
BufferOf = Annotated[Buffered, typer.Option(help="What the buffer is put around.", rich_help_panel=COORDINATES)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="A file; else standard output.", rich_help_panel=WRITE)
]
Format = Annotated[
    ResultFormat | None,
    typer.Option("--format", "-f", help="Else told by the suffix of --output, or ndjson.", rich_help_panel=WRITE),
]
CsvSafe = Annotated[
    bool,
    typer.Option("--csv-safe", help="CSV: an apostrophe before text that begins a formula.", rich_help_panel=WRITE),
]
ByOption = Annotated[
    By, typer.Option("--by", help="A line for each subscription, or subscriber.", rich_help_panel=WRITE)
]
Explain = Annotated[
    str | None,
    typer.Option(help="Instead of matches: why each message matches this key, or why not.", rich_help_panel=WRITE),
]
Limit = Annotated[int, typer.Option(min=0, help="With --explain: this many messages; 0: all.", rich_help_panel=WRITE)]
RejectFile = Annotated[
    Path | None,
    typer.Option("--reject", help="Keep what is bad here: newline JSON of place, reason, text.", rich_help_panel=CARE),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is rejected.", rich_help_panel=CARE)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no progress.", rich_help_panel=CARE)]
Threads = Annotated[int | None, typer.Option(min=1, help="Else one for each core.", rich_help_panel=CARE)]
Spark = Annotated[bool, typer.Option("--spark", help="Match on Spark: all cores, or --master.", rich_help_panel=SPARK)]
Master = Annotated[str | None, typer.Option(help="With --spark: spark://host:7077, yarn ...", rich_help_panel=SPARK)]
Artifacts = Annotated[
    str | None,
    typer.Option(
        help="With --master: a directory or URI that all machines share, for the compiled table.", rich_help_panel=SPARK
    ),
]
PlanOption = Annotated[
    SparkPlan,
    typer.Option(
        "--plan",
        help="With --spark: the whole table in every worker, or a part of it in each task; auto goes by its size.",
        rich_help_panel=SPARK,
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(min=1, max=65535, help="With --plan partitioned: about so many.", rich_help_panel=SPARK),
]

HELP = """\
Tell which messages go to which subscriptions.

Matches go to standard output, one JSON object to a line, in the order of the messages and then of the \
subscriptions; progress and the summary go to standard error. Bad rows are counted and the rest go on.

\b
A line to a message, a line to a subscription:
  contrada match alerts.ndjson subscriptions.ndjson | jq .subscriber
Every facility asks the same, with its own region and number:
  contrada match alerts.ndjson facilities.geojson --key id \\
    --template 'S_INTERSECTS(area, $geometry) AND severity >= $min_severity'
Facilities are points; 500 m around them count:
  contrada match alerts/ facilities.geojson --template 'S_INTERSECTS(area, $geometry)' \\
    --to-crs EPSG:3035 --buffer 500
Live, answers come as messages do:
  tail -f feed.ndjson | contrada match - subscriptions.ndjson
Why does nothing match?
  contrada match alerts.ndjson subscriptions.ndjson --explain k17 --limit 3
Keep what is bad, and write Parquet:
  contrada match a.parquet s.ndjson --reject bad.ndjson --output matches.parquet
A hundred million messages; matches become a directory of Parquet files:
  contrada match messages/ s.ndjson --spark --master spark://host:7077 --artifacts /shared/tables --output out
A table that no worker can hold, in fifty parts:
  contrada match messages/ s.ndjson --spark --plan partitioned --partitions 50 --output out

\b
Exit codes:
  0  done, whether or not something matched; rejected rows are in the summary
  1  something was rejected, with --strict; or messages came and all were rejected
  2  it could not run: usage, a file that is not there, no good subscription
"""


def match(
    messages: Messages,
    subscriptions: Subscriptions,
    template: Template = None,
    key: Key = None,
    subscriber: Subscriber = None,
    id: Id = None,
    messages_format: MessagesFormat = None,
    subscriptions_format: SubscriptionsFormat = None,
    times: Times = None,
    zones: ZonesFile = None,
    crs: Crs = None,
    subscriptions_crs: SubscriptionsCrs = None,
    to_crs: ToCrs = None,
    buffer: Buffer = None,
    buffer_of: BufferOf = Buffered.both,
    output: Output = None,
    format: Format = None,
    csv_safe: CsvSafe = False,
    by: ByOption = By.subscription,
    explain: Explain = None,
    limit: Limit = 20,
    reject: RejectFile = None,
    strict: Strict = False,
    quiet: Quiet = False,
    threads: Threads = None,
    spark: Spark = False,
    master: Master = None,
    artifacts: Artifacts = None,
    plan: PlanOption = SparkPlan.auto,
    partitions: Partitions = None,
) -> None:
    """Match messages with subscriptions; HELP says it to people."""
    if str(messages) == str(subscriptions) == "-":
        raise typer.BadParameter("messages and subscriptions cannot both come from standard input")
    if template is None and (key or subscriber or subscriptions_crs):
        raise typer.BadParameter("--key, --subscriber and --subscriptions-crs are for the rows of a --template")
    check_spark(spark, [master, artifacts, partitions], plan, partitions)
    check_paths([messages, subscriptions, zones], [output, reject])
    with errors_told():
        from contrada.cli.match_run import MatchPlan, run
        from contrada.cli.message_reader import MessageOptions
        from contrada.cli.subscribing import Asking
        from contrada.formats.reading import read_zones

        read = {"times": names_in(times), "to_crs": to_crs}
        around_messages = None if buffer_of is Buffered.subscriptions else buffer
        around_rows = None if buffer_of is Buffered.messages else buffer
        known = None if zones is None else read_zones(zones)
        of_messages = {**read, "zones": known, "crs": crs, "buffer": around_messages}
        names = {"key": key or "key", "subscriber": subscriber or "subscriber"}
        of_rows = {**read, **names, "crs": subscriptions_crs, "buffer": around_rows}
        reading = MessageOptions(messages_format, of_messages, id)
        asking = Asking(subscriptions, subscriptions_format, template, of_rows)
        rest = (reject, strict, quiet, threads, explain, limit, csv_safe)
        work = MatchPlan(messages, reading, asking, output, format, by.value, *rest)
        raise typer.Exit(_on_spark(work, master, artifacts, plan, partitions) if spark else run(work))


def _on_spark(
    work: MatchPlan, master: str | None, artifacts: str | None, plan: SparkPlan, partitions: int | None
) -> int:
    require_spark()
    from contrada.cli.spark_match import run_on_spark
    from contrada.cli.spark_tables import PartitionPlan

    return run_on_spark(work, master, artifacts, PartitionPlan(plan.value, partitions))


def check_spark(spark: bool, options: list[str | int | None], plan: SparkPlan, partitions: int | None) -> None:
    """Refuse options of Spark without it, and partitions where there are none."""
    if not spark and (any(options) or plan is not SparkPlan.auto):
        raise typer.BadParameter("--master, --artifacts, --plan and --partitions are for --spark")
    if partitions and plan is SparkPlan.broadcast:
        raise typer.BadParameter("--partitions is for the plans partitioned and auto")


def names_in(text: str | None) -> list[str]:
    """The names in a list with commas."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def check_paths(inputs: list[Path | None], outputs: list[Path | None]) -> None:
    """Refuse what is not there, to write over what is read, and to write two things to one file."""
    for path in inputs:
        if path is not None and str(path) != "-" and not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    written = [path for path in outputs if path is not None]
    for path in written:
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a directory")
        for other in inputs:
            if other is not None and str(other) != "-" and path.exists() and os.path.samefile(path, other):
                raise typer.BadParameter(f"{path} is read; it cannot be written over")
    if len({os.path.abspath(path) for path in written}) < len(written) and os.path.isfile(written[0]):
        raise typer.BadParameter("--output and --reject name the same file")
