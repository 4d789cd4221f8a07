"""Start a Spark session on one machine; a missing PySpark is one clear error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.errors import ContradaError
from contrada.installation import missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
MIN_MEMORY_BYTES = 1 << 30  # bytes


def require_spark() -> None:
    """Raise a ContradaError that says what to install, if PySpark is missing."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ContradaError(missing("Spark is not installed", "spark")) from error


def session(
    master: str | None = None, further: Mapping[str, str] | None = None, process: Mapping[str, Any] | None = None
) -> SparkSession:
    """Return the running session unchanged, or start one at `master`, by default on all cores of this machine.

    A new session logs errors only, has no web UI, uses UTC, takes half of the machine's memory and, if local, listens
    on the loopback interface alone; `further` settings override these. Python workers run this interpreter. `process`
    holds arguments of the `Popen` that starts Java. Raises ContradaError with the reason if Spark does not start.
    """
    require_spark()
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        # The active one may be the session of a stream's batch, which made a DataFrame: this returns the user's.
        return SparkSession.builder.getOrCreate()
    place = master or "local[*]"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if place.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    settings: dict[str, Any] = {**settings_of(place), **(further or {})}
    builder = SparkSession.builder.appName("contrada").master(place).config(map=settings)
    try:
        if process is not None:
            _start_java({"spark.app.name": "contrada", "spark.master": place, **settings}, process)
        return builder.getOrCreate()
    except Exception as error:  # from Spark, Py4J or the system
        raise ContradaError(f"cannot start Spark at {place}: {str(error).strip().partition(chr(10))[0]}") from error


def _start_java(settings: Mapping[str, str], process: Mapping[str, Any]) -> None:
    """Start Java and a Spark context with own `Popen` arguments, unless Java is running."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is None:
        conf = SparkConf().setAll(list(settings.items()))
        with _ended_unless_ready(), _handler_kept():
            SparkContext(conf=conf, gateway=launch_gateway(conf, dict(process)))  # type: ignore[no-untyped-call]


@contextmanager
def _ended_unless_ready() -> Iterator[None]:
    """Kill the Java process if the block fails: interrupted during its start, Java would wait forever."""
    java_gateway: Any = import_module("pyspark.java_gateway")
    started: list[Any] = []
    start = java_gateway.Popen

    def recorded(*arguments: Any, **options: Any) -> Any:
        started.append(start(*arguments, **options))
        return started[-1]

    java_gateway.Popen = recorded
    try:
        yield
    except BaseException:
        for java in started:
            java.kill()
        raise
    finally:
        java_gateway.Popen = start


@contextmanager
def _handler_kept() -> Iterator[None]:
    """Keep the SIGINT handler: a new Spark context sets its own, which calls Java and prints its failures."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def settings_of(place: str) -> dict[str, str]:
    """Return the settings of a new session.

    >>> settings_of("local[2]")["spark.driver.host"]
    '127.0.0.1'
    """
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": f"{memory() >> 20}m",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.log.level": "ERROR",
    }
    if place.startswith("local"):
        settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        settings["spark.sql.shuffle.partitions"] = str(2 * (os.cpu_count() or 1))  # Spark's default is 200
    return settings


def memory() -> int:
    """Return the memory of the driver in bytes: half of the machine's, at least 1 GiB.

    >>> memory() >= 1 << 30
    True
    """
    with suppress(ValueError, OSError):
        return max(MIN_MEMORY_BYTES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    return MIN_MEMORY_BYTES
