"""The commands of docs/start.md, in one process and on Spark: each prints what the page says."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from console import contrada, without_compiling
from contrada.pipeline import artifact_cache
from doc_pages import check_printed, commands, page_text

FILES = ("alerts.ndjson", "subscriptions.ndjson", "matches")


def printed_by(command, folder):
    """What a command prints: ours on the session of the tests, others in a shell."""
    if command.startswith("contrada "):
        words = shlex.split(command)[1:]
        # The session of the tests was started in another directory than that of this test.
        result = contrada(*(folder / word if word in FILES else word for word in words), code=0)
        return result.stdout + without_compiling(result.stderr)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout


@pytest.mark.usefixtures("command")
def test_sessions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(artifact_cache, "cache_home", lambda: tmp_path / "cache")
    found = list(commands(page_text("start.md")))
    assert sum(command.startswith("contrada match ") for command, _ in found) == 2
    for command, expected in found:
        check_printed(command, expected, printed_by(command, tmp_path))
