"""Write a report of a matching run from its tables, as one self-contained HTML page."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from pyspark.sql import DataFrame

from contrada.errors import ContradaError
from contrada.report.numbers import Numbers, RunTables, counted, numbers_of
from contrada.report.page import Making, render
from contrada.report.sample import TIME, DrawnSample, first_column, sample_of

MAX_PAGE_BYTES = 3_000_000  # bytes of a page
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
) -> Path:
    """Write one self-contained HTML page about a run, and return its path.

    Takes the tables of a run: messages (message_id, attributes, geometry as WKB or GEOMETRY), subscriptions (key,
    subscriber, filter and, if present, geometry; else the regions in the filters are drawn), matches (message_id,
    subscriber, key; without key, subscribers are counted), rejected (message_id, reason), quarantine (file, row,
    reason) and set_aside (key, reason: subscriptions that `compile` rejected, which do not count as subscriptions).
    `seconds` of the run, or of its stages by name, give the rates: those of the stage `match` if there is one, else of
    all stages.

    All numbers are computed in Spark. The map is a sample, as the page says; a page is never much larger than three
    megabytes.
    """
    tables = RunTables(messages, subscriptions, matches, rejected, quarantine, set_aside)
    return report_and_numbers(path, tables, title, seconds, attribution, plan)[0]


def report_and_numbers(
    path: str | os.PathLike[str],
    tables: RunTables,
    title: str,
    seconds: float | Mapping[str, float] | None,
    attribution: str | Sequence[str] | None,
    plan: str | None,
) -> tuple[Path, Numbers]:
    """Write a page as `write_report` does, and return its path and numbers."""
    for name, table in tables._asdict().items():
        if table is not None and (missing := REQUIRED_COLUMNS[name] - set(table.columns)):
            raise ContradaError(
                f"{name} needs column {', '.join(sorted(missing))}; columns: {', '.join(table.columns)}"
            )
    with counted(tables, first_column(tables.messages, *TIME)) as kept:
        numbers, sample = numbers_of(kept), sample_of(kept)
    finished = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    stages = dict(seconds) if isinstance(seconds, Mapping) else {} if seconds is None else {"": float(seconds)}
    credits = [attribution] if isinstance(attribution, str) else list(attribution or ())
    making = Making(title, _versions(tables.messages), finished, plan, stages, credits)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render_within(numbers, sample, making), encoding="utf-8")
    return target, numbers


def render_within(numbers: Numbers, sample: DrawnSample, making: Making, most_bytes: int = MAX_PAGE_BYTES) -> str:
    """Return a page of at most `most_bytes` by drawing less of the sample; without a sample it may be larger."""
    page = render(numbers, sample, making)
    while len(page.encode()) > most_bytes and (sample.messages or sample.regions):
        sample = sample.halved() if len(sample.regions) > 1 else DrawnSample((), ())
        page = render(numbers, sample, making)
    return page


def _versions(frame: DataFrame) -> dict[str, str]:
    try:
        ours = metadata.version("contrada")
    except metadata.PackageNotFoundError:  # runs from its sources
        ours = "not installed"
    return {"Contrada": ours, "Spark": frame.sparkSession.version, "Python": platform.python_version()}
