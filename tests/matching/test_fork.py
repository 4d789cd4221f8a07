"""A child that was forked while other threads update goes on with everything it inherited."""

import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import contrada
from contrada.forking import cached_property

SCRIPT = Path(__file__).parent / "fork_children.py"


@pytest.mark.parametrize(
    "what",
    [
        ["packing", "questions", "compiling", "covering"],
        *(pytest.param([one], marks=pytest.mark.slow) for one in ("packing", "questions", "compiling", "covering")),
        pytest.param([], marks=pytest.mark.slow),
    ],
)
def test_children_go_on(what):
    command = [sys.executable, "-W", "ignore", str(SCRIPT), "4", *what]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_property_that_is_computed_during_a_fork_holds_no_child_up():
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self):
            begun.set()
            return go_on.wait(30)

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    assert begun.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tried
        child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the bound on time of the tests may have taken it
        signal.alarm(20)
        go_on.set()
        os._exit(0 if Slow().value else 1)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    thread.join()


def test_no_property_of_the_package_has_a_lock():
    package = Path(contrada.__file__).parent
    assert [path.name for path in package.rglob("*.py") if "functools import cached_property" in path.read_text()] == []
