"""Kafka to Kafka with Spark's own connector: `kafka_driver.py SERVERS JARS PLACE`.

Sends messages, streams them, sends more, goes on from the checkpoint, replays the last batch, and writes down what is
in the topics after that.
"""

import json
import sys
from pathlib import Path

from typer.testing import CliRunner

from contrada.cli.main import app
from contrada.pipeline.session import session


def send(spark, servers, texts):
    rows = spark.createDataFrame([(text,) for text in texts], "value string")
    rows.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", "alerts").save()


def topic(spark, servers, name):
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", name)
    return sorted(row.value for row in reader.load().selectExpr("CAST(value AS STRING) AS value").collect())


def main(servers, jars, place):
    (place / "s.ndjson").write_text('{"key": "high", "filter": "level >= 3"}\n')
    arguments = [
        "stream", "kafka:alerts", str(place / "s.ndjson"), "--servers", servers, "--checkpoint", str(place / "state"),
        "--output", "kafka:matches", "--once", "--master", "local[2]", "--jars", jars, "--id", "id",
    ]  # fmt: skip

    def streamed():
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output

    settings = {"spark.jars": jars}
    for texts in (['{"id": "a", "level": 4}', '{"id": "b", "level": 1}', "{"], ['{"id": "c", "level": 3}']):
        send(session("local[2]", settings), servers, texts)
        streamed()
    (place / "state" / "commits" / "1").unlink()
    (place / "state" / "commits" / ".1.crc").unlink(missing_ok=True)
    streamed()  # batch 1 again
    spark = session("local[2]", settings)
    found = {name: topic(spark, servers, name) for name in ("matches", "matches-rejected")}
    spark.stop()
    (place / "answer.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
