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

from contrada.service.links.naming import NAME
from contrada.service.shared_log.duties import LogPlace
from contrada.service.shared_log.shared_core import PLACE
from contrada.service.shared_log.shared_log import SharedLog, SharedLogError
from contrada.service.store.sqlite import FILE, SqliteStore
from contrada.service.table_files import TABLE

OWN_KINDS = (NAME, TABLE)  # of records that concern the server that wrote the snapshot alone
PART_BYTES = 512 << 10
SUFFIX = ".snapshot"

log = logging.getLogger("contrada.service")


def write_snapshot(store: SqliteStore, shared: SharedLog) -> tuple[int, int]:
    """Keep a copy of a store in its log; return the position up to which it has applied the log, and its size."""
    with tempfile.TemporaryDirectory(suffix=SUFFIX) as directory:
        path = Path(directory) / FILE
        store.copy_to(path)
        position, size = stored_position(path), path.stat().st_size
        assert position is not None
        shared.write_snapshot(position, _parts(path, min(PART_BYTES, shared.most_bytes)))
        return position, size


def prepare_store(directory: Path, shared: SharedLog) -> None:
    """Bring the store of a directory to a state from which it can follow a log.

    A store that is new, or so old that the log does not go back to it, becomes the newest snapshot.
    """
    position, first, end = stored_position(directory / FILE), shared.first(), shared.end()
    if position is not None and position > end:
        raise SharedLogError(
            f"{directory} has followed a log up to {position:,}, but this one ends at {end:,}: it is another log;"
            " choose another directory"
        )
    if (position or 0) + 1 >= first:
        return
    head = shared.newest_snapshot()
    if head is None or head.position + 1 < first:
        raise SharedLogError(f"the log begins at {first:,} and has no snapshot of what was before")
    log.info("reading a snapshot of the log at %d", head.position)
    directory.mkdir(parents=True, exist_ok=True)
    part = directory / (FILE + SUFFIX)
    with part.open("wb") as file:
        for data in shared.read_snapshot(head):
            file.write(data)
    with closing(sqlite3.connect(part)) as copy, copy:
        copy.executemany("DELETE FROM records WHERE kind = ?", [(kind,) for kind in OWN_KINDS])
    for suffix in ("-wal", "-shm"):  # of the store that was there
        (directory / (FILE + suffix)).unlink(missing_ok=True)
    part.replace(directory / FILE)
    shutil.rmtree(directory / "tables", ignore_errors=True)


def stored_position(path: Path) -> int | None:
    """Return the position up to which a store has applied a log; None if it never followed one."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT value FROM records WHERE kind = ? AND name = ''", (PLACE,)).fetchone()
            if found is None and connection.execute("SELECT 1 FROM records LIMIT 1").fetchone() is not None:
                raise SharedLogError(f"{path} has a state that came from no log; choose another directory")
    except sqlite3.Error as error:
        raise SharedLogError(f"{path}: {error}") from error
    return None if found is None else msgspec.msgpack.decode(found[0], type=LogPlace).position


def _parts(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while data := file.read(size):
            yield data
