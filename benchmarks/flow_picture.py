"""The picture of docs/matching.md: how one message flows through a table. It shows the design, no measurements."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

INK, GREY, PALE, LINE = "#1f2933", "#52606d", "#9aa5b1", "#e4e7eb"
FIRST, SECOND = "#1f77b4", "#e8702a"  # regions, scalars
CONSTANTS = (1, 4, 5, 8)
RANK = 3  # of the message's value, which equals the second constant
APART = (0, 1, 3)  # blocks of entries that are left out
BLOCKS, IN_BLOCK = 5, 4


def draw_flow() -> Figure:
    """The message to the left, one level in the middle, the answer to the right."""
    figure, axes = plt.subplots(figsize=(11, 7.2), facecolor="white")
    axes.set(xlim=(0, 110), ylim=(0, 72))
    axes.axis("off")
    draw_message(axes)
    draw_levels(axes)
    draw_answer(axes)
    figure.subplots_adjust(left=0.005, right=0.995, top=0.995, bottom=0.005)
    return figure


def box(axes: Axes, x: float, y: float, width: float, height: float, edge: str, face: str = "white") -> None:
    """A box with round corners; x and y are its lower left corner."""
    shape = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.9", edgecolor=edge, facecolor=face, linewidth=1.4
    )
    axes.add_patch(shape)


def title(axes: Axes, x: float, y: float, text: str, colour: str = INK) -> None:
    """A bold line."""
    axes.text(x, y, text, fontsize=11, fontweight="bold", color=colour, va="top")


def note(axes: Axes, x: float, y: float, text: str, **style: object) -> None:
    """A few lines of smaller text."""
    axes.text(x, y, text, **{"fontsize": 9, "color": GREY, "va": "top", "linespacing": 1.35, **style})


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = GREY) -> None:
    """An arrow from one place to another."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0,
                                              "shrinkB": 0})  # fmt: skip


def draw_message(axes: Axes) -> None:
    """The message, and what it is encoded to."""
    box(axes, 1, 50, 21, 20, INK)
    title(axes, 2.5, 68.5, "Message")
    lines = ('kind = "storm"', "severity = 4", "area =")
    for k, line in enumerate(lines):
        axes.text(2.5, 63 - 3.6 * k, line, fontsize=9.5, family="monospace", color=FIRST if k == 2 else SECOND)
    axes.fill(
        [10, 17, 19.5, 16, 11], [54, 52, 55, 58, 57.5], facecolor=FIRST, edgecolor=FIRST, alpha=0.4, linewidth=1.5
    )
    arrow(axes, (11.5, 49.4), (11.5, 45.6))
    box(axes, 1, 24, 21, 21, INK)
    title(axes, 2.5, 43.5, "Encode")
    note(axes, 2.5, 39.8, "only what is asked about", fontsize=8.5)
    note(axes, 2.5, 36.4, "numbers, times: two\nintegers in their order\ntext: UTF-8, folded", color=SECOND)
    note(axes, 2.5, 28.2, "region: with its box", color=FIRST)
    arrow(axes, (22.6, 34.5), (29.4, 46.5), FIRST)
    arrow(axes, (22.6, 31), (29.4, 27.5), SECOND)


def draw_levels(axes: Axes) -> None:
    """The levels, one before the others: trees above, ranks below, what remains to be asked to the right."""
    for shift in (2.4, 1.2, 0.0):
        box(axes, 27 + shift, 3 + shift, 55, 64, PALE)
    title(axes, 29, 65.8, "One level")
    note(axes, 40, 65.5, "the same in each: base, middle, small; a buffer is scanned", fontsize=8.5)
    draw_tree(axes)
    draw_ranks(axes)
    box(axes, 66, 22, 14, 16, SECOND)
    title(axes, 67, 36.6, "Remaining", SECOND)
    note(axes, 67, 33, "other scalars:\nrank against\ninterval or set")
    arrow(axes, (73, 42.4), (73, 38.6), FIRST)
    note(axes, 67, 47.5, "reached through\ntheir regions", fontsize=8.5, color=FIRST)
    arrow(axes, (62.6, 50.5), (65.8, 47.2), FIRST)
    arrow(axes, (62.6, 30), (65.4, 30), SECOND)
    arrow(axes, (73, 21.4), (73, 17.6))
    box(axes, 66, 6, 14, 11, FIRST)
    title(axes, 67, 15.6, "Last", FIRST)
    note(axes, 67, 12, "further regions\nare looked at")


def draw_tree(axes: Axes) -> None:
    """A packed tree."""
    box(axes, 30, 42, 32, 20, FIRST)
    title(axes, 31.5, 60.6, "Regions: packed trees", FIRST)
    for x in (33, 38, 43):
        axes.plot([38 + 1.2, x + 1.2], [55.2, 51.8], color=FIRST, linewidth=1.2)
        axes.plot([x + 1.2, x + 0.2], [50, 47.2], color=FIRST, linewidth=1.0)
        axes.plot([x + 1.2, x + 2.2], [50, 47.2], color=FIRST, linewidth=1.0)
        is_apart = x == 43
        box(axes, x, 50, 2.4, 1.8, FIRST, LINE if is_apart else FIRST)
        for leaf in (x - 0.5, x + 1.5):
            box(axes, leaf, 45.6, 1.4, 1.6, FIRST, LINE if is_apart else "white")
    box(axes, 38, 55.2, 2.4, 1.8, FIRST, FIRST)
    note(axes, 47.5, 57, "nodes apart or within\nare decided whole,\nfew regions are\nlooked at")


def draw_ranks(axes: Axes) -> None:
    """The value of a message among constants, and the entries under one of them."""
    box(axes, 30, 6, 32, 34, SECOND)
    title(axes, 31.5, 38.6, "Scalars: ranks among constants", SECOND)
    note(axes, 31.7, 35.6, "severity: constants above, ranks below", fontsize=8.5)
    places = [36 + 7 * k for k in range(len(CONSTANTS))]
    axes.plot([32, 60.5], [30.4, 30.4], color=GREY, linewidth=1.2)
    for k, (x, constant) in enumerate(zip(places, CONSTANTS, strict=True)):
        is_here = 2 * k + 1 == RANK
        axes.plot(x, 30.4, "o", markersize=9 if is_here else 6, color=SECOND if is_here else GREY)
        axes.text(x, 31.6, str(constant), ha="center", fontsize=9, color=INK)
        axes.text(x, 27.9, str(2 * k + 1), ha="center", fontsize=8, color=SECOND if is_here else GREY)
    for k in range(len(CONSTANTS) + 1):
        axes.text(32.5 + 7 * k, 27.9, str(2 * k), ha="center", fontsize=8, color=GREY)
    arrow(axes, (places[1], 27.2), (places[1], 23.6), SECOND)
    note(axes, 45, 26.3, "entries under the constant,\nin the order of their regions", fontsize=8.5)
    for block in range(BLOCKS):
        for k in range(IN_BLOCK):
            x, is_apart = 32 + 5.9 * block + 1.2 * k, block in APART
            axes.add_patch(plt.Rectangle((x, 19.4), 1.2, 2, facecolor=LINE if is_apart else SECOND,
                                         alpha=1 if is_apart else 0.55, edgecolor="white", linewidth=0.8))  # fmt: skip
        axes.add_patch(plt.Rectangle((31.7 + 5.9 * block, 19), 5.4, 2.8, fill=False, edgecolor=PALE if block in APART
                                     else FIRST, linewidth=1.2, linestyle="-"))  # fmt: skip
    note(axes, 31.7, 18, "grey: boxes apart from the message's, left out", fontsize=8.5)
    note(axes, 31.7, 14.4, "an entry:", fontsize=8.5)
    for x, width, text in ((39.5, 6.5, "filter"), (46, 14.5, "next constraint")):
        axes.add_patch(plt.Rectangle((x, 12.4), width, 2.8, facecolor="white", edgecolor=SECOND, linewidth=1.2))
        axes.text(x + width / 2, 13.7, text, ha="center", va="center", fontsize=8.5, color=INK)
    note(axes, 31.7, 10.8, "others are found by interval or pattern", fontsize=8.5)


def draw_answer(axes: Axes) -> None:
    """Filters, subscriptions, subscribers."""
    steps = (
        (8, "Filters", "all of whose\nconstraints are true"),
        (29, "Subscriptions", "alive, each once:\none filter is enough"),
        (50, "Subscribers", "each once"),
    )
    for y, name, text in steps:
        box(axes, 89, y, 20, 12, INK)
        title(axes, 90.5, y + 10.6, name)
        note(axes, 90.5, y + 6.8, text)
    arrow(axes, (80.6, 11.5), (88.4, 13))
    arrow(axes, (99, 20.6), (99, 28.4))
    arrow(axes, (99, 41.6), (99, 49.4))
