"""Fresh processes: the first relation with a warm cache, and compiling everything from nothing."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.report import Report, Row
from benchmarks.timing import race, time_cold

SECTION = "Start-up of a fresh process"
MOST_FIRST = 8.0  # seconds
FIRST_RELATION = """
import contrada as ct
a = ct.Region([(0, 0), (4, 0), (4, 4), (0, 4)])
b = ct.Region([(2, 2), (6, 2), (6, 6), (2, 6)])
assert ct.relate(a, b) is ct.Relation.OVERLAPS
"""
TRIVIAL = """
import numba

@numba.njit(cache=True)
def successor(x):
    return x + 1

assert successor(1) == 2
"""
EVERYTHING = FIRST_RELATION + (
    "many = ct.RegionArray.from_wkb([a.to_wkb(), b.to_wkb()])\n"
    "ct.relate(ct.Point(1, 1), many)\n"
    "from contrada.papers.spatial import relate_sampled\n"
    "relate_sampled(a, many, density=1.0)\n"
)


def run_script(path: Path, **environment: str) -> None:
    """Run a script in a new process of this Python; its output is dropped, its failure is ours."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([sys.executable, str(path)], env=os.environ | environment, check=True, **quiet)


def run(report: Report) -> Iterator[Row]:
    """Measure start-up with warm caches beside a trivial function, then the cost of empty ones."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, text in {"ours": FIRST_RELATION, "trivial": TRIVIAL, "everything": EVERYTHING}.items():
            (folder / f"{label}.py").write_text(text)
        warm = {"CONTRADA_CACHE_DIR": str(folder / "warm"), "NUMBA_CACHE_DIR": str(folder / "numba")}
        calls = (partial(run_script, folder / f"{label}.py", **warm) for label in ("ours", "trivial"))
        (ours, _), (trivial, _) = race(*calls, 3 if report.quick else 9)
        work, against = "first relate, warm cache", "a trivial function with Numba's cache"
        yield Row(SECTION, work, against, ours, trivial, ours - trivial, "s slower", at_most=0.5)
        for label, work, limit in (
            ("ours", "first relate, empty cache", MOST_FIRST), ("everything", "every kernel, empty cache", None)
        ):  # fmt: skip
            cold = {"CONTRADA_CACHE_DIR": str(folder / f"cold {label}")}
            yield Row.lasting(SECTION, work, time_cold(partial(run_script, folder / f"{label}.py", **cold)), limit)
