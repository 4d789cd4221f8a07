"""Spark reads the topic of servers that share a log in Kafka, and finds the matches that they deliver."""

import json
import os
import random
import urllib.request
from pathlib import Path

import kafka_broker
import pyarrow.parquet as pq
import pytest

import contrada as ct
from console import python
from served import ADMIN
from verification.shared_fleet import SharedFleet

FILTERS = {
    "high": "level >= 3",
    "odd": "level IN (1, 3, 5) AND text <> 'b'",
    "here": "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))",
}
COUNT = 60


def ask(url, method, path, body=None, **headers):
    sent = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json", "Accept": "application/json"}
    request = urllib.request.Request(url + path, body, sent | headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


@pytest.mark.slow
def test_spark_finds_in_the_topic_of_a_log_what_its_servers_deliver(kafka_jars, tmp_path):
    engine = kafka_broker.Broker(kafka_jars.broker, tmp_path, partitions=1)
    engine.start()
    fleet = SharedFleet(tmp_path / "fleet", engine, f"kafka://{engine.address}/alerts", random.Random(1))
    try:
        fleet.start(2)
        for key, text in FILTERS.items():
            ask(
                fleet.urls[0],
                "PUT",
                f"/subscriptions/{key}",
                json.dumps({"subscriber": "ann", "filter": text}).encode(),
            )
        for number in range(COUNT):
            area = {"type": "Point", "coordinates": [number % 9, number % 7]}
            message = {"id": f"m{number}", "level": number % 6, "text": "abc"[number % 3], "area": area}
            for url in fleet.urls if number % 10 == 0 else fleet.urls[number % 2 :][:1]:  # some are sent to both
                ask(url, "POST", "/messages", json.dumps(message).encode(), **{"Message-Id": f"m{number}"})
        found = ask(fleet.urls[1], "GET", "/subscribers/ann/events?from=1&wait=0&limit=1000")["events"]
        delivered = sorted((event["message"]["id"], event["key"]) for event in found)
        (tmp_path / "subscriptions.json").write_text(json.dumps(FILTERS))
        script = Path(__file__).with_name("shared_log_driver.py")
        environment = {**os.environ, "PYTHONPATH": str(Path(ct.__file__).parent.parent)}
        python(script, engine.address, kafka_jars.spark, "alerts", tmp_path, env=environment)
    finally:
        fleet.end()
        engine.kill()
    assert len(delivered) > COUNT
    matched = pq.read_table(tmp_path / "output" / "matches").to_pylist()
    assert sorted({(row["message_id"], row["key"]) for row in matched}) == delivered
    assert not list((tmp_path / "output" / "rejected").glob("**/*.parquet")), "no record of another kind is read"
