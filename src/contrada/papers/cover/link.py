"""One link between two brokers: control messages and table entries, by how subscriptions are covered or merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from contrada.broker.simulation.simulator import NetworkSimulator
from contrada.errors import FormatError
from contrada.model import Constraint, Filter
from contrada.papers.cover.commands import ATTRIBUTES, Draw, rectangle_commands
from contrada.papers.cover.exhibits import CHOSEN_DRAW, PAPER
from contrada.papers.cover.together import TogetherIndex
from contrada.papers.exhibit import (
    Chart,
    Exhibit,
    Measurement,
    PaperClaim,
    Row,
    Setting,
    SweepParameter,
    TableColumn,
    TableLayout,
)
from contrada.papers.network.plan import LEAVING
from contrada.papers.network.region_sets import FILES, PARCELS
from contrada.papers.network.run import MODES, RATE
from contrada.papers.network.workload import check_workload, file_of_workload, workload_of
from contrada.papers.showing import mean_of, values_of

COVER = "COVER"  # the rectangles of [COVER], in whole numbers, of which p = 40 % of the commands unsubscribe
SHARE = 0.4
TOGETHER = "together"
LINK_MODES = ("flooding", "covering", TOGETHER, "withdrawal", "merging 0.1", "merging 0.3")
SETS = (*FILES, *(f"{name} 25:75" for name in FILES))


class Steps(NamedTuple):
    """Filters, and what happens: row r subscribes, -1 - r unsubscribes it."""

    filters: list[Filter]
    commands: list[int]
    step: float  # of the numbers


def steps_of(workload: str, subscriptions: int, seed: int, data: Path | None) -> Steps:
    """Return the steps of a workload: as [COVER] draws them, or all subscriptions and then a fifth that leave."""
    if workload == COVER:
        drawn, points = rectangle_commands(subscriptions, ATTRIBUTES, SHARE, seed, CHOSEN_DRAW)
        boxes = np.stack([-points[:, ::2], points[:, 1::2]], axis=2).tolist()
        filters = [
            Filter([Constraint(f"a{axis}", "between", (low, high)) for axis, (low, high) in enumerate(box)])
            for box in boxes
        ]
        return Steps(filters, drawn.tolist(), 0.0 if Draw.parse(CHOSEN_DRAW).numbers is None else 1.0)
    filters = workload_of(workload, subscriptions, 1, seed, data).filters
    leaving = np.random.default_rng([seed, 2]).permutation(subscriptions)[: int(LEAVING * subscriptions)]
    return Steps(filters, [*range(subscriptions), *(-1 - leaving).tolist()], 0.0)


def measure_link(setting: Setting, seed: int, data: Path | None) -> Row:
    """Return the control messages on a link, and the entries at its other end when all steps are done."""
    s: Any = setting
    steps = steps_of(s["workload"], s["subscriptions"], seed, data)
    control, entries = covered_together(steps) if s["mode"] == TOGETHER else simulated(steps, s["mode"], seed)
    return {"control": control, "entries": entries, "live": sum(1 if row >= 0 else -1 for row in steps.commands)}


def covered_together(steps: Steps) -> tuple[int, int]:
    """Return the control messages and entries if several subscriptions may cover one together."""
    index = TogetherIndex(steps.step)
    control = 0
    for command in steps.commands:
        if command >= 0:
            control += index.subscribe(command, steps.filters[command])
        else:
            is_withdrawn, forwarded = index.unsubscribe(-1 - command)
            control += is_withdrawn + len(forwarded)
    return control, len(index.forwarded)


def simulated(steps: Steps, mode: str, seed: int) -> tuple[int, int]:
    """Return the control messages and entries of two brokers with a mode of the broker network."""
    network = NetworkSimulator(seed, (0.01, 0.05), MODES[mode], durable=False)
    network.add("b0")
    network.build([("b0", "b1")])
    network.run()
    before = network.counts.control
    for command in steps.commands:
        if command >= 0:
            network.subscribe("b0", "client", command, steps.filters[command])
        else:
            network.unsubscribe("b0", -1 - command)
        network.run(network.now + 1 / RATE)
    network.run()
    return network.counts.control - before, len(network.brokers["b1"])


def check_mode(name: str) -> None:
    """Raise FormatError for an unknown mode."""
    if name not in LINK_MODES:
        raise FormatError(f"unknown mode {name!r:.60}; modes: {', '.join(LINK_MODES)}")


def file_of_link(setting: Setting) -> str | None:
    """Return the file of regions that a setting reads; None if it needs none."""
    name = str(setting["workload"])
    return None if name == COVER else file_of_workload(name)


def saves(rows: list[Row], value: str) -> bool | None:
    """Return whether covering together saves over covering by one, for every workload; None without both."""
    pairs = [
        [mean_of(rows, value, workload=work, mode=mode) for mode in (TOGETHER, "covering")]
        for work in values_of(rows, "workload")
    ]
    known = [(ours, one) for ours, one in pairs if ours == ours and one == one]
    return all(ours < one for ours, one in known) if known else None


LINK = Exhibit(
    "cover-together",
    PAPER,
    "beyond the paper",
    "How many control messages and table entries are saved where several subscriptions may cover one together?",
    Measurement("cover-together", measure_link, file_of=file_of_link),
    {
        "workload": SweepParameter(
            "COVER, rectangles, parcels, London, Rhône-Alpes, SoCal, or a file in --data; 25:75 or 10:90 after it",
            (COVER, *SETS),
            (COVER, f"{PARCELS} 25:75"),
            is_printed=False,
            check=check_workload,
        ),
        "subscriptions": SweepParameter("subscriptions; of COVER commands", (2_000,), (150,), is_printed=False),
        "mode": SweepParameter("how subscriptions are forwarded", LINK_MODES, is_printed=False, check=check_mode),
    },
    (
        TableLayout(("workload",), (TableColumn("control", "control messages"),), "mode"),
        TableLayout(("workload",), (TableColumn("entries", "table entries"),), "mode"),
    ),
    (
        Chart("workload", "control", "workload", "control messages", ("mode",)),
        Chart("workload", "entries", "workload", "table entries", ("mode",)),
    ),
    (
        PaperClaim("covering together saves control messages on every workload", lambda rows: saves(rows, "control")),
        PaperClaim("covering together saves table entries on every workload", lambda rows: saves(rows, "entries")),
    ),
    seeds=(1, 2, 3, 4, 5),
)
EXHIBITS = (LINK,)
