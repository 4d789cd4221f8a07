"""Drivers of streams without Spark, and commands as processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import contrada as ct
from console import wait_for, write_lines
from contrada.pipeline.artifacts import publish
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream import apart
from contrada.pipeline.stream import version_log as versions
from contrada.pipeline.stream import worker as versioned
from contrada.pipeline.stream.changes import DirectoryChanges, apply_segment
from contrada.pipeline.stream.version_log import Versions, segment

WAIT = 900  # seconds at most, against a hang: kernels may have to be compiled first


class Home:
    def __init__(self, place):
        self.changes, self.checkpoint = place / "changes", place / "checkpoint"
        self.kept = self.checkpoint / "contrada"
        self.changes.mkdir()

    def driver(self, compact=None, **sizes):
        changes = DirectoryChanges(str(self.changes))
        made = Versions(Storage(self.checkpoint), changes, compact or self.compact, **sizes)
        types = {"key_type": "string", "subscriber_type": "string"}
        made.begin(lambda artifacts: publish(ct.ForwardingTable(), artifacts, **types))
        return made

    def compact(self, version, place, artifacts):
        """What a task does with a version."""
        table = ct.ForwardingTable.open(version.artifact.path)
        for number in version.segments:
            apply_segment(table, segment(Storage(self.kept), number))
        return publish(table, artifacts, key_type="string", subscriber_type="string")

    def change(self, name, *records):
        write_lines(self.changes / name, records)

    def names(self, folder):
        return sorted(os.listdir(self.kept / folder))


@pytest.fixture
def make_home(monkeypatch):
    """Makes checkpoint, changes and drivers; copies of tables are kept apart from those of other tests."""

    def make(place):
        for module in (versioned, versions):
            monkeypatch.setattr(module, "cache_home", lambda: place / "cache")
        return Home(place)

    return make


@pytest.fixture
def home(make_home, tmp_path):
    return make_home(tmp_path)


@pytest.fixture
def read_with(monkeypatch, tmp_path):
    """Lets the processes that read files apart run other code."""
    run = apart.subprocess.run

    def replace_reader(code):
        (tmp_path / "contrada_reads.py").write_text(code)
        command = [sys.executable, str(tmp_path / "contrada_reads.py")]
        monkeypatch.setattr(apart.subprocess, "run", lambda _, **options: run(command, **options))

    return replace_reader


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a command in a process group of its own, as a shell does, and ends it after the test."""
    monkeypatch.setenv("PYTHONPATH", str(Path(ct.__file__).parent.parent))
    running = []

    def begin(*arguments):
        command = [sys.executable, "-m", "contrada.cli.main", *map(str, arguments)]
        with (tmp_path / "stdout").open("wb") as out, (tmp_path / "stderr").open("wb") as err:
            running.append(subprocess.Popen(command, stdout=out, stderr=err, process_group=0, cwd=tmp_path))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def until(tmp_path):
    """Waits until something holds while a command runs."""

    def wait(condition, process):
        wait_for(lambda: condition() or process.poll() is not None, WAIT, (tmp_path / "stderr").read_text)
        assert process.poll() is None, (tmp_path / "stderr").read_text()

    return wait
