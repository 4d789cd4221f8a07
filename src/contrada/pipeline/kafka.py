"""Kafka from Spark: the packages of Spark's connector, and readers of matches that drop repeated records.

Spark's sink of Kafka has no transactions: a batch that is repeated, or a task that is, sends its records again.
`KafkaSink` gives every record headers, the stream, the batch and an id that is the same each time. Readers drop
records by these: `kafka_matches` in a table, `MatchRecords` record by record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from contrada.errors import FormatError
from contrada.pipeline import manifests

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAM_HEADER, BATCH_HEADER, ID_HEADER = "contrada-stream", "contrada-batch", "contrada-id"
GROUP, CONNECTOR, TOKENS = "org.apache.spark", "spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"
# The newest connector on Maven Central, which also works with the Spark that these tests use, 4.3.0. Its description
# asks for a token provider of its own version, which is not there; the newest one works with it.
NEWEST, NEWEST_TOKENS = (4, 2, 0), "4.1.0-preview1"
CLIENTS, POOL = "org.apache.kafka:kafka-clients:3.9.2", "org.apache.commons:commons-pool2:2.13.1"
PACKAGES = "spark.jars.packages"
RECORD_TYPE = "message_id string, subscriber string, key string, version bigint"
Headers = Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None]


def kafka_settings(version: str) -> dict[str, str]:
    """Return the settings of a new session with which Spark fetches its connector to Kafka, for a version of Spark.

    A Spark that is newer than the newest published connector gets that one.

    >>> kafka_settings("4.3.0")["spark.jars.packages"].split(",")[0]
    'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0'
    """
    numbers = tuple(int(part) for part in version.partition("-")[0].split(".")[:3] if part.isdigit())
    chosen = version if numbers < NEWEST else ".".join(map(str, NEWEST))
    packages = [f"{GROUP}:{CONNECTOR}:{chosen}", f"{GROUP}:{TOKENS}:{NEWEST_TOKENS}", CLIENTS, POOL]
    # The exclusion concerns what packages ask for, not the packages themselves.
    return {PACKAGES: ",".join(packages), "spark.jars.excludes": f"{GROUP}:{TOKENS}"}


class MatchRecords:
    """Takes records of a topic of matches in the order of each partition, and drops those that were sent again.

    The state is small: for each partition and stream the number of the last batch, and the ids of its records. Store
    `state()` together with the positions of the consumer, and give it to the next reader.

    >>> reader = MatchRecords()
    >>> headers = [("contrada-stream", b"s"), ("contrada-batch", b"4"), ("contrada-id", b"a1")]
    >>> reader.is_new(0, headers), reader.is_new(0, headers)
    (True, False)
    >>> MatchRecords(reader.state()).is_new(0, headers)
    False
    """

    def __init__(self, state: str | None = None) -> None:
        self._last: dict[tuple[int, str], tuple[int, set[str]]] = {}
        for partition, stream, batch, ids in [] if state is None else _parsed_state(state):
            self._last[partition, stream] = batch, set(ids)

    def is_new(self, partition: int, headers: Headers) -> bool:
        """Return False for a record that is a copy of an earlier one of its partition.

        A record of an earlier batch than the last one is a copy: a batch begins when all records of the batch before
        are in the topic. Records without the headers are new.
        """
        given = dict(headers.items() if isinstance(headers, Mapping) else headers)
        stream, batch, id = (given.get(name) for name in (STREAM_HEADER, BATCH_HEADER, ID_HEADER))
        if stream is None or batch is None or id is None:
            return True
        try:
            number = int(batch)
        except ValueError:
            raise FormatError(f"header {BATCH_HEADER}: need a whole number, got {batch!r:.60}") from None
        place, name = (partition, stream.decode(errors="replace")), id.decode(errors="replace")
        last, ids = self._last.get(place, (-1, set[str]()))
        if number < last or (number == last and name in ids):
            return False
        self._last[place] = number, {name} if number > last else ids | {name}
        return True

    def state(self) -> str:
        """Return the state as JSON."""
        rows = [[*place, batch, sorted(ids)] for place, (batch, ids) in sorted(self._last.items())]
        return json.dumps(rows)


def _parsed_state(state: str) -> Iterable[tuple[int, str, int, list[str]]]:
    """Return the rows of a state; anything else is a FormatError."""
    try:
        for row in json.loads(state):
            partition, stream, batch, ids = row
            text = manifests.text(stream), manifests.list_of(manifests.text)(ids)
            yield int(manifests.count(partition)), str(text[0]), int(manifests.count(batch)), list(text[1])
    except (ValueError, TypeError) as error:  # includes TableError
        raise FormatError(f"state: need what MatchRecords.state returned: {error}") from error


def kafka_matches(spark: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    """Return the matches in a topic, each once: `message_id, subscriber, key, version, batch, stream`.

    `options` are further ones of Spark's reader of Kafka, such as `startingOffsets`. Records without the headers of
    `KafkaSink` are left out.
    """
    from pyspark.sql import functions as f

    reader = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": servers, **options})
    records = reader.option("subscribe", topic).option("includeHeaders", "true").load()
    named = f.map_from_entries("headers")
    headers = {name: named[name].cast("string") for name in (STREAM_HEADER, BATCH_HEADER, ID_HEADER)}
    value = f.from_json(f.col("value").cast("string"), RECORD_TYPE)
    found = records.where(f.size("headers") > 0).select(
        value.alias("match"), headers[BATCH_HEADER].cast("bigint").alias("batch"),
        headers[STREAM_HEADER].alias("stream"), headers[ID_HEADER].alias("id"),
    )  # fmt: skip
    return found.where("id IS NOT NULL").dropDuplicates(["id"]).select("match.*", "batch", "stream")
