"""What benchmarks/sedona.py works on: files that both sides read, our side of the join, and whose pairs are right."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
import spark_work
from match_sets import PolygonSet, read_set
from report import Report, Shown, duration
from sedona_plans import Spelled
from sedona_setup import Peer

import contrada as ct
from contrada import pipeline
from oracles.relations import judge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

Pairs = npt.NDArray[np.int64]  # message_id << 32 | key, sorted
PLANNED = "Sedona: what it plans for each relation"
HEADINGS = (
    "relation", "Sedona's SQL", "plan", "plan with broadcast(messages)", "looks at", "ours", "Sedona", "pairs",
    "answers that differ",
)  # fmt: skip
PARTS = 8


@dataclass
class SedonaReport(Report):
    """A report with what Sedona plans for each relation."""

    spelled: list[Spelled] = field(default_factory=list)
    peer: dict[str, str] = field(default_factory=dict)  # its versions

    def as_json(self) -> dict[str, Any]:
        """The report with plans, and with the versions on both sides."""
        from importlib.metadata import version

        found = super().as_json()
        theirs = {"apache-sedona": self.peer["apache-sedona"], "pyspark with it": self.peer["pyspark"]}
        found["versions"] |= {"pyspark": version("pyspark"), **theirs}
        return found | {"spelled": [list(one) for one in self.spelled]}

    def merge(self, path: Path) -> None:
        """Keep the plans of a saved run, too, if this one has none."""
        import json

        super().merge(path)
        self.spelled = self.spelled or [Spelled(*one) for one in json.loads(path.read_text())["spelled"]]

    def tables(self) -> Iterator[Shown]:
        """The rows, and the plans below."""
        yield from super().tables()
        if self.spelled:
            yield Shown(PLANNED, HEADINGS, [cells(one) for one in self.spelled])


def cells(one: Spelled) -> list[str]:
    """A relation as texts, in the order of HEADINGS."""
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
        """How many answers there are, of a message and a polygon each."""
        return self.asked.num_rows * len(self.polygons.wkb)


class Bench(NamedTuple):
    """Our session, their process, where files are, and the report."""

    spark: SparkSession
    peer: Peer
    directory: Path
    report: SedonaReport

    def polygons(self, name: str) -> PolygonSet | None:
        """A real set; a part of it in a quick run."""
        found = read_set(name, self.report)
        if found is None or not self.report.quick:
            return found
        return found._replace(**{part: getattr(found, part)[:2000] for part in ("wkb", "shapes", "operators")})

    def files(self, name: str, polygons: PolygonSet, asked: pa.Table) -> Files:
        """Messages and polygons as Parquet, in several files each."""
        rows = pa.table({"key": np.arange(len(polygons.wkb)), "geometry": polygons.wkb.cast(pa.binary())})
        paths = []
        for what, table in (("messages", asked), ("subscriptions", rows)):
            paths.append(self.directory / f"{name}-{what}")
            spark_work.stored(self.spark, table, paths[-1], PARTS)
        return Files(polygons, asked, *paths)

    def read(self, path: Path) -> DataFrame:
        """What a directory holds, as our session reads it."""
        return self.spark.read.parquet(str(path))

    def compiled(self, files: Files, template: str, plan: Any = "broadcast", new: int | None = None) -> Any:
        """Subscriptions compiled for a plan; a new one has a subscription more, far from all messages.

        Workers keep tables open that they have seen: a table that is to be opened must be one that they have not.
        """
        rows = self.read(files.subscriptions)
        if new is not None:
            far = shapely.to_wkb(shapely.box(1000 + new, 1000, 1001 + new, 1001))
            rows = rows.union(self.spark.createDataFrame([(-1 - new, bytearray(far))], rows.schema))
        options = {"partitions": PARTS} if plan == "partitioned" else {}
        place = str(self.directory / "artifacts")
        return pipeline.compile(rows, place, template=template, plan=plan, **options)


def digest(frame: DataFrame, compiled: Any) -> list[int]:
    """How many pairs we find, and a number that differs when one does; nothing is kept for the next time."""
    found = pipeline.match(frame, compiled)
    made = ("count(*) AS pairs", "bit_xor(xxhash64(message_id, key)) AS digest")
    row = found.matches.selectExpr(*made).collect()[0]
    found.unpersist()
    return [row.pairs, row.digest or 0]


def write(frame: DataFrame, compiled: Any, path: Path) -> None:
    """Write our pairs as Parquet."""
    found = pipeline.match(frame, compiled)
    found.matches.select("message_id", "key").write.mode("overwrite").parquet(str(path))
    found.unpersist()


def pairs_of(path: Path) -> Pairs:
    """The pairs that one side wrote."""
    table = pq.read_table(path)
    return np.sort(np.asarray(table["message_id"]) << 32 | np.asarray(table["key"]))


def settled(files: Files, ours: Pairs, theirs: Pairs, relations: ct.RelationSet) -> tuple[int, int]:
    """On how many pairs the two sides differ, and on how many of these rational arithmetic finds ours wrong.

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
