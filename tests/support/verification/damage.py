"""Damaged files, each read in a process that may die: `python -m verification.damage`.

A family makes case k from its number alone: a good file with some bits or numbers changed, cut off or longer. The only
outcomes are an answer or a ContradaError. A case that ends its process, raises anything else or gives a wrong answer
is reported with its number, and `--family NAME --first K --cases 1` repeats it.
"""

from __future__ import annotations

import argparse
import pkgutil
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from contrada.errors import ContradaError

MODULE = "verification.damage"
FAMILIES = {
    "arrow": "verification.damaged_arrow:read_case",
    "table": "verification.damaged_tables:table_case",
    "column": "verification.damaged_tables:column_case",
}
SECONDS = 300.0  # for a process, and a few more for each case, after which it counts as hanging
MOST_BYTES = 4 << 30  # of addresses for a process; libraries map a good part of that
NUMBERS = (-1, 0, 1, 5, 255, 2**15, 2**31 - 1, -(2**31), 2**32, 2**62, -(2**63))


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Bytes with one to three changes: flipped bits, other bytes, a number of 4 or 8 bytes, cut off or longer.

    >>> damaged(b"abc", np.random.default_rng(3)) != b"abc"
    True
    """
    made = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        way, at = int(rng.integers(0, 10)), int(rng.integers(0, max(1, len(made))))
        if way == 0:
            del made[at:]
        elif way == 1:
            made[at:at] = rng.bytes(int(rng.integers(1, 9)))
        elif way <= 4 and made:
            made[at] ^= 1 << int(rng.integers(0, 8))
        elif way <= 6 and made:
            made[at] = int(rng.integers(0, 256))
        elif made:
            size = int(rng.choice([4, 8]))
            number = int(rng.choice(NUMBERS)) % 2 ** (8 * size)
            at -= at % 4
            made[at : at + size] = number.to_bytes(size, "little")[: max(0, len(made) - at)]
    return bytes(made) if bytes(made) != data else data[:-1]


def run_cases(family: str, first: int, count: int) -> Iterator[str]:
    """Run cases in other processes, and say which failed and how; a process that ends is replaced by a new one."""
    at, stop = first, first + count
    while at < stop:
        command = [sys.executable, "-X", "faulthandler", "-m", MODULE, "--family", family, "--child"]
        command += ["--first", str(at), "--cases", str(stop - at)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            written, complaints = child.communicate(timeout=SECONDS + 5 * (stop - at))
            how = f"the process ended with {child.returncode}: {_brief(complaints)}"
        except subprocess.TimeoutExpired:
            child.kill()
            written, _ = child.communicate()
            how = "the process hung"
        for line in written.splitlines():
            number, _, outcome = line.partition(" ")
            at = int(number)
            if outcome:
                yield f"{family} {at}: {outcome}"
        if child.returncode != 0:
            yield f"{family} {at}: {how}"
        at += 1
        if child.returncode == 0:
            break


def _brief(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[:2] + [line for line in lines if "contrada" in line][:4])[:600]


def run_here(family: str, first: int, count: int) -> None:
    """Run cases in this process: a line with the number before each, and what went wrong behind it."""
    _limit_memory()
    case = runpy.run_path(family)["read_case"] if family.endswith(".py") else pkgutil.resolve_name(FAMILIES[family])
    for number in range(first, first + count):
        print(number, flush=True)
        try:
            case(number)
        except ContradaError:
            pass
        except Exception as error:  # every other kind is what is looked for
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
            print(number, what.replace("\n", " ")[:600], flush=True)


def _limit_memory() -> None:
    """Let this process have 4 GB of addresses at most, so that a case that asks for more fails alone."""
    with suppress(ImportError):  # Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if a case failed."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--family", help=f"one of {', '.join(FAMILIES)}, or a file with read_case (default: all)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, default=5_000, help="of each family (default: 5,000)")
    parser.add_argument("--child", action="store_true", help="run them in this process")
    options = parser.parse_args(arguments)
    if options.child:
        run_here(options.family, options.first, options.cases)
        return 0
    failed = 0
    for family in [options.family] if options.family else FAMILIES:
        for failure in run_cases(family, options.first, options.cases):
            failed += 1
            print(failure, flush=True)
        print(f"{family}: {options.cases:,} damaged files read", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
