"""How fast messages find filters on scalars and regions, against counting, DuckDB, Python, Koncorde and a-tree.

    python benchmarks/mixed.py [--quick] [--only mixed,scalars] [--seed 7] [--write-docs]

All sides are timed from a message with WKB to an array of integers, and answers are compared. Writes
build/bench/mixed.json. Regions are read from the directory that CONTRADA_DATA names. With --write-docs the tables
replace those of docs/performance.md, so that no number is typed by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import mixed_engines
import mixed_growth
import mixed_live
import mixed_production
import mixed_scalars
from match_report import MatchReport
from report import ROOT, Row, show, write_docs
from timing import say

RESULT = ROOT / "build" / "bench" / "mixed.json"
SECTIONS: dict[str, Callable[..., Iterator[Row]]] = {
    "mixed": mixed_production.run,
    "engines": mixed_engines.run,
    "scalars": mixed_scalars.run,
    "live": mixed_live.run,
    "growth": mixed_growth.run,
}


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small run, to see that everything works")
    parser.add_argument("--only", default=",".join(SECTIONS), help="some of %(default)s")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--largest", type=int, default=1_000_000, help="scalar filters that peers are loaded with")
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",")
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"unknown sections {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if arguments.write_docs and set(chosen) != set(SECTIONS):
        parser.error("--write-docs needs a run of all sections")
    report = MatchReport(arguments.seed, arguments.quick)
    for name, run in SECTIONS.items():
        if name in chosen:
            report.rows += run(report, arguments.largest) if run is mixed_scalars.run else run(report)
    show(report)
    report.save(RESULT)
    say(f"wrote {RESULT.relative_to(ROOT)}")
    if arguments.write_docs:
        write_docs(report, ROOT / "docs" / "performance.md", "mixed")
        say("wrote docs/performance.md")


if __name__ == "__main__":
    main()
