"""Sedona's side of benchmarks/sedona.py, in an environment of its own: orders in, answers out, a line of JSON each.

python -P sedona_peer.py JARS WORK, where JARS is the directory of Sedona's jars. (-P: the folder of this file has a
sedona.py, which must not be taken for the package.) An order names one of the functions of `Side` and its arguments.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import broadcast, expr
from sedona.spark import SedonaContext

# What a plan is made of; what it does not name is as Sedona has it.
SETTINGS = ("gridtype", "numpartition", "indexbuildside", "spatitionside")
DIGEST = ("count(*) AS pairs", "bit_xor(xxhash64(message_id, key)) AS digest")


def session(jars: Path, work: Path) -> SparkSession:
    """Embedded Spark as benchmarks/spark_work.py starts it, with Sedona."""
    builder = SedonaContext.builder().master("local[2]").appName("benchmarks")
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted(jars.glob("*.jar"))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.local.dir": str(work / "local"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return SedonaContext.create(builder.getOrCreate())


class Side:
    """The session and the two tables that are joined: `a` holds messages, `b` subscriptions."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.kept: list[DataFrame] = []

    def load(self, messages: str, subscriptions: str, is_cached: bool) -> dict[str, Any]:
        """Name the tables; cached ones are parsed here and kept, others are read and parsed by every join."""
        for frame in self.kept:
            frame.unpersist(blocking=True)
        self.kept = []
        asked = self.spark.read.parquet(messages)
        given = self.spark.read.parquet(subscriptions)
        a = asked.selectExpr("message_id", "ST_GeomFromWKB(area) AS a")
        b = given.selectExpr("key", "ST_GeomFromWKB(geometry) AS b")
        start = time.perf_counter()
        if is_cached:
            self.kept = [a.repartition(8).persist(), b.repartition(8).persist()]
            a, b = self.kept
        sizes = [a.count(), b.count()] if is_cached else []
        a.createOrReplaceTempView("a")
        b.createOrReplaceTempView("b")
        return {"rows": sizes, "seconds": time.perf_counter() - start}

    def joined(self, condition: str, plan: dict[str, str]) -> DataFrame:
        """The pairs for which a condition on `a` and `b` holds."""
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
        """Spark's plan of a join, as text."""
        return str(self.joined(condition, plan)._jdf.queryExecution().executedPlan().toString())

    def digest(self, condition: str, plan: dict[str, str]) -> list[int]:
        """How many pairs there are, and a number that differs when one does."""
        row = self.joined(condition, plan).selectExpr(*DIGEST).collect()[0]
        return [row.pairs, row.digest or 0]

    def write(self, condition: str, plan: dict[str, str], path: str) -> None:
        """Write the pairs as Parquet."""
        self.joined(condition, plan).write.mode("overwrite").parquet(path)

    def versions(self) -> dict[str, str]:
        """Of what runs here."""
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
