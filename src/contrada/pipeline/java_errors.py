"""Errors that come from Java: their Python types, and the message of the first cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contrada.pipeline.reasons import MAX_REASON_LENGTH, plain_text
from contrada.pipeline.systems import is_connect

# The exception types that a Spark job raises.
SPARK_ERRORS: tuple[type[Exception], ...] = (PySparkException, import_module("py4j.protocol").Py4JJavaError)
CAUSE = "Caused by: "


@contextmanager
def without_log(session: SparkSession) -> Iterator[None]:
    """Turn off Java's log within the block: expected failures would print long stack traces.

    Over Spark Connect that log is the server's, and stays on.
    """
    if is_connect(session):
        yield
        return
    jvm: Any = session._jvm
    level = str(jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())
    session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        session.sparkContext.setLogLevel(level)


def first_cause(error: BaseException) -> Any:
    """Return the Java exception at the end of the chain of causes, or None."""
    found = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    return found


def java_reason(error: BaseException) -> str:
    """Return type and first line of the message of the first cause of an error."""
    cause = first_cause(error)
    text = _connect_text(error) if cause is None else f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
    return plain_text(text.strip().partition("\n")[0][:MAX_REASON_LENGTH])


def _connect_text(error: BaseException) -> str:
    """Return the text of the last cause in the stack trace that Spark Connect sends, or else of the error."""
    trace = error.getStackTrace() if hasattr(error, "getStackTrace") else None
    causes = [line.removeprefix(CAUSE) for line in (trace or "").splitlines() if line.startswith(CAUSE)]
    if not causes:
        return str(error)
    name, separator, message = causes[-1].partition(": ")
    return f"{name.rpartition('.')[2]}{separator}{message}"
