"""Every command on files that are missing, directories, unreadable, empty or rubbish: one line, never a traceback."""

import random
import zlib

import pytest
from commands import COMMANDS, words_of

from console import contrada
from effort import FULL

SUFFIXES = (
    ".ndjson", ".json", ".geojson", ".geojsonseq", ".xml", ".parquet", ".arrow", ".csv", ".gz", ".zst", ".gpkg",
)  # fmt: skip
RUBBISH = {
    "empty": b"",
    "blank": b"\n\n  \n",
    "random": random.Random(7).randbytes(3000),
    "zeros": bytes(500),
    "latin": "Österreich;ß\n".encode("latin-1"),
    "parquet": b"PAR1" + bytes(40) + b"PAR1",
    "arrow": b"ARROW1\0\0" + b"\xff" * 60 + b"ARROW1",
    "gzip": b"\x1f\x8b\x08" + zlib.compress(b"x"),
    "deep": b"[" * 30_000,
    "deep objects": b'{"a":' * 30_000,
    "xml": b"<?xml version='1.0'?><alert xmlns='x'><",
    "entity": b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    "surrogate": b'{"key": "\\ud800", "filter": "x = 1", "id": "\\udfff"}',
    "number": b'{"x": 1e999, "y": -1' + b"0" * 5000 + b"}",
    "header": b"a,a,,b\n1,2\n",
    "null": b"null\n[]\n5\n",
}

# Where commands take a file that they read.
READS = [
    "match BAD SUBSCRIPTIONS",
    "match MESSAGES BAD",
    "match MESSAGES BAD --template 'severity > $severity'",
    "match MESSAGES SUBSCRIPTIONS --zones BAD",
    "match BAD SUBSCRIPTIONS --explain k",
    "check --file BAD",
    "check --file BAD --template 'S_INTERSECTS(area, $geometry)'",
    "check @BAD",
    "simplify BAD",
    "simplify BAD --template 'severity > $severity' --across",
    "sync BAD --all --url http://127.0.0.1:9 --patience 0",
    "sync BAD --all --url http://127.0.0.1:9 --patience 0 --template 'S_INTERSECTS(area, $geometry)'",
    "serve --config BAD --port none",
    "serve --demo --config BAD --port none",
    "overlay show --trace BAD --output FOLDER/o.svg",
    "overlay peer --subscribe 'x > 1' --secret-file BAD --listen nowhere",
    "overlay peer --subscribe 'x > 1' --tls-cert BAD --tls-key BAD --tls-ca BAD",
    "overlay publish {} --to 127.0.0.1:9 --secret-file BAD",
    "overlay publish {} --to 127.0.0.1:9 --tls-cert BAD --tls-key BAD --tls-ca BAD",
    "experiment run cover-table-1 --set commands=10 --set k=1 --seeds 1 --output PARENT",
    "experiment show cover-table-1 --output PARENT",
    "artifacts list BAD",
    "artifacts prune BAD --dry-run",
]
SPARK_READS = ["demo", "ingest", "stream"]  # below is what they refuse before it starts
READ_NOTHING = [
    "doctor", "experiment all", "experiment list", "network remove", "network show", "overlay churn",
    "overlay simulate",
]  # fmt: skip


def bad_files(folder, case):
    """A file of every kind under some suffixes, and what is no file; one of their names is what experiments read.

    With full effort every kind is tried without a suffix and as lines of JSON, else with one of the two; and three
    kinds under each of the other suffixes, else one. Without full effort every fourth of these files is tried.
    """
    yield folder / "missing.ndjson"
    for name in ("directory.ndjson", "directory", "directory.parquet"):
        (folder / name).mkdir()
        yield folder / name
    unreadable = folder / "unreadable.ndjson"
    unreadable.symlink_to("/proc/self/mem")  # opens for root too; reading from its start fails
    yield unreadable
    loop = folder / "loop.ndjson"
    loop.symlink_to(loop)
    yield loop
    plain, any_name = ("", ".ndjson"), ("empty", "random", "null")
    named = [(kind, suffix) for kind in RUBBISH for suffix in plain]
    named += [(kind, suffix) for kind in any_name for suffix in SUFFIXES[1:]]
    if not FULL:
        named = [(kind, plain[(k // 2 + case) % 2]) for k, kind in enumerate(RUBBISH)]
        named += [(any_name[(k + case) % 3], suffix) for k, suffix in enumerate(SUFFIXES[1:])]
        named = named[case % 4 :: 4]
    for kind, suffix in named:
        inner = folder / f"{kind} {suffix or 'none'}"
        inner.mkdir()
        (inner / "rows").mkdir()
        for name in (f"rubbish{suffix}", "rows/cover-counts.ndjson"):
            (inner / name).write_bytes(RUBBISH[kind])
        yield inner / f"rubbish{suffix}"


def test_every_command_is_tried():
    tried = {command for command in COMMANDS if any(line.startswith(f"{command} ") for line in READS)}
    assert sorted([*tried, *SPARK_READS, *READ_NOTHING]) == COMMANDS


@pytest.mark.effort
@pytest.mark.parametrize("case", range(len(READS)), ids=READS)
def test_bad_files_are_told_in_lines(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "good"
    folder.mkdir()
    for path in bad_files(tmp_path, case):
        arguments = words_of(READS[case], folder, BAD=path, PARENT=path.parent)
        result = contrada(*arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exc_info)
        assert result.exit_code in (0, 1, 2), arguments
        assert "Traceback" not in result.output
        if result.exit_code == 2:
            assert "error" in result.stderr.lower(), arguments
            assert len(result.stderr) < 3000, arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest", "missing.gpkg", "out"], ["ingest", "file.json", "file.json"], ["demo", "--data", "missing"],
        ["demo", "--data", "file.json"], ["stream", "incoming", "missing.ndjson", "--checkpoint", "c", "--output", "o"],
        ["stream", "incoming", "--changes", "missing", "--checkpoint", "c", "--output", "o"],
        ["stream", "incoming", "--format", "dbf", "--checkpoint", "c", "--output", "o"],
        ["match", "missing.ndjson", "file.json", "--spark", "--output", "o"],
        ["match", "file.json", "missing.ndjson", "--spark", "--output", "o"],
        ["match", "file.json", "file.json", "--plan", "broadcast"],
    ],
)  # fmt: skip
def test_commands_of_spark_refuse_what_is_not_there(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.json").write_text("{}")
    (tmp_path / "incoming").mkdir()
    result = contrada(*arguments)
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert "error" in result.stderr.lower()
    assert all(word in result.stderr for word in arguments if word.startswith("missing"))
    assert not any((tmp_path / name).exists() for name in ("out", "o", "c"))
