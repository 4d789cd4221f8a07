"""Outputs of runs: `_SUCCESS` is written last, and the manifest has counts and digests of all files."""

import hashlib
import json
from contextlib import suppress

import pyarrow.parquet as pq
import pytest
from streams import AVAILABLE, uncommit

import contrada as ct
from console import contrada, feature, write_lines
from contrada import pipeline
from contrada.pipeline.outputs import MANIFEST, SUCCESS, begin_output, complete_output
from contrada.pipeline.storage import Storage

SUBSCRIPTIONS = [{"key": "k1", "subscriber": "ops", "filter": "level >= 3"}]
MESSAGES = [{"id": "a", "level": 4}, {"id": "b", "level": 1}, {"id": "c", "level": 5}]


def checked(place, verify=True):
    """The manifest of an output, whose facts are looked up here without its code."""
    found = pipeline.read_output(place, verify=verify)
    on_disk = {
        str(path.relative_to(place)): path for path in place.rglob("*")
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(place).parts)
        and path.name != "dataset.json"
    }  # fmt: skip
    assert [one.path for one in found.files] == sorted(on_disk)
    for one in found.files:
        data = on_disk[one.path].read_bytes()
        assert (one.bytes, one.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        if one.path.endswith(".parquet"):
            assert one.rows == pq.read_metadata(on_disk[one.path]).num_rows
    return found


@pytest.mark.slow
def test_match_command(command, tmp_path):
    messages = write_lines(tmp_path / "m.ndjson", [*MESSAGES, {"id": "d", "level": [1]}])
    subscriptions = write_lines(tmp_path / "s.ndjson", SUBSCRIPTIONS)
    for format in ("parquet", "csv"):
        place = tmp_path / format
        command("match", messages, subscriptions, "--spark", "--output", place, "--format", format, code=0)
        found = checked(place)
        assert found.counts["matches"] == 2
        assert found.counts["messages"] + found.counts["rejected_messages"] == 4
        assert sum(one.rows or 0 for one in found.files) == (2 if format == "parquet" else 0)


def test_matched_write(spark, tmp_path):
    rows = spark.createDataFrame([("k1", "ops", "level >= 3")], "key string, subscriber string, filter string")
    messages = spark.createDataFrame([(1, 4), (2, 1), (3, 5)], "message_id int, level int")
    matched = pipeline.match(messages, rows, artifacts=tmp_path / "artifacts")
    matched.write(str(tmp_path / "out"))
    assert checked(tmp_path / "out").counts == {"matches": 2, "rejected": 0}
    matched.write(str(tmp_path / "out"), mode="append")
    assert checked(tmp_path / "out").counts == {"matches": 4, "rejected": 0}
    matched.write(str(tmp_path / "out"), mode="overwrite")
    assert checked(tmp_path / "out").counts == {"matches": 2, "rejected": 0}


def test_ingest(spark, tmp_path):
    square = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
    source = write_lines(tmp_path / "in.geojsonl", [feature(square), feature(None)])
    result = contrada("ingest", source, tmp_path / "out", "--summary", "json", code=0)
    found = checked(tmp_path / "out")
    assert found.counts == {"read": 2, "kept": 1, "quarantined": 1, "repaired": 0}
    told = json.loads(result.stderr.splitlines()[-1])
    assert (told["counts"], told["rejected"]) == ({"files": 1, "read": 2, "kept": 1, "repaired": 0}, 1)
    assert told["outputs"] == [str(tmp_path / "out")]


def test_batches_of_a_stream(spark, tmp_path):
    """Also of a batch that comes again, on a file system with rename and on one that is written in place."""
    for name, sink in (("local", tmp_path / "local"), ("uri", (tmp_path / "uri").as_uri())):
        (tmp_path / f"{name}-in").mkdir()
        write_lines(tmp_path / f"{name}-in" / "1.ndjson", [*MESSAGES, {"level": 1}, {"id": "x", "level": {}}])
        for again in (False, True):
            files = pipeline.MessageFiles(spark, tmp_path / f"{name}-in")
            stream = pipeline.match_stream(
                files, spark.createDataFrame(SUBSCRIPTIONS), sink=sink,
                checkpoint=tmp_path / f"{name}-state", trigger=AVAILABLE,
            )  # fmt: skip
            assert stream.wait(120)
            found = checked(tmp_path / name / "matches" / "batch=0")
            assert (found.counts["batch"], found.counts["matches"]) == (0, 2)
            if not again:
                uncommit(tmp_path / f"{name}-state", 0)


def test_what_changed_is_named(tmp_path):
    place = Storage(tmp_path / "out")
    for name in ("a/1.bin", "a/2.bin", "_hidden/3.bin", "a/.4.bin"):
        place.write(name, name.encode())
    assert complete_output(None) is None
    assert complete_output(place, folders=("none",)) is None
    made = complete_output(place, {"rows": 2}, folders=("a",))
    assert [one.path for one in made.files] == ["a/1.bin", "a/2.bin"]
    assert pipeline.read_output(tmp_path / "out", verify=True) == made
    for change, reason in (
        (lambda: place.write("a/2.bin", b"other"), "a/2.bin: bytes is 5, in the manifest 7"),
        (lambda: place.write("a/2.bin", b"a/2.bim"), "a/2.bin: sha256 is"),
        (lambda: place.remove("a/2.bin"), "a/2.bin: missing"),
        (lambda: [place.write("a/2.bin", b"a/2.bin"), place.write("a/5.bin", b"")], "a/5.bin: not in the manifest"),
        (lambda: place.write(MANIFEST, b"{"), "damaged"),
        (lambda: place.remove(MANIFEST), "has no _manifest.json"),
        (lambda: place.remove(SUCCESS), "not complete"),
    ):
        change()
        with pytest.raises(ct.TableError, match=reason):
            pipeline.read_output(tmp_path / "out", verify=True)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", "a/../b", "", "a\\b"])
def test_paths_outside_of_the_output_are_refused(path, tmp_path):
    place = Storage(tmp_path)
    place.write("a", b"")
    complete_output(place, {})
    about = json.loads((tmp_path / MANIFEST).read_text())
    about["files"][0]["path"] = path
    (tmp_path / MANIFEST).write_text(json.dumps(about))
    with pytest.raises(ct.TableError, match="damaged"):
        pipeline.read_output(tmp_path)


@pytest.mark.slow
def test_large_outputs_are_hashed_by_tasks(spark, tmp_path):
    place = Storage(tmp_path / "out")
    spark.range(0, 10, 1, 3).write.parquet(str(tmp_path / "out" / "rows"))
    found = complete_output(place, None, spark, ("rows",), driver_bytes=0)
    assert found.counts == {"rows": 10}
    assert checked(tmp_path / "out") == found


def test_a_run_that_ends_early_leaves_no_mark(tmp_path):
    place = Storage(tmp_path / "out")
    place.write("a", b"1")
    complete_output(place)
    begin_output(place)
    with suppress(ct.TableError):
        pipeline.read_output(tmp_path / "out")
        raise AssertionError("an incomplete output was read")
