"""Lists of artifacts and removal of old ones: never one that a stream uses, or that a kept one needs."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from sample_tables import some_table
from streams import AVAILABLE

import contrada as ct
from console import contrada, read_lines, write_lines
from contrada import pipeline
from contrada.pipeline import artifact_store
from contrada.pipeline.artifact_store import USES, note_use, record_use
from contrada.pipeline.storage import Storage

DAY = 24 * 3600.0


def published(place, *filters):
    table = ct.ForwardingTable()
    for k, text in enumerate(filters):
        table.subscribe("ops", text, f"k{k}")
    return pipeline.publish(table, place)


def aged(place, days, *digests):
    """Make files of artifacts, by default of all, as old as that; PyArrow tells the times of files."""
    then = time.time() - days * DAY
    for path in Path(place).rglob("*"):
        if not digests or any(digest in str(path) for digest in digests):
            os.utime(path, (then, then))


def digests(found):
    return [one.digest for one in found]


def test_old_ones_go_and_young_ones_stay(tmp_path):
    old, young = published(tmp_path, "a = 1"), published(tmp_path, "a = 2")
    aged(tmp_path, 8, old.digest)
    assert digests(pipeline.list_artifacts(tmp_path)) == [old.digest, young.digest]
    would = pipeline.prune_artifacts(tmp_path, "7d", dry_run=True)
    assert digests(would.removed) == [old.digest]
    assert len(pipeline.list_artifacts(tmp_path)) == 2
    found = pipeline.prune_artifacts(tmp_path, "7d")
    assert (digests(found.removed), dict(found.kept), found.bytes > 0) == ([old.digest], {}, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.digest]
    assert pipeline.Artifact.read(young.path) == young


def test_publishing_again_and_matching_count_as_use(tmp_path):
    first, second = published(tmp_path, "a = 1"), published(tmp_path, "a = 2")
    aged(tmp_path, 30)
    assert published(tmp_path, "a = 1") == first
    note_use(second)
    assert pipeline.prune_artifacts(tmp_path, "7d") == ((), {})
    written = (tmp_path / first.digest / "artifact.json").stat().st_mtime_ns
    note_use(first)
    assert (tmp_path / first.digest / "artifact.json").stat().st_mtime_ns == written, "noted at most once an hour"


def test_interrupted_writers(tmp_path):
    whole = published(tmp_path, "a = 1")
    for name, days in ((".new-abc", 8), (".new-def", 1), ("f" * 64, 8), ("e" * 64, 1)):
        (tmp_path / name / "table").mkdir(parents=True)
        (tmp_path / name / "table" / "x.npy").write_bytes(b"1")
        aged(tmp_path, days, name)
    (tmp_path / ".new-empty").mkdir()
    (tmp_path / "of a user").mkdir()
    aged(tmp_path, 8, "of a user")
    kinds = {one.digest: one.kind for one in pipeline.list_artifacts(tmp_path)}
    assert kinds.pop(whole.digest) == "table"
    assert set(kinds.values()) == {"unfinished"}
    found = pipeline.prune_artifacts(tmp_path, "7d")
    assert sorted(digests(found.removed)) == [".new-abc", "f" * 64]
    assert (tmp_path / "of a user").is_dir()


def test_a_damaged_manifest_is_an_unfinished_artifact(tmp_path):
    one = published(tmp_path, "a = 1")
    (tmp_path / one.digest / "artifact.json").write_text("{")
    aged(tmp_path, 8)
    assert [item.kind for item in pipeline.list_artifacts(tmp_path)] == ["unfinished"]
    assert len(pipeline.prune_artifacts(tmp_path, "7d").removed) == 1


@pytest.mark.slow
def test_tables_of_a_partitioned_artifact(tmp_path, spark):
    store = tmp_path / "tables"
    rows = [(f"k{k}", "ops", f"S_INTERSECTS(area, POINT({k} {k}))") for k in range(40)]
    frame = spark.createDataFrame(rows, "key string, subscriber string, filter string")
    whole = pipeline.compile(frame, store, plan="partitioned", partitions=3).artifact
    parts = {whole.router.digest, *(part.artifact.digest for part in whole.partitions)}
    aged(store, 8)
    aged(store, 1, whole.digest)
    listed = {one.digest: one for one in pipeline.list_artifacts(store)}
    assert listed[whole.digest].kind == "partitioned"
    assert {digest for digest, one in listed.items() if whole.digest in one.part_of} == parts
    assert set(pipeline.prune_artifacts(store, "7d").kept) == parts
    # A stream whose version has other partitions by now, and one of these tables still.
    state = Storage(tmp_path / "stream" / "contrada")
    state.write("stream.json", json.dumps({"id": "s1"}).encode())
    state.write("versions/4.json", json.dumps({"tables": [sorted(parts)[0]]}).encode())
    record_use(whole, state, "s1")
    aged(store, 8)
    assert set(pipeline.prune_artifacts(store, "7d").kept) == {whole.digest, *parts}
    state.write("versions/4.json", json.dumps({"tables": []}).encode())
    assert set(digests(pipeline.prune_artifacts(store, "7d").removed)) == {whole.digest, *parts}
    assert [path for path in store.rglob("*") if path.is_file()] == []


def stream_on(spark, home, subscriptions):
    (home / "in").mkdir(parents=True, exist_ok=True)
    number = len(list((home / "in").iterdir()))
    write_lines(home / "in" / f"{number}.ndjson", [{"id": f"m{number}", "level": 4}])
    stream = pipeline.match_stream(
        pipeline.MessageFiles(spark, home / "in"), subscriptions, home / "changes", sink=home / "out",
        checkpoint=home / "state", trigger=AVAILABLE,
    )  # fmt: skip
    assert stream.wait(120)
    stream.versions.wait()


def test_the_artifact_of_a_stream_stays_until_the_stream_has_another_table(spark, tmp_path):
    store, home = tmp_path / "tables", tmp_path / "stream"
    used, other = published(store, "level >= 3"), published(store, "level >= 4")
    stream_on(spark, home, used)
    aged(store, 30)
    (one,) = [one for one in pipeline.list_artifacts(store) if one.streams]
    assert (one.digest, one.streams) == (used.digest, (str(home / "state" / "contrada"),))
    found = pipeline.prune_artifacts(store, "7d")
    assert digests(found.removed) == [other.digest]
    assert found.kept == {used.digest: f"used by a stream: {home / 'state' / 'contrada'}"}
    # So many changes become a table of the stream; the batch after removes the versions before.
    write_lines(home / "changes" / "1.ndjson", [{"key": f"n{number}", "filter": "level = 9"} for number in range(501)])
    for _ in range(2):
        stream_on(spark, home, None)
    aged(store, 30)
    assert digests(pipeline.prune_artifacts(store, "7d").removed) == [used.digest]
    assert list(store.rglob("*.json")) == []
    with pytest.raises(ct.ContradaError, match="tables of one stream"):
        pipeline.prune_artifacts(home / "state" / "contrada" / "artifacts", "7d")


def test_records_of_streams_that_are_gone_are_void(tmp_path):
    artifact, state = published(tmp_path / "tables", "a = 1"), Storage(tmp_path / "state")
    state.write("stream.json", json.dumps({"id": "s1"}).encode())
    record_use(artifact, state, "s1")
    aged(tmp_path / "tables", 30, artifact.path)
    assert pipeline.prune_artifacts(tmp_path / "tables", "7d").removed == (), "a young record counts without a version"
    aged(tmp_path / "tables", 30)
    state.write("versions/0.json", json.dumps({"artifact": artifact._asdict()}).encode())
    assert list(pipeline.prune_artifacts(tmp_path / "tables", "7d").kept) == [artifact.digest]
    (tmp_path / "state" / "stream.json").write_text("{")
    assert list(pipeline.prune_artifacts(tmp_path / "tables", "7d").kept) == [artifact.digest], "cannot be read"
    shutil.rmtree(tmp_path / "state")
    assert digests(pipeline.prune_artifacts(tmp_path / "tables", "7d", dry_run=True).removed) == [artifact.digest]
    assert (tmp_path / "tables" / USES / artifact.digest / "s1.json").exists()
    assert digests(pipeline.prune_artifacts(tmp_path / "tables", "7d").removed) == [artifact.digest]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_stream_that_starts_while_its_artifact_is_removed(tmp_path, monkeypatch):
    """Either the artifact comes back, or the stream ends with an error; both orders are tried."""
    artifact, state = published(tmp_path / "tables", "a = 1"), Storage(tmp_path / "state")
    aged(tmp_path / "tables", 30)
    remove, done = Storage.remove, []

    def removed(self, name):
        remove(self, name)
        if name.endswith("/artifact.json") and not done:
            done.append(name)
            with pytest.raises(ct.TableError, match="was removed; compile"):
                record_use(artifact, state, "s1")

    monkeypatch.setattr(Storage, "remove", removed)
    found = pipeline.prune_artifacts(tmp_path / "tables", "7d")
    assert (found.removed, found.kept) == ((), {artifact.digest: "used by a stream that has just started"})
    assert pipeline.Artifact.read(artifact.path) == artifact
    record_use(artifact, state, "s1")
    assert pipeline.prune_artifacts(tmp_path / "tables", "7d").removed == ()


def test_a_store_that_cannot_be_written_to(tmp_path, monkeypatch):
    artifact = pipeline.publish(some_table(), tmp_path)

    def refuse(self, name, data):
        raise PermissionError("no")

    monkeypatch.setattr(artifact_store.Storage, "write", refuse)
    with pytest.warns(UserWarning, match="cannot record that the stream"):
        record_use(artifact, Storage(tmp_path / "state"), "s1")
    note_use(artifact)


def test_commands(tmp_path):
    old, young = published(tmp_path, "a = 1"), published(tmp_path, "a = 2")
    aged(tmp_path, 9, old.digest)
    lines = contrada("artifacts", "list", tmp_path, "--json", code=0).stdout
    assert [row["digest"] for row in read_lines(lines)] == [old.digest, young.digest]
    told = contrada("artifacts", "list", tmp_path, code=0)
    assert "  9d  " in told.stdout
    assert "2 artifacts" in told.stderr
    would = contrada("artifacts", "prune", tmp_path, "--dry-run", code=0)
    assert would.stdout.startswith(old.digest)
    assert "1 artifact would be removed" in would.stderr
    result = contrada("artifacts", "prune", tmp_path, "--older", "7d", "--summary", "json", code=0)
    assert json.loads(result.stderr.splitlines()[-1])["counts"]["removed"] == 1
    assert contrada("artifacts", "list", tmp_path, code=0).stdout.count("\n") == 1
    assert contrada("artifacts", "list", tmp_path / "none", code=0).stdout == ""
    for words in (["prune", tmp_path, "--older", "a week"], ["list", "rubbish://x"]):
        contrada("artifacts", *words, code=2)
