"""Sedona's side of benchmarks.sedona, in an environment of its own: orders in, answers out, a line of JSON each.

    python -m benchmarks.sedona.server JARS WORK

JARS is the directory of Sedona's jars. An order names one of the functions of `Side` and its arguments.
"""

import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr
from sedona.spark import SedonaContext

from benchmarks.spark.settings import DIGEST, embedded

# What a plan is made of; what it does not name is as Sedona has it.
SETTINGS = ("gridtype", "numpartition", "indexbuildside", "spatitionside")


def session(jars: Path, work: Path) -> SparkSession:
    """Return embedded Spark as benchmarks.spark starts it, with Sedona."""
    found = {"spark.jars": ",".join(str(jar) for jar in sorted(jars.glob("*.jar")))}
    return SedonaContext.create(embedded(SedonaContext.builder(), work, **found).getOrCreate())


class Side:
    """The session and the two tables that are joined: `a` holds messages, `b` subscriptions."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.kept: list[DataFrame] = []

    def load(self, messages: str, subscriptions: str, is_cached: bool) -> None:
        """Name the tables; cached ones are parsed here and kept, others are read and parsed by every join."""
        for frame in self.kept:
            frame.unpersist(blocking=True)
        self.kept = []
        asked = self.spark.read.parquet(messages)
        given = self.spark.read.parquet(subscriptions)
        a = asked.selectExpr("message_id", "ST_GeomFromWKB(area) AS a")
        b = given.selectExpr("key", "ST_GeomFromWKB(geometry) AS b")
        if is_cached:
            self.kept = [a.repartition(8).persist(), b.repartition(8).persist()]
            a, b = self.kept
            a.count(), b.count()
        a.createOrReplaceTempView("a")
        b.createOrReplaceTempView("b")

    def joined(self, condition: str, plan: dict[str, str]) -> DataFrame:
        """Return the pairs for which a condition on `a` and `b` holds."""
        for name in SETTINGS:
            if name in plan:
                self.spark.conf.set(f"sedona.join.{name}", plan[name])
            else:
                self.spark.conf.unset(f"sedona.join.{name}")
        for owner in ("spark.sql", "sedona.join"):  # who is broadcast is said by the plan, not by sizes
            self.spark.conf.set(f"{owner}.autoBroadcastJoinThreshold", "-1")
        a, b = self.spark.table("a"), self.spark.table("b")
        which = plan.get("broadcast")
        a, b = (broadcast(a) if which == "messages" else a), (broadcast(b) if which == "subscriptions" else b)
        return a.join(b, expr(condition)).select("message_id", "key")

    def explain(self, condition: str, plan: dict[str, str]) -> str:
        """Return Spark's plan of a join, as text."""
        return str(self.joined(condition, plan)._jdf.queryExecution().executedPlan().toString())

    def digest(self, condition: str, plan: dict[str, str], limit: float | None = None) -> list[int]:
        """Return how many pairs there are, and a number that differs when one does; after `limit` seconds, an error."""
        with self.stopped_after(limit):
            row = self.joined(condition, plan).selectExpr(*DIGEST).collect()[0]
        return [row.pairs, row.digest or 0]

    @contextmanager
    def stopped_after(self, limit: float | None) -> Iterator[None]:
        """Cancel the jobs of the block, which then raises, as soon as it has taken `limit` seconds."""
        has_ended = threading.Event()

        def watch() -> None:
            wait = limit
            while not has_ended.wait(wait):  # again and again: a join has several jobs
                self.spark.sparkContext.cancelAllJobs()
                wait = 0.2

        self.spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "true")
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            has_ended.set()
            watcher.join()

    def write(self, condition: str, plan: dict[str, str], path: str) -> None:
        """Write the pairs as Parquet."""
        self.joined(condition, plan).write.mode("overwrite").parquet(path)

    def versions(self) -> dict[str, str]:
        """Return the versions of what runs here."""
        from importlib.metadata import version

        return {"apache-sedona": version("apache-sedona"), "pyspark": self.spark.version}


def main() -> None:
    """Do what the lines of standard input say until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no answer
    jars, work = (Path(argument) for argument in sys.argv[1:])
    side = Side(session(jars, work))
    print(json.dumps({"answer": side.versions()}), file=answers, flush=True)
    try:
        for line in sys.stdin:
            order = json.loads(line)
            try:
                answer = {"answer": getattr(side, order.pop("do"))(**order)}
            except Exception as error:
                traceback.print_exc()
                said = [line.strip() for line in str(error).splitlines() if line.strip()]
                causes = [line for line in said if line.startswith("Caused by")]
                answer = {"error": f"{type(error).__name__}: {' | '.join([*said[:2], *causes])[:800]}"}
            print(json.dumps(answer), file=answers, flush=True)
    finally:
        side.spark.stop()


if __name__ == "__main__":
    main()
