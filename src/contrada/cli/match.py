"""`contrada match`: arguments, options and help; the command itself is in `contrada.cli.match_run`."""

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
    """The unit of one line of the answer."""

    subscription = "subscription"
    subscriber = "subscriber"


class SparkPlan(StrEnum):
    """Plans for distributing tables and messages on Spark."""

    auto = "auto"
    broadcast = "broadcast"
    partitioned = "partitioned"


class Buffered(StrEnum):
    """The geometry that --buffer applies to."""

    both = "both"
    messages = "messages"
    subscriptions = "subscriptions"


Messages = Annotated[
    Path, typer.Argument(help="File, directory of files, or - for standard input.", show_default=False)
]
Subscriptions = Annotated[
    Path,
    typer.Argument(help="Rows of key, subscriber and filter; with --template, any rows.", show_default=False),
]
Template = Annotated[
    str | None,
    typer.Option(help="CQL2 filter for every row; $name is the value of column name.", rich_help_panel=READ),
]
Key = Annotated[
    str | None, typer.Option(help="With --template: column of the keys; default: key.", rich_help_panel=READ)
]
Subscriber = Annotated[
    str | None,
    typer.Option(help="With --template: column of the subscribers; default: subscriber.", rich_help_panel=READ),
]
Id = Annotated[
    str | None,
    typer.Option(
        help="Attribute that identifies a message; default: id, identifier or ce.id, else its line or row.",
        rich_help_panel=READ,
    ),
]
MessagesFormat = Annotated[
    str | None,
    typer.Option(help=f"{INPUT_FORMATS}; default: by suffix or first bytes.", rich_help_panel=READ),
]
SubscriptionsFormat = Annotated[
    str | None,
    typer.Option(help="Format of the subscriptions; default: by suffix or first bytes.", rich_help_panel=READ),
]
Times = Annotated[
    str | None, typer.Option(help="Attributes whose text is a timestamp, such as onset,expires.", rich_help_panel=READ)
]
ZonesFile = Annotated[
    Path | None,
    typer.Option(help="Regions of codes in CAP areas: rows of valueName, value, geometry.", rich_help_panel=READ),
]
Crs = Annotated[
    str | None,
    typer.Option(help="CRS of messages that name none; 'none' for plain numbers.", rich_help_panel=COORDINATES),
]
SubscriptionsCrs = Annotated[
    str | None, typer.Option(help="CRS of template rows that name none.", rich_help_panel=COORDINATES)
]
ToCrs = Annotated[
    str | None, typer.Option(help="Reproject messages and template rows to this CRS.", rich_help_panel=COORDINATES)
]
Buffer = Annotated[
    float | None,
    typer.Option(
        help="Turn points and lines into regions of this radius, in units of the CRS.",
        rich_help_panel=COORDINATES,
    ),
]
BufferOf = Annotated[Buffered, typer.Option(help="What --buffer applies to.", rich_help_panel=COORDINATES)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Output file; default: standard output.", rich_help_panel=WRITE)
]
Format = Annotated[
    ResultFormat | None,
    typer.Option("--format", "-f", help="Default: by the suffix of --output, or ndjson.", rich_help_panel=WRITE),
]
CsvSafe = Annotated[
    bool,
    typer.Option("--csv-safe", help="CSV: put an apostrophe before formulas.", rich_help_panel=WRITE),
]
ByOption = Annotated[
    By, typer.Option("--by", help="Write a line per subscription, or per subscriber.", rich_help_panel=WRITE)
]
Explain = Annotated[
    str | None,
    typer.Option(help="Explain why each message matches this key or not, instead.", rich_help_panel=WRITE),
]
Limit = Annotated[
    int, typer.Option(min=0, help="With --explain: maximum number of messages; 0 for all.", rich_help_panel=WRITE)
]
RejectFile = Annotated[
    Path | None,
    typer.Option("--reject", help="File for rejections: newline JSON of place, reason, text.", rich_help_panel=CARE),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is rejected.", rich_help_panel=CARE)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary and no progress.", rich_help_panel=CARE)]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Number of threads; default: one per core.", rich_help_panel=CARE)
]
Spark = Annotated[
    bool, typer.Option("--spark", help="Match on Spark: on all cores, or at --master.", rich_help_panel=SPARK)
]
Master = Annotated[
    str | None, typer.Option(help="With --spark: the master, such as spark://host:7077 or yarn.", rich_help_panel=SPARK)
]
Artifacts = Annotated[
    str | None,
    typer.Option(
        help="With --master: directory or URI, shared by all machines, for the compiled table.", rich_help_panel=SPARK
    ),
]
PlanOption = Annotated[
    SparkPlan,
    typer.Option(
        "--plan",
        help="With --spark: broadcast puts the whole table in every worker, partitioned a part; auto goes by size.",
        rich_help_panel=SPARK,
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1, max=65535, help="With --plan partitioned: approximate number of partitions.", rich_help_panel=SPARK
    ),
]

HELP = """\
Find the subscriptions that each message matches.

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
A hundred million messages on Spark; matches become a directory of Parquet files:
  contrada match messages/ s.ndjson --spark --master spark://host:7077 --artifacts /shared/tables --output out
A table larger than a worker's memory, in fifty partitions:
  contrada match messages/ s.ndjson --spark --plan partitioned --partitions 50 --output out

\b
Exit codes:
  0  done, with or without matches; rejected rows are in the summary
  1  a row was rejected, with --strict; or all messages were rejected
  2  could not run: wrong usage, missing file, no good subscription
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
    """Match messages with subscriptions; the help text is HELP."""
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
    """Raise BadParameter for options of Spark without --spark, and for partitions with --plan broadcast."""
    if not spark and (any(options) or plan is not SparkPlan.auto):
        raise typer.BadParameter("--master, --artifacts, --plan and --partitions are for --spark")
    if partitions and plan is SparkPlan.broadcast:
        raise typer.BadParameter("--partitions is for the plans partitioned and auto")


def names_in(text: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def check_paths(inputs: list[Path | None], outputs: list[Path | None]) -> None:
    """Raise BadParameter for missing inputs, outputs that are inputs, and two outputs to one file."""
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
