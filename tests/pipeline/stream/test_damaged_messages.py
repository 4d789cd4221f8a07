"""Damaged files of messages: each is one rejection that names it, and the rows of all others are matched."""

import gzip
import json
import shutil

import pyarrow as pa
import pytest
from sample_tables import every_operator
from streams import AVAILABLE, parquet_of, rows_in, uncommit, written

import contrada as ct
from console import write_lines
from contrada import pipeline
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream import footers
from contrada.pipeline.stream.file_damage import Damage
from contrada.pipeline.stream.source_log import files_of_batch
from generators.filters_of_every_kind import expected, random_messages


def rejected_files(output):
    """The reasons of damaged files, by their names; every other rejection is an error."""
    found = {}
    for row in rows_in(output / "rejected"):
        path, _, reason = row["reason"].partition(": ")
        assert path.startswith("/"), row
        assert row["message_id"] is None
        assert path not in found, "one rejection for a file"
        found[path.rpartition("/")[2]] = reason
    return found


@pytest.fixture
def folder(tmp_path):
    """A directory with messages in `in`; its streams write to `out` and have the checkpoint `state`."""
    (tmp_path / "in").mkdir()
    return tmp_path


def streamed(spark, folder, subscriptions, form):
    """Read what there is; matched rows, rejected ones, and the progress."""
    files = pipeline.MessageFiles(spark, folder / "in", form)
    places = {"sink": folder / "out", "checkpoint": folder / "state"}
    stream = pipeline.match_stream(files, subscriptions, **places, trigger=AVAILABLE)
    stream.wait(300)
    found = written(folder / "out" / "matches", ["message_id", "subscriber", "key"])
    return found, written(folder / "out" / "rejected", ["message_id", "reason"]), stream.progress()


def with_byte(data, at):
    made = bytearray(data)
    made[at] ^= 0x5A
    return bytes(made)


def lines(first, count, level=4):
    return b"".join(b'{"id": "m%d", "level": %d}\n' % (k, level) for k in range(first, first + count))


@pytest.mark.slow
def test_damaged_compressed_lines_through_the_command(command, folder):
    source, output = folder / "in", folder / "out"
    packed, large = gzip.compress(lines(100, 50)), gzip.compress(lines(1000, 20_000))
    sound = {
        "a.ndjson": lines(0, 3), "b b%20[1].ndjson.gz": packed, "d.ndjson": b"",
        "c.ndjson.zst": pa.compress(lines(200, 5), "zstd", True), "e.ndjson": b"\n \n",
    }  # fmt: skip
    damaged = {
        "cut.ndjson.gz": large[: len(large) // 2], "crc.ndjson.gz": with_byte(gzip.compress(lines(600, 50)), -6),
        "none.ndjson.gz": lines(300, 5), "head.ndjson.gz": packed[:6], "empty.ndjson.gz": b"",
        "cut.ndjson.zst": pa.compress(lines(400, 5), "zstd", True)[:-4],
    }  # fmt: skip
    for name, data in {**sound, **damaged}.items():
        (source / name).write_bytes(data)
    subscriptions = write_lines(folder / "s.ndjson", [{"key": "k", "filter": "level = 4"}])
    asked = [source, subscriptions, "--checkpoint", folder / "state", "--output", output, "--once"]
    metrics = folder / "stream.prom"
    command("stream", *asked, "--metrics", metrics, code=0)
    reasons = rejected_files(output)
    assert reasons.keys() == damaged.keys()
    assert "0 bytes" in reasons["empty.ndjson.gz"]
    assert "EOFException" in reasons["cut.ndjson.gz"]
    assert "gzip" in reasons["none.ndjson.gz"]
    found = [int(row["message_id"][1:]) for row in rows_in(output / "matches")]
    assert len(set(found)) == len(found)
    assert {*range(3), *range(100, 150), *range(200, 205)} <= set(found)
    partly = [number for number in found if number >= 1000]
    assert partly
    assert sorted(partly) == [*range(1000, 1000 + len(partly))], "rows before the damage"
    numbers = metrics.read_text()
    assert f"contrada_stream_messages {len(found) + len(damaged)}\n" in numbers
    assert f"contrada_stream_rejected {len(damaged)}\n" in numbers
    (source / "z.ndjson").write_bytes(lines(500, 1))
    again = command("stream", *asked)
    assert "1 message," in again.stderr
    assert "rejected" not in again.stderr
    assert len(rejected_files(output)) == len(damaged)


@pytest.mark.slow
def test_damaged_parquet_through_the_command(command, folder):
    source, output = folder / "in", folder / "out"

    def table(first, count):
        return pa.table({"name": [f"m{k}" for k in range(first, first + count)], "level": [4] * count})

    good = parquet_of(table(0, 50), compression="zstd", use_dictionary=False)
    page = good.index(b"\x28\xb5\x2f\xfd")
    typed = pa.table({"name": ["x"], "level": ["high"]})
    damaged = {
        "0.parquet": b"PAR1 and no more PAR1", "1.parquet": b"", "cut.parquet": good[: len(good) // 2],
        "page.parquet": good[: page + 4] + bytes(8) + good[page + 12 :], "tail.parquet": good[:-1],
        "type.parquet": parquet_of(typed), "sum.parquet": b"",
    }  # fmt: skip
    readable = ("page.parquet", "sum.parquet", "type.parquet")
    # Page checksums find a changed value that decoding alone cannot.
    plain = parquet_of(table(700, 9), compression="none", use_dictionary=False, write_page_checksum=True)
    damaged["sum.parquet"] = plain.replace(b"m703", b"m999", 1)
    for name, data in damaged.items():
        (source / name).write_bytes(data)
    subscriptions = write_lines(folder / "s.ndjson", [{"key": "k", "filter": "level = 4 AND name <> 'm1'"}])
    asked = [source, subscriptions, "--checkpoint", folder / "state", "--output", output, "--once",
             "--format", "parquet", "--id", "name"]  # fmt: skip
    for name in readable:  # their footers are sound
        (source / name).rename(folder / name)
    assert "0.parquet" in command("stream", *asked, code=2).stderr
    (source / "g.parquet").write_bytes(good)
    command("stream", *asked, code=0)
    assert {row["message_id"] for row in rows_in(output / "matches")} == {f"m{k}" for k in range(50) if k != 1}
    for name in readable:
        (folder / name).rename(source / name)
    (source / "h.parquet").write_bytes(parquet_of(table(80, 2)))
    second = command("stream", *asked, code=0)
    assert "5 messages" in second.stderr
    assert "3 rejected" in second.stderr
    assert len(rows_in(output / "matches")) == 51
    reasons = rejected_files(output)
    assert reasons.keys() == damaged.keys()
    assert "footer" in reasons["0.parquet"] or "not a Parquet file" in reasons["0.parquet"]
    # The columns are those of the first start, although the directory now begins with another type.
    (source / "g.parquet").unlink()
    (source / "h.parquet").unlink()
    (source / "0.parquet").write_bytes(parquet_of(typed))
    (source / "z.parquet").write_bytes(parquet_of(table(90, 3)))
    command("stream", *asked, code=0)
    assert len(rows_in(output / "matches")) == 54


@pytest.mark.slow
def test_sound_files_give_the_answers_of_a_single_process(spark, folder):
    """All kinds of columns, with damaged files between them; a batch that is replayed gives the same rows."""
    source = folder / "in"
    _, table = every_operator()
    messages = [random_messages(30, seed=k) for k in range(2)]
    for k, some in enumerate(messages):
        (source / f"{k}.parquet").write_bytes(parquet_of(some))
    (source / "0-cut.parquet").write_bytes(parquet_of(messages[0])[:-20])
    found, kept, progress = streamed(spark, folder, table, "parquet")
    right = [expected(table, some, "subscription") for some in messages]
    assert found == sorted((row for matches, _ in right for row in matches), key=repr)
    cut = [row for row in kept if row[0] is None]
    assert sorted(row for row in kept if row[0] is not None) == sorted(row for _, bad in right for row in bad)
    assert [reason.partition(": ")[0] for _, reason in cut] == [str(source / "0-cut.parquet")]
    assert (progress.messages, progress.rejected) == (2 * 30 + 1, len(kept))
    uncommit(folder / "state", 0)
    shutil.rmtree(folder / "out" / "matches")
    assert streamed(spark, folder, None, "parquet")[:2] == (found, kept)


def test_files_that_are_gone_are_rejected(spark, folder):
    """Spark leaves out a file that is gone when a batch is replayed, and says nothing of it."""
    source, table = folder / "in", ct.ForwardingTable()
    table.subscribe("s", "level = 4", "k")
    for k in range(3):
        (source / f"{k}.ndjson").write_bytes(lines(k, 1))
    found, _, _ = streamed(spark, folder, table, "ndjson")
    assert found == [(f"m{k}", "s", "k") for k in range(3)]
    uncommit(folder / "state", 0)
    (source / "1.ndjson").unlink()
    found, _, progress = streamed(spark, folder, table, "ndjson")
    assert found == [("m0", "s", "k"), ("m2", "s", "k")]
    assert "was removed" in rejected_files(folder / "out")["1.ndjson"]
    assert (progress.messages, progress.matches, progress.rejected) == (3, 2, 1)
    uncommit(folder / "state", 0)
    for path in source.iterdir():
        path.unlink()
    found, _, progress = streamed(spark, folder, table, "ndjson")
    assert (found, progress.rejected) == ([], 3)


class Unsure(Damage):
    """Fails to read files as often as it is told."""

    def __init__(self, files, session, failures):
        super().__init__(files, session)
        self.failures = failures

    def _error(self, uris, *, partly=False):
        if self.failures and uris:
            self.failures -= 1
            return Exception("FAILED_READ_FILE")
        return super()._error(uris, partly=partly)


def test_a_failure_that_does_not_come_again_is_no_damage_and_a_file_that_appears_late_is_read(spark, tmp_path):
    (tmp_path / "1.ndjson").write_bytes(lines(0, 1))
    (tmp_path / "2.ndjson").write_bytes(b"\n")
    files = pipeline.MessageFiles(spark, tmp_path)
    first, blank, late = uris = [(tmp_path / name).as_uri() for name in ("1.ndjson", "2.ndjson", "3.ndjson")]
    assert Unsure(files, spark, 1).sorted([first]) == ([first], [], {})
    assert Unsure(files, spark, 2).sorted([first]).damage.keys() == {first}
    damage = Damage(files, spark)
    assert damage.unread(uris) is None
    assert damage.unread([blank, late]).keys() == {late}


def test_a_footer_that_ends_its_reader_is_damage(read_with):
    read_with(
        "import json, os, sys\n"
        "for uri in json.load(sys.stdin):\n"
        "    if 'bad' in uri:\n"
        "        os.kill(os.getpid(), 11)\n"
        "    print('read', flush=True)\n"
    )
    found = footers.deadly_footers(["file:///a", "file:///bad-1", "file:///b", "file:///bad-2"])
    assert found.keys() == {"file:///bad-1", "file:///bad-2"}
    assert "signal 11" in found["file:///bad-1"]


def test_footers_are_read_in_another_process(tmp_path):
    (tmp_path / "good.parquet").write_bytes(parquet_of(pa.table({"a": [1]})))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no PAR1")
    assert footers.deadly_footers([(tmp_path / name).as_uri() for name in ("good.parquet", "bad.parquet")]) == {}


def test_the_files_of_a_batch_are_those_of_the_log(tmp_path):
    def entry(number, *names):
        return [json.dumps({"path": f"file:///{name}", "timestamp": 1, "batchId": number}) for name in names]

    def put(name, *lines):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(("v1", *lines)))

    checkpoint = Storage(tmp_path)
    put("sources/0/0", *entry(0, "a", "b"))
    put("sources/0/2.compact", *entry(0, "a", "b"), *entry(1, "c"), *entry(2, "d"))
    put("offsets/0", '{"batchWatermarkMs":0}', '{"logOffset":0}')
    put("offsets/1", '{"batchWatermarkMs":0}', '{"logOffset":2}')
    assert files_of_batch(checkpoint, 0) == ["file:///a", "file:///b"]
    assert files_of_batch(checkpoint, 1) == ["file:///c", "file:///d"], "a driver ended between two entries"
    put("offsets/2", '{"batchWatermarkMs":0}', '{"logOffset":3}')
    with pytest.raises(ct.ContradaError, match="no entry 3"):
        files_of_batch(checkpoint, 2)
    put("sources/0/3", "{")
    with pytest.raises(ct.ContradaError, match="sources/0/3 is damaged"):
        files_of_batch(checkpoint, 2)
    put("offsets/2", "{}")
    with pytest.raises(ct.ContradaError, match="offsets/2"):
        files_of_batch(checkpoint, 2)


def test_what_is_no_directory_of_messages_is_refused(spark, tmp_path):
    with pytest.raises(ct.ContradaError, match="is not a directory"):
        pipeline.MessageFiles(spark, tmp_path / "none")
    with pytest.raises(ct.ContradaError, match="csv"):
        pipeline.MessageFiles(spark, tmp_path, "csv")
