"""A standalone cluster of Spark on this machine: a master and workers, each with a cache directory of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import contrada as ct
from console import wait_for
from contrada import jit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Hosts = Callable[[Path], dict[str, str]]

SOURCE = Path(ct.__file__).parent.parent
WORKERS = ("one", "two")


def environment(cache: Path) -> dict[str, str]:
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


def bare_environment(cache: Path) -> dict[str, str]:
    """The environment of a host that has Java, Spark and a bare Python, and nothing of this one's packages.

    Spark comes with the archive of PySpark's own sources, as every installation of Spark has it.
    """
    import pyspark

    java = Path(shutil.which("java") or "/usr/bin/java").parent
    shared = environment(cache)
    own = {name: shared[name] for name in ("CONTRADA_CACHE_DIR", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS")}
    names = ("HOME", "JAVA_HOME", "LANG")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, **own, "PATH": f"{java}:/usr/bin:/bin", "SPARK_HOME": str(Path(pyspark.__file__).parent)}


@contextmanager
def running(name: str, arguments: Sequence[str], cache: Path, log: Path, hosts: Hosts = environment) -> Iterator[int]:
    """A daemon of Spark, ended with all its children: its process id."""
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments],
            env=hosts(cache), stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
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


def said(log: Path, pattern: str, seconds: int = 120) -> str:
    """What a daemon says, sooner or later."""
    found: re.Match[str] = wait_for(lambda: re.search(pattern, log.read_text()), seconds, log.read_text)
    return found[0]


@contextmanager
def cluster(place: Path, memory: str = "1g", hosts: Hosts = environment) -> Iterator[tuple[str, list[int]]]:
    """A master and two workers of a core each, below a directory: the master's address, the workers' process ids.

    Their cache directories are `place/hosts/<name>`; `hosts` makes the environment of each.
    """
    logs = {name: place / f"{name}.log" for name in ("master", *WORKERS)}
    with ExitStack() as stack:
        stack.enter_context(running("master.Master", [], place / "hosts" / "master", logs["master"], hosts))
        master = said(logs["master"], r"spark://127\.0\.0\.1:\d+")
        workers = []
        for name in WORKERS:
            room = ["--cores", "1", "--memory", memory, "-d", str(place / f"work-{name}"), master]
            started = running("worker.Worker", room, place / "hosts" / name, logs[name], hosts)
            workers.append(stack.enter_context(started))
        for name in WORKERS:
            said(logs[name], "Successfully registered with master")
        yield master, workers
