"""Networks of brokers as an exhibit of our own: one sweep over workloads, modes, shapes and sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contrada.papers.exhibit import (
    Exhibit,
    ExperimentError,
    Grid,
    Measurement,
    PaperClaim,
    Row,
    Setting,
    SweepParameter,
)
from contrada.papers.network.plan import NetworkSetting
from contrada.papers.network.plots import draw
from contrada.papers.network.run import measure
from contrada.papers.network.sweeps import FULL, QUICK, setting_of
from contrada.papers.network.tables import FINDINGS, Results, findings, tables
from contrada.papers.showing import values_of

SWEEPS = {"full": FULL, "quick": QUICK}


def check_sweep(name: str) -> None:
    """Raise ExperimentError for an unknown sweep."""
    if name not in SWEEPS:
        raise ExperimentError(f"unknown sweep {name!r:.60}; sweeps: {', '.join(SWEEPS)}")


def settings_of(grid: Grid, data: Path | None) -> list[Setting]:
    """Return the settings of the chosen sweeps; region sets that are not in `data` are left out."""
    chosen = [each for name in grid["sweep"] for each in SWEEPS[str(name)].settings(0, data)]
    return list({setting: _without_seed(setting) for setting in chosen}.values())


def _without_seed(setting: NetworkSetting) -> Setting:
    return {name: value for name, value in asdict(setting).items() if name != "seed"}


def measure_network(setting: Setting, seed: int, data: Path | None) -> Row:
    """Return what one network of brokers or peers counts."""
    fields: dict[str, Any] = dict(setting)
    row = measure(NetworkSetting(**fields, seed=seed), data)
    return {name: value for name, value in row.items() if name not in (*setting, "seed")}


def results_of(rows: list[Row]) -> list[Results]:
    """Return the results of each seed, with the sweep that the rows belong to."""
    settings = {setting_of({**row, "seed": 0}) for row in rows}
    sweep = max((FULL, QUICK), key=lambda one: len(settings.intersection(one.settings(0, Path("/")))))
    return [Results([row for row in rows if row["seed"] == seed], sweep, seed) for seed in values_of(rows, "seed")]


def draw_all(rows: list[Row], directory: Path) -> list[Path]:
    """Draw the pictures of the first seed."""
    return draw(results_of(rows)[0], directory)


def tell(rows: list[Row]) -> str:
    """Return the tables of each seed."""
    return "\n\n".join(map(tables, results_of(rows)))


def finding(name: str) -> Callable[[list[Row]], bool]:
    """Return the claim that a finding holds for every seed."""
    return lambda rows: all(findings(results)[name] for results in results_of(rows))


EXHIBITS = (
    Exhibit(
        "network",
        "network",
        "",
        "Networks of brokers: what covering, withdrawal, merging and advertisements save.",
        Measurement("network", measure_network),
        {
            "sweep": SweepParameter(
                "sizes of the networks: full or quick", ("full",), ("quick",), is_printed=False, check=check_sweep
            )
        },
        claims=tuple(PaperClaim(name, finding(name)) for name in FINDINGS),
        plan=settings_of,
        tell=tell,
        draw=draw_all,
    ),
)
