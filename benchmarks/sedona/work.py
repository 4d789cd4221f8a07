"""What benchmarks.sedona works on: files that both sides read, our side of the join, and whose pairs are right."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyspark.sql import DataFrame

import contrada as ct
from benchmarks.polygons import PolygonSet
from benchmarks.report import duration
from benchmarks.sedona.plans import Spelled
from benchmarks.sedona.setup import Peer
from benchmarks.spark import jobs
from benchmarks.spark.settings import DIGEST
from benchmarks.timing import say
from contrada import pipeline
from oracles.relations import judge

Pairs = npt.NDArray[np.int64]  # message_id << 32 | key, sorted
PLANNED = "Sedona: what it plans for each relation"
HEADINGS = (
    "relation", "Sedona's SQL", "plan", "plan with broadcast(messages)", "looks at", "ours", "Sedona", "pairs",
    "answers that differ",
)  # fmt: skip
PARTS = 8


def cells(one: Spelled) -> list[str]:
    """Return a relation as texts, in the order of HEADINGS."""
    differ = f"{one.different:,}" + (f" (ours wrong: {one.wrong})" if one.different else "")
    looked = "every pair" if one.is_nested else "what an index finds"
    times = [duration(one.ours), duration(one.theirs)]
    return [one.relation, f"`{one.condition}`", one.plain, one.hinted, looked, *times, f"{one.pairs:,}", differ]


class Files(NamedTuple):
    """A set and messages for it, as both sides read them."""

    polygons: PolygonSet
    asked: pa.Table
    messages: Path
    subscriptions: Path

    @property
    def compared(self) -> int:
        """Return how many answers there are, of a message and a polygon each."""
        return self.asked.num_rows * len(self.polygons.wkb)


@dataclass
class Bench(jobs.Bench):
    """Our session and their process."""

    peer: Peer

    def files(self, name: str, polygons: PolygonSet, asked: pa.Table) -> Files:
        """Return messages and polygons as Parquet, in several files each."""
        paths = []
        for what, table in (("messages", asked), ("subscriptions", jobs.subscription_rows(polygons))):
            paths.append(self.directory / f"{name}-{what}")
            jobs.stored(self.spark, table, paths[-1], PARTS)
        return Files(polygons, asked, *paths)

    def read(self, path: Path) -> DataFrame:
        """Return what a directory holds, as our session reads it."""
        return self.spark.read.parquet(str(path))

    def compiled(self, files: Files, template: str, plan: Any = "broadcast") -> Any:
        """Return subscriptions compiled for a plan."""
        options = {"partitions": PARTS} if plan == "partitioned" else {}
        rows = self.read(files.subscriptions)
        return pipeline.compile(rows, self.artifacts, template=template, plan=plan, **options)

    @property
    def artifacts(self) -> str:
        """Where compiled tables go."""
        return str(self.directory / "artifacts")

    def new_rows(self, files: Files, turn: int) -> DataFrame:
        """Return subscriptions that no turn had."""
        return jobs.with_a_new_row(self.spark, files.subscriptions, turn)


def digest(frame: DataFrame, subscriptions: Any, **options: Any) -> list[int]:
    """Return how many pairs we find, and a number that differs when one does; nothing is kept for the next time."""
    found = pipeline.match(frame, subscriptions, **options)
    say(f"plan {found.plan}: {found.why}")
    row = found.matches.selectExpr(*DIGEST).collect()[0]
    found.unpersist()
    return [row.pairs, row.digest or 0]


def write(frame: DataFrame, compiled: Any, path: Path) -> None:
    """Write our pairs as Parquet."""
    found = pipeline.match(frame, compiled)
    found.matches.select("message_id", "key").write.mode("overwrite").parquet(str(path))
    found.unpersist()


def pairs_of(path: Path) -> Pairs:
    """Return the pairs that one side wrote."""
    table = pq.read_table(path)
    return np.sort(np.asarray(table["message_id"]) << 32 | np.asarray(table["key"]))


def settled(files: Files, ours: Pairs, theirs: Pairs, relations: ct.RelationSet) -> tuple[int, int]:
    """Return on how many pairs the two sides differ, and on how many of these rational arithmetic finds ours wrong.

    A pair that one side names twice is an error: no relation is asked for by then.
    """
    for who, pairs in (("ours", ours), ("Sedona", theirs)):
        if len(np.unique(pairs)) != len(pairs):
            raise RuntimeError(f"{who}: {len(pairs) - len(np.unique(pairs)):,} pairs come more than once")
    areas = files.asked["area"]
    differ, wrong = np.setxor1d(ours, theirs, assume_unique=True), 0
    for pair in differ.tolist():
        message, key = pair >> 32, pair & 0xFFFFFFFF
        code = judge(shapely.from_wkb(areas[message].as_py()), files.polygons.shapes[key])
        wrong += (ct.Relation(code) in relations) != (pair in ours)
    return len(differ), wrong
