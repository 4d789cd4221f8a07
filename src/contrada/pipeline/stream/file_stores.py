"""Stores of files of messages, to tell damage of a file from a store that does not answer.

A classic session asks Hadoop, as Spark does. A session of Spark Connect has no Java: PyArrow asks the store.
"""

from __future__ import annotations

import errno
from typing import Any, NamedTuple, Protocol, cast

from pyarrow import ArrowException
from pyspark.sql import SparkSession

from contrada.errors import TableError
from contrada.pipeline.java_errors import SPARK_ERRORS, first_cause, java_reason
from contrada.pipeline.storage import path_of, store_of
from contrada.pipeline.systems import is_connect

CHUNK = 1 << 20  # bytes
# Faults of a file, not of its store: missing, no permission, wrong checksum, or a bad sector.
OWN_FAULTS = ("FileNotFoundException", "AccessControlException", "ChecksumException", "Input/output error")
OWN_ERRNOS = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EIO)


class FileFault(NamedTuple):
    """Why a file cannot be read: Is it the file's own fault? Is it missing?"""

    reason: str
    is_own: bool
    is_missing: bool


class FileStore(Protocol):
    """Where files are, by URI."""

    def size(self, uri: str) -> int | FileFault:
        """Return the size of a file in bytes."""

    def fault(self, uri: str) -> FileFault | None:
        """Read all bytes of a file; return None if they can be read."""


def file_store(session: SparkSession) -> FileStore:
    """Return the stores that a session reads."""
    return ArrowFiles() if is_connect(session) else HadoopFiles(session)


class HadoopFiles:
    """Hadoop's file systems, with the settings of a session."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # Takes milliseconds, so done once.
        self._settings = cast(Any, session)._jsparkSession.sessionState().newHadoopConf()

    def size(self, uri: str) -> int | FileFault:
        """Return the size of a file in bytes."""
        store, path = self._opened(uri)
        try:
            return int(store.getFileStatus(path).getLen())
        except SPARK_ERRORS as error:
            return _hadoop_fault(error)

    def fault(self, uri: str) -> FileFault | None:
        """Read all bytes of a file; return None if they can be read."""
        jvm: Any = self._session._jvm
        store, path = self._opened(uri)
        nowhere = jvm.java.io.OutputStream.nullOutputStream()
        try:
            jvm.org.apache.hadoop.io.IOUtils.copyBytes(store.open(path), nowhere, 1 << 16, True)
        except SPARK_ERRORS as error:
            return _hadoop_fault(error)
        return None

    def _opened(self, uri: str) -> tuple[Any, Any]:
        """Return the Hadoop file system of a file, and its path there."""
        jvm: Any = self._session._jvm
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        return path.getFileSystem(self._settings), path


def _hadoop_fault(error: Exception) -> FileFault:
    reason = java_reason(error)
    is_missing = first_cause(error).getClass().getSimpleName() == "FileNotFoundException" and "denied" not in reason
    return FileFault(reason, any(name in reason for name in OWN_FAULTS), is_missing)


class ArrowFiles:
    """The file systems that PyArrow opens.

    >>> ArrowFiles().size("file:///no/such/file").is_missing
    True
    """

    def size(self, uri: str) -> int | FileFault:
        """Return the size of a file in bytes."""
        try:
            with self._opened(uri) as file:
                return int(file.size())
        except (OSError, ArrowException, TableError) as error:
            return _arrow_fault(error)

    def fault(self, uri: str) -> FileFault | None:
        """Read all bytes of a file; return None if they can be read."""
        try:
            with self._opened(uri) as file:
                while file.read(CHUNK):
                    pass
        except (OSError, ArrowException, TableError) as error:
            return _arrow_fault(error)
        return None

    def _opened(self, uri: str) -> Any:
        store, path = store_of(path_of(uri))
        return store.open_input_file(path)


def _arrow_fault(error: Exception) -> FileFault:
    number = getattr(error, "errno", None)
    is_missing = isinstance(error, FileNotFoundError)
    text = str(error).partition("\n")[0]
    is_own = is_missing or isinstance(error, PermissionError) or number in OWN_ERRNOS
    return FileFault(f"{type(error).__name__}: {text}", is_own, is_missing)
