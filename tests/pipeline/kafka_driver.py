"""Kafka with Spark's own connector, in a process whose Spark has its jars.

`kafka_driver.py stream SERVERS JARS PLACE` sends messages, streams them with `contrada stream`, sends more, goes on
from the checkpoint, replays the last batch, and writes down what is in the topics after that. `kafka_driver.py send
SERVERS JARS FILE TOPIC` sends the lines of a file; `kafka_driver.py read SERVERS JARS FILE TOPIC` writes the records of
a topic as lines.
"""

import json
import sys
from pathlib import Path

from streams import uncommit

from console import contrada, write_lines
from contrada.pipeline.kafka import MatchRecords, kafka_matches
from contrada.pipeline.session import session

TEXTS = [
    b'{"id": "a", "level": 4, "area": {"type": "Point", "coordinates": [1, 1]}}',
    b'{"id": "b", "level": 1, "area": {"type": "Point", "coordinates": [9, 9]}}',
    b"{",
    b"\xff",
    None,
    b'{"level": 5}',
]
FILTERS = {"high": "level >= 3", "here": "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))"}


def send(spark, servers, topic, texts):
    rows = spark.createDataFrame([(text,) for text in texts], "value binary")
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def records(spark, servers, topic):
    """Key and value of all records of a topic."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    rows = reader.load().selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value").collect()
    return sorted((row.key, row.value) for row in rows)


def read_once(spark, servers, topic):
    """The values that a reader keeps that takes the records of each partition in order, and is started again once."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    rows = reader.option("includeHeaders", "true").load().orderBy("partition", "offset").collect()
    kept, state = [], None
    for part in (rows[:2], rows[2:]):
        known = MatchRecords(state)
        kept += [
            row.value.decode() for row in part if known.is_new(row.partition, [(h.key, h.value) for h in row.headers])
        ]
        state = known.state()
    return sorted(kept)


def stream(servers, jars, place):
    """To Kafka with ids that messages have, and to files with the ids of their places."""
    asked = [{"key": key, "subscriber": "ops", "filter": text} for key, text in FILTERS.items()]
    subscriptions = write_lines(place / "s.ndjson", asked)
    common = ["kafka:alerts", subscriptions, "--servers", servers, "--once", "--master", "local[2]"]  # Maven has jars
    to_kafka = [*common, "--checkpoint", place / "state", "--output", "kafka:matches", "--id", "id"]
    settings = {"spark.jars": jars}
    for texts in (TEXTS, [b'{"id": "c", "level": 3}'] * 2):  # two messages with one id are two
        send(session("local[2]", settings), servers, "alerts", texts)
        contrada("stream", *to_kafka, code=0)
    uncommit(place / "state", 1)
    contrada("stream", *to_kafka, code=0)  # batch 1 again
    to_files = ["--checkpoint", place / "state2", "--output", place / "output", "--records", 3]
    contrada("stream", *common, *to_files, code=0)
    spark = session("local[2]", settings)
    found = {name: records(spark, servers, name) for name in ("matches", "matches-rejected")}
    found["once"] = sorted(map(list, kafka_matches(spark, servers, "matches").drop("stream").collect()))
    found["reader"] = read_once(spark, servers, "matches")
    spark.stop()
    (place / "answer.json").write_text(json.dumps(found))


def main(action, servers, jars, path, *topic):
    if action == "stream":
        stream(servers, jars, Path(path))
        return
    spark = session("local[2]", {"spark.jars": jars})
    if action == "send":
        send(spark, servers, *topic, Path(path).read_bytes().splitlines())
    else:
        Path(path).write_text("".join(f"{value}\n" for _, value in records(spark, servers, *topic)))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
