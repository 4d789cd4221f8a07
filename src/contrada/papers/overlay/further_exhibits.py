"""What [OVERLAY] says without a figure: latency by size, the trees it compares with; and our failures under churn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from contrada.errors import OverlayError
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.churn import Churn
from contrada.overlay.simulation.network import Network
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
from contrada.papers.overlay.baselines import BASELINES, CONTAINMENT, FLAT, ONE_ATTRIBUTE, PER_ATTRIBUTE
from contrada.papers.overlay.churn import MAX_HEALING_SECONDS, measure_churn
from contrada.papers.overlay.exhibits import PAPER, PAPER_METHODS, SIZES, TREES, degree_of, parameters
from contrada.papers.showing import mean_of, values_of

COMPARED_SIZES = (1_000, 2_500, 5_000, 10_000)
SEEDS = (1, 2, 3, 4, 5)
FAILURE_SEEDS = tuple(range(1, 21))  # crashes that lose messages are rare
LIVELY = {"joins": 0.5, "leaves": 0.3, "crashes": 0.2, "messages": 10.0}
# Events per second, and the network.
SCENARIOS: dict[str, tuple[Churn, Network]] = {
    "mild": (Churn(**LIVELY), Network(0.05, 0.05)),
    "lossy": (Churn(**LIVELY), Network(0.05, 0.05, loss=0.05)),
    "resending": (Churn(**LIVELY), Network(0.05, 0.05, loss=0.05, resend=0.2)),
    "crashing": (Churn(**(LIVELY | {"joins": 1.0, "crashes": 1.0})), Network(0.05, 0.05)),
    "corrupted": (Churn(**LIVELY, corruptions=0.2), Network(0.05, 0.05)),
}
MOST_MISSED = 0.001


def check_scenario(name: str) -> None:
    """Raise OverlayError for an unknown scenario."""
    if name not in SCENARIOS:
        raise OverlayError(f"unknown scenario {name!r:.60}; scenarios: {', '.join(SCENARIOS)}")


def measure_failures(setting: Setting, seed: int, _: Path | None = None) -> Row:
    """Run one scenario of churn; return flat values.

    >>> setting = {"scenario": "mild", "kept": 100, "peers": 20, "seconds": 4.0, "degree": "2:5"}
    >>> measure_failures(setting, 1)["false_negatives_after"]
    0
    """
    s: Any = setting
    churn, network = SCENARIOS[s["scenario"]]
    rules = Rules(*degree_of(s["degree"]), kept=s["kept"])
    row = measure_churn(s["peers"], s["seconds"], churn, network, rules, "uniform", seed)
    healed = MAX_HEALING_SECONDS if row["healed_after"] is None else row["healed_after"]
    return {
        name: value for name, value in row.items() if name not in (*setting, "seed", "churn", "network")
    } | {"healed_after": healed}  # fmt: skip


def is_logarithmic(rows: list[Row]) -> bool:
    """Return whether no message took more hops than a tree of the fewest children has levels: 1 + log_m(N / 2)."""
    return all(
        row["hops_max"] <= row["height"] <= 1 + math.log(row["subscriptions"] / 2, degree_of(row["degree"])[0])
        for row in rows
    )


def grows_slowly(rows: list[Row]) -> bool | None:
    """Return whether mean hops grow by at most one for each factor m in size, with each method."""
    least = min(degree_of(degree)[0] for degree in values_of(rows, "degree"))
    sizes = sorted(values_of(rows, "subscriptions"))
    if len(sizes) < 2:
        return None
    steps = math.log(sizes[-1] / sizes[0], least)
    return all(
        mean_of(rows, "hops_average", method=method, subscriptions=sizes[-1])
        - mean_of(rows, "hops_average", method=method, subscriptions=sizes[0])
        <= steps
        for method in values_of(rows, "method")
    )


def of_method(rows: list[Row], method: str) -> list[Row]:
    """Return the rows of one method."""
    return [row for row in rows if row["method"] == method]


def has_no_false_positives(rows: list[Row]) -> bool | None:
    """Return whether the containment tree has no false positives, as the paper argues."""
    own = of_method(rows, CONTAINMENT)
    return not any(row["false_positive_ratio"] for row in own) if own else None


def is_unbounded(rows: list[Row]) -> bool | None:
    """Return whether at each size a containment tree and flat trees have five times the largest degree of DR-trees."""

    def degrees(size: int, methods: tuple[str, ...]) -> list[int]:
        return [row["degree_max"] for row in rows if row["subscriptions"] == size and row["method"] in methods]

    pairs = [(degrees(n, (CONTAINMENT, FLAT)), degrees(n, PAPER_METHODS)) for n in values_of(rows, "subscriptions")]
    decided = [min(own) > 5 * max(others) for own, others in pairs if own and others]
    return all(decided) if decided else None


def are_many(rows: list[Row]) -> bool | None:
    """Return whether trees per attribute have more than ten times the false positives of every DR-tree."""
    own = [row["false_positive_ratio"] for row in rows if row["method"] in (PER_ATTRIBUTE, FLAT, ONE_ATTRIBUTE)]
    others = [row["false_positive_ratio"] for row in rows if row["method"] in PAPER_METHODS]
    return min(own) > 10 * max(others) if own and others else None


def has_2000_children(rows: list[Row]) -> bool | None:
    """Return whether the virtual root of the containment tree has 1,500 to 2,500 children on average."""
    count = mean_of(rows, "root_degree", method=CONTAINMENT, subscriptions=10_000)
    return None if math.isnan(count) else 1_500 <= count <= 2_500


def misses_little(rows: list[Row]) -> bool | None:
    """Return whether peers that keep messages miss fewer than MOST_MISSED of the deliveries in every scenario."""
    scenarios = values_of([row for row in rows if row["kept"]], "scenario")
    shares = [mean_of([row for row in rows if row["kept"]], "false_negative_ratio", scenario=s) for s in scenarios]
    return max(shares) < MOST_MISSED if shares else None


HOPS = (
    TableColumn("hops_average", "hops, average", ".2f"),
    TableColumn("hops_max", "hops, most", ".1f"),
    TableColumn("height", "height", ".1f"),
)

EXHIBITS = (
    Exhibit(
        "overlay-hops",
        PAPER,
        "section 6",
        "The way of a message is at worst logarithmic in the number of subscriptions.",
        TREES,
        parameters(subscriptions=SIZES, method=PAPER_METHODS),
        (TableLayout(("subscriptions", "method"), HOPS),),
        (
            Chart("subscriptions", "hops_average", "subscriptions", "hops of a receipt, average", ("method",),
                  is_log_x=True),
            Chart("subscriptions", "hops_max", "subscriptions", "hops of a receipt, most", ("method",), is_log_x=True),
            Chart("subscriptions", "height", "subscriptions", "levels of the tree", ("method",), is_log_x=True),
        ),
        (
            PaperClaim("hops are at most the height, and that at most 1 + log_m(N / 2)", is_logarithmic),
            PaperClaim("mean hops grow by at most one for each factor m in size", grows_slowly),
        ),
        seeds=SEEDS,
    ),
    Exhibit(
        "overlay-baselines",
        PAPER,
        "sections 2 and 5",
        "A containment tree has unbounded degrees; trees per attribute have many false positives.",
        TREES,
        parameters(subscriptions=COMPARED_SIZES, method=("quadratic", "R*", *BASELINES)),
        (
            TableLayout(
                ("subscriptions", "method"),
                (
                    TableColumn("false_positive_ratio", "false positives, % of peers", ".2f", 100),
                    TableColumn("notes_per_message", "notes per message", ",.0f"),
                    *HOPS[:2],
                    TableColumn("degree_average", "degree, average", ".2f"),
                    TableColumn("degree_max", "degree, most", ",.0f"),
                    TableColumn("degree_variance", "degree, variance", ",.1f"),
                    TableColumn("root_degree", "children of the root", ",.0f"),
                ),
            ),
        ),
        (
            Chart("subscriptions", "false_positive_ratio", "subscriptions", "false positives, % of peers", ("method",),
                  factor=100, is_log_x=True),
            Chart("subscriptions", "hops_average", "subscriptions", "hops of a receipt, average", ("method",),
                  is_log=True, is_log_x=True),
            Chart("subscriptions", "degree_max", "subscriptions", "largest degree", ("method",), is_log=True,
                  is_log_x=True),
        ),
        (
            PaperClaim("a containment tree has no false positives", has_no_false_positives),
            PaperClaim("a containment tree and flat trees have degrees more than 5 times as large", is_unbounded),
            PaperClaim("trees per attribute have more than 10 times the false positives", are_many),
            PaperClaim("about 2,000 subscriptions lie in no other", has_2000_children, True),
        ),
        seeds=SEEDS,
    ),
    Exhibit(
        "overlay-failures",
        PAPER,
        "failures",
        "Beyond the paper: peers crash, notes are lost; messages that are kept and sent again reach every live peer.",
        Measurement("overlay-failures", measure_failures),
        {
            "scenario": SweepParameter(
                "events and network", tuple(SCENARIOS), is_printed=False, check=check_scenario
            ),
            "kept": SweepParameter(
                "messages that a peer keeps; 0: the paper's protocol", (0, 4096), (4096,), is_printed=False
            ),
            "peers": SweepParameter("peers at the start", (200,), (30,), is_printed=False),
            "seconds": SweepParameter("seconds of churn", (30.0,), (5.0,), is_printed=False),
            "degree": SweepParameter("least and most children of a node, m:M", ("5:10",), is_printed=False),
        },
        (
            TableLayout(
                ("scenario", "kept"),
                (
                    TableColumn("false_negative_ratio", "missed, %", ".3f", 100),
                    TableColumn("extinct", "no holder left", ".1f"),
                    TableColumn("repeated", "twice", ".0f"),
                    TableColumn("healed_after", "whole again, s", ".1f"),
                    TableColumn("notes_per_second", "notes a second", ",.0f"),
                    TableColumn("carrying_per_second", "with messages", ",.0f"),
                    TableColumn("bytes_per_second", "kB a second", ",.1f", 1e-3),
                    TableColumn("kept_messages", "kept per peer", ",.1f"),
                    TableColumn("kept_messages_max", "most", ",.0f"),
                    TableColumn("kept_bytes", "kB kept per peer", ",.1f", 1e-3),
                    TableColumn("kept_bytes_max", "most, kB", ",.0f", 1e-3),
                ),
            ),
        ),
        (
            Chart("scenario", "false_negative_ratio", "scenario", "deliveries missed, %", ("kept",), factor=100),
            Chart("scenario", "notes_per_second", "scenario", "notes a second", ("kept",)),
        ),
        (
            PaperClaim("peers that keep messages miss less than 0.1 % in every scenario", misses_little),
            PaperClaim("no peer gets a message twice", lambda rows: not any(row["repeated"] for row in rows)),
            PaperClaim(
                "afterwards nothing is missed", lambda rows: not any(row["false_negatives_after"] for row in rows)
            ),
        ),
        seeds=FAILURE_SEEDS,
    ),
)  # fmt: skip
