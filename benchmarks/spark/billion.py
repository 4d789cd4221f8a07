"""A billion subscriptions reckoned from what a run of benchmarks.spark.scale measured."""

import math
from pathlib import Path

from cluster import WORKERS
from contrada.pipeline import PartitionedArtifact

TIMES = "\N{MULTIPLICATION SIGN}"
BILLION = 10**9
EACH = 256 << 20  # bytes of a partition, as is usual
CORES, HOSTS = 100, 25
MESSAGES = 10**8
BASE = 285 << 20  # bytes of a worker whose partitions are small: with --quick
LINE = 125e6  # bytes a second of 1 Gbit/s


def billion(
    table: PartitionedArtifact, count: int, wkb: int, compiled: float, matched: float, replication: float, worker: int
) -> str:
    """Return the table that stands in docs/scale.md, and how its numbers come from those of a run.

    The run had `count` subscriptions of `wkb` bytes; all cores compiled and matched so many a second. A worker had at
    most `worker` bytes in memory.
    """
    each, raw, cores = table.bytes / count, wkb / count, len(WORKERS)  # bytes of a subscription
    largest = max(part.artifact.bytes for part in table.partitions)
    router = table.router.bytes / len(table.partitions)
    manifest = (Path(table.path) / "partitions.json").stat().st_size / len(table.partitions)
    parts = math.ceil(BILLION * each / EACH)
    size, compiled = f"{BILLION * each / 1e9:.0f} GB", compiled / cores
    visits = matched / cores * replication  # a second and core
    times = max(1.0, (worker - BASE) / largest)
    built = f"{BASE >> 20} MiB, and {times:.1f} {TIMES} 256 MiB, as for the largest of the run: "
    built += f"({worker >> 20} - {BASE >> 20}) / {largest / 2**20:.1f}"
    visited = f"{matched:,.0f} a second / {cores} cores {TIMES} {replication:.2f} partitions"
    read = f"{parts * manifest / 1e6:.1f} MB, which the driver reads and sends to tasks"
    shuffled = f"{BILLION * (raw + 60) / 1e9:.0f} GB, and as much twice in Spark's storage"
    compiling, matching = BILLION / (compiled * CORES), MESSAGES * 2 / (visits * CORES)
    fetched = f"{parts:,} / {HOSTS} hosts {TIMES} 268 MB at 1 Gbit/s"
    rows = [
        ("a subscription in the table", f"{table.bytes:,} / {count:,}", f"{each:.0f} bytes"),
        ("the table", f"10⁹ {TIMES} {each:.0f} bytes", size),
        ("partitions of 256 MiB", f"{size} / 268 MB", f"{parts:,}"),
        ("filters in a partition", f"10⁹ / {parts:,}", f"{BILLION / parts / 1e6:.2f} million"),
        ("the router", f"{parts:,} {TIMES} {router / 1024:.1f} KiB", f"{parts * router / 1e6:.1f} MB"),
        ("`partitions.json`", f"{parts:,} {TIMES} {manifest / 1024:.1f} KiB", read),
        (
            "a Python worker, building a partition",
            built,
            f"{(BASE + times * EACH) / 2**30:.1f} GiB; matching takes less",
        ),
        ("rows on their way, compiling", f"10⁹ {TIMES} ({raw:.0f} + 60) bytes, shuffled once", shuffled),
        (f"compiling on {CORES} cores", f"10⁹ / ({compiled:,.0f} a second and core {TIMES} {CORES})", _time(compiling)),
        ("messages that a core matches with one partition", visited, f"{visits:,.0f} a second"),
        (
            f"10⁸ messages on {CORES} cores, 2 partitions each",
            f"10⁸ {TIMES} 2 / ({visits:,.0f} {TIMES} {CORES})",
            _time(matching),
        ),
        ("fetching partitions, once", fetched, _time(parts / HOSTS * EACH / LINE)),
    ]
    lines = ["| what | reckoned | is |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
