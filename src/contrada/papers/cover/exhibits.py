"""Figures 8 to 12 and Tables I and II of [COVER], and the search for the reading of its workload that fits best.

The paper prints neither how a "randomly chosen segment" is drawn, nor the bucket limits of its k-d tree, nor what a
visit is. `cover-readings` counts for many readings; the others use the one that fits the printed tables best.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean
from typing import Any

from contrada.papers.cover.commands import ATTRIBUTES, Draw
from contrada.papers.cover.kd_tree import OVERFLOW, UNDERFLOW
from contrada.papers.cover.measuring import (
    INDEXES,
    check_share,
    check_underflow,
    index_of,
    measure_counts,
    measure_times,
)
from contrada.papers.exhibit import (
    Chart,
    Exhibit,
    Measurement,
    PaperClaim,
    Row,
    SweepParameter,
    TableColumn,
    TableLayout,
)
from contrada.papers.showing import mean_of, shown, values_of

PAPER = "cover"
COUNTS = Measurement("cover-counts", measure_counts)
TIMES = Measurement("cover-times", measure_times, is_timed=True)
MODES = (1, 2, 3, 4, 5, 6)
LOADS = (0.05, 0.4)  # shares of unsubscriptions: heavy and light load
# Three readings fit alike (`cover-readings`); of these, this one has a range [0, 2^d - 1] and fits Table I best.
CHOSEN_DRAW, CHOSEN_BUCKETS = "length:32", 64
GROWTH = {"10": 3, "11": 6, "12": 8}  # attributes of each figure; points have twice as many dimensions
SIZES = tuple(range(10_000, 100_001, 10_000))
NAMES = ("nv", "nv_s", "nv_u", "pc", "pc_s", "pc_u")
# Tables I and II: counts in thousands, by p and k.
TABLES: dict[float, dict[int, tuple[int, ...]]] = {
    0.05: {
        1: (813, 782, 31, 6147, 5993, 154),
        2: (983, 974, 9, 9967, 9852, 115),
        3: (1140, 1131, 9, 13111, 12973, 138),
        4: (1275, 1266, 9, 15816, 15663, 153),
        5: (1400, 1390, 10, 18274, 18111, 163),
        6: (1508, 1498, 10, 20407, 20237, 170),
    },
    0.4: {
        1: (556, 415, 141, 6192, 4684, 1508),
        2: (634, 529, 105, 8952, 7376, 1576),
        3: (714, 615, 99, 11026, 9365, 1661),
        4: (780, 683, 97, 12661, 10936, 1725),
        5: (839, 740, 99, 14050, 12260, 1790),
        6: (889, 789, 100, 15233, 13389, 1844),
    },
}
READ_DRAWS = (
    "ends",
    "length",
    "start",
    *(f"{law}:{numbers}" for law in ("length", "ends", "start") for numbers in (8, 16, 24, 32, 64, 256, 1024)),
)
NEARLY = 1.05
READ_BUCKETS = (16, 32, 64, 128)


def printed(row: Row) -> dict[str, float]:
    """Return the counts of Table I or II for a row."""
    counts = TABLES.get(row["p"], {}).get(row["k"], ())
    return {name: 1000.0 * count for name, count in zip(NAMES, counts, strict=bool(counts))}


def parameters(commands: tuple[int, ...], attributes: int, p: tuple[float, ...], k: tuple[int, ...]) -> dict[str, Any]:
    """Return the parameters that all exhibits have."""
    quick_commands = (1000, 2000) if len(commands) > 1 else (2000,)
    return {
        "commands": SweepParameter("subscriptions and unsubscriptions", commands, quick_commands),
        "attributes": SweepParameter(
            "attributes of a subscription; a point has twice as many dimensions", (attributes,)
        ),
        "p": SweepParameter("share of unsubscriptions", p, check=check_share),
        "k": SweepParameter("reporting mode: covers kept of a subscription", k, (1, 2, 6) if len(k) > 1 else None),
        "draw": SweepParameter(
            "how a side is drawn: ends, length or start, with :N as whole numbers below N",
            (CHOSEN_DRAW,),
            is_printed=False,
            check=Draw.parse,
        ),
        "buckets": SweepParameter(
            "largest number of points in a bucket of the k-d tree", (CHOSEN_BUCKETS,), is_printed=False
        ),
        "underflow": SweepParameter(
            "least number of points in a bucket, as a share of the largest; one with fewer is merged",
            (UNDERFLOW / OVERFLOW,),
            is_printed=False,
            check=check_underflow,
        ),
    }


def index_parameter(*names: str) -> dict[str, SweepParameter]:
    """Return the parameter that chooses the index."""
    return {"index": SweepParameter("index of points", names, check=lambda name: index_of(name, 2, 8, 0))}


def rises(rows: list[Row], value: str, **chosen: Any) -> bool | None:
    """Return whether a value rises with k; None with fewer than two k."""
    means = [mean_of(rows, value, k=k, **chosen) for k in sorted(values_of(rows, "k"))]
    return all(one < other for one, other in pairwise(means)) if len(means) > 1 else None


def rises_everywhere(rows: list[Row], value: str, *names: str) -> bool | None:
    """Return whether a value rises with k for every combination of other parameters."""
    combined = {tuple(row[name] for name in names) for row in rows}
    return all_hold(rises(rows, value, **dict(zip(names, values, strict=True))) for values in combined)


def all_hold(found: Iterator[bool | None]) -> bool | None:
    """Return whether all that is known holds; None if nothing is known."""
    known = [each for each in found if each is not None]
    return all(known) if known else None


def falls_first(value: str) -> Any:
    """Return a check that a value falls from k = 1 to k = 2."""

    def holds(rows: list[Row]) -> bool | None:
        if not {1, 2} <= set(values_of(rows, "k")):
            return None
        return mean_of(rows, value, k=2) < mean_of(rows, value, k=1)

    return holds


def count_table(name: str, number: str, load: str, p: float) -> Exhibit:
    """Return Table I or II."""
    thousands = tuple(TableColumn(count, f"{count}, thousands", factor=1e-3) for count in NAMES)
    claims = [
        PaperClaim("nodes visited rise with k", lambda rows: rises(rows, "nv")),
        PaperClaim("points compared rise with k", lambda rows: rises(rows, "pc")),
        PaperClaim("nodes visited due to unsubscribing fall from k = 1 to k = 2", falls_first("nv_u")),
        PaperClaim("queries due to unsubscribing fall from k = 1 to k = 2", falls_first("queries_u")),
        PaperClaim("nv and pc are within a third of the paper's for every k", lambda rows: is_near(rows, 4 / 3), True),
    ]
    return Exhibit(
        name,
        PAPER,
        number,
        f"{load} load (p = {p:.0%}): nodes visited and points compared by the k-d tree rise with the reporting mode k.",
        COUNTS,
        parameters((60_000,), ATTRIBUTES, (p,), MODES) | index_parameter("k-d tree"),
        (TableLayout(("k",), (*thousands, TableColumn("queries_u", "queries_u"))),),
        (
            Chart("k", "nv", "reporting mode k", "nodes visited, thousands", ("p", "index"), factor=1e-3),
            Chart("k", "pc", "reporting mode k", "points compared, thousands", ("p", "index"), factor=1e-3),
        ),
        tuple(claims),
        seeds=(1, 2, 3, 4, 5),
        printed=printed,
    )


def is_near(rows: list[Row], factor: float) -> bool:
    """Return whether totals are within a factor of the paper's, for every p and k."""
    return all(
        1 / factor <= mean_of(rows, name, p=p, k=k) / printed({"p": p, "k": k})[name] <= factor
        for p, k in {(row["p"], row["k"]) for row in rows}
        for name in ("nv", "pc")
    )


FIGURE_8 = Exhibit(
    "cover-figure-8",
    PAPER,
    "figure 8",
    "Run time always rises with the reporting mode k, for both indexes and loads.",
    TIMES,
    parameters((60_000,), ATTRIBUTES, LOADS, MODES)
    | index_parameter("k-d tree", "Z-curve")
    | {"repeats": SweepParameter("runs; the fastest counts", (3,), (1,), is_printed=False)},
    (TableLayout(("p", "k"), (TableColumn("seconds", "seconds", ".3f"),), "index"),),
    (Chart("k", "seconds", "reporting mode k", "run time, CPU seconds", ("index",), "p"),),
    (
        PaperClaim("run time rises with k", lambda rows: rises_everywhere(rows, "seconds", "p", "index")),
        PaperClaim(
            "k = 1 is fastest",
            lambda rows: all_hold(
                mean_of(rows, "seconds", p=p, index=index, k=1)
                <= min(mean_of(rows, "seconds", p=p, index=index, k=k) for k in values_of(rows, "k"))
                for p, index in {(row["p"], row["index"]) for row in rows}
            ),
        ),
    ),
    seeds=(1, 2, 3),
)
FIGURE_9 = Exhibit(
    "cover-figure-9",
    PAPER,
    "figure 9",
    "Queries due to unsubscribing fall with the reporting mode k, most from 1 to 2.",
    COUNTS,
    parameters((60_000,), ATTRIBUTES, LOADS, MODES) | index_parameter("k-d tree"),
    (TableLayout(("k",), (TableColumn("queries_u", "queries"),), "p"),),
    (Chart("k", "queries_u", "reporting mode k", "queries due to unsubscribing", (), "p"),),
    (
        PaperClaim(
            "queries fall from each k to the next",
            lambda rows: all_hold(
                all(
                    one >= other
                    for one, other in pairwise(
                        [mean_of(rows, "queries_u", p=p, k=k) for k in sorted(values_of(rows, "k"))]
                    )
                )
                for p in values_of(rows, "p")
            ),
        ),
    ),
    seeds=(1, 2, 3, 4, 5),
)


def gain(rows: list[Row], slow: str, fast: str) -> float:
    """Return how many times as long one index takes as another, at the largest number of commands."""
    most = max(values_of(rows, "commands"))
    return mean_of(rows, "seconds", index=slow, commands=most) / mean_of(rows, "seconds", index=fast, commands=most)


def tell_gains(rows: list[Row]) -> str:
    """Say how much faster the indexes are than the compiled scan, and where the Z-curve is no faster."""
    names = values_of(rows, "index")
    if set(names) != set(INDEXES):
        return ""
    sizes = values_of(rows, "commands")
    no_faster = [
        shown(size)
        for size in sizes
        if compare([row for row in rows if row["commands"] == size], "scan", "Z-curve") is False
    ]
    where = "at any number of commands" if len(no_faster) == len(sizes) else f"at {', '.join(no_faster)} commands"
    z = (
        f"The Z-curve is no faster than the compiled scan {where}."
        if no_faster
        else ("The Z-curve is faster than the compiled scan at every number of commands.")
    )
    return (
        f"At {max(sizes):,} commands the compiled scan takes {gain(rows, 'scan', 'k-d tree'):.1f} times as long as the "
        f"k-d tree and {gain(rows, 'scan', 'Z-curve'):.1f} times as long as the Z-curve. {z}"
    )


def growth_figure(figure: str, attributes: int) -> Exhibit:
    """Return one of figures 10 to 12."""
    claims = [
        PaperClaim("the k-d tree is faster than the Z-curve", lambda rows: compare(rows, "Z-curve", "k-d tree")),
        PaperClaim("the k-d tree is faster than no index", lambda rows: compare(rows, "scan", "k-d tree")),
        PaperClaim("the Z-curve is faster than no index", lambda rows: compare(rows, "scan", "Z-curve")),
    ]
    if figure == "12":
        claims += [
            PaperClaim(
                "the k-d tree is 10 times as fast as no index",
                lambda rows: compare(rows, "scan", "k-d tree", 10),
                has_numbers=True,
            ),
            PaperClaim(
                "the k-d tree is 2 times as fast as the Z-curve",
                lambda rows: compare(rows, "Z-curve", "k-d tree", 2),
                has_numbers=True,
            ),
        ]
    return Exhibit(
        f"cover-figure-{figure}",
        PAPER,
        f"figure {figure}",
        f"In {2 * attributes} dimensions both indexes beat a scan without index, the k-d tree by more.",
        TIMES,
        parameters(SIZES, attributes, (0.15,), (1,))
        | index_parameter(*INDEXES)
        | {"repeats": SweepParameter("runs; the fastest counts", (3,), (1,), is_printed=False)},
        (TableLayout(("commands",), (TableColumn("seconds", "CPU seconds", ".3f"),), "index"),),
        (Chart("commands", "seconds", "commands", "run time, CPU seconds", ("index",)),),
        tuple(claims),
        seeds=(1, 2, 3),
        tell=tell_gains,
    )


def compare(rows: list[Row], slow: str, fast: str, least: float = 1.0) -> bool | None:
    """Return whether one index is at least so many times as fast as another; None without both."""
    found = gain(rows, slow, fast)
    return None if math.isnan(found) else found > least


def misfit(rows: list[Row]) -> float:
    """Return the mean factor between our totals and the paper's, over all loads, modes, nv and pc; 1 is a perfect fit.

    >>> misfit([{"p": 0.05, "k": 1, "nv": 813_000 * 2, "pc": 6_147_000 / 2}])
    2.0
    """
    factors = [abs(math.log(row[name] / printed(row)[name])) for row in rows if printed(row) for name in ("nv", "pc")]
    return round(math.exp(fmean(factors)), 12) if factors else math.nan


def tell_readings(rows: list[Row]) -> str:
    """Return the mean factor between our counts and the paper's for all draws and limits of buckets, the best first."""
    if not all(map(READINGS.is_printed, rows)):
        return ""
    factors = {key: misfit(own) for key, own in readings_of(rows).items()}
    limits = sorted(values_of(rows, "buckets"))
    lines = {draw: [factors.get((draw, limit), math.nan) for limit in limits] for draw in values_of(rows, "draw")}
    told = ["Mean factor between our nv and pc and the paper's, by buckets:\n"]
    told += ["| draw | " + " | ".join(map(str, limits)) + " |", "|---" * (1 + len(limits)) + "|"]
    for draw, found in sorted(lines.items(), key=lambda line: min(line[1])):
        told.append(f"| {draw} | " + " | ".join(f"{factor:.2f}" for factor in found) + " |")
    return "\n".join(told)


def readings_of(rows: list[Row]) -> dict[tuple[str, int], list[Row]]:
    """Return rows by draw and buckets."""
    readings: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        readings.setdefault((row["draw"], row["buckets"]), []).append(row)
    return readings


def is_chosen_good(rows: list[Row]) -> bool | None:
    """Return whether the reading that other exhibits use fits within 5 % as well as the best; None without it."""
    readings = readings_of(rows)
    chosen = readings.get((CHOSEN_DRAW, CHOSEN_BUCKETS))
    return None if chosen is None else misfit(chosen) <= NEARLY * min(map(misfit, readings.values()))


READINGS = Exhibit(
    "cover-readings",
    PAPER,
    "",
    "Of many ways to draw a segment and limits of buckets, which meets Tables I and II best?",
    COUNTS,
    parameters((60_000,), ATTRIBUTES, LOADS, (1, 2, 6))
    | index_parameter("k-d tree")
    | {
        "draw": SweepParameter(
            "how a side is drawn", READ_DRAWS, ("ends", "length:32"), is_printed=False, check=Draw.parse
        ),
        "buckets": SweepParameter("largest number of points in a bucket", READ_BUCKETS, (64,), is_printed=False),
    },
    (
        TableLayout(
            ("draw", "buckets", "p", "k"), tuple(TableColumn(n, f"{n}, thousands", factor=1e-3) for n in ("nv", "pc"))
        ),
    ),
    claims=(
        PaperClaim(
            f"{CHOSEN_DRAW} with buckets of {CHOSEN_BUCKETS} fits within 5 % as well as the best", is_chosen_good, True
        ),
    ),
    printed=printed,
    tell=tell_readings,
)
EXHIBITS = (
    FIGURE_8,
    FIGURE_9,
    *(growth_figure(figure, attributes) for figure, attributes in GROWTH.items()),
    count_table("cover-table-1", "Table I", "Heavy", LOADS[0]),
    count_table("cover-table-2", "Table II", "Light", LOADS[1]),
    READINGS,
)
