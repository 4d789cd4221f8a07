"""Errors that come from Java: which types they have in Python, and what the first cause says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from contrada.pipeline.reasons import LENGTH, plain_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_errors() -> tuple[type[Exception], ...]:
    """The types of errors that a job of Spark raises."""
    from pyspark.errors import PySparkException

    return (PySparkException, import_module("py4j.protocol").Py4JJavaError)


@contextmanager
def without_log(session: SparkSession) -> Iterator[None]:
    """Let Java log nothing meanwhile: failures that are expected would fill screens with stack traces."""
    jvm: Any = session._jvm
    level = str(jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())
    session.sparkContext.setLogLevel("OFF")
    try:
        yield
    finally:
        session.sparkContext.setLogLevel(level)


def first_cause(error: BaseException) -> Any:
    """The Java exception at the end of the chain of causes; None if there is none."""
    found = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    return found


def java_reason(error: BaseException) -> str:
    """The first line that the first cause of an error says, behind its type."""
    cause = first_cause(error)
    text = str(error) if cause is None else f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"
    return plain_text(text.strip().partition("\n")[0][:LENGTH])
