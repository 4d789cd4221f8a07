"""What `python -m verification.verify` shows: progress while it runs, then the table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from oracles.relations import NAMES

if TYPE_CHECKING:
    from verification.verify import State

EVERY = 20.0  # seconds between two lines of progress in a pipe
PLAIN_WIDTH = 160

CAPTION = (
    "A dot: the family cannot produce the relation. Judged: by rational arithmetic, points included. "
    "Invalid to us: though valid to GEOS, confirmed by the rationals."
)

Show = Callable[[int, int], None]


@contextmanager
def shown_progress(quiet: bool) -> Iterator[Show]:
    """Yield a function that shows how many pairs are done: a bar on a terminal, a few lines in a pipe."""
    console = Console(stderr=True)
    if quiet:
        yield lambda done, total: None
    elif not console.is_terminal:
        yield lines_of_progress()
    else:
        columns = (TextColumn("pairs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("pairs", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=max(done, total))


def lines_of_progress() -> Show:
    """Return a function that prints a line when some time has passed since the last."""
    last = [time.monotonic()]

    def show(done: int, total: int) -> None:
        if time.monotonic() - last[0] >= EVERY:
            last[0] = time.monotonic()
            print(f"{done:,} of {total:,} pairs", file=sys.stderr, flush=True)

    return show


def print_report(states: list[State], seconds: float) -> None:
    """Print counts per family and relation, then what is wrong."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    console.print(table(states))
    pairs, wrong = sum(state.pairs for state in states), sum(state.tally.wrong for state in states)
    console.print(f"{pairs:,} pairs in {seconds:.0f} s; wrong answers: {wrong:,}", highlight=False)
    for state in states:
        for line in complaints(state):
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def table(states: list[State]) -> Table:
    """Return the counts; a dot where a relation cannot occur."""
    result = Table(box=SIMPLE, caption=CAPTION, caption_justify="left")
    result.add_column("family")
    for name in ("pairs", *NAMES, "judged", "GEOS wrong", "invalid to us", "wrong"):
        result.add_column(name, justify="right")
    for state in states:
        tally = state.tally
        counts = ["." if k in state.family.impossible and not n else f"{n:,}" for k, n in enumerate(tally.counts)]
        others = (tally.judged, tally.shapely_wrong, tally.shapely_wrong_validity, tally.wrong)
        result.add_row(state.family.name, f"{state.pairs:,}", *counts, *(f"{n:,}" for n in others))
    return result


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
