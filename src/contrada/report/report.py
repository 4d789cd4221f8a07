"""Write a report of a matching run from its tables: one HTML page, with script files beside it if the data is large."""

from __future__ import annotations

import array
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from contrada.errors import ContradaError
from contrada.geometry import Crs, Relation
from contrada.report.chunks import MAX_EMBEDDED_BYTES, ChunkFolder
from contrada.report.columns import GEOMETRY, TIME, TITLE, crs_of_column, first_column, shown_attributes
from contrada.report.messages import message_blocks
from contrada.report.numbers import CountedTables, Numbers, RunTables, counted, numbers_of
from contrada.report.page import Making, body
from contrada.report.shapes import ShapeEncoder
from contrada.report.subscriptions import Box, numbered_subscriptions, overview_lines
from contrada.report.template import built_page, fill_page
from contrada.report.text import json_text

FORMAT = 1  # of the data of a page
ITEMS_PER_CHUNK = 5000  # messages in a chunk of the list
COUNTS_PER_CHUNK = 1_000_000
SUBSCRIPTION_CHUNK_BYTES = 250_000  # a message needs the chunks around its region
REQUIRED_COLUMNS = {
    "messages": {"message_id"},
    "subscriptions": set[str](),
    "matches": {"message_id", "subscriber"},
    "rejected": {"message_id", "reason"},
    "quarantine": {"reason"},
    "set_aside": {"reason"},
}


def write_report(
    path: str | os.PathLike[str],
    *,
    messages: DataFrame,
    subscriptions: DataFrame,
    matches: DataFrame,
    rejected: DataFrame,
    title: str,
    quarantine: DataFrame | None = None,
    set_aside: DataFrame | None = None,
    seconds: float | Mapping[str, float] | None = None,
    attribution: str | Sequence[str] | None = None,
    plan: str | None = None,
    crs: Any = None,
    max_embedded_bytes: int = MAX_EMBEDDED_BYTES,
) -> Path:
    """Write an HTML page about a run, and return its path.

    Takes the tables of a run: messages (message_id, attributes, geometry as WKB or GEOMETRY), subscriptions (key,
    subscriber, filter and, if present, geometry; else the regions in the filters are drawn), matches (message_id,
    subscriber, key; without key, subscribers are counted), rejected (message_id, reason), quarantine (file, row,
    reason) and set_aside (key, reason: subscriptions that `compile` rejected, which do not count as subscriptions).
    `seconds` of the run, or of its stages by name, give the rates: those of the stage `match` if there is one, else of
    all stages.

    The page lists all messages and draws all matches. `crs` is the CRS of all geometry, by default the one that the
    geometry columns name; without any, the map has plain coordinates. If the data of the page has more than
    `max_embedded_bytes` bytes, it is written as script files into a folder beside the page: report.html needs
    report-data. Spark computes and writes all parts; the driver holds four bytes of each message and one chunk.
    """
    tables = RunTables(messages, subscriptions, matches, rejected, quarantine, set_aside)
    return report_and_numbers(path, tables, title, seconds, attribution, plan, crs, max_embedded_bytes)[0]


def report_and_numbers(
    path: str | os.PathLike[str],
    tables: RunTables,
    title: str,
    seconds: float | Mapping[str, float] | None = None,
    attribution: str | Sequence[str] | None = None,
    plan: str | None = None,
    crs: Any = None,
    max_embedded_bytes: int = MAX_EMBEDDED_BYTES,
) -> tuple[Path, Numbers]:
    """Write a page as `write_report` does, and return its path and numbers."""
    for name, table in tables._asdict().items():
        if table is not None and (missing := REQUIRED_COLUMNS[name] - set(table.columns)):
            raise ContradaError(
                f"{name} needs column {', '.join(sorted(missing))}; columns: {', '.join(table.columns)}"
            )
    built = built_page()  # before the work, since it fails if the page was never built
    encoder = ShapeEncoder(_common_crs(tables, crs))
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    stages = dict(seconds) if isinstance(seconds, Mapping) else {} if seconds is None else {"": float(seconds)}
    credits = [attribution] if isinstance(attribution, str) else list(attribution or ())
    making = Making(title, _versions(tables.messages), _finished(), plan, stages, credits)
    with counted(tables, first_column(tables.messages, *TIME)) as kept, ChunkFolder(_data_folder(target)) as folder:
        numbers = numbers_of(kept)
        drawn, box = _write_chunks(kept, encoder, folder, numbers.messages + numbers.matches)
        embedded = folder.embedded(max_embedded_bytes)
        header = _header(kept, encoder, folder, box, None if embedded is not None else f"{folder.folder.name}/")
        if embedded is None:
            folder.keep()
        else:
            folder.remove()
    target.write_text(fill_page(built, title, body(numbers, making, drawn), header, embedded or ""), encoding="utf-8")
    return target, numbers


def _data_folder(page: Path) -> Path:
    return page.with_name(f"{page.stem}-data")


def _common_crs(tables: RunTables, crs: Any) -> Crs | None:
    """Return the CRS of the geometry: the given one, else that of messages, else that of subscriptions."""
    frames = tables.messages, tables.subscriptions
    named = (crs_of_column(frame, first_column(frame, *GEOMETRY)) for frame in frames)
    return Crs.of(crs) if crs is not None else next((found for found in named if found is not None), None)


def _write_chunks(
    kept: CountedTables, encoder: ShapeEncoder, folder: ChunkFolder, total: int
) -> tuple[int, Box | None]:
    """Write all chunks; return the number of regions in the overview, and the box of all messages."""
    with numbered_subscriptions(kept, encoder) as subscriptions:
        lines = subscriptions.orderBy("number").select("line")
        with closing(folder.writer("subscriptions", ITEMS_PER_CHUNK, SUBSCRIPTION_CHUNK_BYTES)) as writer:
            writer.add(row["line"] for row in lines.toLocalIterator())
        with message_blocks(kept, subscriptions, encoder, total) as blocks:
            box = _write_messages(blocks, folder)
    overview = overview_lines(kept, encoder)
    with closing(folder.writer("overview", ITEMS_PER_CHUNK)) as writer:
        writer.add(overview)
    return len(overview), box


def _write_messages(blocks: DataFrame, folder: ChunkFolder) -> Box | None:
    """Write the chunks of messages, and return the box of their shapes."""
    box: Box | None = None
    counts = array.array("i")
    with (
        closing(folder.writer("items", ITEMS_PER_CHUNK)) as items,
        closing(folder.writer("details", ITEMS_PER_CHUNK)) as details,
    ):
        for block in blocks.toLocalIterator():
            items.add(block["items"].split("\n"))
            details.add(block["details"].split("\n"))
            counts.extend(map(int, block["counts"].split("\n")))
            box = box if block["box"] is None else _union(box, tuple(block["box"]))
    with closing(folder.writer("counts", COUNTS_PER_CHUNK, COUNTS_PER_CHUNK * 12)) as writer:
        writer.add(map(str, counts))
    return box


def _union(a: Box | None, b: Box) -> Box:
    return b if a is None else (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))


def _header(kept: CountedTables, encoder: ShapeEncoder, folder: ChunkFolder, box: Box | None, files: str | None) -> str:
    """Return the JSON with bounds, places of chunks, and names for the script of the page."""
    names = shown_attributes(kept.run.messages)
    title = first_column(kept.run.messages, *TITLE)
    return json_text(
        {
            "format": FORMAT,
            "plain": encoder.crs is None,
            "bounds": box,
            "files": files,
            "starts": folder.starts,
            "columns": names,
            "title": names.index(title) if title in names else None,
            "time": kept.time,
            "unit": kept.unit,
            "relations": [str(relation) for relation in Relation],
        }
    )


def _finished() -> str:
    """Return the time of writing; SOURCE_DATE_EPOCH, where set, makes equal runs give equal pages."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%d %H:%M UTC")


def _versions(frame: DataFrame) -> dict[str, str]:
    try:
        ours = metadata.version("contrada")
    except metadata.PackageNotFoundError:  # runs from its sources
        ours = "not installed"
    return {"Contrada": ours, "Spark": frame.sparkSession.version, "Python": platform.python_version()}
