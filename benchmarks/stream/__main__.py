"""Streams of files against subscriptions that change: rates, latencies, and what a change of version costs.

`python -m benchmarks.stream` runs everything (about ten minutes), `--quick` a small version (two); `--write` puts
the tables into benchmarks/results. Starting the session and the first batches are not part of any number.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.command import run_sections
from benchmarks.polygons import PolygonSet
from benchmarks.report import Report, Row
from benchmarks.spark import jobs
from benchmarks.spark.memory import memory_rows
from benchmarks.stream import feeds
from benchmarks.stream.feeds import Files
from benchmarks.timing import repeated, say
from contrada import pipeline
from contrada.pipeline.stream.progress import StreamProgress

RATE, LATENCY, CHANGES, MEMORY = (
    "Streams: the highest rate", "Streams: from the file to the commit", "Streams: a change of version",
    "Streams: memory",
)  # fmt: skip
SHARES = (0.95, 0.85, 0.75, 0.65, 0.5)  # of the rate of a stream that never waits: which can be held?


class Running(NamedTuple):
    """A stream that runs, Spark's handle on it, and where its files are."""

    query: Any
    files: Files
    place: Path
    told: list[StreamProgress]  # of ours

    def commits(self) -> tuple[dict[int, float], dict[str, int]]:
        """Return when batches were committed until now, and the batch of each file."""
        return feeds.read_commits(self.place / "checkpoint")

    def feed(self, rate: float, seconds: float) -> npt.NDArray[np.float64]:
        """Return the latency of each file that appears at a rate for so long."""
        return self.latencies(self.files.feed(rate, seconds))

    def one_file(self) -> float:
        """Return the latency of one file."""
        return float(self.latencies([self.files.put(20)])[0])

    def latencies(self, names: list[str]) -> npt.NDArray[np.float64]:
        """Return seconds from the appearance of each file to the commit of its batch, when all are committed."""
        self.query.processAllAvailable()
        times, batches = self.commits()
        return np.array([times[batches[name]] - self.files.appeared[name] for name in names])


@dataclass
class Bench(jobs.Bench):
    """A session, where its files are, the report, and what sections share."""

    held: dict[str, float] = field(default_factory=dict)  # the highest rates

    @cached_property
    def polygons(self) -> PolygonSet:
        """Return what subscriptions ask for."""
        return feeds.subscriptions(self.report, 2_000 if self.report.quick else 100_000)

    @cached_property
    def messages(self) -> Any:
        """Return messages, which come again after a while with other ids."""
        return jobs.messages(self.polygons, 1_000 if self.report.quick else 50_000, self.report.seed)

    @cached_property
    def compiled(self) -> Any:
        """Return the subscriptions as a table where workers find it."""
        return self.artifact(jobs.packed_table(self.polygons))

    @cached_property
    def best(self) -> str:
        """Return the quickest plan of a user of Shapely for a few messages."""
        few = self.spark.createDataFrame(self.messages.slice(0, 200).to_pandas(), feeds.SCHEMA).persist()
        return jobs.quickest_plan(self.spark, self.polygons, few)

    @cached_property
    def matching(self) -> Any:
        """Return that plan, as mapInArrow takes it."""
        return jobs.shapely_matching(self.spark, self.polygons, self.best)

    @property
    def name(self) -> str:
        """Return what is measured, for the tables."""
        return f"{len(self.polygons.wkb):,} subscriptions ({self.polygons.name}), local[2]"

    def place(self) -> Path:
        """Return a new directory."""
        return Path(tempfile.mkdtemp(dir=self.directory))

    def start(self, who: str, files: Files, place: Path, most: int | None = None, once: bool = False) -> Running:
        """Begin a stream over files: ours, or that of a user of Shapely."""
        frame = files.stream(self.spark, most)
        if who == "peer":
            return Running(feeds.shapely_stream(self.matching, frame, place, once), files, place, [])
        told: list[StreamProgress] = []
        stream = pipeline.match_stream(
            frame, self.compiled, place / "changes", sink=place / "output", checkpoint=place / "checkpoint",
            trigger={"availableNow": True} if once else None, progress=told.append,
        )  # fmt: skip
        return Running(stream.query, files, place, told)

    @contextmanager
    def warm(self, who: str) -> Iterator[Running]:
        """Yield a stream that has had its first batches; it ends with the block."""
        place = self.place()
        running = self.start(who, Files(place, self.messages), place)
        try:
            for _ in range(4):
                running.one_file()
            yield running
        finally:
            running.query.stop()


def saturated(bench: Bench, who: str, count: int, files: int) -> tuple[float, Path]:
    """Messages a second of a stream that never waits for files, a fifth of them in a batch, without the first batch."""
    place = bench.place()
    made = Files(place, bench.messages)
    for _ in range(files):
        made.put(count // files)
    running = bench.start(who, made, place, max(1, files // 5), once=True)
    running.query.awaitTermination()
    times, _ = running.commits()
    first, last = min(times), max(times)
    each = count / len(times)
    return (last - first) * each / (times[last] - times[first]), place


def is_held(bench: Bench, who: str, rate: float, seconds: float) -> bool:
    """Return True if files that come at this rate wait no longer at the end than they did in the middle."""
    with bench.warm(who) as running:
        latencies = running.feed(rate, seconds)
    third = max(1, len(latencies) // 3)
    middle, last = np.median(latencies[third:-third]), np.median(latencies[-third:])
    say(f"{who}: {rate:,.0f} messages a second, {middle:.2f} s in the middle, {last:.2f} s at the end")
    return bool(last <= 1.5 * middle)


def highest(bench: Bench, who: str) -> float:
    """Return the highest of some rates that is held; it is measured once."""
    if who not in bench.held:
        count = {"ours": 2_000, "peer": 500} if bench.report.quick else {"ours": 200_000, "peer": 10_000}
        most, _ = saturated(bench, who, count[who], 20)
        say(f"{who}: {most:,.0f} messages a second without waiting")
        seconds = 3 if bench.report.quick else 20
        rates = (share * most for share in SHARES)
        bench.held[who] = next((rate for rate in rates if is_held(bench, who, rate, seconds)), SHARES[-1] * most)
    return bench.held[who]


def rate(bench: Bench) -> Iterator[Row]:
    """Measure the highest rate held, of both, and whether answers are the same."""
    count = 500 if bench.report.quick else 5_000
    outputs = []
    for who in ("ours", "peer"):
        _, place = saturated(bench, who, count, 20)
        rows = bench.spark.read.parquet(str(place / "output" / "matches"))
        outputs.append(rows.select("message_id", "key"))
    counts = {"compared": count * len(bench.polygons.wkb), "different": jobs.differences(*outputs)}
    ours, theirs = highest(bench, "ours"), highest(bench, "peer")
    peer = f"foreachBatch, mapInArrow, Shapely ({bench.best})"
    work = f"{bench.name}: time per message at the highest rate held"
    yield Row.versus(RATE, work, peer, 1 / ours, 1 / theirs, **counts)
    yield Row.alone(RATE, "the highest rate held, ours", ours, "messages a second")
    yield Row.alone(RATE, "the highest rate held, the peer's", theirs, "messages a second")


def latency(bench: Bench) -> Iterator[Row]:
    """Yield seconds from a file's appearance to the commit of its batch, at 70 % of the highest rate of each."""
    seconds = 5 if bench.report.quick else 60
    found = {}
    for who in ("ours", "peer"):
        rate = 0.7 * highest(bench, who)
        with bench.warm(who) as running:
            found[who] = np.quantile(running.feed(rate, seconds), [0.5, 0.99])
    rates = f"{0.7 * bench.held['ours']:,.0f} messages a second, the peer {0.7 * bench.held['peer']:,.0f}"
    for which, ours, theirs in zip(("p50", "p99"), found["ours"], found["peer"], strict=True):
        work = f"{which}, ten files a second, {rates}"
        yield Row.versus(LATENCY, work, f"the same with Shapely ({bench.best})", ours, theirs)


def changes(bench: Bench) -> Iterator[Row]:
    """Measure what a change of version costs: files come one by one, some after a file of changes."""
    rng, first = np.random.default_rng(bench.report.seed), len(bench.polygons.wkb)
    with bench.warm("ours") as running:
        plain = float(np.median([running.one_file() for _ in range(10)]))
        inside = float(np.median([told.seconds for told in running.told[-10:]]))
        put_changes = partial(feeds.put_changes, running.place / "changes", bench.polygons, rng)
        few = []
        for k in range(5):
            put_changes(first + 100 * k, 100)
            few.append(running.one_file())
        yield Row.lasting(CHANGES, f"{bench.name}: a batch of one file", plain)
        cost = float(np.median(few[1:])) - plain  # the first one warms up
        yield Row.lasting(CHANGES, "100 changes: what their batch takes more", cost, at_most=2)
        for part in range(2):  # fewer than are prepared in the background, and then enough for a compaction
            put_changes(first + 500 + 350 * part, 350)
            running.one_file()
        yield from meanwhile(running, "a compaction of 1,200 changes", inside, lambda told: told.compactions > 0)
        version = running.told[-1].version
        count = 1_000 if bench.report.quick else 10_000
        put_changes(first + 1200, count)
        yield from meanwhile(running, f"{count:,} changes", inside, lambda told: told.version > version)


def meanwhile(running: Running, what: str, plain: float, is_done: Callable[[StreamProgress], bool]) -> Iterator[Row]:
    """Yield the worst batch until something is done in the background and three batches more, and how long it took."""
    names: list[str] = []
    begin = len(running.told)
    with repeated(lambda: names.append(running.files.put(20)), 0.5):
        for _ in range(1200):
            if any(is_done(told) for told in running.told[begin:]) or running.query.awaitTermination(0.2):
                break
    running.query.processAllAvailable()
    for _ in range(3):
        names.append(running.files.put(20))
        running.query.processAllAvailable()
    times, _ = running.commits()
    if not any(is_done(told) for told in running.told[begin:]):
        raise SystemExit(f"{what}: not done in time")
    number = next(told.batch for told in running.told[begin:] if is_done(told))
    taken = times[number] - running.files.appeared[names[0]]
    # A file waits for the batch before its own, too: batches are compared by their own time.
    worst = max(told.seconds for told in running.told[begin:]) - plain
    yield Row.lasting(CHANGES, f"{what}: what the slowest batch takes more", worst, at_most=2)
    yield Row.lasting(CHANGES, f"{what}: from the first file to the batch that has what was made", taken)


def memory(bench: Bench) -> Iterator[Row]:
    """Measure what the table takes, and the processes while a stream runs."""
    with bench.warm("ours") as running:
        running.feed(1_000, 3)
        yield Row.alone(MEMORY, f"{bench.name}: the table", bench.compiled.bytes / 2**20, "MiB")
        yield from memory_rows(MEMORY, ("peak", "its own now"))


@contextmanager
def opened(report: Report) -> Iterator[Bench]:
    """Yield a session for all sections."""
    with jobs.session() as spark:
        spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1000000")  # the logs tell when batches were committed
        yield Bench(spark, jobs.work_directory(), report)


# Memory is measured first, before anyone else's trees lie in the workers.
SECTIONS = {"memory": memory, "changes": changes, "rate": rate, "latency": latency}

if __name__ == "__main__":
    run_sections("stream", __doc__, SECTIONS, opened=opened)
