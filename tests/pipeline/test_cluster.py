"""A real cluster on this machine: a standalone master, two workers, and a driver, with a cache directory each."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import contrada as ct
from contrada import jit

HERE = Path(__file__).parent
SOURCE = Path(ct.__file__).parent.parent


def environment(cache):
    """The environment of one host: a cache directory of its own, in which kernels are compiled already."""
    cache.mkdir(parents=True)
    (cache / "kernels").symlink_to(jit.cache_directory().parent)
    return {
        **os.environ,
        "CONTRADA_CACHE_DIR": str(cache),
        "PYTHONPATH": str(SOURCE),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(cache / "local"),
    }


@contextmanager
def running(name, arguments, cache, log):
    """A daemon of Spark, ended with all its children."""
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=environment(cache), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield
    finally:
        for ending in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                os.killpg(process.pid, ending)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    continue


def said(log, pattern, seconds=120):
    """What a daemon says, sooner or later."""
    for _ in range(seconds * 5):
        if found := re.search(pattern, log.read_text()):
            return found
        time.sleep(0.2)
    raise AssertionError(f"{pattern!r} is not in:\n{log.read_text()}")


def expected():
    """The same in a single process."""
    table = ct.ForwardingTable()
    table.subscribe("k0", "size >= 3", "k0")
    table.subscribe("k1", "S_INTERSECTS(area, POLYGON((0 0, 5 0, 5 5, 0 5, 0 0)))", "k1")
    table.subscribe("k3", "name LIKE 'm%' AND size < 2", "k3")
    places = np.array([0.0, 1.0, 4.0, 6.0])
    rows = []
    for number in range(400):
        place = places[number % 4]
        message = {"size": number % 5, "name": f"m{number}", "area": ct.Point(place, place)}
        rows += [[number, key, key] for key in table.match_keys(message)]
    return sorted(rows)


@pytest.mark.slow
def test_artifacts_reach_executors_and_rows_are_equal(tmp_path):
    logs = {name: tmp_path / f"{name}.log" for name in ("master", "one", "two")}
    hosts = {name: tmp_path / "hosts" / name for name in ("master", "one", "two", "driver")}
    ports = ["--port", "0", "--webui-port", "0"]
    with running("master.Master", ports, hosts["master"], logs["master"]):
        master = said(logs["master"], r"spark://127\.0\.0\.1:\d+")[0]
        room = [*ports, "--cores", "1", "--memory", "1g"]
        with (
            running("worker.Worker", [*room, "-d", str(tmp_path / "w1"), master], hosts["one"], logs["one"]),
            running("worker.Worker", [*room, "-d", str(tmp_path / "w2"), master], hosts["two"], logs["two"]),
        ):
            for name in ("one", "two"):
                said(logs[name], "Successfully registered with master")
            command = [sys.executable, str(HERE / "cluster_driver.py"), master, str(tmp_path)]
            run = subprocess.run(command, env=environment(hosts["driver"]), capture_output=True, text=True, timeout=300)
            assert run.returncode == 0, run.stderr[-4000:]
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert "spark.contrada.artifacts" in answer["unset"]
    assert answer["rejected"] == [[2, "k2"]]
    assert answer["matches"] == expected()
    assert (tmp_path / "failed").exists()
    assert (tmp_path / "artifacts" / answer["digest"]).is_dir()
    for name in ("one", "two"):
        assert (hosts[name] / "tables" / answer["digest"]).is_dir()
    assert not (hosts["driver"] / "tables").exists()
