"""Print figures 7 to 12 and Table 2 of the overlay paper as Markdown, from a file of rows; Table 2 with the paper's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from contrada.papers.overlay.figures import DEGREES, DIMENSIONS, SIZES, Row
from contrada.papers.overlay.plots import METHOD_NAMES, chosen, mean, merge_by_hits, ratio
from contrada.papers.overlay.workload import DISTRIBUTIONS

PAPER_METHODS = ("quadratic", "linear", "rstar")
EQUAL_HITS = 16  # messages with at least 16 and fewer than 32 hits


class Printed(NamedTuple):
    """The values of the paper's Table 2 for quadratic, linear and R* trees."""

    average: tuple[float, float, float]
    largest: tuple[int, int, int]
    variance: tuple[float, float, float]


TABLE_2 = {
    (2, 5): Printed((4.59, 4.61, 3.91), (20, 19, 25), (5.1, 5.1, 8.5)),
    (5, 10): Printed((7.99, 7.93, 7.49), (29, 28, 30), (11.0, 10.7, 16.3)),
    (10, 20): Printed((14.92, 14.82, 15.05), (51, 37, 42), (25.4, 23.2, 32.9)),
    (15, 30): Printed((21.91, 21.69, 22.28), (51, 50, 57), (35.7, 33.5, 56.3)),
    (20, 40): Printed((28.02, 28.39, 30.00), (68, 60, 77), (55.4, 54.0, 81.1)),
}


def tables(rows: list[Row], scale: float = 1.0) -> str:
    """Return all tables, each with its number of seeds."""
    sizes = [({"subscriptions": size}, f"{size:,}") for size in SIZES]
    laws = [({"distribution": name}, name) for name in DISTRIBUTIONS]
    axes = [({"dimensions": count}, str(count)) for count in DIMENSIONS]
    degrees = [({"least": least, "most": most}, f"{least}, {most}") for least, most in DEGREES]
    parts = [
        [f"**Figure 7, size** ({seeds_of(rows, sizes, scale)}).", *lines(rows, "subscriptions", sizes, scale)],
        [f"**Figure 8, distribution** ({seeds_of(rows, laws, scale)}).", *lines(rows, "distribution", laws, scale)],
        [
            f"**Figures 9 and 10, dimensions** ({seeds_of(rows, axes, scale)}).",
            *lines(rows, "dimensions", axes, scale),
            _line("hits per message", (_mean(rows, "quadratic", scale, own, _hits) for own, _ in axes), ".1f"),
        ],
        equal_hits(rows, scale),
        [f"**Figure 12, degree** ({seeds_of(rows, degrees, scale)}).", *lines(rows, "m, M", degrees, scale)],
        ["**Table 2, degree of inner peers** (quadratic / linear / R*).", *table_2(rows, scale)],
        ["**Table 2, each peer its own child once.**", *table_2(rows, scale, "degree_once")],
    ]
    return "\n\n".join("\n".join([part[0], "", *part[1:]]) for part in parts)


def seeds_of(rows: list[Row], points: list[tuple[dict[str, Any], str]], scale: float) -> str:
    """Return the number of seeds of the points, as text.

    >>> seeds_of([], [({}, "")], 1.0)
    '0 seeds'
    """
    counts = sorted({len(chosen(rows, method, scale, **own)) for method in METHOD_NAMES for own, _ in points})
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def lines(rows: list[Row], what: str, points: list[tuple[dict[str, Any], str]], scale: float) -> Iterator[str]:
    """Yield a line for every method, for our variant in percent of R*, and for random placement."""
    yield f"| {what} | " + " | ".join(text for _, text in points) + " |"
    yield "|---" * (1 + len(points)) + "|"
    for method, name in METHOD_NAMES.items():
        values = (_mean(rows, method, scale, own, ratio) for own, _ in points)
        yield _line(f"{name}, % of peers", values, ".2f")
    shares = (
        100 * _quotient(_mean(rows, "ours", scale, own, ratio), _mean(rows, "rstar", scale, own, ratio))
        for own, _ in points
    )
    yield _line("sketches, % of R*", shares, ".0f")
    yield _line("random placement", (_mean(rows, "quadratic", scale, own, _control) for own, _ in points), ".2f")


def _quotient(part: float, whole: float) -> float:
    """Return the quotient; NaN if `whole` is 0, as in very small trials."""
    return part / whole if whole else math.nan


def equal_hits(rows: list[Row], scale: float) -> list[str]:
    """Figure 11: messages with similar numbers of hits, for three numbers of dimensions, and the largest group."""
    curves = {
        (method, count): merge_by_hits(
            [row["by_hits"] for row in chosen(rows, method, scale, dimensions=count) if row.get("by_hits")]
        )
        for method in METHOD_NAMES
        for count in (2, 4, 8)
    }
    most = max((share for curve in curves.values() for _, share in curve), default=float("nan"))
    head = f"**Figure 11, at equal hits.** In no group of messages of any setting more than {100 * most:.1f} %."
    found = [
        head,
        f"| messages of {EQUAL_HITS} to {2 * EQUAL_HITS - 1} hits, dimensions | 2 | 4 | 8 |",
        "|---|---|---|---|",
    ]
    for method, name in METHOD_NAMES.items():
        shares = (100 * dict(curves[method, count]).get(EQUAL_HITS, float("nan")) for count in (2, 4, 8))
        found.append(_line(f"{name}, % of peers", shares, ".2f"))
    return found


def table_2(rows: list[Row], scale: float, which: str = "degree") -> list[str]:
    """Table 2 beside the paper's, by one way to count; the maximum is the mean over seeds, with the overall largest."""
    found = [
        "| m, M | average: ours | paper | maximum: mean (largest) | paper | variance: ours | paper |",
        "|---|---|---|---|---|---|---|",
    ]
    for least, most in DEGREES:
        runs = [
            [row[which] for row in chosen(rows, method, scale, least=least, most=most) if which in row]
            for method in PAPER_METHODS
        ]
        printed = TABLE_2[least, most]
        largest = (
            f"{mean(own, lambda degree: degree['max'])[0]:.0f} ({max((degree['max'] for degree in own), default=0)})"
            for own in runs
        )
        cells = [
            _three(f"{mean(own, lambda degree: degree['average'])[0]:.2f}" for own in runs),
            _three(f"{value:.2f}" for value in printed.average),
            _three(largest),
            _three(str(value) for value in printed.largest),
            _three(f"{mean(own, lambda degree: degree['variance'])[0]:.1f}" for own in runs),
            _three(f"{value:.1f}" for value in printed.variance),
        ]
        found.append(f"| {least}, {most} | " + " | ".join(cells) + " |")
    return found


def _three(texts: Iterator[str]) -> str:
    return " / ".join(texts)


def _line(name: str, values: Iterator[float], form: str) -> str:
    return f"| {name} | " + " | ".join(format(value, form) for value in values) + " |"


def _mean(rows: list[Row], method: str, scale: float, own: dict[str, Any], value: Callable[[Row], float]) -> float:
    return mean(chosen(rows, method, scale, **own), value)[0]


def _hits(row: Row) -> float:
    return float(row["hits"])


def _control(row: Row) -> float:
    return 100 * float(row["control_ratio"])
