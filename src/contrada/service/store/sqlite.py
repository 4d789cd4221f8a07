"""SqliteStore: the store in one SQLite file, in WAL mode, synchronised at every commit."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from contrada.service.store.message_store import StoreChange, StoreError
from contrada.service.store.sql import COLUMNS, TRIM, Readers, SqlStore

FILE, LOCK = "contrada.sqlite", "contrada.lock"

# Each step brings a store from the version of its place to the next one. Steps are never changed, only added.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE messages (
        sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL,
        format TEXT NOT NULL, body BLOB NOT NULL, matches BLOB NOT NULL, total INTEGER NOT NULL
    );
    CREATE TABLE records (
        kind TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
    """,
)
# Besides errors of SQLite: a text with half a surrogate pair and a number beyond 64 bits cannot be stored.
FAULTS = (sqlite3.Error, OSError, UnicodeError, OverflowError)


class SqliteStore(SqlStore):
    """A store in a directory, which one store at a time has open.

    `before_commit` is called before every commit; tests slow the disk down with it, or let it fail. With `is_derived`
    everything can be made again from elsewhere: a power cut may take the last commits, but leaves the store whole.
    """

    BYTES_AS_NAME = "CAST(? AS TEXT)"

    def __init__(
        self,
        directory: Path,
        *,
        before_commit: Callable[[], None] = lambda: None,
        is_derived: bool = False,
        migrations: Sequence[str] = MIGRATIONS,
    ) -> None:
        self._path = directory / FILE
        self._before_commit, self._synchronous = before_commit, "NORMAL" if is_derived else "FULL"
        self._lock = FileLock(directory / LOCK, timeout=0, thread_local=False)
        self._readers = Readers(self._connect_reader)
        try:
            _make_directory(directory)
            self._lock.acquire()
        except Timeout as error:
            raise StoreError(f"{directory}: another server uses this directory; stop it or choose another") from error
        except OSError as error:
            raise StoreError(f"{self._path}: {error}") from error
        try:
            self._writer = self._open_writer(migrations)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, FAULTS):
                raise StoreError(f"{self._path}: {error}") from error
            raise

    def _connect(self) -> sqlite3.Connection:
        # One thread at a time uses a connection, but not always the one that made it.
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=30, check_same_thread=False)
        # Whoever closes the last connection copies the log into the file: all of them synchronise.
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA fullfsync = ON")  # on macOS fsync alone leaves data in the cache of the disk
        return connection

    def _connect_reader(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _open_writer(self, migrations: Sequence[str]) -> sqlite3.Connection:
        writer = self._connect()
        try:
            writer.execute("PRAGMA journal_mode = WAL")
            self._migrate(writer, migrations)
        except BaseException:
            writer.close()
            raise
        return writer

    def _migrate(self, writer: sqlite3.Connection, migrations: Sequence[str]) -> None:
        """Bring the schema to the version of this program, one step in each transaction."""
        (version,) = writer.execute("PRAGMA user_version").fetchone()
        if version > len(migrations):
            raise StoreError(
                f"{self._path}: written by a later version (schema {version}; this one knows {len(migrations)})"
            )
        for number, step in enumerate(migrations[version:], version + 1):
            writer.executescript(f"BEGIN IMMEDIATE; {step}; PRAGMA user_version = {number}; COMMIT;")

    # --- writing ---

    def write(self, change: StoreChange) -> None:
        """Make a change durable."""
        writer = self._writer
        try:
            writer.execute("BEGIN IMMEDIATE")
            self._fill(writer, change)
            self._before_commit()
            writer.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):  # a second error says nothing new
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
            if isinstance(error, FAULTS):
                raise StoreError(f"{self._path}: {error}") from error
            raise

    def _fill(self, writer: sqlite3.Connection, change: StoreChange) -> None:
        if change.messages:
            writer.executemany(f"INSERT INTO messages ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", change.messages)
        records = change.latest()
        gone = [key for key, value in records.items() if value is None]
        puts = [(*key, value) for key, value in records.items() if value is not None]
        writer.executemany("DELETE FROM records WHERE kind = ? AND name = ?", gone)
        writer.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", puts)
        if change.trim is not None:
            writer.execute(TRIM, (change.trim,))

    # --- reading ---

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            with self._readers.borrow() as reader:
                return reader.execute(query, values).fetchall()
        except FAULTS as error:
            raise StoreError(f"{self._path}: {error}") from error

    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Yield the records of a kind."""
        try:
            with self._readers.borrow() as reader, closing(reader.cursor()) as cursor:
                yield from cursor.execute("SELECT name, value FROM records WHERE kind = ? ORDER BY name", (kind,))
        except FAULTS as error:
            raise StoreError(f"{self._path}: {error}") from error

    def copy_to(self, path: Path) -> None:
        """Write a copy of the store as it is now into a file that is not there yet; writing goes on meanwhile."""
        try:
            with closing(self._connect()) as connection:
                connection.execute("VACUUM INTO ?", (str(path),))
        except FAULTS as error:
            raise StoreError(f"{path}: {error}") from error

    def close(self) -> None:
        """Close the store."""
        self._readers.close()
        self._writer.close()
        self._lock.release()


def _make_directory(directory: Path) -> None:
    """Create a directory, with its parents, so that it survives a power cut."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for path in missing:
        opened = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
