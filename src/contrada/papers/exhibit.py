"""Exhibits of the papers as data: what a figure or table claims, its parameters, how to measure it and how to show it.

An exhibit is a grid: one run for each combination of parameter values and each seed. Exhibits of one `Measurement`
share its rows, so that a run that two figures need is measured once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from contrada.errors import ContradaError

Value = int | float | str
Setting = dict[str, Value]  # one value for each parameter
Grid = dict[str, tuple[Value, ...]]  # some values for each parameter
Row = dict[str, Any]  # setting, seed, measured values, and where they were measured
MAX_RUNS = 100_000
SHOWN_CHARACTERS = 60  # of a wrong option in an error


class ExperimentError(ContradaError, ValueError):
    """An exhibit, parameter, value or seed that does not exist or does not fit."""


class NotAvailableError(ExperimentError):
    """A run needs a program that this machine does not have; its row is left out with a message."""


@dataclass(frozen=True)
class SweepParameter:
    """A parameter of an exhibit with its default values; `quick` values make a small run."""

    about: str
    values: tuple[Value, ...]
    quick: tuple[Value, ...] | None = None
    is_printed: bool = True  # the paper prints these values; False: it says nothing, any value is a reading of it
    check: Callable[[Any], object] | None = None  # raises an error for a value that does not fit

    def parse(self, text: str) -> Value:
        """Return a value from its text, as the type of the defaults.

        >>> SweepParameter("mode", (1, 2)).parse("6"), SweepParameter("share", (0.5,)).parse("1")
        (6, 1.0)
        """
        value = type(self.values[0])(text)
        if isinstance(value, (int, float)) and not 0 <= value < float("inf"):
            raise ValueError("need a finite number of at least 0")
        if self.check is not None:
            self.check(value)
        return value


@dataclass(frozen=True)
class Measurement:
    """A function that measures one setting; its rows are kept in one file.

    Timed rows are measured one at a time in this process, others may be measured side by side.
    """

    name: str
    measure: Callable[[Setting, int, Path | None], Row]  # setting, seed, directory of region sets
    is_timed: bool = False
    file_of: Callable[[Setting], str | None] = lambda _: None  # the file of regions that a setting reads, if any


@dataclass(frozen=True)
class TableColumn:
    """A measured value in a table."""

    value: str
    title: str
    form: str = ",.0f"
    factor: float = 1.0


@dataclass(frozen=True)
class TableLayout:
    """A table: a line for each combination of the parameters `down`, a group of columns for each value of `across`."""

    down: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    across: str | None = None


@dataclass(frozen=True)
class Chart:
    """A plot of a value by a parameter: a line for each combination of `lines`, an axes for each value of `panels`."""

    x: str
    y: str
    x_label: str
    y_label: str  # with the unit
    lines: tuple[str, ...]
    panels: str | None = None
    factor: float = 1.0
    is_log: bool = False
    is_log_x: bool = False
    points: Callable[[Row], Iterable[Row]] = lambda row: (row,)  # rows to draw of one measured row
    limit: tuple[float, str] | None = None  # a bound that the paper's text gives, and its label


@dataclass(frozen=True)
class PaperClaim:
    """A sentence of the paper, and whether it holds for rows; None if the rows do not say."""

    text: str
    holds: Callable[[list[Row]], bool | None]
    has_numbers: bool = False  # numbers of the paper: shown only beside runs with the paper's parameters


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, or a measurement of our own."""

    name: str
    paper: str
    number: str
    claim: str
    measurement: Measurement
    parameters: Mapping[str, SweepParameter]
    layouts: tuple[TableLayout, ...] = ()
    charts: tuple[Chart, ...] = ()
    claims: tuple[PaperClaim, ...] = ()
    seeds: tuple[int, ...] = (1,)
    quick_seeds: tuple[int, ...] = (1,)
    # The paper's own values for a row, by the names of measured values; empty if it prints none.
    printed: Callable[[Row], Mapping[str, float]] = field(default=lambda row: {})
    # Further text and pictures for rows, where tables and charts do not do.
    tell: Callable[[list[Row]], str] | None = None
    draw: Callable[[list[Row], Path], list[Path]] | None = None
    plan: Callable[[Grid], list[Setting]] | None = None  # settings that are not all combinations

    @property
    def labels(self) -> str:
        """The paper and the number, such as [COVER] figure 8."""
        return f"[{self.paper.upper()}] {self.number}" if self.number else f"[{self.paper.upper()}]"

    def grid(self, *, quick: bool = False, changes: Mapping[str, tuple[Value, ...]] | None = None) -> Grid:
        """Return the values of all parameters, with `changes` in place of the defaults."""
        grid = {
            name: parameter.quick if quick and parameter.quick is not None else parameter.values
            for name, parameter in self.parameters.items()
        }
        for name in changes or {}:
            if name not in grid:
                known = ", ".join(self.parameters)
                raise ExperimentError(f"{self.name} has no parameter {name!r:.{SHOWN_CHARACTERS}}; it has {known}")
        return grid | dict(changes or {})

    def settings(self, grid: Grid) -> list[Setting]:
        """Return the settings of a grid: all combinations of the values, or those of the plan."""
        runs = 1
        for values in grid.values():
            runs *= len(values)
        if runs > MAX_RUNS:
            raise ExperimentError(f"{self.name}: {runs:,} combinations are more than {MAX_RUNS:,}; set fewer values")
        if self.plan is not None:
            return self.plan(grid)
        return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]

    def is_printed(self, setting: Mapping[str, Any]) -> bool:
        """Return True if every parameter of a setting or row has a value that the paper uses."""
        return all(
            setting[name] in parameter.values for name, parameter in self.parameters.items() if parameter.is_printed
        )

    def default_files(self) -> set[str | None]:
        """Return the files of regions that the default settings read."""
        grids = (self.grid(), self.grid(quick=True))
        return {self.measurement.file_of(setting) for grid in grids for setting in self.settings(grid)}

    def beside(self, row: Row) -> Mapping[str, float]:
        """Return the paper's values for a row; none unless the row has the paper's parameters."""
        return self.printed(row) if self.is_printed(row) else {}


def parse_changes(exhibit: Exhibit, texts: Iterable[str]) -> Grid:
    """Parse options such as k=1,2,6 into values of an exhibit's parameters.

    Raises ExperimentError for an unknown parameter and for a value that does not fit.
    """
    changes: Grid = {}
    for text in texts:
        name, sign, listed = text.partition("=")
        if not sign or not listed.strip():
            raise ExperimentError(f"--set: need name=value,value, got {text!r:.{SHOWN_CHARACTERS}}")
        exhibit.grid(changes={name: ()})
        changes[name] = tuple(dict.fromkeys(_parsed(exhibit, name, part.strip()) for part in listed.split(",")))
    return changes


def _parsed(exhibit: Exhibit, name: str, text: str) -> Value:
    parameter = exhibit.parameters[name]
    try:
        return parameter.parse(text)
    except (ValueError, OverflowError) as error:
        example = ",".join(map(str, parameter.values[:2]))
        reason = str(error) if isinstance(error, ContradaError) else f"need values such as {example}"
        raise ExperimentError(f"--set {name}: {text!r:.{SHOWN_CHARACTERS}} does not fit: {reason}") from None


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse seeds: single ones and ranges, separated by commas.

    >>> parse_seeds("1-3,7")
    (1, 2, 3, 7)
    """
    try:
        seeds = tuple(dict.fromkeys(seed for part in text.split(",") for seed in _seeds_of(part)))
    except ValueError:
        raise ExperimentError(f"--seeds: need seeds such as 1-5 or 1,2,7, got {text!r:.{SHOWN_CHARACTERS}}") from None
    return seeds


def _seeds_of(text: str) -> Iterator[int]:
    first, sign, last = text.partition("-")
    low, high = int(first), int(last if sign else first)
    if not 0 <= low <= high < low + MAX_RUNS:
        raise ValueError
    yield from range(low, high + 1)
