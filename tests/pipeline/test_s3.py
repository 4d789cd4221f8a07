"""Ingest, artifacts, checkpoints and outputs on s3a, with a real server of S3 on the loopback interface."""

import json
import os
from pathlib import Path

import kafka_broker
import pytest

import contrada as ct
from console import python
from engine_servers import s3_server
from fetched_programs import NoProgramError

CACHE = Path(__file__).parents[2] / "build" / "s3"
KEY, SECRET = "contrada", "only-for-tests"
# The connector of the Hadoop that PySpark 4.3.0 has, and the SDK that its description names. No other jar is needed
# with the classic reader of streams.
HADOOP = "3.5.0"
JARS = [("org.apache.hadoop", "hadoop-aws", HADOOP), ("software.amazon.awssdk", "bundle", "2.35.4"),
        ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1")]  # fmt: skip


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    place = tmp_path_factory.mktemp("s3")
    try:
        jars = kafka_broker.fetched(CACHE, "hadoop-aws", [(JARS[0][0], JARS[0][1], HADOOP), *JARS[1:]], is_alone=True)
        server = s3_server(place, KEY, SECRET)
    except (kafka_broker.UnavailableError, NoProgramError) as error:
        pytest.skip(str(error))
    (place / "s3" / "runs").mkdir()
    server.start()
    endpoint = f"http://127.0.0.1:{server.port}"
    tests = Path(__file__).parent
    environment = {
        **os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": os.pathsep.join(map(str, (Path(ct.__file__).parents[1], tests.parent / "support"))),
    }  # fmt: skip
    try:
        python(tests / "s3_driver.py", ",".join(map(str, jars)), endpoint, place, env=environment)
    finally:
        server.kill()
    return json.loads((place / "answer.json").read_text())


@pytest.mark.slow
def test_ingest(answer):
    counts = {"read": 2, "kept": 1, "quarantined": 1, "repaired": 0}
    found = answer["ingest"]
    assert found["counts"] == [counts, counts]
    assert (found["rows"], found["crs"], found["frame"]) == (1, "OGC:CRS84", [1, 1, 0, 0])
    assert "not empty" in found["again"]


@pytest.mark.slow
def test_match(answer):
    rows = [[1, "here"], [1, "high"], [2, "here"]]
    for plan in ("broadcast", "partitioned"):
        assert answer["match"][plan] == [{"matches": 3, "rejected": 0}, rows]
    assert answer["match"]["command"] == [["s3a://runs/command"], 1]


@pytest.mark.slow
def test_a_stream_whose_output_was_interrupted(answer):
    found = answer["stream"]
    once = [["batch=0", "m0", "high", 0], ["batch=1", "m1", "high", 1], ["batch=1", "m1", "more", 1]]
    assert found["first"] == found["second"] == once
    assert found["left"] == []
    assert len(found["all"]) == 7


@pytest.mark.slow
def test_artifacts_of_streams_stay_in_the_bucket(answer):
    found, digest = answer["stream"], answer["digest"]
    assert found["used"] == {digest: ["s3a://runs/state/contrada"]}
    assert found["kept"] == {digest: "used by a stream: s3a://runs/state/contrada"}
    assert digest not in found["removed"]
    assert found["then"] == [digest], "compacted: the stream has its own table"
    assert found["end"] == []
