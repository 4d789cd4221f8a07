"""How fast we relate regions, against GEOS and against Algorithm 1, in one run; answers are compared as well.

    python benchmarks/relate.py [--quick] [--only scans,accuracy] [--seed 7] [--write-docs]

Writes build/bench/relate.json. Real footprints are read from the directory that CONTRADA_DATA names. With
--write-docs the tables replace those of docs/performance.md, so that no number is typed by hand.
"""

from __future__ import annotations

import argparse

import accuracy
import coastlines
import footprints
import scans
import startup
from report import ROOT, Report, show, write_docs
from timing import say

SECTIONS = ("scans", "pairs", "coastlines", "reading", "startup", "accuracy")
RESULT = ROOT / "build" / "bench" / "relate.json"


def measure(report: Report, sections: set[str]) -> None:
    """Run the chosen sections in the order of SECTIONS."""
    if "scans" in sections:
        report.rows += scans.run(report.seed, report.quick)
    if "pairs" in sections:
        report.rows += footprints.run_pairs(report)
    if "coastlines" in sections:
        report.rows += coastlines.run(report.seed, report.quick)
    if "reading" in sections:
        report.rows += footprints.run_reading(report)
    if "startup" in sections:
        report.rows += startup.run(report.quick)
    if "accuracy" in sections:
        report.accuracy += accuracy.run(report.seed, report.quick)


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small run, to see that everything works")
    parser.add_argument("--only", default=",".join(SECTIONS), help="some of %(default)s")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write-docs", action="store_true", help="put the tables into docs/performance.md")
    arguments = parser.parse_args()
    sections = set(arguments.only.split(","))
    if unknown := sections - set(SECTIONS):
        parser.error(f"unknown sections {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if arguments.write_docs and sections != set(SECTIONS):
        parser.error("--write-docs needs a run of all sections")
    report = Report(arguments.seed, arguments.quick)
    measure(report, sections)
    show(report)
    report.save(RESULT)
    say(f"wrote {RESULT.relative_to(ROOT)}")
    if arguments.write_docs:
        write_docs(report, ROOT / "docs" / "performance.md", "relate")
        say("wrote docs/performance.md")


if __name__ == "__main__":
    main()
