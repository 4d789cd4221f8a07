"""`--summary` of every command: one JSON object however the command ends, with stable names and exit codes."""

import json
import signal
import time

import pytest
from commands import COMMANDS, SAMPLE, start, words_of

import contrada as ct
from console import contrada, read_lines, without_compiling
from effort import slow, thorough

FIELDS = ["command", "version", "exit_code", "error", "seconds", "counts", "rejected", "outputs"]
COUNTS = {
    "match": {"subscriptions": 1, "messages": 1, "matches": 1, "matched_messages": 1, "rejected_messages": 0,
              "rejected_subscriptions": 0, "rejected_parts": 0},
    "check": {"filters": 1, "constraints": 3},
    "simplify": {"subscriptions": 1, "written": 1},
    "overlay simulate": {"peers": 20, "messages": 5, "false_negatives": 0},
}  # fmt: skip
ENDLESS = ("overlay peer", "serve")
SPARK = ("stream", "ingest", "demo")
SLOW = ("experiment run", "overlay churn", "overlay show", "overlay simulate")
OFFLINE = ("network show", "network remove", "sync", "overlay publish")
START = "import sys, contrada_command; sys.argv = ['contrada', *sys.argv[1:]]; contrada_command.main()"


def summary_in(text):
    """The summary, which is the last line."""
    found = json.loads(text.splitlines()[-1])
    assert list(found) == FIELDS
    assert found["version"] == ct.__version__
    assert found["seconds"] >= 0
    return found


def test_every_command_has_a_sample():
    assert sorted(SAMPLE) == sorted(COMMANDS)


@pytest.mark.parametrize(
    "command",
    [
        thorough(name) if name == "experiment all" else slow(name) if name in SLOW else name
        for name in COMMANDS
        if name not in ENDLESS + SPARK
    ],
)
def test_a_command_that_ends(command, tmp_path):
    result = contrada(*words_of(f"{command} {SAMPLE[command]}", tmp_path), "--summary", "json")
    found = summary_in(result.stderr)
    assert found["command"] == command
    assert found["exit_code"] == result.exit_code == (2 if command in OFFLINE else 0)
    assert (found["error"] is None) == (result.exit_code == 0)
    if command in COUNTS:
        assert found["counts"] == COUNTS[command]
    assert '"exit_code"' not in result.stdout, "standard output is for results"


@pytest.mark.slow
@pytest.mark.parametrize("command", ENDLESS)
def test_a_command_that_is_stopped(command, tmp_path):
    words = [*words_of(f"{command} {SAMPLE[command]}", tmp_path), "--summary", str(tmp_path / "run.json")]
    with start("-c", START, *words, cwd=tmp_path) as process:
        line = process.stderr.readline()
        while "listening on" not in line and "ready on" not in line and line:
            line = process.stderr.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    found = summary_in((tmp_path / "run.json").read_text())
    assert (found["command"], found["exit_code"]) == (command, process.returncode)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "counts"), [
    ("stream FOLDER/incoming SUBSCRIPTIONS --checkpoint FOLDER/c --output FOLDER/out --once",
     {"batches": 0, "messages": 0, "matches": 0}),
    ("match MESSAGES SUBSCRIPTIONS --spark --output FOLDER/out", {**COUNTS["match"]}),
    ("demo --output FOLDER/out --scale 0.01", None),
])  # fmt: skip
def test_a_command_on_spark(command, counts, tmp_path):
    words = [*words_of(command, tmp_path), "--summary", "json"]
    with start("-c", START, *words, cwd=tmp_path) as process:
        _, errors = process.communicate(timeout=500)
    found = summary_in(errors)
    assert (found["exit_code"], process.returncode, found["error"]) == (0, 0, None)
    assert found["outputs"] == [str(tmp_path / "out")]
    assert counts in (None, found["counts"])


def test_a_file(tmp_path):
    place = tmp_path / "run.json"
    result = contrada(*words_of(f"match {SAMPLE['match']}", tmp_path), "--quiet", "--summary", place, code=0)
    assert without_compiling(result.stderr) == ""
    (found,) = read_lines(place)
    assert found["counts"] == COUNTS["match"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".run")) == []


@pytest.mark.parametrize("target", ["xml", "FOLDER", "FOLDER/missing/run.json", "FOLDER/run.txt"])
def test_a_summary_that_cannot_be_written_is_noticed_before_the_command_runs(target, tmp_path):
    target = target.replace("FOLDER", str(tmp_path))
    result = contrada("check", "x > 1", "--summary", target, code=2)
    assert "--summary" in result.stderr
    assert result.stdout == ""


def test_rejected_rows_and_codes(tmp_path):
    words = words_of("match MESSAGES SUBSCRIPTIONS --reject FOLDER/bad.ndjson", tmp_path)
    (tmp_path / "messages.ndjson").write_text('{"id": "a", "severity": 4}\n{"id"\n')
    for strict, code in (([], 0), (["--strict"], 1)):
        result = contrada(*words, *strict, "--summary", "json", code=code)
        found = summary_in(result.stderr)
        assert (found["exit_code"], found["rejected"], found["error"]) == (code, 1, None)
        assert (found["counts"]["messages"], found["counts"]["rejected_messages"]) == (1, 1)
        assert found["outputs"] == [str(tmp_path / "bad.ndjson")]


@pytest.mark.parametrize(("words", "code", "error"), [
    (["check", "x >"], 1, "unexpected end of text"),
    (["check"], 2, "need a filter"),
    (["match", "MESSAGES", "SUBSCRIPTIONS", "--output", "FOLDER"], 2, "is a directory"),
    (["match", "MESSAGES", "SUBSCRIPTIONS", "--explain", "nothing"], 2, "no subscription has the key"),
])  # fmt: skip
def test_errors_are_in_the_summary(words, code, error, tmp_path):
    result = contrada(*words_of(" ".join(words[:1]), tmp_path), *words_of(" ".join(map(repr, words[1:])), tmp_path),
                      "--summary", "json", code=code)  # fmt: skip
    found = summary_in(result.stderr)
    assert found["exit_code"] == code
    assert error in found["error"]


def test_closed_output(tmp_path):
    import os

    read, write = os.pipe()
    os.close(read)
    with start("-c", START, "check", "x > 1", "--summary", "json", stdout=write) as process:
        _, errors = process.communicate(timeout=60)
    os.close(write)
    assert summary_in(errors)["exit_code"] == process.returncode == 141
