"""Match the messages of a shared log in Kafka, in a process whose Spark has the jars of the connector.

`shared_log_driver.py SERVERS JARS TOPIC PLACE` matches them with the subscriptions in PLACE/subscriptions.json,
into PLACE/output.
"""

import json
import sys
from pathlib import Path

from contrada import pipeline
from contrada.pipeline.session import session


def messages(spark, servers, topic):
    """The messages of a shared log: records of other kinds are the servers' own."""
    records = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    frame = records.option("startingOffsets", "earliest").load().where("CAST(key AS STRING) = 'message'")
    return frame.selectExpr("concat(topic, '-', partition, '-', offset) AS message_id", "value")


def main(servers, jars, topic, place):
    place = Path(place)
    spark = session("local[2]", {"spark.jars": jars})
    asked = json.loads((place / "subscriptions.json").read_text())
    subscriptions = spark.createDataFrame(list(asked.items()), "key string, filter string")
    subscriptions = subscriptions.selectExpr("key", "'ann' AS subscriber", "filter")
    pipeline.match_stream(
        messages(spark, servers, topic),
        subscriptions,
        sink=place / "output",
        checkpoint=place / "checkpoint",
        decoding=pipeline.Decoding(("id",)),
        trigger={"availableNow": True},
    ).wait()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
