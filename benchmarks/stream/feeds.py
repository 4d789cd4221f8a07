"""What benchmarks.stream works on: subscriptions, files that appear at a rate, and when batches were committed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyspark.sql import DataFrame, SparkSession

from benchmarks.polygons import PolygonSet, read_set, with_operators
from benchmarks.report import Report, SkippedError
from benchmarks.spark import jobs
from contrada.demo.district import make_district

SCHEMA = "message_id long, area binary"
FILES_PER_SECOND = 10


def subscriptions(report: Report, count: int) -> PolygonSet:
    """Return so many buildings of Los Angeles or, without the data, of a made-up district, with seven relations."""
    try:
        found = read_set("LA", report.seed)
    except SkippedError as reason:
        report.skipped.append(str(reason))
        made = make_district(report.seed, count / 30_000, readings=0)
        good = np.setdiff1d(np.arange(len(made.buildings)), made.bad["buildings"])
        wkb = made.buildings.column("geometry").combine_chunks().take(pa.array(good)).cast(pa.binary())
        found = with_operators("a made-up district", wkb, np.random.default_rng(report.seed))
    rows = np.sort(np.random.default_rng(report.seed).choice(len(found.wkb), min(count, len(found.wkb)), replace=False))
    return jobs.seven(found._replace(wkb=found.wkb.take(pa.array(rows)), shapes=found.shapes[rows]), report.seed)


class Files:
    """Messages in files of a directory that a stream reads; each gets its name when it is whole."""

    def __init__(self, directory: Path, messages: pa.Table) -> None:
        self.directory, self._hidden, self._messages = directory / "messages", directory / "hidden", messages
        self.directory.mkdir(parents=True)
        self._hidden.mkdir()
        self._next_file = self._next_id = 0
        self.appeared: dict[str, float] = {}  # by name, as the clock has it

    def written(self, count: int) -> str:
        """Write a file of so many messages, and keep it hidden. Ids go on, regions come again after a while."""
        name = f"{self._next_file:07}.parquet"
        ids = np.arange(self._next_id, self._next_id + count)
        areas = self._messages.column("area").take(pa.array(ids % len(self._messages)))
        pq.write_table(pa.table({"message_id": ids, "area": areas}), self._hidden / name)
        self._next_file, self._next_id = self._next_file + 1, self._next_id + count
        return name

    def show(self, name: str) -> None:
        """Let a file appear."""
        self.appeared[name] = time.time()
        os.rename(self._hidden / name, self.directory / name)

    def put(self, count: int) -> str:
        """Let a file of so many messages appear; return its name."""
        self.show(name := self.written(count))
        return name

    def feed(self, rate: float, seconds: float) -> list[str]:
        """Let messages appear at a rate for so long, ten files a second; returns the names."""
        names = [self.written(max(1, round(rate / FILES_PER_SECOND))) for _ in range(int(seconds * FILES_PER_SECOND))]
        start = time.monotonic()
        for k, name in enumerate(names):
            time.sleep(max(0.0, start + k / FILES_PER_SECOND - time.monotonic()))
            self.show(name)
        return names

    def stream(self, spark: SparkSession, most: int | None = None) -> DataFrame:
        """Return the files as Spark reads them, in batches of so many at most."""
        reader = spark.readStream.schema(SCHEMA)
        return (reader if most is None else reader.option("maxFilesPerTrigger", most)).parquet(str(self.directory))


def read_commits(checkpoint: Path) -> tuple[dict[int, float], dict[str, int]]:
    """Return when batches were committed, and the batch of each file, from Spark's logs; nothing is removed of them."""
    logs = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    batches = {}
    for path in (checkpoint / "sources" / "0").iterdir():
        if path.name.partition(".")[0].isdigit():
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                batches[os.path.basename(entry["path"])] = int(entry["batchId"])
    return {int(path.name): path.stat().st_mtime for path in logs}, batches


def shapely_stream(
    matching: Callable[[Iterator[Any]], Iterator[Any]], messages: DataFrame, place: Path, once: bool
) -> Any:
    """What users of Shapely write: every batch through mapInArrow into a directory of its own, which it overwrites."""

    def write(batch: DataFrame, number: int) -> None:
        found = batch.mapInArrow(matching, jobs.MATCHED)
        found.write.mode("overwrite").parquet(str(place / "output" / "matches" / f"batch={number}"))

    writer = messages.writeStream.foreachBatch(write).option("checkpointLocation", str(place / "checkpoint"))
    return (writer.trigger(availableNow=True) if once else writer).start()


def put_changes(directory: Path, polygons: PolygonSet, rng: np.random.Generator, first: int, count: int) -> None:
    """Let a file appear that subscribes with keys from `first` on, to overlaps with polygons of the set, moved."""
    shapes = polygons.shapes[rng.integers(0, len(polygons.shapes), count)]
    moved = shapely.transform(shapes, lambda xy: xy + rng.normal(0, 1e-4 * np.ptp(xy), xy.shape[1]))
    texts = shapely.to_wkt(moved, rounding_precision=-1)
    records = ({"key": first + k, "filter": f"overlaps(area, {text})"} for k, text in enumerate(texts))
    directory.mkdir(exist_ok=True)
    hidden = directory / f".{first:09}.ndjson"
    hidden.write_text("".join(json.dumps(record) + "\n" for record in records))
    hidden.rename(directory / hidden.name[1:])
