"""`contrada stream` on files: lines and Parquet in, Parquet and lines out, progress, metrics, errors."""

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from console import read_lines, write_lines

SUBSCRIPTIONS = [
    {"key": "k1", "subscriber": "ops", "filter": "level >= 3"},
    {"key": "k2", "subscriber": "ops", "filter": "level >= 9"},
    {"key": "bad", "filter": "level <"},
]


@pytest.fixture
def run(command):
    return partial(command, "stream")


def test_lines_of_json(run, tmp_path):
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    write_lines(tmp_path / "in" / "1.ndjson", [{"id": "a", "level": 4}, {"level": 5}, {"id": "c", "level": 1}])
    with (tmp_path / "in" / "1.ndjson").open("a") as file:
        file.write("\n{\n")
    changes = write_lines(tmp_path / "changes" / "1.ndjson", [{"key": 7, "filter": "level = 1"}]).parent
    common = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once", "--changes", changes]
    metrics = tmp_path / "stream.prom"
    result = run(tmp_path / "in", subscriptions, *common, "--metrics", metrics, code=0)
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
    write_lines(tmp_path / "in" / "2.ndjson", [{"id": "d", "level": 9}])
    again = run(tmp_path / "in", *common, "--quiet")
    assert (again.exit_code, again.stderr) == (0, "")
    assert pq.read_table(tmp_path / "out" / "matches" / "batch=1").column("key").to_pylist() == ["k1", "k2"]


def test_bad_bytes_and_hostile_records_stop_nothing(run, tmp_path):
    """Each bad record of messages and changes is kept with its text; the same checkpoint goes on after them."""
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS[:2])
    digits, deep = b"1" * 400, b"[" * 5000 + b"]" * 5000
    bad = [
        b'{"id": "x", "name": "caf\xe9", "level": 4}',
        b"\xff\xfe\x00",
        b'{"id": "x", "level":    ',
        b'{"id": "x", "area": {"type": "Point", "coordinates": [' + digits + b", 0]}}",
        b'{"id": "x", "deep": ' + deep + b"}",
        b'{"id": "\\ud800", "level": 4}',
    ]
    good = [b'{"id": "a", "level": 4}', b'{"id": "b", "level": 9}', b'{"id": "c", "level": null}']
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.ndjson").write_bytes(b"\n".join([good[0], *bad, *good[1:]]) + b"\n")
    (tmp_path / "changes").mkdir()
    lines = [b'{"key": "\xff"}', b'{"key": "n1", "subscriber": "ops", "filter": "level = 4"}']
    (tmp_path / "changes" / "1.ndjson").write_bytes(b"\n".join(lines))
    (tmp_path / "changes" / "2.parquet").write_bytes(b"PAR1 and no more PAR1")
    (tmp_path / "changes" / "3.arrow").write_bytes(b"ARROW1\x00\x00" + b"\xff" * 200)
    common = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once"]
    result = run(tmp_path / "in", subscriptions, *common, "--changes", tmp_path / "changes", code=0)
    assert "9 messages" in result.stderr
    assert "6 rejected, 3 bad changes" in result.stderr
    rows = pq.read_table(tmp_path / "out" / "matches").to_pylist()
    assert sorted((row["message_id"], row["key"]) for row in rows) == [
        ("a", "k1"), ("a", "n1"), ("b", "k1"), ("b", "k2"),
    ]  # fmt: skip
    raws = pq.read_table(tmp_path / "out" / "rejected").column("raw").to_pylist()
    assert sorted(raws) == sorted(line.decode(errors="replace")[:10_000] for line in bad)
    write_lines(tmp_path / "in" / "2.ndjson", [{"id": "d", "level": 4}])
    again = run(tmp_path / "in", *common, "--changes", tmp_path / "changes", code=0)
    assert pq.read_table(tmp_path / "out" / "matches" / "batch=1").column("key").to_pylist() == ["k1", "n1"]


def test_parquet_to_lines(run, tmp_path):
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS[:2])
    (tmp_path / "in").mkdir()
    nothing = run(
        tmp_path / "in", "--checkpoint", tmp_path / "s", "--output", "-", "--format", "parquet", "--once", code=2
    )
    assert "at least one Parquet file" in nothing.stderr
    pq.write_table(pa.table({"name": ["a", "b"], "level": [4, 1]}), tmp_path / "in" / "1.parquet")
    common = [tmp_path / "in", subscriptions, "--checkpoint", tmp_path / "s", "--output", "-", "--format", "parquet"]
    assert "--id" in run(*common, "--once").stderr
    result = run(*common, "--id", "name", "--once")
    assert read_lines(result.stdout) == [{"message_id": "a", "subscriber": "ops", "key": "k1", "version": 0}]


def test_what_cannot_run_is_said(run, tmp_path):
    assert run(tmp_path / "none", "--checkpoint", tmp_path / "s", "--output", "-").exit_code == 2
    both = run(tmp_path, "--checkpoint", tmp_path / "s", "--output", "-", "--once", "--every", "1 second", code=2)
    assert run(tmp_path, "--checkpoint", tmp_path / "s", "--output", "-", "--format", "xml").exit_code == 2


def test_kafka_without_its_connector(run, tmp_path):
    result = run("kafka:alerts", "--checkpoint", tmp_path / "s", "--output", "kafka:matches", "--once", code=2)
    assert "--jars" in result.stderr
