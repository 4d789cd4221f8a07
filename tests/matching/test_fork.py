"""A child that was forked while other threads update goes on with everything it inherited."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "fork_children.py"


@pytest.mark.parametrize("what", ["updates", "packing", "questions", "compiling", "covering"])
def test_children_go_on(what):
    command = [sys.executable, "-W", "ignore", str(SCRIPT), what, "4"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
