"""Damaged and hostile files of changes: each bad record is rejected as it was written, and the others count."""

import io
import json
import os
import random
import signal

import pyarrow as pa
import pytest
from streams import parquet_of

from console import read_lines
from contrada.matching import ForwardingTable
from contrada.pipeline.stream.changes import Change, DirectoryChanges, apply_changes, read_apart
from effort import examples, slow

GOOD = b'{"key": "good", "subscriber": "s", "filter": "size > 1"}'
DIGITS = b"1" * 400
DEEP = b"[" * 5000 + b"]" * 5000
BAD_LINES = [
    b'{"key": "\xff\xfe", "filter": "size > 1"}',
    b'{"key": "a", "filter": "name = \'\xc3(\'"}',
    b'{"key": "a",  "filter":   "size >"   }',
    b'{"key": "a", "filter": {"op": "=", "args": ' + DEEP + b"}}",
    b'{"key": "a", "filter": ' + DEEP + b"}",
    b'{"key": ' + b"1" * 6000 + b', "filter": "size > 1"}',
    b'{"key": [1], "filter": "size > 1"}',
    b'{"key": "a", "filter": {"op": "s_intersects", "args": [{"property": "area"}, {"type": "Point", "coordinates": ['
    + DIGITS + b", 0]}]}}",
    b'{"key": "a", "filter": "' + b"(" * 3000 + b"size > 1" + b")" * 3000 + b'"}',
    b'{"key": "a", "filter": "' + b"NOT " * 3000 + b'size > 1"}',
    b'{"key": "\\ud800", "filter": "size > 1"}',
    b'{"key": "a", "filter": "name = \'\\ud800\'"}',
    b'{"key": "a", "key": 1e400, "filter": "size > 1"}',
    b'{"action": "unsubscribe", "key":   "nobody"}',
    b"\x00\x01\x02",
    b"[]",
    b"null",
    b'{"key": "a", "filter": "S_INTERSECTS(area, POINT(' + DIGITS + b'e99 0))"}',
]  # fmt: skip


TEXT = ("string", "string")


def since(folder, state=None):
    return DirectoryChanges(str(folder)).since(state)


def applied(folder):
    return apply_changes(ForwardingTable(), since(folder).records, TEXT)


@pytest.mark.parametrize("line", BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_bad_line_is_rejected_as_written_and_the_next_is_read(tmp_path, line):
    (tmp_path / "1.ndjson").write_bytes(GOOD + b"\n" + line + b"\n" + GOOD.replace(b"good", b"last") + b"\n")
    news = since(tmp_path)
    table = ForwardingTable()
    made = apply_changes(table, news.records, TEXT)
    assert [change.key for change in made.changes] == ["good", "last"]
    (bad,) = made.rejected
    assert (bad.unit, bad.number) == ("line", 2)
    assert bad.raw == line.decode(errors="replace")
    assert bad.reason
    json.dumps(bad._asdict(), ensure_ascii=False).encode()
    assert len(table) == 2
    assert since(tmp_path, news.state).records == []


def test_numbers_of_400_digits_are_names_of_text_and_no_others(tmp_path):
    (tmp_path / "1.ndjson").write_bytes(b'{"key": ' + DIGITS + b', "filter": "size > 1"}\n')
    records = since(tmp_path).records
    assert apply_changes(ForwardingTable(), records, TEXT).changes[0].key == DIGITS.decode()
    (bad,) = apply_changes(ForwardingTable(), records, ("bigint", "bigint")).rejected
    assert "bigint" in bad.reason


def test_lines_of_csv_are_kept_as_written(tmp_path):
    lines = ["key,filter", 'a,"size > 1"', '"b"  ,size >', "c,size > 1,more", "d,\xff"]
    (tmp_path / "1.csv").write_bytes("\n".join(lines).encode("latin-1"))
    made = applied(tmp_path)
    assert [change.key for change in made.changes] == ["a"]
    assert [item.raw for item in made.rejected] == ['"b"  ,size >', "c,size > 1,more", "d,�"]


def rows(count=50):
    subscribers = [f"s{k // 4}" if k % 5 else None for k in range(count)]
    named = [{"key": f"k{k}", "subscriber": name, "filter": f"size > {k}"} for k, name in enumerate(subscribers)]
    return pa.Table.from_pylist(named)


def arrow_of(table):
    target = io.BytesIO()
    with pa.ipc.new_file(target, table.schema) as writer:
        writer.write_table(table)
    return target.getvalue()


@pytest.mark.parametrize(("suffix", "written"), [("parquet", parquet_of), ("arrow", arrow_of)])
def test_files_of_rows_are_read_in_another_process(tmp_path, suffix, written):
    (tmp_path / f"1.{suffix}").write_bytes(written(rows()))
    made = applied(tmp_path)
    assert len(made.changes) == 50
    assert not made.rejected
    assert [made.changes[k].subscriber for k in (0, 1, 8)] == ["k0", "s0", "s2"]


@pytest.mark.effort
@pytest.mark.parametrize(("suffix", "written"), [slow("parquet", parquet_of), slow("arrow", arrow_of)])
def test_damaged_files_of_rows_end_nothing(tmp_path, suffix, written):
    data, chosen = written(rows()), random.Random(5)
    damaged = [data[: len(data) // 2], data[:12], b"", data + b"x", b"PAR1" + os.urandom(200) + b"PAR1"]
    for _ in range(examples(8)):
        changed = bytearray(data)
        for _ in range(chosen.choice([1, 8])):
            changed[chosen.randrange(len(changed))] ^= chosen.randrange(1, 256)
        damaged.append(bytes(changed))
    for number, some in enumerate(damaged):
        (tmp_path / f"{number:03}.{suffix}").write_bytes(some)
    (tmp_path / "999.ndjson").write_bytes(GOOD + b"\n")
    news = since(tmp_path)
    made = apply_changes(ForwardingTable(), news.records, TEXT)
    assert made.changes[-1].key == "good"
    assert len([item for item in made.rejected if item.reason]) >= 3
    assert since(tmp_path, news.state).records == []


READ_ONE = "import json, os, sys, time\nprint(json.dumps(['change', 'subscribe', 'a', 'a', 'size > 1']), flush=True)\n"
HALF = "sys.stdout.write('[\"change\", [')\nsys.stdout.flush()\ntime.sleep(600)\n"
GREEDY = "from contrada.pipeline.stream.apart import limit_memory\nlimit_memory()\nbytearray(3 << 30)\n"


@pytest.mark.parametrize(
    ("code", "limits", "told"),
    [
        (f"os.kill(os.getpid(), {int(signal.SIGSEGV)})\n", {}, ["signal 11"]),
        (HALF, {"reader_seconds": 2}, ["the limit is 2 seconds", "CONTRADA_MAX_READER_SECONDS"]),
        (GREEDY, {"reader_memory": 2 << 30}, ["MemoryError", "CONTRADA_MAX_READER_MEMORY"]),
    ],
)
def test_a_process_that_ends_badly_is_a_rejection_and_what_it_read_is_kept(read_with, limited, code, limits, told):
    limited(**limits)
    read_with(READ_ONE + code)
    kept, bad = read_apart(b"", "x.parquet")
    assert kept == Change("subscribe", "a", "a", "size > 1")
    assert (bad.source, bad.unit) == ("x.parquet", "file")
    assert all(part in bad.reason for part in told)


def test_a_file_that_needs_too_much_memory_names_the_limit(limited):
    table = rows(2).append_column("large", pa.array([bytes(40 << 20)] * 2))
    limited(reader_memory=250 << 20)
    bad = read_apart(parquet_of(table), "x.parquet")[-1]
    assert "CONTRADA_MAX_READER_MEMORY" in bad.reason


def test_a_driver_goes_on_after_bad_files_and_starts_again(home):
    folder = home.changes
    (folder / "1.ndjson").write_bytes(b"\n".join([*BAD_LINES, GOOD]))
    (folder / "2.parquet").write_bytes(parquet_of(rows())[:300])
    (folder / "3.json").write_bytes(DEEP)
    (folder / "4.xml").write_bytes(b"<alert")
    (folder / "5.ndjson").write_bytes(GOOD.replace(b"good", b"last"))
    (folder / "6.ndjson").mkdir()
    first = home.driver()
    version = first.of_batch(0)
    assert version.subscriptions == 2
    assert first.rejected == len(BAD_LINES) + 4
    raws = [row["raw"] for row in read_lines(home.kept / "rejected_changes" / "1.ndjson")]
    assert raws[: len(BAD_LINES)] == [line.decode(errors="replace") for line in BAD_LINES]
    again = home.driver()
    assert again.of_batch(0) == version
    assert again.of_batch(1).number == version.number
    assert again.rejected == 0
