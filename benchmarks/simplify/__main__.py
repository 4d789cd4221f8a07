"""What simplification gains: figure 4b and scenario 2 of Table 3 of [SPATIAL], with and without it, in one run.

    python -m benchmarks.simplify [--quick] [--only figure,sets] [--seed 7] [--write]

Every message is answered by the table and by the counting matcher, before simplification and after, in turns and on one
thread, from a ready-made region to the subscribers; all four answers are compared. Writes build/bench/simplify.json.
Real polygons are read from the directory that CONTRADA_DATA names. With --write the tables replace those of
benchmarks/results, so that no number is typed by hand.
"""

from collections.abc import Iterator
from functools import partial

from benchmarks.command import run_sections
from benchmarks.polygons import read_sets, synthetic_set
from benchmarks.report import Row
from benchmarks.simplify.report import FIGURE, FIGURE_REMOVED, SETS, SETS_REMOVED, SimplifyReport
from benchmarks.simplify.work import constraints_of, measure, messages_of, predicates_of, synthetic_messages

PREDICATES = (5, 15, 25)
SIZES = (1_000, 2_500, 5_000, 7_500, 10_000)


def figure(report: SimplifyReport) -> Iterator[Row]:
    """Measure N synthetic constraints over few predicates."""
    polygons = synthetic_set(report.seed)
    constraints = constraints_of(polygons, report.seed)
    works = {
        f"{count} predicates, N = {size:,}": predicates_of(constraints[:size], count)
        for count in PREDICATES
        for size in (SIZES[:2] if report.quick else SIZES)
    }
    yield from measure(report, (FIGURE, FIGURE_REMOVED), works, partial(synthetic_messages, polygons))


def sets(report: SimplifyReport) -> Iterator[Row]:
    """Measure all polygons of a real set over 25 predicates."""
    for polygons in read_sets(report, ("London", "Rhône-Alpes", "SoCal"), 2):
        predicates = predicates_of(constraints_of(polygons, report.seed), PREDICATES[-1])
        works = {f"{polygons.name}, N = {len(polygons.shapes):,}": predicates}
        yield from measure(report, (SETS, SETS_REMOVED), works, partial(messages_of, polygons))


SECTIONS = {"figure": figure, "sets": sets}

if __name__ == "__main__":
    run_sections("simplify", __doc__, SECTIONS, SimplifyReport)
