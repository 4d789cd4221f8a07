"""Networks of brokers as exhibits of our own: a sweep over everything that saves, and any grid of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contrada.papers.exhibit import (
    Chart,
    Exhibit,
    ExperimentError,
    Grid,
    Measurement,
    PaperClaim,
    Row,
    Setting,
    SweepParameter,
    TableColumn,
    TableLayout,
)
from contrada.papers.network.peers import PEER_MODES
from contrada.papers.network.plan import NetworkSetting
from contrada.papers.network.plots import draw
from contrada.papers.network.run import MODES, TOPOLOGIES, measure
from contrada.papers.network.sweeps import AXIS_MODES, AXIS_WORKLOAD, FULL, QUICK, setting_of
from contrada.papers.network.tables import FINDINGS, Results, findings, tables
from contrada.papers.network.workload import RECTANGLES, check_workload, file_of_workload
from contrada.papers.showing import mean_of, values_of

SWEEPS = {"full": FULL, "quick": QUICK}


def check_sweep(name: str) -> None:
    """Raise ExperimentError for an unknown sweep."""
    if name not in SWEEPS:
        raise ExperimentError(f"unknown sweep {name!r:.60}; sweeps: {', '.join(SWEEPS)}")


def check_mode(name: str) -> None:
    """Raise ExperimentError for an unknown mode of forwarding."""
    if name not in (*MODES, *PEER_MODES):
        raise ExperimentError(f"unknown mode {name!r:.60}; modes: {', '.join((*MODES, *PEER_MODES))}")


def check_shape(name: str) -> None:
    """Raise ExperimentError for an unknown shape of a network."""
    if name not in TOPOLOGIES:
        raise ExperimentError(f"unknown shape {name!r:.60}; shapes: {', '.join(TOPOLOGIES)}")


def check_count(count: int) -> None:
    """Raise ExperimentError for a count of none."""
    if count < 1:
        raise ExperimentError(f"need at least 1, got {count}")


def settings_of(grid: Grid) -> list[Setting]:
    """Return the settings of the chosen sweeps."""
    chosen = [each for name in grid["sweep"] for each in SWEEPS[str(name)].settings(0)]
    return list({setting: _without_seed(setting) for setting in chosen}.values())


def _without_seed(setting: NetworkSetting) -> Setting:
    return {name: value for name, value in asdict(setting).items() if name != "seed"}


def file_of_network(setting: Setting) -> str | None:
    """Return the file of regions that a setting reads; None if it needs none."""
    return file_of_workload(str(setting["workload"]))


def measure_network(setting: Setting, seed: int, data: Path | None) -> Row:
    """Return what one network of brokers or peers counts."""
    fields: dict[str, Any] = dict(setting)
    if fields["mode"] in PEER_MODES and fields["workload"] not in RECTANGLES:
        raise ExperimentError(f"{fields['mode']}: the overlay takes rectangles alone, not {fields['workload']!r:.60}")
    row = measure(NetworkSetting(**fields, seed=seed), data)
    row["settled"] = row["settling"]["mean"] if "settling" in row else None  # of peers there is no such time
    return {name: value for name, value in row.items() if name not in (*setting, "seed")}


def results_of(rows: list[Row]) -> list[Results]:
    """Return the results of each seed, with the sweep that the rows belong to."""
    settings = {setting_of({**row, "seed": 0}) for row in rows}
    sweep = max((FULL, QUICK), key=lambda one: len(settings.intersection(one.settings(0))))
    return [Results([row for row in rows if row["seed"] == seed], sweep, seed) for seed in values_of(rows, "seed")]


def draw_all(rows: list[Row], directory: Path) -> list[Path]:
    """Draw the pictures of all seeds."""
    return draw(results_of(rows), directory)


def tell(rows: list[Row]) -> str:
    """Return the tables of each seed."""
    return "\n\n".join(map(tables, results_of(rows)))


def finding(name: str) -> Callable[[list[Row]], bool]:
    """Return the claim that a finding holds for every seed."""
    return lambda rows: all(findings(results)[name] for results in results_of(rows))


def with_settling(row: Row) -> tuple[Row, ...]:
    """Return a row if it says how long subscriptions take to settle."""
    return () if row["settled"] is None else (row,)


def saves(rows: list[Row], value: str) -> bool | None:
    """Return whether covering needs at most what flooding needs, for all other parameters; None without both."""
    others = [name for name in GRID_PARAMETERS if name != "mode"]
    pairs = []
    for values in {tuple(row[name] for name in others) for row in rows}:
        chosen = dict(zip(others, values, strict=True))
        pairs.append([mean_of(rows, value, mode=mode, **chosen) for mode in ("covering", "flooding")])
    known = [(ours, whole) for ours, whole in pairs if ours == ours and whole == whole]
    return all(ours <= whole for ours, whole in known) if known else None


NETWORK = Measurement("network", measure_network, file_of=file_of_network)
GRID_PARAMETERS = {
    "workload": SweepParameter(
        "rectangles, parcels, London, Rhône-Alpes, SoCal, or a file in --data; 25:75 or 10:90 after it: so many "
        "subscriptions lie within others",
        (AXIS_WORKLOAD,),
        is_printed=False,
        check=check_workload,
    ),
    "mode": SweepParameter("how subscriptions are forwarded", AXIS_MODES, is_printed=False, check=check_mode),
    "topology": SweepParameter(
        "shape of the network: tree, chain or star", ("tree",), is_printed=False, check=check_shape
    ),
    "brokers": SweepParameter("number of brokers", (3, 7, 15, 31, 63), (3, 7), is_printed=False, check=check_count),
    "subscriptions": SweepParameter(
        "number of subscriptions, a fifth of which leave", (2_000,), (100,), is_printed=False, check=check_count
    ),
    "messages": SweepParameter("number of messages", (1_000,), (40,), is_printed=False, check=check_count),
}
EXHIBITS = (
    Exhibit(
        "network",
        "network",
        "",
        "Networks of brokers: what covering, withdrawal, merging and advertisements save.",
        NETWORK,
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
    Exhibit(
        "network-grid",
        "network",
        "by any parameter",
        "Networks of brokers by workload, mode, shape and sizes: control messages, table entries, seconds to settle.",
        NETWORK,
        GRID_PARAMETERS,
        (
            TableLayout(
                ("workload", "topology", "brokers", "subscriptions", "mode"),
                (
                    TableColumn("control", "control messages"),
                    TableColumn("entries", "table entries"),
                    TableColumn("false_share", "false-positive traffic, %", ".1f", 100),
                ),
            ),
        ),
        (
            Chart("brokers", "control", "brokers", "control messages", ("mode",)),
            Chart("brokers", "entries", "brokers", "table entries", ("mode",)),
            Chart("brokers", "settled", "brokers", "settled after, mean seconds", ("mode",), points=with_settling),
        ),
        (
            PaperClaim("covering needs at most flooding's control messages", lambda rows: saves(rows, "control")),
            PaperClaim("covering needs at most flooding's table entries", lambda rows: saves(rows, "entries")),
        ),
        seeds=(1, 2, 3),
    ),
)
