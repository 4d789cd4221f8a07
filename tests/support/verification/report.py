"""What `python -m verification.verify` shows: progress while it runs, then the table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from oracles.relations import NAMES

if TYPE_CHECKING:
    from verification.verify import State

EVERY = 20.0  # seconds between two lines of progress
HEADS = ("family", "pairs", *NAMES, "judged", "GEOS wrong", "invalid to us", "wrong")
CAPTION = (
    "A dot: the family cannot produce the relation. Judged: by rational arithmetic, points included.\n"
    "Invalid to us: though valid to GEOS, confirmed by the rationals."
)


def lines_of_progress() -> Callable[[int, int], None]:
    """Return a function that prints a line when some time has passed since the last."""
    last = [time.monotonic()]

    def show(done: int, total: int) -> None:
        if time.monotonic() - last[0] >= EVERY:
            last[0] = time.monotonic()
            print(f"{done:,} of {total:,} pairs", file=sys.stderr, flush=True)

    return show


def print_report(states: list[State], seconds: float) -> None:
    """Print counts per family and relation, then what is wrong."""
    rows = [HEADS, *map(row_of, states)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        print(first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)))
    pairs, wrong = sum(state.pairs for state in states), sum(state.tally.wrong for state in states)
    print(f"{CAPTION}\n{pairs:,} pairs in {seconds:.0f} s; wrong answers: {wrong:,}")
    for state in states:
        for line in complaints(state):
            print(line)


def row_of(state: State) -> tuple[str, ...]:
    """Return the counts of a family; a dot where a relation cannot occur."""
    tally = state.tally
    counts = ["." if k in state.family.impossible and not n else f"{n:,}" for k, n in enumerate(tally.counts)]
    others = (tally.judged, tally.shapely_wrong, tally.shapely_wrong_validity, tally.wrong)
    return state.family.name, f"{state.pairs:,}", *counts, *(f"{n:,}" for n in others)


def complaints(state: State) -> Iterator[str]:
    """Yield a line for everything that is not as it should be."""
    for k in state.rare():
        yield f"{state.family.name}: {NAMES[k]} only {state.tally.counts[k]} times, of {state.least} wanted"
    for k in state.surprising():
        why = state.family.impossible[k]
        yield f"{state.family.name}: {NAMES[k]} {state.tally.counts[k]} times, though {why}"
    for failure in state.tally.failures:
        yield f"{state.family.name}: {failure.what}: expected {failure.expected}, got {failure.got}"
        yield f"  a = {failure.a}"
        if failure.b:
            yield f"  b = {failure.b}"
