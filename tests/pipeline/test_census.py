"""Spark and streams name attributes that no message has, or has with another type; empty subscriptions are refused."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contrada import pipeline
from contrada.cli import spark_running
from contrada.cli.main import app

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
def run(spark, monkeypatch):
    monkeypatch.setattr(spark_running, "session", lambda *asked: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_messages(folder, format):
    folder.mkdir()
    if format == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), folder / "m.parquet")
    else:
        write(folder / "m.ndjson", ROWS)
    return folder


def notes(result):
    assert result.exit_code == 0, result.output
    return [line for line in result.stderr.splitlines() if line.startswith(("missing", "other type"))]


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
@pytest.mark.parametrize("format", ["parquet", "ndjson"])
def test_match_on_spark(run, tmp_path, format, plan):
    messages, subscriptions = write_messages(tmp_path / "in", format), write(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    found = run("match", messages, subscriptions, "--spark", "--plan", plan, "--output", tmp_path / "out")
    assert notes(found) == LINES
    assert "messages:      2" in found.stderr


@pytest.mark.parametrize("format", ["parquet", "ndjson"])
def test_a_stream(run, tmp_path, format):
    messages, subscriptions = write_messages(tmp_path / "in", format), write(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    common = ["--format", format, "--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once"]
    found = run("stream", messages, subscriptions, *common)
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


@pytest.mark.parametrize("plan", ["auto", "broadcast", "partitioned"])
def test_no_subscriptions_end_with_2(run, tmp_path, plan):
    messages, empty = write_messages(tmp_path / "in", "ndjson"), write(tmp_path / "s.ndjson", [])
    found = run("match", messages, empty, "--spark", "--plan", plan, "--output", tmp_path / "out")
    assert (found.exit_code, "there are no subscriptions here" in found.stderr) == (2, True), found.output


def test_no_subscriptions_end_a_stream_with_2(run, tmp_path):
    messages, empty = write_messages(tmp_path / "in", "ndjson"), write(tmp_path / "s.ndjson", [])
    common = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once"]
    found = run("stream", messages, empty, *common)
    assert (found.exit_code, "there are no subscriptions here" in found.stderr) == (2, True), found.output
