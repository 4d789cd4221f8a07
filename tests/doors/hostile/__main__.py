"""Drive every door of the package with hostile inputs: `make verify` drives 100,000.

Each input runs in a worker process. The only good outcomes are an answer and a ContradaError, within 5 s and 1 GB.
The whole corpus is driven first, then mutations of it; all follow from the seed. A failing input is kept in
build/doors/ with the command that replays it. Exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hostile import processes
from hostile.doors import DOORS
from hostile.runner import GOOD, OUTCOMES, Input, Pool, Result, failed, judged, told
from verification.verify import cores, lines_of_progress

SHOWN = 40  # failures that are printed in full


def mutation_inputs(doors: Sequence[str], count: int, seed: int) -> Iterator[Input]:
    """About so many mutations, spread over the doors by weight."""
    total = sum(DOORS[name].weight for name in doors)
    for name in doors:
        share = round(count * DOORS[name].weight / total)
        yield from (Input(name, seed=seed, number=number) for number in range(share))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = parse(arguments)
    if options.replay:
        return replay(Path(options.replay))
    doors = [name for name in DOORS if not options.doors or any(part in name for part in options.doors)]
    if options.commands:
        doors = [name for name in doors if name in processes.DOORS]
    began = time.perf_counter()
    inputs = [Input(name, one) for name in doors for one in DOORS[name].names()][:: options.step]
    inputs += mutation_inputs(doors, max(0, options.inputs - len(inputs)), options.seed)
    progress = show_progress(len(inputs))
    if options.commands:
        seconds, memory = processes.allowance()
        print(f"commands take {seconds:.1f} s and {memory >> 20} MiB for good small inputs", flush=True)
        results = processes.run_commands(inputs, progress)
    else:
        with Pool(options.jobs) as pool:
            results = pool.run(inputs, progress)
    return report(results, time.perf_counter() - began)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m hostile", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many inputs (default: 100,000)")
    parser.add_argument("--seed", type=int, default=1, help="of all mutations")
    parser.add_argument("--jobs", type=int, default=cores(), help="worker processes")
    parser.add_argument("--doors", nargs="+", metavar="TEXT", help="only doors whose name contains one of these")
    parser.add_argument("--step", type=int, default=1, help="only every so many-th input of the corpus")
    parser.add_argument("--commands", action="store_true", help="commands alone, each input in a process of its own")
    parser.add_argument("--replay", metavar="FILE", help="drive an input that failed, in this process")
    return parser.parse_args(arguments)


def replay(path: Path) -> int:
    """Drive one kept input here and print what comes."""
    door, case = pickle.loads(path.read_bytes())
    print(f"{door}: {str(case)[:500]!a}")
    outcome, detail = judged(door, lambda: DOORS[door].drive(case), DOORS[door].refusals)
    print(outcome, detail)
    return 0 if not detail else 1


def show_progress(total: int) -> Callable[[int, Result], None]:
    """A function that prints a line for a failure, and one when some time has passed since the last."""
    show_count = lines_of_progress("inputs")

    def show(done: int, result: Result) -> None:
        if result.outcome not in GOOD:
            first = result.detail.partition("\n")[0]
            print(f"{result.input.door}, {result.input.label}: {result.outcome}: {first}", file=sys.stderr, flush=True)
        show_count(done, total)

    return show


def report(results: Sequence[Result], seconds: float) -> int:
    """Print a table by door and outcome, then the failures; return the exit code."""
    counts = Counter((result.input.door, result.outcome) for result in results)
    slowest: dict[str, float] = {}
    for result in results:
        slowest[result.input.door] = max(slowest.get(result.input.door, 0.0), result.seconds)
    width = max(map(len, slowest), default=4)
    print(f"{'door':{width}}", *(f"{outcome:>12}" for outcome in OUTCOMES), f"{'slowest':>9}")
    for door, most in slowest.items():
        print(f"{door:{width}}", *(f"{counts[door, outcome]:12,}" for outcome in OUTCOMES), f"{most:8.2f}s")
    totals = Counter(result.outcome for result in results)
    print(f"{'all':{width}}", *(f"{totals[outcome]:12,}" for outcome in OUTCOMES))
    bad = failed(results)
    cpu = sum(result.seconds for result in results)
    print(f"{len(results):,} inputs in {seconds:.0f} s, {cpu:.0f} s of processors; failures: {len(bad):,}")
    lines = [told(result) for result in bad]  # which keeps each of them in build/doors
    print("\n".join(lines[:SHOWN]))
    if len(bad) > SHOWN:
        print(f"... and {len(bad) - SHOWN:,} more")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
