"""How fast we relate regions, against GEOS and against Algorithm 1, in one run; answers are compared as well.

    python -m benchmarks.relate [--quick] [--only scans,accuracy] [--seed 7] [--write]

Writes build/bench/relate.json. Real footprints are read from the directory that CONTRADA_DATA names. With
--write the tables replace those of benchmarks/results, so that no number is typed by hand.
"""

from benchmarks.command import run_sections
from benchmarks.relate import pairs, scans, startup

SECTIONS = {
    "scans": scans.run,
    "pairs": pairs.run_footprints,
    "coastlines": pairs.run_coastlines,
    "reading": pairs.run_reading,
    "startup": startup.run,
    "accuracy": scans.run_accuracy,
}

if __name__ == "__main__":
    run_sections("relate", __doc__, SECTIONS)
