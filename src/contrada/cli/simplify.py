"""`contrada simplify`: remove redundant constraints and filters from the subscriptions of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contrada.cli.ending import errors_told
from contrada.cli.match import (
    WRITE,
    Buffer,
    Format,
    Key,
    Output,
    Quiet,
    RejectFile,
    Strict,
    Subscriber,
    SubscriptionsCrs,
    SubscriptionsFormat,
    Template,
    Times,
    ToCrs,
    check_paths,
    names_in,
)

File = Annotated[
    Path,
    typer.Argument(
        help="Rows of key, subscriber and filter, or with --template any rows; - for standard input.",
        show_default=False,
    ),
]
Across = Annotated[
    bool,
    typer.Option(
        "--across",
        help="Merge the subscriptions of each subscriber into one, without a key.",
        rich_help_panel=WRITE,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the report as JSON: to standard output if --output names a file, else to standard error.",
        rich_help_panel=WRITE,
    ),
]

HELP = """\
Simplify subscriptions: remove what is redundant, so that every message matches as before.

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


def simplify(
    file: File,
    template: Template = None,
    key: Key = None,
    subscriber: Subscriber = None,
    subscriptions_format: SubscriptionsFormat = None,
    times: Times = None,
    subscriptions_crs: SubscriptionsCrs = None,
    to_crs: ToCrs = None,
    buffer: Buffer = None,
    output: Output = None,
    format: Format = None,
    across: Across = False,
    as_json: Json = False,
    reject: RejectFile = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Simplify the subscriptions of a file; the help text is HELP."""
    if template is None and (key or subscriber or subscriptions_crs or to_crs or buffer is not None or times):
        raise typer.BadParameter(
            "--key, --subscriber, --times, --subscriptions-crs, --to-crs and --buffer are for the rows of a --template"
        )
    check_paths([file], [output, reject])
    with errors_told():
        from contrada.cli.simplify_run import SimplifyPlan, run
        from contrada.cli.subscribing import Asking

        options = {
            "key": key or "key", "subscriber": subscriber or "subscriber", "times": names_in(times),
            "crs": subscriptions_crs, "to_crs": to_crs, "buffer": buffer,
        }  # fmt: skip
        asking = Asking(file, subscriptions_format, template, options)
        raise typer.Exit(run(SimplifyPlan(asking, across, output, format, as_json, reject, strict, quiet)))
