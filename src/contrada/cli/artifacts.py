"""`contrada artifacts`: list compiled tables in a shared place, and remove old ones."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.amounts import byte_size, counted
from contrada.cli.options import argument, plain
from contrada.cli.pages import App
from contrada.cli.summary import summary_of_run

if TYPE_CHECKING:
    from contrada.pipeline.artifact_store import StoredArtifact

app = App(help="List compiled tables, and remove old ones.")

Place = Annotated[
    str | None,
    argument("Directory or URI of artifacts, such as s3a://bucket/tables; default: that of a local Spark."),
]
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


@app.command("list")
def list_all(
    place: Place = None, as_json: Annotated[bool, plain("Print one JSON object per line.", "--json")] = False
) -> None:
    """List artifacts, the longest unused first: digest, kind, time since the last use, size, subscriptions, streams.

    Writing an artifact again and matching with it count as use. PyArrow opens the place: for S3, AWS_ENDPOINT_URL,
    AWS_REGION and the usual credentials apply.

    \b
    Of a local Spark:
      contrada artifacts list
    In a bucket:
      contrada artifacts list s3a://bucket/tables --json
    """
    from contrada.pipeline.artifact_store import list_artifacts

    found, now = list_artifacts(store_place(place)), time.time()
    for one in found:
        typer.echo(json.dumps(one._asdict()) if as_json else line_of(one, now))
    size = sum(one.bytes for one in found)
    summary_of_run().note(artifacts=len(found), bytes=size)
    if not as_json:
        typer.echo(f"{counted(len(found), 'artifact')}, {byte_size(size)}", err=True)


@app.command()
def prune(
    place: Place = None,
    older: Annotated[str, plain("Remove artifacts unused for this long, such as 7d or 12h.")] = "7d",
    dry_run: Annotated[bool, plain("Print what would be removed, and remove nothing.", "--dry-run")] = False,
) -> None:
    """Remove artifacts that were not used for a time; never one that a stream uses.

    A stream that starts from a compiled artifact records its use beside the artifact. The tables of a partitioned
    artifact stay as long as it does. Directories without a manifest, from writers that were interrupted, go too.

    \b
    What would go?
      contrada artifacts prune /shared/tables --older 30d --dry-run
    Every night:
      contrada artifacts prune s3a://bucket/tables --older 7d --summary json
    """
    from contrada.pipeline.artifact_store import prune_artifacts

    now = time.time()
    found = prune_artifacts(store_place(place), older, dry_run=dry_run, now=now)
    for one in found.removed:
        typer.echo(line_of(one, now))
    for digest, reason in sorted(found.kept.items()):
        typer.echo(f"kept {digest}: {reason}", err=True)
    summary_of_run().note(removed=0 if dry_run else len(found.removed), bytes=found.bytes, kept=len(found.kept))
    would = "would be removed" if dry_run else "removed"
    typer.echo(f"{counted(len(found.removed), 'artifact')} {would}, {byte_size(found.bytes)}", err=True)


def store_place(place: str | None) -> str:
    """Return the place of artifacts: by default that of a local Spark."""
    if place is not None:
        return place
    from contrada.pipeline.artifact_cache import cache_home

    return str(cache_home() / "artifacts")


def line_of(one: StoredArtifact, now: float) -> str:
    """Return an artifact as a line."""
    return "  ".join(_cells(one, now))


def _cells(one: StoredArtifact, now: float) -> Iterator[str]:
    yield one.digest
    yield f"{one.kind:<11}"
    seconds = max(0, int(now - one.used))
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    yield f"{seconds // size:>3}{unit}"
    yield f"{byte_size(one.bytes):>9}"
    yield counted(one.subscriptions, "subscription")
    if one.parts:
        yield counted(len(one.parts), "table")
    if one.part_of:
        yield f"part of {one.part_of[0][:12]}"
    for checkpoint in one.streams:
        yield f"used by {checkpoint}"
