"""Spark and streams name attributes that no message has, or has with another type; empty subscriptions are refused."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from console import write_lines
from contrada import pipeline
from effort import slow

SUBSCRIPTIONS = [
    {"key": "1", "subscriber": "ops", "filter": "level >= 3 AND severity >= 3"},
    {"key": "2", "subscriber": "ops", "filter": "S_INTERSECTS(area, BBOX(0, 0, 4, 4)) OR wind.speed > 2"},
]
ROWS = [
    {"id": "a", "severity": 4, "wind": {"speed": 1}, "area": "POLYGON ((0 0, 1 0, 1 1, 0 0))", "level": None},
    {"id": "b", "severity": 4, "wind": None, "area": None, "level": None},
]
LINES = [
    "missing:       level, which subscriptions ask for, is in no message",
    "other type:    area is text in 1 message; subscriptions ask for a region or point",
]


@pytest.fixture
def files(tmp_path):
    write_lines(tmp_path / "ndjson" / "m.ndjson", ROWS)
    write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    write_lines(tmp_path / "empty.ndjson", [])
    (tmp_path / "parquet").mkdir()
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "parquet" / "m.parquet")
    return tmp_path


def notes(result):
    return [line for line in result.stderr.splitlines() if line.startswith(("missing", "other type"))]


@pytest.mark.parametrize(
    ("format", "plan"),
    [
        ("ndjson", "partitioned"), slow("parquet", "broadcast"), slow("ndjson", "broadcast"),
        slow("parquet", "partitioned"),
    ],
)  # fmt: skip
def test_match_on_spark(command, files, format, plan):
    common = ["--spark", "--plan", plan, "--output", files / "out"]
    found = command("match", files / format, files / "s.ndjson", *common, code=0)
    assert notes(found) == LINES
    assert "messages:      2" in found.stderr


@pytest.mark.parametrize("format", ["parquet", slow("ndjson")])
def test_a_stream(command, files, format):
    common = ["--format", format, "--checkpoint", files / "state", "--output", files / "out", "--once"]
    found = command("stream", files / format, files / "s.ndjson", *common, code=0)
    assert notes(found) == LINES
    assert "no message has level; area of another type than asked" in found.stderr
    assert "2 messages" in found.stderr


def test_the_pipeline_tells_what_could_not_match(spark, tmp_path):
    messages = spark.createDataFrame([(1, 4, "x"), (2, None, None)], "message_id long, severity long, kind string")
    subscriptions = spark.createDataFrame(
        [("k", "ops", "severity >= 3 AND kind > 2 AND level = 1")], "key string, subscriber string, filter string"
    )
    found = pipeline.match(messages, subscriptions, artifacts=tmp_path)
    census = found.census()
    assert (census.messages, census.missing, census.mistyped) == (2, ["level"], {"kind": {"text": 1}})
    assert found.matches.count() == 0


def test_no_subscriptions_end_with_2(command, files):
    cases = [["match", "--spark", "--plan", plan] for plan in ("auto", "broadcast", "partitioned")]
    cases.append(["stream", "--once", "--checkpoint", files / "state"])
    for name, *options in cases:
        found = command(name, files / "ndjson", files / "empty.ndjson", *options, "--output", files / "out", code=2)
        assert ": no subscriptions" in found.stderr
