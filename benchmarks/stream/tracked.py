"""A stream of tracked objects: fixes per second and bytes of state, beside an operator with a state per object.

`python -m benchmarks.stream.tracked` follows a million objects (some ten minutes), `--quick` a few; `--write` puts the
tables into benchmarks/results. The peer is what a user of Shapely writes: `transformWithStateInPandas` with a value per
object, the keys of the fences that it is in, and a tree of the fences. It is slower, so it follows fewer objects; both
have the same fences, and rates are those of batches in which all objects are known.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

import contrada as ct
from benchmarks.command import run_sections
from benchmarks.report import Report, Row
from benchmarks.spark import jobs
from benchmarks.stream.feeds import read_commits
from benchmarks.timing import say
from contrada import pipeline
from contrada.pipeline.stream.tracking import STATE_STORE

SECTION, STATE = "Tracked objects in a stream: fixes per second", "Tracked objects in a stream: state in the checkpoint"
FIELD, STEP = 1000.0, 0.5
TEMPLATE = "S_INTERSECTS(place, $fence)"
SCHEMA = "message_id long, object long, at timestamp, place binary"
TOLD = "message_id long, event string, key long"
BATCHES = 3  # after the first


class Sizes(NamedTuple):
    """How much is followed."""

    fences: int
    ours: int  # objects
    peer: int


@dataclass
class Bench(jobs.Bench):
    """A session, where its files are, the report, and the fences."""

    @property
    def sizes(self) -> Sizes:
        """Return how much is followed."""
        return Sizes(200, 2_000, 500) if self.report.quick else Sizes(10_000, 1_000_000, 20_000)

    def fences(self) -> npt.NDArray[Any]:
        """Return round fences; a point is in one of them on average."""
        rng, count = np.random.default_rng(self.report.seed), self.sizes.fences
        centres = rng.uniform(0, FIELD, (count, 2))
        return shapely.buffer(shapely.points(centres), FIELD / np.sqrt(np.pi * count), quad_segs=5)

    def files(self, objects: int, batches: int) -> Path:
        """Return a directory with the fixes of all objects, and then with moves, all objects in each file."""
        rng = np.random.default_rng(self.report.seed + objects)
        folder = Path(tempfile.mkdtemp(dir=self.directory))
        places = rng.uniform(0, FIELD, (objects, 2))
        for number in range(batches):
            ids = rng.permutation(objects)
            table = pa.table(
                {
                    "message_id": np.arange(objects) + number * objects,
                    "object": ids,
                    "at": pa.array(np.full(objects, 60_000_000 * (number + 1))).cast(pa.timestamp("us", "UTC")),
                    "place": pa.array(ct.PointArray(places[ids]).to_wkb()).cast(pa.binary()),
                }
            )
            pq.write_table(table, folder / f"{number:04}.parquet", row_group_size=max(1, objects // 8))
            places += rng.normal(0, STEP, places.shape)
        return folder


class PerObject(StatefulProcessor):
    """The peer: an object's state is the keys of the fences that it is in.

    Workers read the fences from a file: Spark broadcasts a function of more than a megabyte, but not to these workers.
    """

    def __init__(self, fences: Path) -> None:
        self._fences, self._tree = fences, None

    def init(self, handle: Any) -> None:
        self._inside = handle.getValueState("inside", "keys array<long>")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        if self._tree is None:
            self._tree = shapely.STRtree(shapely.from_wkb(pq.read_table(self._fences)["fence"].to_numpy()))
        found = self._inside.get()
        inside = set() if found is None else set(found[0])
        told = []
        frame = pd.concat(list(rows)).sort_values("at")
        for message, place in zip(frame["message_id"], frame["place"], strict=True):
            now = set(self._tree.query(shapely.from_wkb(bytes(place)), predicate="intersects").tolist())
            told += [(message, "enter", fence) for fence in now - inside]
            told += [(message, "exit", fence) for fence in inside - now]
            inside = now
        self._inside.update((sorted(inside),))
        yield pd.DataFrame(told, columns=["message_id", "event", "key"])

    def close(self) -> None:
        """Close nothing."""


def started(bench: Bench, who: str, folder: Path, place: Path) -> Any:
    """Start a stream over files, one in a batch; return Spark's handle on it."""
    reader = bench.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    frame = reader.parquet(str(folder))
    trigger: dict[str, Any] = {"availableNow": True}
    if who == "ours":
        fences = pa.array(shapely.to_wkb(bench.fences()).tolist(), pa.binary())
        table = ct.ForwardingTable()
        table.subscribe_many(pa.table({"key": np.arange(len(fences)), "fence": fences}), TEMPLATE)
        return pipeline.track_stream(
            frame, table, on="enter, exit", track="object", time="at", buckets=64, sink=place / "output",
            checkpoint=place / "checkpoint", trigger=trigger,
        ).query  # fmt: skip
    file = place / "fences.parquet"
    pq.write_table(pa.table({"fence": shapely.to_wkb(bench.fences())}), file)
    peer = PerObject(file)
    timed = frame.withWatermark("at", "0 seconds")
    told = timed.groupBy("object").transformWithStateInPandas(peer, TOLD, "Append", "None")

    def write(batch: Any, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(place / "output" / "events" / f"batch={number}"))

    writer = told.writeStream.foreachBatch(write).option("checkpointLocation", str(place / "checkpoint"))
    return writer.trigger(**trigger).start()


def followed(bench: Bench, who: str, folder: Path) -> Path:
    """Follow all objects of a directory; return where the stream was."""
    place = Path(tempfile.mkdtemp(dir=bench.directory))
    started(bench, who, folder, place).awaitTermination()
    return place


def rate_of(place: Path, objects: int) -> float:
    """Return fixes per second of the batches after the first."""
    times, files = read_commits(place / "checkpoint")
    numbers = sorted(set(files.values()))
    return objects * (len(numbers) - 1) / (times[numbers[-1]] - times[numbers[0]])


def events_in(bench: Bench, place: Path) -> set[tuple[Any, ...]]:
    """Return what a stream told."""
    rows = bench.spark.read.parquet(str(place / "output" / "events")).select("message_id", "event", "key").collect()
    return {tuple(row) for row in rows}


def state_bytes(place: Path) -> int:
    """Return the bytes of all files of the state store in the checkpoint, snapshots and changes."""
    return sum(path.stat().st_size for path in (place / "checkpoint" / "state").rglob("*") if path.is_file())


def tracked(bench: Bench) -> Iterator[Row]:
    """Measure both; their events must be equal where both follow the same objects."""
    sizes = bench.sizes
    same = bench.files(300, 4)
    ours, theirs = (events_in(bench, followed(bench, who, same)) for who in ("ours", "peer"))
    say(f"compared: {len(ours):,} events")
    found = {}
    for who, objects in (("peer", sizes.peer), ("ours", sizes.ours)):
        place = followed(bench, who, bench.files(objects, BATCHES + 1))
        found[who] = rate_of(place, objects), state_bytes(place) / objects
        say(f"{who}: {objects:,} objects, {found[who][0]:,.0f} fixes a second, {found[who][1]:,.0f} bytes an object")
    (rate, size), (other, large) = found["ours"], found["peer"]
    work = f"{sizes.ours:,} objects (the peer: {sizes.peer:,}), {sizes.fences:,} fences, local[2]: time per fix"
    counts = {"compared": len(ours | theirs), "different": len(ours ^ theirs)}
    peer = "transformWithStateInPandas, a state per object, Shapely"
    yield Row.versus(SECTION, work, peer, 1 / rate, 1 / other, 5, **counts)
    yield Row.alone(SECTION, "ours", rate, "fixes a second")
    yield Row.alone(SECTION, "the peer's", other, "fixes a second")
    yield Row.alone(STATE, "ours, an object", size, "bytes")
    yield Row.alone(STATE, "the peer's, an object", large, "bytes")


@contextmanager
def opened(report: Report) -> Iterator[Bench]:
    """Yield a session whose logs are kept."""
    with jobs.session() as spark:
        spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1000000")  # the logs tell when batches were committed
        for name, value in STATE_STORE.items():
            spark.conf.set(name, value)
        yield Bench(spark, jobs.work_directory(), report)


if __name__ == "__main__":
    run_sections("tracked-stream", __doc__, {"tracked": tracked}, opened=opened)
