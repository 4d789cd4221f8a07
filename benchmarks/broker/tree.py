"""A tree of servers as processes on this machine, with links that are cut and healed and brokers that are killed.

    python -m benchmarks.broker.tree [--brokers 31] [--subscriptions 10000] [--rounds 6] [--delay 0.02] [--seed 1]

Every event is compared with plain matching; the command fails if one is missing, wrong or came twice. --delay are the
seconds that bytes take over a link.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from verification.link_tree import run_tree


def main() -> int:
    """Run the tree and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("brokers", 31), ("subscriptions", 10_000), ("rounds", 6), ("batch", 20), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--delay", type=float, default=0.02)
    asked = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="contrada-tree-") as folder:
        run = asyncio.run(run_tree(Path(folder), **vars(asked)))
    print(
        f"{asked.brokers} brokers, {asked.subscriptions:,} subscriptions (links forward {run.forwarded:,} and suppress"
        f" {run.suppressed:,}), {run.messages:,} messages, {run.events:,} events, {run.cuts} cuts, {run.kills} kills:"
        f" {len(run.faults)} faults, {time.perf_counter() - start:.0f} s"
    )
    parts = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in run.seconds.items())
    print(f"{parts}; the largest process has {run.resident / 1e6:.0f} MB in memory")
    print("\n".join(run.faults[:20]))
    return 1 if run.faults else 0


if __name__ == "__main__":
    sys.exit(main())
