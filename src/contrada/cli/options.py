"""Options that several commands share, and checks of their values."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from contrada.cli.results import ResultFormat
from contrada.errors import ArgumentError, OverlayError
from contrada.geometry.globe import globes_of

READ, WRITE, COORDINATES, CARE, SPARK, RUNNING = "Reading", "Writing", "Coordinates", "Care", "Spark", "Running"
TRACKING = "Tracking"


def option(panel: str | None, help: str, *names: str, **settings: Any) -> Any:
    """Return an option in a panel of the help page, None for the first; `names` override that of the parameter."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


plain = partial(option, None)  # an option outside of panels


def argument(help: str, **settings: Any) -> Any:
    """Return an argument; the help page does not show its default."""
    return typer.Argument(help=help, show_default=False, **settings)


class ByUnit(StrEnum):
    """The unit of one line of the answer."""

    subscription = "subscription"
    subscriber = "subscriber"


Template = Annotated[str | None, option(READ, "CQL2 filter for every row; $name is the value of column name.")]
Key = Annotated[str | None, option(READ, "With --template: column of the keys; default: key.")]
Subscriber = Annotated[str | None, option(READ, "With --template: column of the subscribers; default: subscriber.")]
Id = Annotated[
    str | None,
    option(READ, "Attribute that identifies a message; default: id, identifier or ce.id, else its line or row."),
]
SubscriptionsFormat = Annotated[
    str | None, option(READ, "Format of the subscriptions; default: by suffix or first bytes.")
]
Times = Annotated[str | None, option(READ, "Attributes whose text is a timestamp, such as onset,expires.")]
SubscriptionsCrs = Annotated[str | None, option(COORDINATES, "CRS of template rows that name none.")]
ToCrs = Annotated[str | None, option(COORDINATES, "Reproject messages and template rows to this CRS.")]
Wrap = Annotated[
    str | None,
    option(COORDINATES, "Attributes to wrap at the date line, such as area=longitude or area=longitude,at=shorter."),
]
Buffer = Annotated[
    float | None, option(COORDINATES, "Turn points and lines into regions of this radius, in units of the CRS.")
]
Output = Annotated[Path | None, option(WRITE, "Output file; default: standard output.", "--output", "-o")]
Format = Annotated[
    ResultFormat | None, option(WRITE, "Default: by the suffix of --output, or ndjson.", "--format", "-f")
]
ByOption = Annotated[ByUnit, option(WRITE, "Write a line per subscription, or per subscriber.")]
RejectFile = Annotated[Path | None, option(CARE, "File for rejections: newline JSON of place, reason, text.")]
Strict = Annotated[bool, option(CARE, "Exit with 1 if anything is rejected.", "--strict")]
Quiet = Annotated[bool, option(CARE, "Print no summary and no progress.", "--quiet", "-q")]
FirstFix = StrEnum("FirstFix", ["enter", "silent"])  # what the first fix of an object tells
LateFixes = StrEnum("LateFixes", ["ignore", "arrival"])  # what becomes of fixes older than the newest one
Track = Annotated[str | None, option(TRACKING, "Attribute with the id of an object: messages are states of objects.")]
On = Annotated[
    str | None,
    option(TRACKING, "With --track: events to write: enter, exit, change, cross, dwell(5m); several by commas."),
]
EventTime = Annotated[str | None, option(TRACKING, "With --track: attribute with the time; default: arrival.")]
ExitBuffer = Annotated[
    float, option(TRACKING, "With --track: distance from the region within which an object stays in.", min=0)
]
ExitAfter = Annotated[str | None, option(TRACKING, "With --track: time outside before an exit, such as 90s.")]
First = Annotated[FirstFix, option(TRACKING, "With --track: whether a first fix that matches is an enter.")]
Late = Annotated[LateFixes, option(TRACKING, "With --track: leave late fixes out, or take them in order of arrival.")]
ExpireAfter = Annotated[
    str | None, option(TRACKING, "With --track: time without a message after which an object leaves, such as 1h.")
]
Master = Annotated[str | None, option(RUNNING, "Spark master; default: all cores of this machine.")]
Degree = Annotated[str, plain("Minimum and maximum number of children of a node.", metavar="m,M")]
Sketch = Annotated[int, plain("Number of boxes that a parent keeps of a low node; 0: one.", min=0)]
Distribution = Annotated[str, plain("uniform or zipf, optionally with -25:75 or -10:90.")]


def names_in(text: str | None) -> list[str]:
    """Return the names in a comma-separated list."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def degree_of(text: str) -> tuple[int, int]:
    """Parse the two numbers of m,M."""
    try:
        least, most = map(int, text.split(","))
    except ValueError:
        raise OverlayError(f"--degree: need two whole numbers such as 5,10, got {text!r:.60}") from None
    return least, most


def check_exist(paths: Iterable[Path | None]) -> None:
    """Raise BadParameter for a missing file or directory."""
    for path in paths:
        if path is not None and not path.exists():
            raise typer.BadParameter(f"{path} does not exist")


def check_paths(inputs: list[Path | None], outputs: list[Path | None]) -> None:
    """Raise BadParameter for missing inputs, outputs that are inputs, and two outputs to one file."""
    files = [path for path in inputs if path is not None and str(path) != "-"]
    check_exist(files)
    written = [path for path in outputs if path is not None]
    for path in written:
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a directory")
        for other in files:
            if path.exists() and os.path.samefile(path, other):
                raise typer.BadParameter(f"{path} is an input file; use another file for the output")
    if len({os.path.abspath(path) for path in written}) < len(written) and os.path.isfile(written[0]):
        raise typer.BadParameter("--output and --reject must be different files")


def wrap_of(text: str | None) -> dict[str, str]:
    """Return the modes by attribute of --wrap; a bad one is a BadParameter.

    >>> wrap_of("area=longitude, at=shorter")
    {'area': 'longitude', 'at': 'shorter'}
    """
    pairs = [name.rpartition("=") for name in names_in(text)]
    wrap = {name.strip(): mode.strip() for name, _, mode in pairs}
    try:
        globes_of(wrap)
    except ArgumentError as error:
        raise typer.BadParameter(f"--{error}") from error
    return wrap
