"""`contrada stream` from and to a real broker of Kafka, through Spark's own connector."""

import json
import os
import shutil
from pathlib import Path

import kafka_broker
import pyarrow.parquet as pq
import pytest

import contrada as ct
from console import python
from contrada.pipeline.kafka import MatchRecords, kafka_settings
from contrada.pipeline.stream.record_ids import with_row_ids


@pytest.mark.slow
def test_from_kafka_to_kafka_and_to_files(kafka_jars, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(ct.__file__).parent.parent)}
    script = Path(__file__).with_name("kafka_driver.py")
    with kafka_broker.broker(kafka_jars.broker, tmp_path) as servers:
        python(script, "stream", servers, kafka_jars.spark, tmp_path, env=environment)
    found = json.loads((tmp_path / "answer.json").read_text())
    matches = [(key, json.loads(text)) for key, text in found["matches"]]
    told = [(key, match["message_id"], match["key"], match["version"]) for key, match in matches]
    once = [("a", "a", "here", 0), ("a", "a", "high", 0), *[("c", "c", "high", 0)] * 2]
    assert sorted(told) == [*once, *once[2:]], "the batch that came again was sent again"
    assert [tuple(row[:4]) for row in found["once"]] == [(id, "ops", key, 0) for _, id, key, _ in once]
    assert [row[4] for row in found["once"]] == [0, 0, 1, 1]
    kept = [json.loads(text) for text in found["reader"]]
    assert sorted((match["message_id"], match["key"]) for match in kept) == [(id, key) for _, id, key, _ in once]
    bad = [json.loads(text) for _, text in found["matches-rejected"]]
    assert all(item["reason"] and item["message_id"].startswith("alerts-") for item in bad), "known by their places"
    assert sorted(item["raw"] for item in bad) == ["", "{", '{"level": 5}', "\ufffd"]
    rows = pq.read_table(tmp_path / "output" / "matches").to_pylist()
    assert sorted(row["key"] for row in rows) == ["here", *["high"] * 4]
    assert len({row["message_id"] for row in rows}) == 4
    assert all(row["message_id"].startswith("alerts-") for row in rows)
    assert len(list((tmp_path / "output" / "matches").glob("batch=*"))) >= 3, "three records in a batch"


def test_without_maven_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(kafka_broker.UnavailableError, match="no Maven"):
        kafka_broker.jars(tmp_path)


@pytest.mark.slow
def test_a_maven_that_is_not_there_is_one_line(tmp_path):
    """The jars are nowhere on this machine for the process, and its proxy does not answer."""
    lost = f"-Duser.home={tmp_path} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9 -Dhttp.proxyHost=127.0.0.1"
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": lost}
    words = ["stream", "kafka:alerts", "--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once"]
    run = python("-m", "contrada.cli.main", *words, env=environment, code=2)
    assert run.stderr.startswith("error: Maven does not get org.apache.spark:spark-sql-kafka-0-10_2.13:")
    assert "is Maven Central reachable?" in run.stderr
    assert run.stderr.count("\n") == 1


def test_packages_of_versions():
    packages = {
        version: kafka_settings(version)["spark.jars.packages"] for version in ("4.1.0", "4.2.0", "4.3.0", "5.0.0")
    }
    chosen = {version: text.split(",")[0].rpartition(":")[2] for version, text in packages.items()}
    assert chosen == {"4.1.0": "4.1.0", "4.2.0": "4.2.0", "4.3.0": "4.2.0", "5.0.0": "4.2.0"}


def headers(stream, batch, id):
    return {"contrada-stream": stream.encode(), "contrada-batch": str(batch).encode(), "contrada-id": id.encode()}


def test_records_that_come_again_are_dropped_in_each_partition():
    sent = [("s", 0, "a"), ("s", 0, "b"), ("s", 0, "a"), ("s", 1, "c"), ("s", 0, "b"), ("t", 0, "a"), ("s", 1, "c"),
            ("s", 1, "d")]  # fmt: skip
    reader, found = MatchRecords(), []
    for record in sent:
        found.append(reader.is_new(0, headers(*record)))
        reader = MatchRecords(reader.state())
    assert found == [True, True, False, True, False, True, False, True]
    assert reader.is_new(1, headers("s", 0, "a")), "another partition has records of its own"
    assert reader.is_new(0, []), "a record of someone else"
    with pytest.raises(ct.FormatError, match="contrada-batch: need a whole number"):
        reader.is_new(0, headers("s", "x", "a"))
    for state in ("", "{", "7", "[[0]]", '[[0, "s", -1, []]]', "[[0, 1, 1, []]]"):
        with pytest.raises(ct.FormatError, match="state: need"):
            MatchRecords(state)


def test_ids_of_rows_are_those_of_any_order_and_partitions(spark):
    """Equal rows have different ids, and a repeated batch has the same ids."""
    rows = [("a", "ops", "k", 0)] * 3 + [("b", "ops", "k", 0), (None, "ops", "k", 0)]
    columns = "message_id string, subscriber string, key string, version int"
    found = []
    for order, parts in ((rows, 1), (rows[::-1], 3)):
        frame = spark.createDataFrame(order, columns).repartition(parts)
        named = with_row_ids(frame, "s", 4, len(rows)).collect()
        assert sorted(map(str, (row[:4] for row in named))) == sorted(map(str, rows))
        found.append({row.row_id for row in named})
    assert len(found[0]) == 5
    assert found[0] == found[1]
    other = with_row_ids(spark.createDataFrame(rows, columns), "s", 5, 1).collect()
    assert not found[0] & {row.row_id for row in other}, "another batch"
