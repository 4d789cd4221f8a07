"""Find damaged files of a batch, after Spark failed to read the batch or read nothing from a file.

Spark reads every file strictly, so damage fails a batch. The files are then tried in halves until those that fail are
found. A file counts as damaged if Spark fails to read it twice although its bytes can be read in between: a store that
does not answer is an error of the batch, which is then retried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from contrada.errors import ContradaError
from contrada.pipeline.java_errors import SPARK_ERRORS, java_reason, without_log
from contrada.pipeline.storage import path_of
from contrada.pipeline.stream.file_stores import FileFault, file_store
from contrada.pipeline.stream.footers import deadly_footers
from contrada.pipeline.stream.message_files import PARQUET, MessageFiles

COMPRESSED = (".gz", ".zst", ".bz2", ".lz4", ".snappy", ".deflate")
FILE_IN_ERROR = re.compile(r"while reading file (\S+?)\.?\s")
READ_ERRORS = ("FAILED_READ_FILE", "PATH_NOT_FOUND")  # Spark's error classes for files that it cannot read


class Sorted(NamedTuple):
    """The files of a batch: sound ones, damaged ones that give some rows, and the reasons of all damaged ones."""

    sound: list[str]
    partly: list[str]
    damage: dict[str, str]


class Damage:
    """Finds damaged files; `chosen` selects the columns that a batch reads, since no others can fail it."""

    def __init__(
        self, files: MessageFiles, session: SparkSession, chosen: Callable[[DataFrame], DataFrame] = lambda frame: frame
    ) -> None:
        self._files, self._session, self._chosen = files, session, chosen
        self._store = file_store(session)

    def unread(self, uris: Sequence[str]) -> dict[str, str] | None:
        """Return why files gave no rows to a batch that Spark read: missing or empty; None if one does have rows.

        Spark skips files that disappear before it lists the batch, and files of zero bytes.
        """
        damage = self._absent(uris)
        rest = [uri for uri in uris if uri not in damage]
        try:
            has_rows = bool(rest) and not self._files.read(self._session, rest).isEmpty()
        except SPARK_ERRORS:
            return None
        return None if has_rows else damage

    def sorted(self, uris: Sequence[str]) -> Sorted:
        """Sort the files of a batch into sound and damaged; takes O(d log n) jobs for d damaged ones among n."""
        damage = self._absent(uris)
        absent = set(damage)
        with without_log(self._session):
            damage |= self._unreadable([uri for uri in uris if uri not in absent])
            partly = [uri for uri in damage if uri not in absent and self._error([uri], partly=True) is None]
        sound = [uri for uri in uris if uri not in damage]
        if self._files.format == PARQUET:
            deadly = deadly_footers([*sound, *partly])  # workers read footers with C++ code, which may crash
            damage |= {uri: reason for uri, reason in deadly.items() if uri not in damage}
            sound, partly = ([uri for uri in some if uri not in deadly] for some in (sound, partly))
        return Sorted(sound, partly, damage)

    def _unreadable(self, uris: Sequence[str]) -> dict[str, str]:
        """Return the files that Spark cannot read. In a failing group, the file named by the error is tried alone."""
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
        """Read the sound files, and the readable rows of damaged ones; return None if there is no file."""
        parts = [(found.sound, False), (found.partly, True)]
        frames = [self._files.read(self._session, uris, partly=partly) for uris, partly in parts if uris]
        return frames[0].union(frames[1]) if len(frames) == 2 else next(iter(frames), None)

    def _error(self, uris: Sequence[str], *, partly: bool = False) -> Exception | None:
        """Return Spark's error on reading files, or None; an error that is not about files is raised."""
        if not uris:
            return None
        try:
            frame = self._chosen(self._files.read(self._session, uris, partly=partly))
            frame.write.format("noop").mode("overwrite").save()
        except SPARK_ERRORS as error:
            if any(name in str(error) for name in READ_ERRORS):
                return error
            raise
        return None

    def _reason(self, uri: str) -> str | None:
        """Return why a file that failed once cannot be read, None if it can; a fault of the store raises."""
        fault = self._store.fault(uri)
        if fault is not None:  # the bytes cannot be read
            return _own_fault(uri, fault)
        error = self._error([uri])
        return None if error is None else f"the file is damaged: {java_reason(error)}"

    def _absent(self, uris: Sequence[str]) -> dict[str, str]:
        """Return the files that are missing, or empty although their format has no empty files."""
        found = {}
        for uri in uris:
            size = self._store.size(uri)
            if isinstance(size, FileFault):
                found[uri] = _own_fault(uri, size)
            elif size == 0 and (self._files.format == PARQUET or uri.lower().endswith(COMPRESSED)):
                found[uri] = "the file is empty: it has 0 bytes"
        return found


def _own_fault(uri: str, fault: FileFault) -> str:
    """Return why a file cannot be read; a fault of its store raises."""
    if not fault.is_own:
        raise ContradaError(f"{path_of(uri)} cannot be read from its store: {fault.reason}")
    if fault.is_missing:
        return "the file was removed after Spark listed the directory"
    return f"the file cannot be read: {fault.reason}"


def _named(error: Exception, group: Sequence[str]) -> str:
    """Return the file of a group that an error names, or else the first."""
    found = FILE_IN_ERROR.search(str(error) + " ")
    name = path_of(found[1]) if found else ""
    return next((uri for uri in group if path_of(uri) == name), group[0])
