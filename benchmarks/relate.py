"""How fast we relate regions, against GEOS and against Algorithm 1, in one run; answers are compared as well.

    python benchmarks/relate.py [--quick] [--only scans,accuracy] [--seed 7] [--write]

Writes build/bench/relate.json. Real footprints are read from the directory that CONTRADA_DATA names. With
--write the tables replace those of benchmarks/results, so that no number is typed by hand.
"""

from __future__ import annotations

import accuracy
import coastlines
import footprints
import scans
import startup
from command import finish, parsed, parser_of, shown_at_least
from report import Report

SECTIONS = ("scans", "pairs", "coastlines", "reading", "startup", "accuracy")


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
    arguments, chosen = parsed(parser_of(__doc__, SECTIONS), SECTIONS, "relate")
    report = Report(arguments.seed, arguments.quick)
    with shown_at_least(report):
        measure(report, chosen)
    finish(report, "relate", arguments.write, chosen == set(SECTIONS))


if __name__ == "__main__":
    main()
