"""Snapshots: copies of a server's store in the shared log, so that the log need not be kept from its beginning."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from contrada.service.links.naming import NAME
from contrada.service.shared_log.duties import LogPlace
from contrada.service.shared_log.entries import mark_of
from contrada.service.shared_log.shared_core import PLACE
from contrada.service.shared_log.shared_log import SharedLog, SharedLogError, SnapshotHead
from contrada.service.store.sqlite import FILE, LOCK, SqliteStore
from contrada.service.table_files import TABLE

OWN_KINDS = (NAME, TABLE)  # of records that concern the server that wrote the snapshot alone
PART_BYTES = 512 << 10
SUFFIX = ".snapshot"
ATTEMPTS = 5  # to read a snapshot before it is replaced by a newer one

log = logging.getLogger("contrada.service")


def write_snapshot(store: SqliteStore, shared: SharedLog) -> tuple[int, int]:
    """Keep a copy of a store in its log; return the position up to which it has applied the log, and its size."""
    with tempfile.TemporaryDirectory(suffix=SUFFIX) as directory:
        path = Path(directory) / FILE
        store.copy_to(path)
        place, size = stored_place(path), path.stat().st_size
        assert place is not None
        shared.write_snapshot(place.position, _parts(path, min(PART_BYTES, shared.most_bytes)))
        return place.position, size


def prepare_store(directory: Path, shared: SharedLog) -> None:
    """Bring the store of a directory to a state from which it can follow a log; SharedLogError if it is of another log.

    A store that is new, or so old that the log does not go back to it, becomes the newest snapshot.
    """
    place = stored_place(directory / FILE)
    for _ in range(ATTEMPTS):
        first = shared.first()
        if place is not None:
            _check_log(directory, place, first, shared)
        if (0 if place is None else place.position) + 1 >= first:
            return
        head = shared.newest_snapshot()
        if head is None or head.position + 1 < first:
            raise SharedLogError(f"the log begins at {first:,} and has no snapshot of what was before")
        log.info("reading a snapshot of the log at %d", head.position)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with FileLock(directory / LOCK, timeout=0):  # that of the store, which is opened afterwards
                _become_snapshot(directory, shared, head)
            return
        except Timeout as error:
            raise SharedLogError(f"{directory}: another server uses this directory; choose another") from error
        except SharedLogError as error:
            newest = shared.newest_snapshot()
            if newest is None or newest.position <= head.position:
                raise
            log.info("%s: reading a newer one", error)
    raise SharedLogError("snapshots of the log are replaced before they are read")


def _check_log(directory: Path, place: LogPlace, first: int, shared: SharedLog) -> None:
    """Raise SharedLogError if a log is not the one that a store has followed."""
    end, is_other = shared.end(), False
    if first <= place.position <= end and place.mark:
        unit = shared.unit(place.position)
        is_other = unit is None or mark_of(unit) != place.mark
    if is_other or place.position > end:
        raise SharedLogError(
            f"{directory} has followed another log, up to position {place.position:,}, than this one, which ends at"
            f" {end:,}; choose another directory"
        )


def _become_snapshot(directory: Path, shared: SharedLog, head: SnapshotHead) -> None:
    """Put a snapshot in the place of the store of a directory. A crash leaves the store, the snapshot or none."""
    part = directory / (FILE + SUFFIX)
    with part.open("wb") as file:
        for data in shared.read_snapshot(head):
            file.write(data)
    with closing(sqlite3.connect(part)) as copy, copy:
        copy.executemany("DELETE FROM records WHERE kind = ?", [(kind,) for kind in OWN_KINDS])
    for suffix in ("", "-wal", "-shm"):  # of the store that was there, which is not whole without the others
        (directory / (FILE + suffix)).unlink(missing_ok=True)
    part.replace(directory / FILE)
    shutil.rmtree(directory / "tables", ignore_errors=True)


def stored_place(path: Path) -> LogPlace | None:
    """Return how far a store has applied a log; None if it never followed one."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT value FROM records WHERE kind = ? AND name = ''", (PLACE,)).fetchone()
            if found is None and connection.execute("SELECT 1 FROM records LIMIT 1").fetchone() is not None:
                raise SharedLogError(f"{path} has a state that came from no log; choose another directory")
    except sqlite3.Error as error:
        raise SharedLogError(f"{path}: {error}") from error
    return None if found is None else msgspec.msgpack.decode(found[0], type=LogPlace)


def _parts(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(size):
            yield data
