"""The sessions and pieces of code on the pages about the command line are what happens."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contrada.cli.main import app

ROOT = Path(__file__).parents[2]
SESSIONS = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PIECES = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMPILING = re.compile(r"^contrada: compiling.*\n", re.MULTILINE)


def commands(page):
    """Commands of a page with what they print."""
    for session in SESSIONS.findall((ROOT / "docs" / page).read_text()):
        for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
            command, _, printed = part.replace("\\\n", "").partition("\n")
            yield command, printed


def printed_by(command, folder):
    """What a command prints: standard output, and standard error after it."""
    program, *arguments = (word.replace("\\$", "$") for word in shlex.split(command))
    arguments = [str(ROOT / argument) if argument.startswith("examples/") else argument for argument in arguments]
    if program == "contrada":
        result = CliRunner().invoke(app, arguments)
        return result.stdout + COMPILING.sub("", result.stderr)
    assert program == "python"
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=folder)
    return run.stdout


@pytest.mark.parametrize("page", ["cli.md", "tutorial_alerts.md"])
def test_sessions(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(commands(page))
    assert found
    for command, expected in found:
        got = printed_by(command, tmp_path).replace(f"{ROOT}/", "")
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, got, options), f"$ {command}\n{got}"


def test_pieces_of_the_tutorial_are_from_the_script():
    script = (ROOT / "examples" / "alerts_for_facilities.py").read_text()
    pieces = PIECES.findall((ROOT / "docs" / "tutorial_alerts.md").read_text())
    assert len(pieces) >= 4
    for piece in pieces:
        assert piece in script
