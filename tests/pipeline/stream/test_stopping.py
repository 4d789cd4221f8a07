"""Ctrl-C and SIGTERM on commands that run Spark, as processes of their own: one line, and nothing is lost."""

import os
import shlex
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from streams import written

import contrada as ct
from console import python, wait_for, write_lines
from contrada.demo.district import write_district
from effort import thorough

WAIT = 900  # seconds at most, against a hang: kernels may have to be compiled first


def javas(is_meant):
    """The ids of processes that run Spark's Java and of which this holds, given their directories in /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if b"org.apache.spark" in (path / "cmdline").read_bytes() and is_meant(path):
                found.append(path.name)
    return found


def has_java(process):
    """True if a process has started the Java of Spark."""
    return bool(javas(lambda path: int((path / "stat").read_text().rpartition(")")[2].split()[1]) == process.pid))


def check_no_java(tmp_path):
    """No Java that was started in a directory is left behind, a moment after its driver has ended."""
    wait_for(lambda: not javas(lambda path: os.readlink(path / "cwd") == str(tmp_path)), WAIT)


def said(tmp_path):
    """What a command said on standard error beside its progress."""
    lines = (tmp_path / "stderr").read_text().splitlines()
    return [line for line in lines if line and not line.startswith(("batch ", "contrada: compiling"))]


def write_messages(tmp_path):
    for number in range(4):
        rows = [{"id": f"m{number}-{k}", "size": k if k % 7 else None} for k in range(200)]
        write_lines(tmp_path / "in" / f"{number:03}.ndjson", rows)


MOMENTS = {
    "start": lambda place, process: has_java(process),
    "begun": lambda place, process: (place / "state" / "contrada" / "driver.json").exists(),
    "batch": lambda place, process: (place / "state" / "contrada" / "batches" / "0.json").exists(),
    "idle": lambda place, process: (place / "state" / "commits" / "3").exists(),
}
CASES = [
    ("start", signal.SIGINT), thorough("begun", signal.SIGINT), ("batch", signal.SIGINT),
    thorough("idle", signal.SIGINT), thorough("batch", signal.SIGTERM), ("idle", signal.SIGTERM),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "number"), CASES)
def test_a_stream_stops_with_one_line_and_goes_on(tmp_path, start, until, moment, number):
    write_messages(tmp_path)
    asked = [{"key": key, "subscriber": "ops", "filter": "size >= 0 OR size IS NULL"} for key in ("k1", "k2")]
    write_lines(tmp_path / "s.ndjson", asked)
    command = ["stream", "in", "s.ndjson", "--checkpoint", "state", "--output", "out", "--files", 1]
    process = start(*command, "--master", "local[2]")
    until(lambda: MOMENTS[moment](tmp_path, process), process)
    os.killpg(process.pid, number)
    assert process.wait(WAIT) == 128 + number
    check_no_java(tmp_path)
    (line,) = said(tmp_path)
    assert "to resume from checkpoint state" in line
    again = start(*command, "--once", "--master", "local[2]")
    assert again.wait(WAIT) == 0, (tmp_path / "stderr").read_text()
    right = [(f"m{number}-{k}", key) for number in range(4) for k in range(200) for key in ("k1", "k2")]
    assert written(tmp_path / "out" / "matches", ["message_id", "key"]) == sorted(right), "every message once"


@pytest.mark.slow
def test_a_second_signal_stops_a_stream_at_once(tmp_path, start, until):
    write_messages(tmp_path)
    process = start("stream", "in", "--checkpoint", "state", "--output", "out", "--master", "local[2]")
    until(lambda: MOMENTS["batch"](tmp_path, process), process)
    for _ in range(2):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.1)
    assert process.wait(WAIT) == 130
    assert 1 <= len(said(tmp_path)) <= 2


COMMANDS = [
    "match data/messages.parquet data/parcels.parquet --spark -o o --quiet --template 'S_INTERSECTS(area, $geometry)'",
    "ingest data/parcels.parquet rows --quiet",
    "demo --data data --output demo",
]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("delay", [thorough(0), 6])
def test_other_commands_stop_with_one_line(tmp_path, start, until, command, delay):
    write_district(tmp_path / "data", scale=1)
    process = start(*shlex.split(command))
    until(lambda: has_java(process), process)
    time.sleep(delay)  # somewhere in the run; where, no test can say
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(WAIT) == 130
    check_no_java(tmp_path)
    lines = [line for line in said(tmp_path) if not line.endswith(" s")]  # stages of the demonstration
    assert lines == ["interrupted: the output is incomplete"]


WARNING = """
import os, signal, time, warnings
from contrada.cli.spark.running import interruptible

with interruptible("the one line"):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    finally:
        warnings.warn("Unable to cleanly shutdown Spark JVM process.", RuntimeWarning)
"""


def test_a_warning_after_a_signal_is_not_shown():
    """PySpark gives one where it stops a context whose Java has ended, on the way out."""
    assert python("-c", WARNING, code=130).stderr == "the one line\n"


STARTING = """
import signal
from pyspark.sql import SparkSession
from contrada.cli.spark.running import interruptible

made = SparkSession.Builder.getOrCreate

def interrupted(builder):
    signal.raise_signal(signal.SIGINT)  # the Spark context is there, the session is not
    return made(builder)

SparkSession.Builder.getOrCreate = interrupted
with interruptible("stopped") as interruption:
    interruption.start("local[1]")
"""


@pytest.mark.slow
def test_spark_does_not_take_the_signal_while_it_starts(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(ct.__file__).parent.parent))
    assert python("-c", STARTING, code=130).stderr == "stopped\n"
