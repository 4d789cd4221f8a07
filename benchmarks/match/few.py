"""A one-off join in one process: `contrada match` of few messages with many regions, against Shapely.

`python -m benchmarks.match.few` writes both as Parquet and runs each side in a process of its own, start included:
seconds and the largest memory. Shapely's plan is an STRtree of the messages, which blocks of regions are read past.
Ours is the plan "scan", which `auto` chooses: blocks of regions are checked, indexed for a moment, and matched with all
messages. Both write one line of JSON per pair.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import shapely

from benchmarks.command import run_sections
from benchmarks.polygons import read_set
from benchmarks.report import Report, Row
from benchmarks.spark.jobs import TEMPLATE, messages, seven, subscription_rows

SECTION, MEMORY = "Few messages, many regions, one process", "Few messages, many regions: memory"
MESSAGES, TURNS, BLOCK_ROWS = 500, 3, 1 << 17
OURS = "from contrada_command import main; main()"


class Run(NamedTuple):
    """What one process took."""

    seconds: float
    mebibytes: float


def shapely_join(asked: str, given: str, output: str) -> None:
    """Join two files of WKB by an STRtree of the messages."""
    table = pq.read_table(asked)
    tree = shapely.STRtree(shapely.from_wkb(table["area"].to_numpy()))
    ids = table["message_id"].to_numpy()
    with open(output, "w") as file:
        for block in pq.ParquetFile(given).iter_batches(BLOCK_ROWS):
            regions, found = tree.query(shapely.from_wkb(block["geometry"].to_numpy(False)), predicate="intersects")
            pairs = zip(ids[found].tolist(), np.asarray(block["key"])[regions].tolist(), strict=True)
            file.writelines(f'{{"message":"{message}","key":{key}}}\n' for message, key in pairs)


def run(arguments: list[str]) -> Run:
    """Run Python with arguments; return its seconds and its largest memory."""
    start, most = time.perf_counter(), 0
    with subprocess.Popen([sys.executable, *arguments]) as process:
        # What the system tells at the end includes memory of this process, from which the other was forked.
        while process.poll() is None:
            with suppress(OSError):
                found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
                most = max(most, int(found[1]) if found else 0)
            time.sleep(0.01)
    if process.returncode:
        raise RuntimeError(f"{arguments} ended with {process.returncode}")
    return Run(time.perf_counter() - start, most / 1024)


def against_shapely(report: Report) -> Iterator[Row]:
    """Measure both in turns; the first turn warms up."""
    polygons = seven(read_set("LA", report.seed), report.seed)
    polygons = polygons.take(slice(5000)) if report.quick else polygons
    with tempfile.TemporaryDirectory() as place:
        names = "messages.parquet", "subscriptions.parquet", "ours.ndjson", "theirs.ndjson"
        asked, given, *outputs = (str(Path(place) / name) for name in names)
        pq.write_table(messages(polygons, MESSAGES, report.seed), asked)
        pq.write_table(subscription_rows(polygons), given)
        ours = ["-c", OURS, "match", asked, given, "--template", TEMPLATE, "--quiet", "--output", outputs[0]]
        theirs = ["-m", "benchmarks.match.few", asked, given, outputs[1]]
        runs: list[list[Run]] = [[], []]
        for turn in range(2 if report.quick else TURNS + 1):
            Path(outputs[0]).unlink(missing_ok=True)
            for side, arguments in zip(runs, (ours, theirs), strict=True):
                took = run(arguments)
                side += [took] if turn else []
        counts = [Path(path).read_bytes().count(b"\n") for path in outputs]
    if counts[0] != counts[1]:
        raise RuntimeError(f"{counts[0]:,} pairs of ours, {counts[1]:,} of Shapely")
    mine, other = (Run(*np.median(side, axis=0).tolist()) for side in runs)
    work = f"{MESSAGES} messages, LA ({len(polygons.wkb):,}), {counts[0]:,} pairs"
    peer = f"Shapely {shapely.__version__}, STRtree of the messages"
    yield Row.versus(SECTION, work, peer, mine.seconds, other.seconds)
    for who, used in ((work, mine), (f"{work}, {peer}", other)):
        yield Row.alone(MEMORY, who, used.mebibytes, "MiB")


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].endswith(".parquet"):
        shapely_join(*sys.argv[1:])
    else:
        run_sections("few", __doc__, {"few": against_shapely})
