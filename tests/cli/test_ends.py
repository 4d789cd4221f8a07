"""How commands end: a closed pipe, Ctrl-C at any moment, a package that is missing. Never with a traceback."""

import os
import subprocess
import sys

import pytest
from commands import COMMANDS, SAMPLE, start, words_of

from effort import slow

START = "import sys, contrada_command; sys.argv = ['contrada', *sys.argv[1:]]; contrada_command.main()"
# Raises SIGINT when a module is about to be imported, as Ctrl-C at that moment does.
INTERRUPT = """
import signal, sys
awaited = sys.argv[1]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == awaited:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
import contrada_command
sys.argv = ["contrada", *sys.argv[2:]]
contrada_command.main()
"""


def ended(code, *arguments, **options):
    """The exit code of a process that runs this code, and what it printed and complained about."""
    with start("-c", code, *arguments, **options) as process:
        output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


@pytest.mark.parametrize(
    "arguments",
    [["match", "--help"], ["check", "x > 1"],
     *map(slow, (["--help"], ["overlay", "--help"], ["doctor"], ["--version"]))],
)  # fmt: skip
def test_a_closed_pipe_ends_quietly(arguments):
    read, write = os.pipe()
    os.close(read)  # `| head -c 0` that has ended already
    assert ended(START, *arguments, stdout=write) == (141, None, "")
    os.close(write)


def test_a_pipe_that_is_read_to_its_first_line():
    run = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "$0" --help | head -1; echo "${{PIPESTATUS[0]}}"', START],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert run.stdout.split()[-1] in ("0", "141")
    assert run.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], slow(["--version"]), slow(["doctor", "--json"])])
def test_a_full_disk_is_one_line(arguments):
    with open("/dev/full", "w") as full:
        assert ended(START, *arguments, stdout=full) == (2, None, "error: No space left on device\n")


@pytest.mark.parametrize("module", ["numpy", "contrada.cli.main", *map(slow, ("contrada", "shapely", "typer"))])
def test_an_interrupt_while_the_package_is_imported(module):
    assert ended(INTERRUPT, module, "--help") == (130, "", "")


# Modules that are imported when the command runs already.
IMPORTED = {
    "match": ["numba"],
    "check": ["contrada.simplification.conflicts"],
    "simplify": ["contrada.simplification.simplifying"],
    "stream": ["contrada.pipeline.session", "pyspark"],
    "ingest": ["pyspark"],
    "demo": ["pyspark"],
    "doctor": ["contrada.cli.doctor", "contrada.cli.java"],
    "artifacts list": ["contrada.pipeline.artifact_store"],
    "artifacts prune": ["contrada.pipeline.artifact_store", "pyarrow"],
    "overlay simulate": ["contrada.papers.overlay.run", "numba"],
    "overlay churn": ["contrada.papers.overlay.churn"],
    "overlay show": ["contrada.overlay.simulation.drawing", "matplotlib.pyplot"],
    "overlay peer": ["contrada.overlay.serving"],
    "overlay publish": ["contrada.overlay.serving", "asyncio"],
    "experiment list": ["contrada.papers.registry"],
    "experiment show": ["contrada.papers.registry"],
    "experiment all": ["contrada.papers.running"],
    "network remove": ["contrada.client"],
    "network show": ["contrada.client"],
    "sync": ["contrada.client"],
    "serve": ["contrada.service.settings"],
    "experiment run": ["contrada.papers.running", "matplotlib.figure"],
}


def test_every_command_is_interrupted_somewhere():
    assert sorted(IMPORTED) == sorted(COMMANDS)


QUICK = ("match",)


@pytest.mark.parametrize("command", [name if name in QUICK else slow(name) for name in sorted(IMPORTED)])
def test_an_interrupt_while_a_command_imports(command, tmp_path):
    arguments = words_of(f"{command} {SAMPLE[command]}", tmp_path)
    for module in IMPORTED[command]:
        code, _, errors = ended(INTERRUPT, module, *arguments, cwd=tmp_path)
        assert code == 130, (module, errors)
        assert "Traceback" not in errors


def test_a_swallowed_interrupt_comes_again():
    # An exception in a callback of the garbage collector cannot be passed on by Python.
    code = (
        "import signal, sys, time, weakref\n"
        "from contrada.cli.ending import finished\n"
        "class Thing: pass\n"
        "thing = Thing()\n"
        "ref = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))\n"
        "with finished():\n"
        "    del thing\n"
        "    time.sleep(600)\n"  # longer than the test waits: the interrupt ends it
        "    print('not interrupted')\n"
    )
    assert ended(code) == (130, "", "")


@pytest.mark.parametrize(
    ("package", "extra", "command"),
    [
        ("matplotlib", "experiments", "overlay show"),
        slow("matplotlib", "experiments", "experiment all"),
        slow("matplotlib", "experiments", "experiment run"), slow("pyspark", "spark", "stream"),
        slow("pyspark", "spark", "ingest"), slow("pyspark", "spark", "demo"), ("pyspark", "spark", "match"),
    ],
)  # fmt: skip
def test_a_package_that_is_missing_is_one_line_with_the_command_that_installs_it(package, extra, command, tmp_path):
    spark = ["--spark", "--output", tmp_path / "out"] if command == "match" else []
    arguments = [*words_of(f"{command} {SAMPLE[command]}", tmp_path), *spark]
    before = sorted(tmp_path.iterdir())
    uninstalled = f"import sys; sys.modules[{package!r}] = None; {START}"
    code, output, errors = ended(uninstalled, *arguments, cwd=tmp_path)
    assert (code, output, errors.count("\n")) == (2, "", 1)
    assert errors.startswith("error: Spark is not installed" if package == "pyspark" else "error: ")
    assert sorted(tmp_path.iterdir()) == before, "nothing is written"
    assert " -m pip install " in errors
    assert extra in errors
