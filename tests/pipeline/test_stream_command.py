"""`contrada stream` on files: lines and Parquet in, Parquet and lines out, progress, metrics, errors."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contrada.cli import spark_running
from contrada.cli.main import app

SUBSCRIPTIONS = [
    {"key": "k1", "subscriber": "ops", "filter": "level >= 3"},
    {"key": "k2", "subscriber": "ops", "filter": "level >= 9"},
    {"key": "bad", "filter": "level <"},
]


@pytest.fixture
def run(spark, monkeypatch):
    """Runs the command on the session of the tests, which it must not stop."""
    monkeypatch.setattr(spark_running, "session", lambda *asked: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def command(*arguments):
        return CliRunner().invoke(app, ["stream", *map(str, arguments)])

    return command


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lines_of_json(run, tmp_path):
    subscriptions = write(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    write(tmp_path / "in" / "1.ndjson", [{"id": "a", "level": 4}, {"level": 5}, {"id": "c", "level": 1}])
    with (tmp_path / "in" / "1.ndjson").open("a") as file:
        file.write("\n{\n")
    changes = write(tmp_path / "changes" / "1.ndjson", [{"key": 7, "filter": "level = 1"}]).parent
    common = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once", "--changes", changes]
    metrics = tmp_path / "stream.prom"
    result = run(tmp_path / "in", subscriptions, *common, "--metrics", metrics)
    assert result.exit_code == 0, result.output
    assert "rejected subscription" in result.stderr
    assert "version 1 (3 subscriptions): 4 messages" in result.stderr
    assert "1 rejected" in result.stderr
    assert "contrada_stream_matches 3" in metrics.read_text()
    rows = pq.read_table(tmp_path / "out" / "matches").to_pylist()
    ids = sorted((row["message_id"], row["key"]) for row in rows)
    assert [ids[1], ids[2]] == [("a", "k1"), ("c", "7")]
    assert ids[0][0].startswith("1.ndjson:"), "a message without id is known by its place"
    (bad,) = pq.read_table(tmp_path / "out" / "rejected").to_pylist()
    assert bad["raw"] == "{"
    write(tmp_path / "in" / "2.ndjson", [{"id": "d", "level": 9}])
    again = run(tmp_path / "in", *common, "--quiet")
    assert (again.exit_code, again.stderr) == (0, "")
    assert pq.read_table(tmp_path / "out" / "matches" / "batch=1").column("key").to_pylist() == ["k1", "k2"]


def test_parquet_to_lines(run, tmp_path):
    subscriptions = write(tmp_path / "s.ndjson", SUBSCRIPTIONS[:2])
    (tmp_path / "in").mkdir()
    nothing = run(tmp_path / "in", "--checkpoint", tmp_path / "s", "--output", "-", "--format", "parquet", "--once")
    assert nothing.exit_code == 2
    assert "no Parquet file" in nothing.stderr
    pq.write_table(pa.table({"name": ["a", "b"], "level": [4, 1]}), tmp_path / "in" / "1.parquet")
    common = [tmp_path / "in", subscriptions, "--checkpoint", tmp_path / "s", "--output", "-", "--format", "parquet"]
    assert "--id" in run(*common, "--once").stderr
    result = run(*common, "--id", "name", "--once")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert found == [{"message_id": "a", "subscriber": "ops", "key": "k1", "version": 0}]


def test_what_cannot_run_is_said(run, tmp_path):
    assert run(tmp_path / "none", "--checkpoint", tmp_path / "s", "--output", "-").exit_code == 2
    both = run(tmp_path, "--checkpoint", tmp_path / "s", "--output", "-", "--once", "--every", "1 second")
    assert both.exit_code == 2
    assert run(tmp_path, "--checkpoint", tmp_path / "s", "--output", "-", "--format", "xml").exit_code == 2


def test_kafka_without_its_connector(run, tmp_path):
    result = run("kafka:alerts", "--checkpoint", tmp_path / "s", "--output", "kafka:matches", "--once")
    assert result.exit_code == 2
    assert "--jars" in result.stderr
