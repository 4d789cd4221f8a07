"""The sessions and pieces of code on the pages about the command line are what happens."""

import contextlib
import io
import runpy
import shlex
import subprocess

import pytest

from console import contrada, python, without_compiling
from doc_pages import ROOT, blocks, check_printed, commands, page_text


def printed_by(command):
    """What a command prints: standard output, and standard error after it; a here-document is written by a shell."""
    if command.startswith("cat > "):
        return subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout
    program, *arguments = (word.replace("\\$", "$") for word in shlex.split(command))
    arguments = [str(ROOT / argument) if argument.startswith("examples/") else argument for argument in arguments]
    if program == "contrada":
        result = contrada(*arguments)
        return result.stdout + without_compiling(result.stderr)
    assert program == "python"
    if arguments[0] == "-c":
        return python(*arguments).stdout
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(*arguments, run_name="__main__")
    return printed.getvalue()


WITH_SESSIONS = [
    "architecture.md", "cli.md", "dependencies.md", "serve-settings.md", "sinks.md", "tracking.md", "tutorial_alerts.md"
]  # fmt: skip


@pytest.mark.parametrize("page", WITH_SESSIONS)
def test_sessions(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(commands(page_text(page)))
    assert found
    for command, expected in found:
        check_printed(command, expected, printed_by(command).replace(f"{ROOT}/", ""))


def test_pieces_of_the_tutorial_are_from_the_script():
    script = (ROOT / "examples" / "alerts_for_facilities.py").read_text()
    pieces = blocks(page_text("tutorial_alerts.md"), "py")
    assert len(pieces) >= 4
    for piece in pieces:
        assert piece in script
