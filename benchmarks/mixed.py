"""How fast messages find filters on scalars and regions, against counting, DuckDB, Python, Koncorde and a-tree.

    python benchmarks/mixed.py [--quick] [--only mixed,scalars] [--seed 7] [--write]

All sides are timed from a message with WKB to an array of integers, and answers are compared. Writes
build/bench/mixed.json. Regions are read from the directory that CONTRADA_DATA names. With --write the tables
replace those of benchmarks/results, so that no number is typed by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mixed_engines
import mixed_growth
import mixed_live
import mixed_production
import mixed_scalars
from command import finish, parsed, parser_of, shown_at_least
from match_report import MatchReport
from report import Row

SECTIONS: dict[str, Callable[..., Iterator[Row]]] = {
    "mixed": mixed_production.run,
    "engines": mixed_engines.run,
    "live": mixed_live.run,
    "growth": mixed_growth.run,
    "scalars": mixed_scalars.run,
}


def main() -> None:
    """Measure, print, save."""
    parser = parser_of(__doc__, SECTIONS)
    parser.add_argument("--largest", type=int, default=1_000_000, help="scalar filters that peers are loaded with")
    arguments, chosen = parsed(parser, SECTIONS, "mixed")
    report = MatchReport(arguments.seed, arguments.quick)
    with shown_at_least(report):
        for name, run in SECTIONS.items():
            if name in chosen:
                report.rows.extend(run(report, arguments.largest) if run is mixed_scalars.run else run(report))
    finish(report, "mixed", arguments.write, chosen == set(SECTIONS))


if __name__ == "__main__":
    main()
