"""How fast messages find their subscriptions, against Shapely, DuckDB, PostGIS and Koncorde, in one run.

    python -m benchmarks.match [--quick] [--only large,small] [--seed 7] [--write]

Both sides are timed from WKB in to an array of integers out, and answers are compared. Writes
build/bench/match.json. Real polygons are read from the directory that CONTRADA_DATA names. With --write the
tables replace those of benchmarks/results, so that no number is typed by hand.
"""

from benchmarks import live
from benchmarks.command import run_sections
from benchmarks.match import large, paper, scale, small

SECTIONS = {
    "large": large.run,
    "engines": large.run_databases,
    "small": small.run,
    "misses": small.run_misses,
    "points": small.run_points,
    "scale": scale.run,
    "live": live.run_regions,
    "paper": paper.run,
}

if __name__ == "__main__":
    run_sections("match", __doc__, SECTIONS)
