"""Streams of files against subscriptions that change: rates, latencies, and what a change of version costs.

`python benchmarks/stream.py` runs everything (about ten minutes), `--quick` a small version (two); `--write` puts
the tables into benchmarks/results. Starting the session and the first batches are not part of any number.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import spark_work
import stream_work
from command import finish, parsed, parser_of, shown_at_least
from match_sets import PolygonSet
from match_shapely import BoundaryFirst, TreePerOperator, TreePerOperatorPredicates
from report import Report, Row
from stream_work import Commits, Feeder, Files
from timing import say

from contrada import pipeline
from contrada.pipeline.stream.progress import StreamProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE, LATENCY, CHANGES, MEMORY = (
    "Streams: the highest rate", "Streams: from the file to the commit", "Streams: a change of version",
    "Streams: memory",
)  # fmt: skip
PLANS = (TreePerOperator, TreePerOperatorPredicates, BoundaryFirst)
SHARES = (0.95, 0.85, 0.75, 0.65, 0.5)  # of the rate of a stream that never waits: which can be held?


class Running(NamedTuple):
    """A stream that runs, Spark's handle on it, and where its files are."""

    query: Any
    files: Files
    place: Path
    told: list[StreamProgress]  # of ours

    def commits(self) -> Commits:
        """What was committed until now."""
        return Commits.read(self.place / "checkpoint")

    def stop(self) -> None:
        """End it."""
        self.query.stop()


@dataclass
class Bench:
    """A session, where its files are, the report, and what sections share."""

    spark: SparkSession
    directory: Path
    report: Report
    held: dict[str, float] = field(default_factory=dict)  # the highest rates
    runs: int = 0

    @cached_property
    def polygons(self) -> PolygonSet:
        """What subscriptions ask for."""
        return stream_work.subscriptions(self.report, 2_000 if self.report.quick else 100_000)

    @cached_property
    def messages(self) -> Any:
        """Messages, which come again after a while with other ids."""
        return spark_work.messages(self.polygons, 1_000 if self.report.quick else 50_000, self.report.seed)

    @cached_property
    def artifact(self) -> Any:
        """The subscriptions as a table where workers find it."""
        return pipeline.publish(spark_work.table_by_operator(self.polygons), str(self.directory / "artifacts"))

    @cached_property
    def best(self) -> str:
        """The quickest plan of a user of Shapely, told by a few messages the second time."""
        few = self.spark.createDataFrame(self.messages.slice(0, 200).to_pandas(), stream_work.SCHEMA).persist()
        seconds = {}
        for plan in PLANS:
            found = spark_work.shapely_match(self.spark, self.polygons, few, plan.__name__)
            spark_work.drained(found)
            seconds[plan.__name__] = spark_work.drained(found)
        say(f"the quickest of {seconds}")
        return min(seconds, key=seconds.__getitem__)

    @cached_property
    def matching(self) -> Any:
        """That plan, as mapInArrow takes it."""
        return spark_work.shapely_matching(self.spark, self.polygons, self.best)

    @property
    def name(self) -> str:
        """What is measured, for the tables."""
        return f"{len(self.polygons.wkb):,} subscriptions ({self.polygons.name}), local[2]"

    def place(self) -> Path:
        """A new directory."""
        self.runs += 1
        return self.directory / f"run{self.runs}"

    def start(self, who: str, files: Files, place: Path, most: int | None = None, once: bool = False) -> Running:
        """Begin a stream over files: ours, or that of a user of Shapely."""
        frame = files.stream(self.spark, most)
        if who == "peer":
            return Running(stream_work.shapely_stream(self.matching, frame, place, once), files, place, [])
        told: list[StreamProgress] = []
        stream = pipeline.match_stream(
            frame, self.artifact, place / "changes", sink=place / "output", checkpoint=place / "checkpoint",
            trigger={"availableNow": True} if once else None, progress=told.append,
        )  # fmt: skip
        return Running(stream.query, files, place, told)

    def warm(self, who: str) -> Running:
        """A stream that has had its first batches."""
        place = self.place()
        running = self.start(who, Files(place, self.messages), place)
        for _ in range(4):
            running.files.show(running.files.written(20))
            running.query.processAllAvailable()
        return running


def saturated(bench: Bench, who: str, count: int, files: int) -> tuple[float, Path]:
    """Messages a second of a stream that never waits for files, a fifth of them in a batch, without the first batch."""
    place = bench.place()
    made = Files(place, bench.messages)
    for _ in range(files):
        made.show(made.written(count // files))
    running = bench.start(who, made, place, max(1, files // 5), once=True)
    running.query.awaitTermination()
    times = running.commits().times
    first, last = min(times), max(times)
    each = count / len(times)
    return (last - first) * each / (times[last] - times[first]), place


def is_held(bench: Bench, who: str, rate: float, seconds: float) -> bool:
    """True if files that come at this rate wait no longer at the end than they did in the middle."""
    running = bench.warm(who)
    try:
        names = running.files.feed(rate, seconds)
        running.query.processAllAvailable()
        latencies = running.commits().latencies(running.files, names)
    finally:
        running.stop()
    third = max(1, len(names) // 3)
    middle, last = np.median(latencies[third:-third]), np.median(latencies[-third:])
    say(f"{who}: {rate:,.0f} messages a second, {middle:.2f} s in the middle, {last:.2f} s at the end")
    return bool(last <= 1.5 * middle)


def highest(bench: Bench, who: str) -> float:
    """The highest of some rates that is held; it is measured once."""
    if who not in bench.held:
        count = {"ours": 2_000, "peer": 500} if bench.report.quick else {"ours": 200_000, "peer": 10_000}
        most, _ = saturated(bench, who, count[who], 20)
        say(f"{who}: {most:,.0f} messages a second without waiting")
        seconds = 3 if bench.report.quick else 20
        rates = (share * most for share in SHARES)
        bench.held[who] = next((rate for rate in rates if is_held(bench, who, rate, seconds)), SHARES[-1] * most)
    return bench.held[who]


def rate(bench: Bench) -> Iterator[Row]:
    """The highest rate held, of both, and whether answers are the same."""
    count = 500 if bench.report.quick else 5_000
    outputs = []
    for who in ("ours", "peer"):
        _, place = saturated(bench, who, count, 20)
        rows = bench.spark.read.parquet(str(place / "output" / "matches"))
        outputs.append(rows.select("message_id", "key"))
    different = sum(one.exceptAll(other).count() for one, other in (outputs, outputs[::-1]))
    ours, theirs = highest(bench, "ours"), highest(bench, "peer")
    peer = f"foreachBatch, mapInArrow, Shapely ({bench.best})"
    work = f"{bench.name}: time per message at the highest rate held"
    yield Row(RATE, work, peer, 1 / ours, 1 / theirs, ours / theirs, compared=count * len(bench.polygons.wkb),
              different=different)  # fmt: skip
    yield Row(RATE, "the highest rate held, ours", "", None, None, ours, "messages a second")
    yield Row(RATE, "the highest rate held, the peer's", "", None, None, theirs, "messages a second")


def latency(bench: Bench) -> Iterator[Row]:
    """Seconds from a file's appearance to the commit of its batch, at 70 % of the highest rate of each."""
    seconds = 5 if bench.report.quick else 60
    found = {}
    for who in ("ours", "peer"):
        running = bench.warm(who)
        try:
            names = running.files.feed(0.7 * highest(bench, who), seconds)
            running.query.processAllAvailable()
            found[who] = np.quantile(running.commits().latencies(running.files, names), [0.5, 0.99])
        finally:
            running.stop()
    rates = f"{0.7 * bench.held['ours']:,.0f} messages a second, the peer {0.7 * bench.held['peer']:,.0f}"
    for which, ours, theirs in zip(("p50", "p99"), found["ours"], found["peer"], strict=True):
        work = f"{which}, ten files a second, {rates}"
        yield Row(LATENCY, work, f"the same with Shapely ({bench.best})", ours, theirs, theirs / ours)


def changes(bench: Bench) -> Iterator[Row]:
    """What a change of version costs: files come one by one, some after a file of changes."""
    rng, first = np.random.default_rng(bench.report.seed), len(bench.polygons.wkb)
    running = bench.warm("ours")
    try:
        plain = float(np.median([one_file(running) for _ in range(10)]))
        inside = float(np.median([told.seconds for told in running.told[-10:]]))
        few = []
        for k in range(5):
            text = stream_work.change_lines(bench.polygons, first + 100 * k, 100, rng)
            stream_work.put(running.place / "changes", f"few{k}.ndjson", text)
            few.append(one_file(running))
        yield Row(CHANGES, f"{bench.name}: a batch of one file", "", plain, None, plain, "s")
        cost = float(np.median(few)) - plain
        yield Row(CHANGES, "100 changes: what their batch takes more", "", cost, None, cost, "s", at_most=2)
        text = stream_work.change_lines(bench.polygons, first + 500, 700, rng)
        for part in range(2):  # fewer than are prepared in the background, and then enough for a compaction
            lines = text.splitlines(keepends=True)[350 * part : 350 * part + 350]
            stream_work.put(running.place / "changes", f"more{part}.ndjson", "".join(lines))
            one_file(running)
        yield from meanwhile(running, "a compaction of 1,200 changes", inside, lambda told: told.compactions > 0)
        version = running.told[-1].version
        count = 1_000 if bench.report.quick else 10_000
        text = stream_work.change_lines(bench.polygons, first + 1200, count, rng)
        stream_work.put(running.place / "changes", "many.ndjson", text)
        yield from meanwhile(running, f"{count:,} changes", inside, lambda told: told.version > version)
    finally:
        running.stop()


def one_file(running: Running) -> float:
    """Seconds from the appearance of one file to the commit of its batch."""
    name = running.files.written(20)
    running.files.show(name)
    running.query.processAllAvailable()
    return float(running.commits().latencies(running.files, [name])[0])


def meanwhile(running: Running, what: str, plain: float, is_done: Callable[[StreamProgress], bool]) -> Iterator[Row]:
    """The worst batch until something is done in the background and three batches more, and how long it took."""
    feeder = Feeder(running.files, 20, 0.5)
    begin = len(running.told)
    for _ in range(1200):
        if any(is_done(told) for told in running.told[begin:]) or running.query.awaitTermination(0.2):
            break
    names = feeder.stop()
    running.query.processAllAvailable()
    names += [running.files.written(20) for _ in range(3)]
    for name in names[-3:]:
        running.files.show(name)
        running.query.processAllAvailable()
    commits = running.commits()
    if not any(is_done(told) for told in running.told[begin:]):
        raise SystemExit(f"{what}: not done in time")
    number = next(told.batch for told in running.told[begin:] if is_done(told))
    taken = commits.times[number] - running.files.appeared[names[0]]
    # A file waits for the batch before its own, too: batches are compared by their own time.
    worst = max(told.seconds for told in running.told[begin:]) - plain
    yield Row(CHANGES, f"{what}: what the slowest batch takes more", "", worst, None, worst, "s", at_most=2)
    yield Row(CHANGES, f"{what}: from the first file to the batch that has what was made", "", taken, None, taken, "s")


def memory(bench: Bench) -> Iterator[Row]:
    """What the table takes, and the processes while a stream runs."""
    running = bench.warm("ours")
    try:
        running.files.feed(1_000, 3)
        running.query.processAllAvailable()
        yield Row(MEMORY, f"{bench.name}: the table", "", None, None, bench.artifact.bytes / 2**20, "MiB")
        for process, (peak, _, private) in sorted(spark_work.memory_of_workers().items()):
            kind = {"worker": "a Python worker", "JVM": "the JVM (driver and executor)"}.get(process.split()[0])
            if kind is not None and peak >= 100 << 20:  # the daemon that starts workers is small
                yield Row(MEMORY, f"memory of {kind}, peak", "", None, None, peak / 2**20, "MiB")
                yield Row(MEMORY, f"memory of {kind}, its own now", "", None, None, private / 2**20, "MiB")
    finally:
        running.stop()


# Memory is measured first, before anyone else's trees lie in the workers.
SECTIONS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "memory": memory, "changes": changes, "rate": rate, "latency": latency,
}  # fmt: skip


def main() -> None:
    """Measure, print, save."""
    arguments, chosen = parsed(parser_of(__doc__, SECTIONS), SECTIONS, "stream")
    report = Report(arguments.seed, arguments.quick)
    directory = spark_work.work_directory()
    spark = spark_work.session(directory)
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1000000")  # the logs tell when batches were committed
    try:
        with shown_at_least(report):
            bench = Bench(spark, directory, report)
            for name, run in SECTIONS.items():
                if name in chosen:
                    say(name)
                    report.rows.extend(run(bench))
    finally:
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)
    finish(report, "stream", arguments.write, chosen == set(SECTIONS))


if __name__ == "__main__":
    main()
