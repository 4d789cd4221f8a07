"""Print figures 7 to 12 and Table 2 of the overlay paper as Markdown, from a file of rows; Table 2 with the paper's."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from operator import itemgetter

from contrada.papers.overlay.figures import AXES, DEGREES
from contrada.papers.overlay.plots import METHOD_NAMES, chosen, control, hits, hits_curve, mean, means, ratio
from contrada.papers.row_file import Row

PAPER_METHODS = ("quadratic", "linear", "rstar")
EQUAL_HITS = 16  # messages with at least 16 and fewer than 32 hits


# The paper's Table 2 by degree: average, maximum and variance, each for quadratic, linear and R* trees.
TABLE_2 = {
    (2, 5): ((4.59, 4.61, 3.91), (20, 19, 25), (5.1, 5.1, 8.5)),
    (5, 10): ((7.99, 7.93, 7.49), (29, 28, 30), (11.0, 10.7, 16.3)),
    (10, 20): ((14.92, 14.82, 15.05), (51, 37, 42), (25.4, 23.2, 32.9)),
    (15, 30): ((21.91, 21.69, 22.28), (51, 50, 57), (35.7, 33.5, 56.3)),
    (20, 40): ((28.02, 28.39, 30.00), (68, 60, 77), (55.4, 54.0, 81.1)),
}


def tables(rows: list[Row], scale: float = 1.0) -> str:
    """Return all tables, each with its number of seeds."""
    parts = [
        [*lines("Figure 7, size", rows, "subscriptions", scale)],
        [*lines("Figure 8, distribution", rows, "distribution", scale)],
        [
            *lines("Figures 9 and 10, dimensions", rows, "dimensions", scale),
            _line("hits per message", means(rows, "quadratic", scale, "dimensions", hits)[0], ".1f"),
        ],
        [*equal_hits(rows, scale)],
        [*lines("Figure 12, degree", rows, "m, M", scale)],
        ["**Table 2, degree of inner peers** (quadratic / linear / R*).", *table_2(rows, scale)],
        ["**Table 2, each peer its own child once.**", *table_2(rows, scale, "degree_once")],
    ]
    return "\n\n".join("\n".join([part[0], "", *part[1:]]) for part in parts)


def seeds_of(rows: list[Row], axis: str, scale: float) -> str:
    """Return the number of seeds of the points of an axis, as text.

    >>> seeds_of([], "dimensions", 1.0)
    '0 seeds'
    """
    counts = sorted({len(chosen(rows, method, scale, **own)) for method in METHOD_NAMES for own, _ in AXES[axis]})
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def lines(title: str, rows: list[Row], axis: str, scale: float) -> Iterator[str]:
    """Yield the title, then a line for every method, for our variant in percent of R*, and for random placement."""
    yield f"**{title}** ({seeds_of(rows, axis, scale)})."
    yield f"| {axis} | " + " | ".join(text for _, text in AXES[axis]) + " |"
    yield "|---" * (1 + len(AXES[axis])) + "|"
    found = {method: means(rows, method, scale, axis, ratio)[0] for method in METHOD_NAMES}
    for method, name in METHOD_NAMES.items():
        yield _line(f"{name}, % of peers", found[method], ".2f")
    pairs = zip(found["ours"], found["rstar"], strict=True)  # in very small trials R* has no false positives
    yield _line("sketches, % of R*", (100 * ours / whole if whole else math.nan for ours, whole in pairs), ".0f")
    yield _line("random placement", means(rows, "quadratic", scale, axis, control)[0], ".2f")


def equal_hits(rows: list[Row], scale: float) -> Iterator[str]:
    """Figure 11: messages with similar numbers of hits, for three numbers of dimensions, and the largest group."""
    counts = (2, 4, 8)
    curves = {(method, count): hits_curve(rows, method, scale, count) for method in METHOD_NAMES for count in counts}
    most = max((share for curve in curves.values() for share in curve.values()), default=math.nan)
    yield f"**Figure 11, at equal hits.** In no group of messages of any setting more than {100 * most:.1f} %."
    yield f"| messages of {EQUAL_HITS} to {2 * EQUAL_HITS - 1} hits, dimensions | 2 | 4 | 8 |"
    yield "|---|---|---|---|"
    for method, name in METHOD_NAMES.items():
        shares = (100 * curves[method, count].get(EQUAL_HITS, math.nan) for count in counts)
        yield _line(f"{name}, % of peers", shares, ".2f")


def table_2(rows: list[Row], scale: float, which: str = "degree") -> Iterator[str]:
    """Table 2 beside the paper's, by one way to count; the maximum is the mean over seeds, with the overall largest."""
    yield "| m, M | average: ours | paper | maximum: mean (largest) | paper | variance: ours | paper |"
    yield "|---|---|---|---|---|---|---|"
    for least, most in DEGREES:
        runs = [
            [row[which] for row in chosen(rows, method, scale, least=least, most=most) if which in row]
            for method in PAPER_METHODS
        ]
        average, maximum, variance = TABLE_2[least, most]
        averages, maxima, variances = (
            [mean(own, itemgetter(name))[0] for own in runs] for name in ("average", "max", "variance")
        )
        largest = [max((degree["max"] for degree in own), default=0) for own in runs]
        cells = [
            _three(averages, ".2f"),
            _three(average, ".2f"),
            " / ".join(f"{value:.0f} ({top})" for value, top in zip(maxima, largest, strict=True)),
            _three(maximum, "d"),
            _three(variances, ".1f"),
            _three(variance, ".1f"),
        ]
        yield f"| {least}, {most} | " + " | ".join(cells) + " |"


def _three(values: Iterable[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


def _line(name: str, values: Iterable[float], form: str) -> str:
    return f"| {name} | " + " | ".join(format(value, form) for value in values) + " |"
