"""The tutorial of docs/streams.md: every command and every piece of code on it is what happens."""

import io
import os
import runpy
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console import contrada, without_compiling, write_lines
from contrada.pipeline.stream.changes import Change, read_changes
from doc_pages import ROOT, blocks, check_printed, commands, page_text

PAGE = page_text("streams.md")
TUTORIAL = PAGE[: PAGE.index("\n## Changes\n")]
EXAMPLE = ROOT / "examples" / "stream_of_alerts.py"


def printed_by_shell(command, folder):
    """What a command of the shell prints, with the Python of the tests."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert run.returncode == 0, f"$ {command}\n{run.stderr}"
    return run.stdout


def run_tutorial(folder):
    """Run every command but the example's in a directory, and compare."""
    for command, expected in commands(TUTORIAL):
        if command.startswith("python examples/"):
            continue
        if command.startswith("contrada "):
            result = contrada(*shlex.split(command)[1:], code=0)
            got = result.stdout + without_compiling(result.stderr)
        else:
            got = printed_by_shell(command, folder)
        check_printed(command, expected, got)


@pytest.mark.usefixtures("command")
def test_the_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(list(commands(TUTORIAL))) > 10
    run_tutorial(tmp_path)


@pytest.mark.slow
def test_the_script(spark, capsys):
    ((command, expected),) = (one for one in commands(TUTORIAL) if one[0].startswith("python examples/"))
    made = runpy.run_path(str(EXAMPLE))
    check_printed(command, expected, capsys.readouterr().out)
    assert made["found"] == [
        ("fire", "farm", "farm", 1), ("flood", "ops", "harbour", 0), ("fog", "town", "school", 0),
    ]  # fmt: skip
    pieces = blocks(TUTORIAL, "py")
    assert pieces
    for piece in pieces:
        assert piece in EXAMPLE.read_text()


def test_the_records_of_changes_are_good():
    (records,) = blocks(PAGE, "json")
    found = list(read_changes(io.BytesIO(records.encode()), "changes.ndjson"))
    assert [type(item) for item in found] == [Change, Change]


@pytest.mark.slow
@pytest.mark.usefixtures("command")
def test_it_runs_until_it_is_interrupted(tmp_path, monkeypatch, start, until):
    """The command without --once, as a process of its own, ended by Ctrl-C after it has read what came."""
    monkeypatch.chdir(tmp_path)
    run_tutorial(tmp_path)
    (command,) = blocks(TUTORIAL, "sh")
    process = start(*shlex.split(command)[1:])
    write_lines(tmp_path / "alerts" / "3.ndjson", [{"id": "gale", "severity": 5}])
    until((tmp_path / "state" / "commits" / "2").exists, process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(120) == 130
    assert "batch 2, version 1" in (tmp_path / "stderr").read_text()
