"""`contrada stream` on files: lines and Parquet in, Parquet and lines out, progress, metrics, errors."""

from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streams import written

from console import read_lines, write_lines

SUBSCRIPTIONS = [
    {"key": "k1", "subscriber": "ops", "filter": "level >= 3"},
    {"key": "k2", "subscriber": "ops", "filter": "level >= 9"},
    {"key": "bad", "filter": "level <"},
]


@pytest.fixture
def run(command):
    return partial(command, "stream")


def test_lines_of_json_good_and_bad(run, tmp_path):
    """Each bad record of messages and changes is kept with its text; the same checkpoint goes on after them."""
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    digits, deep = b"1" * 400, b"[" * 5000 + b"]" * 5000
    bad = [
        b"{",
        b'{"id": "x", "name": "caf\xe9", "level": 4}',
        b"\xff\xfe\x00",
        b'{"id": "x", "level":    ',
        b'{"id": "x", "area": {"type": "Point", "coordinates": [' + digits + b", 0]}}",
        b'{"id": "x", "deep": ' + deep + b"}",
        b'{"id": "\\ud800", "level": 4}',
    ]
    good = [
        b'{"id": "a", "level": 4}', b'{"level": 5}', b"", b'{"id": "c", "level": 1}', b'{"id": "d", "level": 9}',
        b'{"id": "e", "level": null}',
    ]  # fmt: skip
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.ndjson").write_bytes(b"\n".join([good[0], *bad, *good[1:]]) + b"\n")
    changes = write_lines(tmp_path / "changes" / "1.ndjson", [{"key": 7, "filter": "level = 1"}]).parent
    lines = [b'{"key": "\xff"}', b'{"key": "n1", "subscriber": "ops", "filter": "level = 4"}']
    (changes / "2.ndjson").write_bytes(b"\n".join(lines))
    (changes / "3.parquet").write_bytes(b"PAR1 and no more PAR1")
    (changes / "4.arrow").write_bytes(b"ARROW1\x00\x00" + b"\xff" * 200)
    common = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once", "--changes", changes]
    metrics = tmp_path / "stream.prom"
    result = run(tmp_path / "in", subscriptions, *common, "--metrics", metrics, code=0)
    assert "rejected subscription" in result.stderr
    assert "version 1 (4 subscriptions): 12 messages" in result.stderr
    assert "7 rejected, 3 bad changes" in result.stderr
    assert "contrada_stream_matches 6" in metrics.read_text()
    (place, key), *rest = written(tmp_path / "out" / "matches", ["message_id", "key"])
    assert place.startswith("1.ndjson:"), "a message without id is known by its place"
    assert [key, *rest] == ["k1", ("a", "k1"), ("a", "n1"), ("c", "7"), ("d", "k1"), ("d", "k2")]
    raws = written(tmp_path / "out" / "rejected", ["raw"])
    assert sorted(raws) == sorted((line.decode(errors="replace")[:10_000],) for line in bad)
    write_lines(tmp_path / "in" / "2.ndjson", [{"id": "f", "level": 4}])
    assert run(tmp_path / "in", *common, "--quiet", code=0).stderr == ""
    assert pq.read_table(tmp_path / "out" / "matches" / "batch=1").column("key").to_pylist() == ["k1", "n1"]


def test_parquet_to_lines(run, tmp_path):
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS[:2])
    (tmp_path / "in").mkdir()
    places = ["--checkpoint", tmp_path / "s", "--output", "-"]
    common = [tmp_path / "in", subscriptions, *places, "--format", "parquet", "--once"]
    assert "at least one Parquet file" in run(*common, code=2).stderr
    pq.write_table(pa.table({"name": ["a", "b"], "level": [4, 1]}), tmp_path / "in" / "1.parquet")
    assert "--id" in run(*common).stderr
    result = run(*common, "--id", "name")
    assert read_lines(result.stdout) == [{"message_id": "a", "subscriber": "ops", "key": "k1", "version": 0}]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [("--plan", "partitioned", "--partitions", 2), ()])
def test_subscriptions_in_partitions(run, tmp_path, spark, asked):
    """As asked for, or because the table is larger than a worker may hold."""
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    write_lines(
        tmp_path / "in" / "1.ndjson", [{"id": "a", "level": 9}, {"id": "b", "level": 1}, {"id": "c", "area": 7}]
    )
    places = ["--checkpoint", tmp_path / "state", "--output", "-", "--once"]
    if not asked:
        spark.conf.set("spark.contrada.broadcast.bytes", "10")
    try:
        result = run(tmp_path / "in", subscriptions, *places, *asked, code=0)
    finally:
        spark.conf.unset("spark.contrada.broadcast.bytes")
    assert result.stderr.count("rejected subscription") == 1
    rows = [(row["message_id"], row["subscriber"], row["key"]) for row in read_lines(result.stdout)]
    assert sorted(rows) == [("a", "ops", "k1"), ("a", "ops", "k2")]
    assert list((tmp_path / "state" / "contrada" / "artifacts").glob("*/partitions.json"))
    bad = write_lines(tmp_path / "bad.ndjson", SUBSCRIPTIONS[2:])
    result = run(tmp_path / "in", bad, "--checkpoint", tmp_path / "s2", "--output", "-", *asked, code=2)
    assert "no valid subscription" in result.stderr


@pytest.mark.slow
def test_events_of_tracked_objects(run, tmp_path):
    """A bus enters and leaves a depot; what cannot be watched is said; the options stay those of the checkpoint."""
    depots = [{"key": "depot", "subscriber": "ops", "filter": "S_WITHIN(place, BBOX(0, 0, 10, 10))"},
              {"key": "fast", "filter": "speed > 3"}]  # fmt: skip
    subscriptions = write_lines(tmp_path / "s.ndjson", depots)
    places = [{"type": "Point", "coordinates": [x, 5]} for x in (-3, 4, 8, 13)]
    fixes = [{"id": f"m{k}", "bus": 7, "at": f"2024-05-01T12:0{k}:00Z", "place": at} for k, at in enumerate(places)]
    write_lines(tmp_path / "in" / "1.ndjson", [*fixes, {"id": "lost", "at": "2024-05-01T12:00:00Z"}])
    tracking = ["--track", "bus", "--time", "at", "--on", "enter, exit, dwell(1m)", "--buckets", 2]
    places = ["--checkpoint", tmp_path / "state", "--output", tmp_path / "out", "--once"]
    result = run(tmp_path / "in", subscriptions, *places, *tracking, code=0)
    assert "not watched: subscription 'fast'" in result.stderr
    found = written(tmp_path / "out" / "events", ["message_id", "event", "key", "object", "before", "after"])
    assert found == [
        ("m1", "enter", "depot", "7", "disjoint", "inside"), ("m2", "dwell", "depot", "7", "inside", "inside"),
        ("m3", "exit", "depot", "7", "inside", "disjoint"),
    ]  # fmt: skip
    assert written(tmp_path / "out" / "rejected", ["message_id"]) == [("lost",)]
    tracking[-1] = 3
    assert "buckets: the stream of this checkpoint" in run(tmp_path / "in", *places, *tracking, code=2).stderr


def test_what_cannot_run_is_said(run, tmp_path):
    places = ["--checkpoint", tmp_path / "s", "--output", "-"]
    run(tmp_path / "none", *places, code=2)
    run(tmp_path, *places, "--once", "--every", "1 second", code=2)
    run(tmp_path, *places, "--format", "xml", code=2)
    run(tmp_path, *places, "--partitions", 3, code=2)
    run(tmp_path, *places, "--on", "enter", code=2)
    run(tmp_path, *places, "--track", "bus", "--on", "enter", code=2)
    assert "--jars" in run("kafka:alerts", *places[:3], "kafka:matches", "--once", code=2).stderr
