"""Relate a million pairs of regions from all families and check every answer: `make verify`.

Shapely answers too; where the two differ rational arithmetic decides, and it looks at a sample of the rest.
The laws are checked along the way: inverses, and independence of ring start, direction and order. The run
follows from the seed alone, whatever the number of processes. Exits with 1 if any answer was wrong, if a
relation that a family can produce occurred too rarely to count as tested, or if one occurred that the
family says it cannot produce.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from generators.families import FAMILIES, Family, family
from oracles.laws import Engine, Tally, check_pairs
from oracles.relations import NAMES

CHUNK = 4000  # pairs that one task asks for
PRODUCT = Engine()
EVERY = 20.0  # seconds between two lines of progress
HEADS = ("family", "pairs", *NAMES, "judged", "GEOS wrong", "invalid to us", "wrong")
CAPTION = (
    "A dot: the family cannot produce the relation. Judged: by rational arithmetic, points included.\n"
    "Invalid to us: though valid to GEOS, confirmed by the rationals."
)
ROUNDS = 12  # after these, a relation that is still too rare is reported


class Task(NamedTuple):
    """One chunk of one family."""

    name: str
    chunk: int
    pairs: int


@dataclass
class State:
    """How far a family has come."""

    family: Family
    target: int
    least: int
    chunks: int = 0
    tally: Tally = field(default_factory=Tally)

    @property
    def pairs(self) -> int:
        """Pairs checked so far."""
        return int(self.tally.counts.sum())

    def rare(self) -> list[int]:
        """Relations that the family can produce and has not yet produced often enough."""
        counts = self.tally.counts
        return [k for k in range(len(NAMES)) if k not in self.family.impossible and counts[k] < self.least]

    def surprising(self) -> list[int]:
        """Relations that the family says it cannot produce, and has."""
        return [k for k in self.family.impossible if self.tally.counts[k]]

    def missing(self) -> int:
        """How many pairs to ask for next."""
        if not self.chunks:
            return self.target
        short = self.target - self.pairs
        rare = min((int(self.tally.counts[k]) for k in self.rare()), default=self.least)
        if rare < self.least:
            rate = max(rare, 1) / max(self.pairs, 1)
            short = max(short, min(int(1.2 * (self.least - rare) / rate), 4 * self.target))
        return max(short, 0)

    def tasks(self) -> Iterator[Task]:
        """Yield the next chunks, none when all is done."""
        wanted = self.missing()
        while wanted > 0:
            pairs = min(CHUNK, max(wanted, 100))
            yield Task(self.family.name, self.chunks, pairs)
            self.chunks += 1
            wanted -= pairs


def run_task(engine: Engine, seed: int, sample: float, task: Task) -> tuple[Task, Tally]:
    """Make the pairs of a task and check them."""
    place = [chosen.name for chosen in FAMILIES].index(task.name)
    rng = np.random.default_rng([seed, place, task.chunk])
    a, b = family(task.name).pairs(rng, task.pairs)
    return task, check_pairs(engine, rng, a, b, sample)


def verify(
    families: Sequence[Family],
    pairs: int,
    seed: int,
    sample: float = 0.01,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
    engine: Engine = PRODUCT,
) -> list[State]:
    """Check about so many pairs, spread over the families by weight, and more where a relation is rare.

    Every relation that a family can produce is to occur at least pairs / 1000 times.
    """
    weight = sum(chosen.weight for chosen in families)
    least = max(1, pairs // 1000)
    states = [State(chosen, round(pairs * chosen.weight / weight), least) for chosen in families]
    by_name = {state.family.name: state for state in states}
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) if jobs > 1 else None
    with pool or nullcontext():
        run = pool.map if pool else map
        for _ in range(ROUNDS):
            tasks = [task for state in states for task in state.tasks()]
            for task, tally in run(partial(run_task, engine, seed, sample), tasks):
                by_name[task.name].tally.add(tally)
                progress(sum(state.pairs for state in states), pairs)
            if not tasks:
                break
    return states


def lines_of_progress(what: str = "pairs") -> Callable[[int, int], None]:
    """Return a function that prints a line when some time has passed since the last."""
    last = [time.monotonic()]

    def show(done: int, total: int) -> None:
        if time.monotonic() - last[0] >= EVERY:
            last[0] = time.monotonic()
            print(f"{done:,} of {total:,} {what}", file=sys.stderr, flush=True)

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = parse(arguments)
    families = [family(name) for name in options.families] if options.families else list(FAMILIES)
    start = time.perf_counter()
    states = verify(families, options.pairs, options.seed, options.sample, options.jobs, lines_of_progress())
    print_report(states, time.perf_counter() - start)
    bad = any(state.tally.wrong or state.rare() or state.surprising() for state in states)
    return 1 if bad else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m verification.verify", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="how many pairs (default: a million)")
    parser.add_argument("--seed", type=int, default=1, help="of all random numbers")
    parser.add_argument("--sample", type=float, default=0.01, help="share of agreeing pairs that are judged")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes (default: one per core)")
    names = [chosen.name for chosen in FAMILIES]
    parser.add_argument("--families", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    return parser.parse_args(arguments)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
