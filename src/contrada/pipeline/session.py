"""A Spark session for one machine, and the one sentence when Spark is not installed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = "Spark is not installed: pip install 'contrada[spark]'"
LEAST_MEMORY = 1 << 30  # bytes


def require_spark() -> None:
    """Raise a ContradaError that says what to install, if PySpark is missing."""
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise ContradaError(MISSING) from error


def session(master: str | None = None) -> SparkSession:
    """The running session, or a new one: on all cores of this machine unless `master` names another place.

    It is quiet, has no web page, speaks on the loopback interface alone if it is local, keeps time in UTC, and takes
    half of the machine's memory. Python workers run this same interpreter.
    """
    require_spark()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    place = master or "local[*]"
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": f"{memory() >> 20}m",
        "spark.log.level": "ERROR",
    }
    if place.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.appName("contrada").master(place)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def memory() -> int:
    """Bytes for the driver: half of what the machine has, a gigabyte at least.

    >>> memory() >= 1 << 30
    True
    """
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return LEAST_MEMORY
    return max(LEAST_MEMORY, whole // 2)
