"""How fast messages find filters on scalars and regions, against counting, DuckDB, Python, Koncorde and a-tree.

    python -m benchmarks.mixed [--quick] [--only mixed,scalars] [--seed 7] [--write]

All sides are timed from a message with WKB to an array of integers, and answers are compared. Writes
build/bench/mixed.json. Regions are read from the directory that CONTRADA_DATA names. With --write the tables
replace those of benchmarks/results, so that no number is typed by hand.
"""

from benchmarks import live
from benchmarks.command import run_sections
from benchmarks.mixed import matching

SECTIONS = {
    "mixed": matching.against_counting,
    "engines": matching.against_engines,
    "live": live.run_mixed,
    "growth": matching.growth,
    "scalars": matching.scalar_filters,
}

if __name__ == "__main__":
    run_sections("mixed", __doc__, SECTIONS)
