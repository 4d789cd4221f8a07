"""How fast messages find their subscriptions, against Shapely, DuckDB, PostGIS and Koncorde, in one run.

    python benchmarks/match.py [--quick] [--only large,small] [--seed 7] [--write]

Both sides are timed from WKB in to an array of integers out, and answers are compared. Writes
build/bench/match.json. Real polygons are read from the directory that CONTRADA_DATA names. With --write the
tables replace those of benchmarks/results, so that no number is typed by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import match_engines
import match_large
import match_live
import match_paper
import match_points
import match_scale
import match_small
from command import run_sections
from match_report import MatchReport
from report import Row

SECTIONS: dict[str, Callable[[MatchReport], Iterator[Row]]] = {
    "large": match_large.run,
    "engines": match_engines.run,
    "small": match_small.run,
    "points": match_points.run,
    "scale": match_scale.run,
    "live": match_live.run,
    "paper": match_paper.run,
}


if __name__ == "__main__":
    run_sections("match", __doc__, SECTIONS, MatchReport)
