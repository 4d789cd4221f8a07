"""A cluster of Spark on this machine: a standalone master and two workers, each with a cache directory of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import contrada as ct
from contrada import jit

SOURCE = Path(ct.__file__).parent.parent
WORKERS = ("one", "two")


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
    """A daemon of Spark, ended with all its children: its process id."""
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=environment(cache), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process.pid
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


@contextmanager
def cluster(place, cores=1):
    """A master and two workers below a directory: the master's address, and the process ids of the workers.

    Their cache directories are `place/hosts/<name>`.
    """
    ports = ["--port", "0", "--webui-port", "0"]
    logs = {name: place / f"{name}.log" for name in ("master", *WORKERS)}
    with ExitStack() as stack:
        stack.enter_context(running("master.Master", ports, place / "hosts" / "master", logs["master"]))
        master = said(logs["master"], r"spark://127\.0\.0\.1:\d+")[0]
        room = [*ports, "--cores", str(cores), "--memory", "1g"]
        workers = []
        for name in WORKERS:
            arguments = [*room, "-d", str(place / f"work-{name}"), master]
            workers.append(stack.enter_context(running("worker.Worker", arguments, place / "hosts" / name, logs[name])))
        for name in WORKERS:
            said(logs[name], "Successfully registered with master")
        yield master, workers
