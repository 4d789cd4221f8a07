"""Streams from and to Delta and Iceberg tables: `lakehouse_driver.py JARS PLACE`, in an environment of their own.

For each format: subscriptions come from the change feed of a table, messages from a table, matches go to tables by
MERGE. A batch comes again, and the stream is started again. What the tables hold is written down.
"""

import json
import sys
from pathlib import Path

import pyspark
from streams import AVAILABLE, uncommit

import contrada as ct
from contrada import pipeline
from contrada.pipeline.session import session

SQUARE = "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))"
AREA = "unhex('010100000000000000000000400000000000000840')"


def settings(jars, place):
    return {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(place / "iceberg"),
    }


class Home:
    """The tables of one format, and the stream between them."""

    def __init__(self, spark, place, format):
        self.spark, self.format, self.place = spark, format, place / format
        prefix = "default" if format == "delta" else "ice.db"
        if format == "iceberg":
            spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        self.asked, self.messages, self.matches = (f"{prefix}.{name}" for name in ("asked", "messages", "matches"))
        feed = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')" if format == "delta" else ""
        spark.sql(f"CREATE TABLE {self.asked} (key string, subscriber string, filter string) USING {format} {feed}")
        spark.sql(f"CREATE TABLE {self.messages} (message_id string, level int, area binary) USING {format}")

    def send(self, *rows):
        values = ", ".join(f"('{id}', {level}, {AREA})" for id, level in rows)
        self.spark.sql(f"INSERT INTO {self.messages} VALUES {values}")

    def run(self):
        """Match the messages that are there, as a stream that is started again from its checkpoint."""
        stream = pipeline.match_stream(
            self.spark.readStream.table(self.messages), None, pipeline.ChangeFeed(self.spark, self.asked),
            sink=pipeline.TableSink(self.matches, format=self.format), checkpoint=self.place / "state",
            trigger=AVAILABLE,
        )  # fmt: skip
        stream.wait(120)
        stream.versions.wait()

    def found(self, table=None):
        self.spark.catalog.refreshTable(table or self.matches)  # batches have a session of their own
        rows = self.spark.table(table or self.matches)
        columns = [name for name in ("batch", "message_id", "key", "version", "reason") if name in rows.columns]
        return sorted(map(list, rows.select(*columns).collect()))


def run(spark, place, format):
    home = Home(spark, place, format)
    found = {}
    spark.sql(
        f"INSERT INTO {home.asked} VALUES ('high', 'ops', 'level >= 3'), ('here', 'ops', '{SQUARE}'), "
        "('bad', 'ops', 'level >'), ('gone', 'ops', 'level = 4')"
    )
    home.send(("a", 4), ("a", 4), ("b", 1))
    home.run()
    found["first"] = home.found()
    spark.sql(f"UPDATE {home.asked} SET filter = 'level >= 5' WHERE key = 'high'")
    spark.sql(f"UPDATE {home.asked} SET key = 'there' WHERE key = 'here'")
    spark.sql(f"DELETE FROM {home.asked} WHERE key = 'gone'")
    home.send(("c", 4), ("d", 5))
    home.run()
    found["second"] = home.found()
    uncommit(home.place / "state", 1)
    home.run()  # batch 1 again
    found["again"] = home.found()
    home.send(("e", 5))
    home.run()
    found["last"] = home.found()
    found["rejected changes"] = sorted(
        json.loads(line)["raw"]
        for path in (home.place / "state" / "contrada" / "rejected_changes").iterdir()
        for line in path.read_text().splitlines()
    )
    matched = pipeline.match(spark.table(home.messages), spark.table(home.asked), artifacts=place / "artifacts")
    found["batch"] = sorted(map(list, matched.matches.select("message_id", "key").collect()))
    return found


def errors(spark, place):
    """What is no table with a change feed."""
    spark.sql("CREATE TABLE default.plain (key string, filter string) USING parquet")
    spark.sql("CREATE TABLE default.silent (key string, filter string) USING delta")
    told = []
    for ask in (
        lambda: pipeline.ChangeFeed(spark, "default.plain"),
        lambda: pipeline.ChangeFeed(spark, "default.missing"),
        lambda: pipeline.ChangeFeed(spark, "default.silent").since(-1),
        lambda: pipeline.TableSink("default.matches", format="parquet"),
    ):
        try:
            ask()
            told.append(None)
        except ct.ContradaError as error:
            told.append(str(error))
    return told


def main(jars, place):
    spark = session("local[2]", settings(jars, place))
    found = {format: run(spark, place, format) for format in ("delta", "iceberg")}
    found |= {"errors": errors(spark, place), "spark": pyspark.__version__}
    (place / "answer.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
