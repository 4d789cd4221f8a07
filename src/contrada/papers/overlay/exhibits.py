"""Figures 7 to 12 and Table 2 of [OVERLAY]: false positives, hits and degrees of simulated trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from contrada.errors import OverlayError
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
    Value,
)
from contrada.papers.overlay.baselines import BASELINES, measure_baseline
from contrada.papers.overlay.run import Setting as Tree
from contrada.papers.overlay.run import draw_workload, measure
from contrada.papers.overlay.workload import DISTRIBUTIONS, distribution_of
from contrada.papers.showing import mean_of, values_of

PAPER = "overlay"
METHODS: dict[str, dict[str, Any]] = {
    "quadratic": {"choose": "r", "split": "quadratic"},
    "linear": {"choose": "r", "split": "linear"},
    "R*": {"choose": "rstar", "split": "rstar"},
    "R* with sketches": {"choose": "rstar", "split": "rstar", "sketch": 10},  # ours
}
PAPER_METHODS = ("quadratic", "linear", "R*")
RANDOM = "random placement"
DEGREES = ("2:5", "5:10", "10:20", "15:30", "20:40")
SIZES = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000)
DIMENSIONS = (2, 4, 6, 8, 10, 12)
COMPARED_DIMENSIONS = (2, 4, 8)  # of figure 11
EQUAL_HITS = 16  # messages with at least 16 and fewer than 32 hits
# Table 2 by degree: average, maximum and variance, each for quadratic, linear and R* trees.
TABLE_2 = {
    "2:5": ((4.59, 4.61, 3.91), (20, 19, 25), (5.09, 5.08, 8.47)),
    "5:10": ((7.99, 7.93, 7.49), (29, 28, 30), (10.98, 10.66, 16.27)),
    "10:20": ((14.92, 14.82, 15.05), (51, 37, 42), (25.40, 23.15, 32.87)),
    "15:30": ((21.91, 21.69, 22.28), (51, 50, 57), (35.70, 33.52, 56.29)),
    "20:40": ((28.02, 28.39, 30.00), (68, 60, 77), (55.38, 54.02, 81.10)),
}


def degree_of(text: str) -> tuple[int, int]:
    """Return m and M of a text such as 5:10."""
    least, sign, most = text.partition(":")
    if not (sign and least.isdecimal() and most.isdecimal() and len(text) < 20):
        raise OverlayError(f"degree: need m:M such as 5:10, got {text!r:.60}")
    return int(least), int(most)


def check_degree(text: str) -> None:
    """Raise OverlayError for a degree that no tree can have."""
    least, most = degree_of(text)
    Tree(least=least, most=most)


def check_method(name: str) -> None:
    """Raise OverlayError for an unknown method."""
    if name not in (*METHODS, *BASELINES):
        raise OverlayError(f"unknown method {name!r:.60}; methods: {', '.join((*METHODS, *BASELINES))}")


def tree_of(setting: Setting, seed: int) -> Tree:
    """Return the parameters of one run."""
    s: Any = setting
    least, most = degree_of(s["degree"])
    sizes = {name: s[name] for name in ("subscriptions", "messages", "dimensions", "distribution")}
    return Tree(**sizes, **METHODS.get(s["method"], {}), least=least, most=most, seed=seed)


def measure_tree(setting: Setting, seed: int, _: Path | None = None) -> Row:
    """Build a tree by joins, or one that the paper compares with, and send messages from its root; return flat values.

    >>> setting = {"subscriptions": 100, "messages": 20, "dimensions": 2, "distribution": "uniform"}
    >>> measure_tree(setting | {"method": "R*", "degree": "2:5"}, 1)["false_negatives"]
    0
    """
    tree = tree_of(setting, seed)
    method = str(setting["method"])
    found = measure_baseline(method, *draw_workload(tree)) if method in BASELINES else measure(tree)
    values = {name: value for name, value in found.items() if name not in tree.__slots__}
    flat = {name: value for name, value in values.items() if not isinstance(value, dict)}
    return flat | {f"{name}_{part}": v for name, of in values.items() if isinstance(of, dict) for part, v in of.items()}


TREES = Measurement("overlay-trees", measure_tree)


def parameters(**varied: tuple[Value, ...]) -> dict[str, SweepParameter]:
    """Return the parameters of Table 1 of the paper, with the values that a figure varies."""

    def of(
        name: str, about: str, default: Value, quick: tuple[Value, ...] | None = None, **more: Any
    ) -> SweepParameter:
        return SweepParameter(about, varied.get(name, (default,)), quick, **more)

    return {
        "subscriptions": of(
            "subscriptions",
            "peers, each with one subscription",
            10_000,
            (60, 120) if "subscriptions" in varied else (100,),
        ),
        "messages": of("messages", "messages, published at the root", 2_500, (20,)),
        "dimensions": of("dimensions", "attributes", 4),
        "degree": of("degree", "least and most children of a node, m:M", "5:10", check=check_degree),
        "distribution": of("distribution", "of subscriptions", "zipf-25:75", check=distribution_of),
        "method": of("method", "split and choice of a subtree", "quadratic", check=check_method),
    }


def with_control(row: Row) -> Iterator[Row]:
    """Yield a row, and after those of quadratic trees what random placement of the same peers gives."""
    yield row
    if row["method"] == "quadratic":
        yield {**row, "method": RANDOM, "false_positive_ratio": row["control_ratio"]}


def by_hits(row: Row) -> Iterator[Row]:
    """Yield one row for each group of messages with similar numbers of hits."""
    for least, _, share in row["by_hits"]:
        yield {**row, "least_hits": int(least), "share": share}


def means(rows: list[Row], axis: str, method: str, value: str = "false_positive_ratio") -> list[float]:
    """Return means along an axis, in the order of its values."""
    return [mean_of(rows, value, method=method, **{axis: each}) for each in values_of(rows, axis)]


def each_method(check: Callable[[str], bool]) -> Callable[[list[Row]], bool]:
    """Return a claim that holds if it holds for each of the paper's methods that was measured."""
    return lambda rows: all(check(method) for method in values_of(rows, "method") if method in PAPER_METHODS)


def is_best(axis: str) -> Callable[[list[Row]], bool | None]:
    """Return the claim that R* has the fewest false positives of the paper's methods everywhere along an axis."""

    def holds(rows: list[Row]) -> bool | None:
        found = {method: means(rows, axis, method) for method in PAPER_METHODS}
        if any(math.isnan(value) for values in found.values() for value in values):
            return None
        return all(best <= min(others) for best, *others in zip(found["R*"], *found.values(), strict=True))

    return holds


def falls(axis: str) -> Callable[[list[Row]], bool | None]:
    """Return the claim that false positives fall along an axis with each of the paper's methods."""

    def holds(rows: list[Row]) -> bool | None:
        methods = [method for method in values_of(rows, "method") if method in PAPER_METHODS]
        if len(values_of(rows, axis)) < 2:
            return None
        return all(one >= other for method in methods for one, other in pairwise(means(rows, axis, method)))

    return holds


def is_below(share: float) -> Callable[[list[Row]], bool]:
    """Return the claim that the mean share of false positives is below a number for each of the paper's methods."""
    return lambda rows: all(row["false_positive_ratio"] < share for row in rows if row["method"] in PAPER_METHODS)


def figure(
    number: int,
    claim: str,
    axis: str,
    label: str,
    values: tuple[Value, ...],
    claims: tuple[PaperClaim, ...],
    limit: tuple[float, str] | None = None,
) -> Exhibit:
    """Return a figure of false positives along an axis, by method."""
    varied = {axis: values, "method": tuple(METHODS)}
    percent = TableColumn("false_positive_ratio", "false positives, % of peers", ".2f", 100)
    at_random = TableColumn("control_ratio", "random placement, % of peers", ".2f", 100)
    chart = Chart(
        axis,
        "false_positive_ratio",
        label,
        "false positives, % of peers",
        ("method",),
        factor=100,
        is_log=True,
        is_log_x=axis == "subscriptions",
        points=with_control,
        limit=limit,
    )
    return Exhibit(
        f"overlay-figure-{number}",
        PAPER,
        f"figure {number}",
        claim,
        TREES,
        parameters(**varied),
        (TableLayout((axis,), (percent,), "method"), TableLayout((axis,), (at_random,))),
        (chart,),
        (*claims, PaperClaim("no message is missed", no_negatives)),
        seeds=(1, 2, 3, 4, 5),
    )


def no_negatives(rows: list[Row]) -> bool:
    """Return True if no peer missed a message that it wants."""
    return not any(row["false_negatives"] for row in rows)


def is_uniform_better(rows: list[Row]) -> bool | None:
    """Return whether a uniform distribution gives fewer false positives than Zipf's at equal containment."""
    pairs = [(name, name.replace("uniform", "zipf")) for name in values_of(rows, "distribution") if "uniform" in name]
    return all_pairs(rows, pairs)


def is_containment_better(rows: list[Row]) -> bool | None:
    """Return whether more containment gives fewer false positives for each law of origins."""
    pairs = [
        (f"{law}-{more}", f"{law}{less}")
        for law in ("uniform", "zipf")
        for more, less in (("25:75", ""), ("10:90", "-25:75"))
    ]
    return all_pairs(rows, pairs)


def all_pairs(rows: list[Row], pairs: list[tuple[str, str]]) -> bool | None:
    """Return whether the first distribution of each pair has fewer false positives, for each of the paper's methods."""
    found = [
        (
            mean_of(rows, "false_positive_ratio", method=method, distribution=first),
            mean_of(rows, "false_positive_ratio", method=method, distribution=second),
        )
        for method in PAPER_METHODS
        for first, second in pairs
    ]
    known = [(one, other) for one, other in found if not math.isnan(one + other)]
    return all(one < other for one, other in known) if known else None


def fewer_hits(rows: list[Row]) -> bool:
    """Return whether hits fall along the axis of dimensions; they do not depend on the tree."""
    counts = means(rows, "dimensions", rows[0]["method"], "hits")
    return all(one >= other for one, other in pairwise(counts))


def hits_table(rows: list[Row]) -> str:
    """Return figure 11 as a table: messages with similar numbers of hits, for some numbers of dimensions."""
    points = [point for row in rows for point in by_hits(row) if point["least_hits"] == EQUAL_HITS]
    counts = values_of(rows, "dimensions")
    lines = [
        f"| messages of {EQUAL_HITS} to {2 * EQUAL_HITS - 1} hits, % of peers | "
        + " | ".join(f"{count} dimensions" for count in counts)
        + " |",
        "|---" * (1 + len(counts)) + "|",
    ]
    for method in values_of(rows, "method"):
        cells = [mean_of(points, "share", method=method, dimensions=count) for count in counts]
        lines.append(f"| {method} | " + " | ".join(f"{100 * cell:.2f}" for cell in cells) + " |")
    largest = f"In no group of messages, by hits, more than {100 * largest_group(rows):.1f} % (the paper's methods)."
    return "\n".join([*lines, "", largest])


def largest_group(rows: list[Row]) -> float:
    """Return the largest mean share of a group of messages, over methods and dimensions of the paper."""
    points = [point for row in rows if row["method"] in PAPER_METHODS for point in by_hits(row)]
    groups = {(point["method"], point["dimensions"], point["least_hits"]) for point in points}
    return max((mean_of(points, "share", method=m, dimensions=d, least_hits=h) for m, d, h in groups), default=math.nan)


def is_worse_at_equal_hits(rows: list[Row]) -> bool | None:
    """Return whether more dimensions give more false positives at equal hits."""
    points = [point for row in rows for point in by_hits(row) if point["least_hits"] == EQUAL_HITS]
    found = [
        [mean_of(points, "share", method=method, dimensions=count) for count in sorted(values_of(rows, "dimensions"))]
        for method in values_of(rows, "method")
        if method in PAPER_METHODS
    ]
    if not points or any(math.isnan(value) for line in found for value in line):
        return None
    return all(one < other for line in found for one, other in pairwise(line))


def printed_degrees(row: Row) -> dict[str, float]:
    """Return Table 2 of the paper for a row."""
    if row["method"] not in PAPER_METHODS or row["degree"] not in TABLE_2:
        return {}
    at = PAPER_METHODS.index(row["method"])
    average, maximum, variance = (values[at] for values in TABLE_2[row["degree"]])
    found = {"average": average, "max": float(maximum), "variance": variance}
    return {f"{name}_{part}": value for name in ("degree", "degree_once") for part, value in found.items()}


def averages_are_near(rows: list[Row]) -> bool:
    """Return whether average degrees of quadratic and linear trees are within 7 % of Table 2."""
    return all(
        abs(row["degree_average"] / printed_degrees(row)["degree_average"] - 1) < 0.07
        for row in rows
        if row["method"] in ("quadratic", "linear")
    )


def degree_columns(name: str) -> tuple[TableColumn, ...]:
    """Return the columns of Table 2."""
    return (
        TableColumn(f"{name}_average", "average", ".2f"),
        TableColumn(f"{name}_max", "maximum", ".0f"),
        TableColumn(f"{name}_variance", "variance", ".1f"),
    )


EXHIBITS = (
    figure(
        7,
        "False positives are below 5 % and fall slightly with the number of subscriptions; R* is best.",
        "subscriptions",
        "subscriptions",
        SIZES,
        (
            PaperClaim("below 5 %", is_below(0.05), True),
            PaperClaim("fall with size", falls("subscriptions")),
            PaperClaim("R* is best", is_best("subscriptions")),
        ),
        (5, "the paper's bound"),
    ),
    figure(
        8,
        "More containment gives fewer false positives, and uniform is slightly better than Zipf.",
        "distribution",
        "distribution of subscriptions",
        DISTRIBUTIONS,
        (
            PaperClaim("more containment is better", is_containment_better),
            PaperClaim("uniform is better than Zipf", is_uniform_better),
            PaperClaim("R* is best", is_best("distribution")),
        ),
    ),
    figure(
        9,
        "False positives fall with the number of dimensions.",
        "dimensions",
        "dimensions",
        DIMENSIONS,
        (PaperClaim("fall with dimensions", falls("dimensions")), PaperClaim("R* is best", is_best("dimensions"))),
    ),
    Exhibit(
        "overlay-figure-10",
        PAPER,
        "figure 10",
        "Fewer peers want a message the more dimensions there are.",
        TREES,
        parameters(dimensions=DIMENSIONS),
        (
            TableLayout(
                ("dimensions",),
                (
                    TableColumn("hits", "hits per message", ",.1f"),
                    TableColumn("receipts_per_message", "receipts per message", ",.0f"),
                    TableColumn("false_receipt_ratio", "false, % of receipts", ".1f", 100),
                ),
            ),
        ),
        (Chart("dimensions", "hits", "dimensions", "hits per message", (), is_log=True),),
        (PaperClaim("hits fall with dimensions", fewer_hits),),
        seeds=(1, 2, 3, 4, 5),
    ),
    Exhibit(
        "overlay-figure-11",
        PAPER,
        "figure 11",
        "At equal hits more dimensions give more false positives, and never 10 %.",
        TREES,
        parameters(dimensions=COMPARED_DIMENSIONS, method=tuple(METHODS)),
        charts=(
            Chart(
                "least_hits",
                "share",
                "hits of a message, at least",
                "false positives, % of peers",
                ("dimensions",),
                "method",
                100,
                is_log_x=True,
                points=by_hits,
                limit=(10, "the paper's bound"),
            ),
        ),
        claims=(
            PaperClaim("at equal hits more dimensions are worse", is_worse_at_equal_hits),
            PaperClaim("no group of messages reaches 10 %", lambda rows: largest_group(rows) < 0.1, True),
        ),
        seeds=(1, 2, 3, 4, 5),
        tell=hits_table,
    ),
    figure(
        12,
        "A higher degree gives fewer false positives; M = 20 is a good compromise.",
        "degree",
        "m : M",
        DEGREES,
        (PaperClaim("a higher degree is better", falls("degree")), PaperClaim("R* is best", is_best("degree"))),
    ),
    Exhibit(
        "overlay-table-2",
        PAPER,
        "Table 2",
        "Degrees of inner peers: average, maximum and variance.",
        TREES,
        parameters(degree=DEGREES, method=PAPER_METHODS),
        (
            TableLayout(("degree", "method"), degree_columns("degree")),
            TableLayout(
                ("degree", "method"),
                tuple(
                    TableColumn(c.value, f"{c.title}, own child once", c.form) for c in degree_columns("degree_once")
                ),
            ),
        ),
        (
            Chart("degree", "degree_average", "m : M", "children of inner peers, average", ("method",)),
            Chart("degree", "degree_max", "m : M", "children of inner peers, maximum", ("method",)),
        ),
        (PaperClaim("averages of quadratic and linear trees are within 7 % of the paper's", averages_are_near, True),),
        seeds=(1, 2, 3, 4, 5),
        printed=printed_degrees,
    ),
)
