"""A standalone Spark cluster on this machine: a master, workers of one core each, and a session that drives them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def daemon(name: str, arguments: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    """A daemon of Spark, ended with all its children."""
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments],
            env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
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


def said(log: Path, pattern: str, seconds: int = 120) -> str:
    """What a daemon says, sooner or later."""
    for _ in range(seconds * 5):
        if found := re.search(pattern, log.read_text()):
            return found[0]
        time.sleep(0.2)
    raise RuntimeError(f"{pattern!r} is not in {log}")


@contextmanager
def cluster(directory: Path, workers: int, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session on a cluster of so many workers; each keeps its copies of tables in a directory of its own."""
    from pyspark.sql import SparkSession

    from contrada import jit

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with ExitStack() as stack:
        log = directory / "master.log"
        stack.enter_context(daemon("master.Master", [], log, dict(os.environ)))
        master = said(log, r"spark://127\.0\.0\.1:\d+")
        for k in range(workers):
            home = directory / f"host{k}"
            home.mkdir()
            (home / "kernels").symlink_to(jit.cache_directory().parent)
            own = {**os.environ, "CONTRADA_CACHE_DIR": str(home), "SPARK_LOCAL_DIRS": str(home / "local")}
            room = ["--cores", "1", "--memory", "3g", "-d", str(home / "work"), master]
            stack.enter_context(daemon("worker.Worker", room, directory / f"host{k}.log", own))
            said(directory / f"host{k}.log", "Successfully registered with master")
        builder = SparkSession.builder.master(master).appName("benchmarks")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
