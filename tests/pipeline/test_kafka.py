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


@pytest.mark.slow
def test_from_kafka_to_kafka_and_to_files(kafka_jars, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(ct.__file__).parent.parent)}
    script = Path(__file__).with_name("kafka_driver.py")
    with kafka_broker.broker(kafka_jars.broker, tmp_path) as servers:
        python(script, "stream", servers, kafka_jars.spark, tmp_path, env=environment)
    found = json.loads((tmp_path / "answer.json").read_text())
    matches = [(key, json.loads(text)) for key, text in found["matches"]]
    told = [(key, match["message_id"], match["key"], match["version"]) for key, match in matches]
    once = [("a", "a", "here", 0), ("a", "a", "high", 0), ("c", "c", "high", 0)]
    assert sorted(told) == [*once, once[2]], "at least once: the batch that came again"
    assert sorted(set(told)) == once, "copies can be told"
    bad = [json.loads(text) for _, text in found["matches-rejected"]]
    assert all(item["reason"] and item["message_id"].startswith("alerts-") for item in bad), "known by their places"
    assert sorted(item["raw"] for item in bad) == ["", "{", '{"level": 5}', "\ufffd"]
    rows = pq.read_table(tmp_path / "output" / "matches").to_pylist()
    assert sorted(row["key"] for row in rows) == ["here", *["high"] * 3]
    assert len({row["message_id"] for row in rows}) == 3
    assert all(row["message_id"].startswith("alerts-") for row in rows)
    assert len(list((tmp_path / "output" / "matches").glob("batch=*"))) >= 3, "three records in a batch"


def test_without_maven_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(kafka_broker.UnavailableError, match="no Maven"):
        kafka_broker.jars(tmp_path)
