"""Fresh processes: the first relation with a warm cache, and compiling everything from nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from report import Row
from timing import say, take_turns, time_once

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


def run(quick: bool) -> Iterator[Row]:
    """Start-up with warm caches beside a trivial function, then the cost of empty ones."""
    say("start-up: fresh processes, warm cache")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scripts = {"ours": FIRST_RELATION, "trivial": TRIVIAL, "everything": EVERYTHING}
        for label, text in scripts.items():
            (folder / f"{label}.py").write_text(text)
        warm = {"CONTRADA_CACHE_DIR": str(folder / "warm"), "NUMBA_CACHE_DIR": str(folder / "numba")}
        calls = {
            "ours": lambda: run_script(folder / "ours.py", **warm),
            "trivial": lambda: run_script(folder / "trivial.py", **warm),
        }
        found = take_turns(calls, 3 if quick else 9)
        ours, trivial = found["ours"].seconds, found["trivial"].seconds
        yield Row(
            section="Start-up of a fresh process",
            work="first relate, warm cache",
            against="a trivial function with Numba's cache",
            ours=ours,
            theirs=trivial,
            value=ours - trivial,
            unit="s slower",
            at_most=0.5,
        )
        for number, (label, work, limit) in enumerate(
            (("ours", "first relate, empty cache", 30.0), ("everything", "every kernel, empty cache", None))
        ):
            say(f"start-up: {work}")
            cold = {"CONTRADA_CACHE_DIR": str(folder / f"cold{number}")}
            seconds = time_once(lambda label=label, cold=cold: run_script(folder / f"{label}.py", **cold))
            yield Row(
                section="Start-up of a fresh process",
                work=work,
                against="",
                ours=seconds,
                theirs=None,
                value=seconds,
                unit="s",
                at_most=limit,
            )
