"""Which files of a batch are damaged, and why: looked for when Spark fails to read a batch, or reads nothing of a file.

Spark reads every file strictly, so that damage fails a batch. The files are then tried in halves until those that fail
are known. A file counts as damaged if Spark fails to read it twice, and its bytes can be read in between: a store that
does not answer is an error of the batch, which comes again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.errors import ContradaError
from contrada.pipeline.ingest.quarantine import path_of
from contrada.pipeline.java_errors import first_cause, java_reason, spark_errors, without_log
from contrada.pipeline.stream.footers import deadly_footers
from contrada.pipeline.stream.message_files import PARQUET, MessageFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMPRESSED = (".gz", ".zst", ".bz2", ".lz4", ".snappy", ".deflate")
NAMED = re.compile(r"while reading file (\S+?)\.?\s")
READING = ("FAILED_READ_FILE", "PATH_NOT_FOUND")  # what Spark calls a file that it cannot read
# Faults of the file and not of the store: it is gone, closed to us, unlike its checksum, or on a bad sector.
OWN_FAULTS = ("FileNotFoundException", "AccessControlException", "ChecksumException", "Input/output error")


class Sorted(NamedTuple):
    """The files of a batch: sound ones, damaged ones that give some rows, and the reasons of all that are damaged."""

    sound: list[str]
    partly: list[str]
    damage: dict[str, str]


class Damage:
    """Looks for damaged files; `chosen` selects the columns that a batch reads, for no others can fail it."""

    def __init__(
        self, files: MessageFiles, session: SparkSession, chosen: Callable[[DataFrame], DataFrame] = lambda frame: frame
    ) -> None:
        self._files, self._session, self._chosen = files, session, chosen
        state: Any = session
        self._settings = state._jsparkSession.sessionState().newHadoopConf()  # some milliseconds, so once

    def unread(self, uris: Sequence[str]) -> dict[str, str] | None:
        """Why files gave no rows to a batch that Spark read: gone, or empty; None if one of them has rows after all.

        Spark leaves out files that are gone when it lists those of a batch, and files of zero bytes.
        """
        damage = self._absent(uris)
        rest = [uri for uri in uris if uri not in damage]
        try:
            has_rows = bool(rest) and not self._files.read(self._session, rest).isEmpty()
        except spark_errors():
            return None
        return None if has_rows else damage

    def sorted(self, uris: Sequence[str]) -> Sorted:
        """Sort the files of a batch; O(d log n) jobs for d damaged ones among n."""
        damage = self._absent(uris)
        absent = set(damage)
        with without_log(self._session):
            damage |= self._unreadable([uri for uri in uris if uri not in absent])
            partly = [uri for uri in damage if uri not in absent and self._error([uri], partly=True) is None]
        sound = [uri for uri in uris if uri not in damage]
        if self._files.format == PARQUET:
            deadly = deadly_footers([*sound, *partly])  # workers read footers with C++ code
            damage |= {uri: reason for uri, reason in deadly.items() if uri not in damage}
            sound, partly = ([uri for uri in some if uri not in deadly] for some in (sound, partly))
        return Sorted(sound, partly, damage)

    def _unreadable(self, uris: Sequence[str]) -> dict[str, str]:
        """The files that Spark cannot read. Of a group that fails, the file that the error names is tried alone."""
        damage: dict[str, str] = {}
        groups = [list(uris)]
        while groups:
            group = groups.pop()
            error = self._error(group)
            if error is None:
                continue
            suspect = _named(error, group)
            reason = self._reason(suspect)
            if reason is not None:
                damage[suspect] = reason
            rest = [uri for uri in group if uri != suspect]
            groups += [rest[: len(rest) // 2], rest[len(rest) // 2 :]]
        return damage

    def read(self, found: Sorted) -> DataFrame | None:
        """The messages of the sound files, and those of the damaged ones that Spark gives; None if there is no file."""
        parts = [(found.sound, False), (found.partly, True)]
        frames = [self._files.read(self._session, uris, partly=partly) for uris, partly in parts if uris]
        return frames[0].union(frames[1]) if len(frames) == 2 else next(iter(frames), None)

    def _error(self, uris: Sequence[str], *, partly: bool = False) -> Exception | None:
        """How Spark fails to read files; an error that is not about files is raised."""
        if not uris:
            return None
        try:
            frame = self._chosen(self._files.read(self._session, uris, partly=partly))
            frame.write.format("noop").mode("overwrite").save()
        except spark_errors() as error:
            if any(name in str(error) for name in READING):
                return error
            raise
        return None

    def _reason(self, uri: str) -> str | None:
        """Why a file that failed once cannot be read; None if it can."""
        fault = self._fault_of_bytes(uri)
        if fault is not None:
            return fault
        error = self._error([uri])
        return None if error is None else f"the file is damaged: {java_reason(error)}"

    def _absent(self, uris: Sequence[str]) -> dict[str, str]:
        """The files that are gone, or empty although no file of their kind can be."""
        found = {}
        for uri in uris:
            store, path = self._opened(uri)
            try:
                is_empty = store.getFileStatus(path).getLen() == 0
            except spark_errors() as error:
                found[uri] = self._own_fault(uri, error)
            else:
                if is_empty and (self._files.format == PARQUET or uri.lower().endswith(COMPRESSED)):
                    found[uri] = "the file is empty: it has 0 bytes"
        return found

    def _fault_of_bytes(self, uri: str) -> str | None:
        """Why the bytes of a file cannot be read; None if they can. A fault of the store is a ContradaError."""
        jvm: Any = self._session._jvm
        store, path = self._opened(uri)
        nowhere = jvm.java.io.OutputStream.nullOutputStream()
        try:
            jvm.org.apache.hadoop.io.IOUtils.copyBytes(store.open(path), nowhere, 1 << 16, True)
        except spark_errors() as error:
            return self._own_fault(uri, error)
        return None

    def _own_fault(self, uri: str, error: Exception) -> str:
        reason = java_reason(error)
        if not any(name in reason for name in OWN_FAULTS):
            raise ContradaError(f"{path_of(uri)} cannot be read from its store: {reason}") from error
        if first_cause(error).getClass().getSimpleName() == "FileNotFoundException" and "denied" not in reason:
            return "the file is gone: it was there when Spark listed the directory"
        return f"the file cannot be read: {reason}"

    def _opened(self, uri: str) -> tuple[Any, Any]:
        """The Hadoop file system of a file, and its path there."""
        jvm: Any = self._session._jvm
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        return path.getFileSystem(self._settings), path


def _named(error: Exception, group: Sequence[str]) -> str:
    """The file of a group that an error names, or else the first."""
    found = NAMED.search(str(error) + " ")
    name = path_of(found[1]) if found else ""
    return next((uri for uri in group if path_of(uri) == name), group[0])
