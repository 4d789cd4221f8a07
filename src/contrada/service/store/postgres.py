"""PostgresStore: the store in the schema `contrada` of a PostgreSQL database."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8
from psycopg.types.string import BytesBinaryDumper

from contrada.service.store.message_store import StoreChange, StoredMessage, StoreError
from contrada.service.store.sql import COLUMNS, TRIM, Readers, SqlStore

SCHEMA = "contrada"
LOCK = 0x436F6E7472616461  # of pg_advisory_lock: "Contrada"
# A peer that vanished without a word is noticed within a minute, on both sides; PostgreSQL alone waits two hours.
DEFAULTS = {"connect_timeout": 5, "keepalives_idle": 20, "keepalives_interval": 10, "keepalives_count": 3}
SETTINGS = """
    SET search_path = contrada; SET client_encoding = 'UTF8';
    SET tcp_keepalives_idle = 20; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply'
"""
RETRY_SECONDS = 0.05  # between attempts to connect
PATIENCE = 5.0  # seconds for which a lost server is awaited

# Each step brings a store from the version of its place to the next one. Steps are never changed, only added.
# Texts are UTF-8 in bytea: a text of PostgreSQL cannot hold U+0000, and its order depends on the locale.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE messages (
        sequence bigint PRIMARY KEY, at bigint NOT NULL, tenant bytea NOT NULL, id bytea NOT NULL,
        format bytea NOT NULL, body bytea NOT NULL, matches bytea NOT NULL, total bigint NOT NULL
    );
    CREATE TABLE records (
        kind bytea NOT NULL, name bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (kind, name)
    );
    CREATE TABLE last_write (token bigint NOT NULL);
    INSERT INTO last_write VALUES (0);
    """,
)
TEXTS = {"kind", "name", "tenant", "id", "format"}  # columns
INSERT_MESSAGES = f"""
    INSERT INTO messages ({COLUMNS}) SELECT * FROM unnest(
        %b::int8[], %b::int8[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::bytea[], %b::int8[])
"""
PUT_RECORDS = """
    INSERT INTO records SELECT * FROM unnest(%b::bytea[], %b::bytea[], %b::bytea[])
    ON CONFLICT (kind, name) DO UPDATE SET value = excluded.value
"""
DELETE_RECORDS = """
    DELETE FROM records USING unnest(%b::bytea[], %b::bytea[]) AS gone (kind, name)
    WHERE records.kind = gone.kind AND records.name = gone.name
"""
# Besides errors of PostgreSQL: a text with half a surrogate pair and a number beyond 64 bits cannot be stored.
FAULTS = (psycopg.Error, OSError, UnicodeError, OverflowError)

Connection = psycopg.Connection[tuple[Any, ...]]
R = TypeVar("R")


class _TextDumper(BytesBinaryDumper):
    """Passes texts as bytea."""

    def dump(self, obj: Any) -> bytes:
        return bytes(obj.encode())


class PostgresStore(SqlStore):
    """A store in a database, which one store at a time has open.

    A lost connection is replaced, and a lost server awaited for `patience` seconds. Every transaction leaves its token
    in the database: after a connection was lost during a commit, the token says whether the transaction was done.
    """

    def __init__(self, url: str, *, patience: float = PATIENCE, migrations: Sequence[str] = MIGRATIONS) -> None:
        try:
            given = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise StoreError(f"the URL of the PostgreSQL database cannot be read: {error}") from error
        self._parameters: dict[str, Any] = {**DEFAULTS, **given}
        self._place = f"PostgreSQL database {given.get('dbname', '')} on {given.get('host', 'this machine')}"
        self._patience = patience
        self._name = f"contrada {secrets.token_hex(8)}"  # of the sessions that write
        self._readers = Readers(self._connect)
        self._token: int | None = None  # of the newest transaction that is known to be done
        self._last: int | None = None  # of the newest transaction that was tried
        self._writer: Connection | None = None
        self._is_closed = False
        try:
            self._open_writer(migrations)
        except FAULTS as error:
            raise self._error(error) from error

    def _error(self, reason: object) -> StoreError:
        if isinstance(reason, psycopg.Error):
            reason = reason.diag.message_primary or reason  # without the details, which show the row
        return StoreError(f"{self._place}: {str(reason).strip()}")

    # --- connecting ---

    def _connect(self, **parameters: Any) -> Connection:
        """Connect, until the server is there or patience ends."""

        def attempt() -> Connection | None:
            try:
                return psycopg.connect(**{**self._parameters, **parameters}, autocommit=True)
            except psycopg.OperationalError as error:
                failures.append(error)
                return None

        failures: list[psycopg.OperationalError] = []
        connection = self._within_patience(attempt)
        if connection is None:
            raise failures[-1]
        connection.adapters.register_dumper(str, _TextDumper)
        connection.execute(SETTINGS)
        return connection

    def _within_patience(self, attempt: Callable[[], R | None]) -> R | None:
        """Repeat an attempt until it gives something, or patience ends."""
        end = time.monotonic() + self._patience
        while (found := attempt()) is None and time.monotonic() < end:
            time.sleep(RETRY_SECONDS)
        return found

    def _open_writer(self, migrations: Sequence[str] | None = None) -> Connection:
        """Connect, take the lock, and find out which transaction was the last one."""
        writer = self._connect(application_name=self._name)
        try:
            self._check_durable(writer)
            self._take_lock(writer)
            if migrations is not None:
                self._migrate(writer, migrations)
            row = writer.execute("SELECT token FROM last_write").fetchone()
        except BaseException:
            writer.close()
            raise
        known, self._token = (self._token, self._last), None if row is None else row[0]
        self._writer = writer
        if migrations is None and self._token not in known:
            raise self._error("another server wrote to it while the connection was lost")
        return writer

    def _check_durable(self, writer: Connection) -> None:
        if writer.execute("SELECT current_setting('fsync')").fetchone() == ("off",):
            raise self._error("its server runs with fsync off, which loses messages at a power cut; set fsync = on")

    def _take_lock(self, writer: Connection) -> None:
        """Take the lock that one server at a time has, from an earlier session of ours if that is still there."""

        def attempt() -> bool | None:
            row = writer.execute("SELECT pg_try_advisory_lock(%s)", (LOCK,)).fetchone()
            if row == (True,):
                return True
            writer.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE convert_to(application_name, 'UTF8') = %b AND pid <> pg_backend_pid()",
                (self._name,),
            )
            return None

        if not self._within_patience(attempt):
            raise self._error("another server uses this database; stop it or choose another database")

    def _migrate(self, writer: Connection, migrations: Sequence[str]) -> None:
        """Bring the schema to the version of this program, one step in each transaction."""
        version = 0
        if writer.execute("SELECT to_regclass('contrada.schema_version')").fetchone() != (None,):
            row = writer.execute("SELECT max(version) FROM contrada.schema_version").fetchone()
            version = row[0] if row and row[0] else 0
        if version > len(migrations):
            raise self._error(f"written by a later version (schema {version}; this one knows {len(migrations)})")
        for number, step in enumerate(migrations[version:], version + 1):
            with writer.transaction():
                if number == 1:
                    if writer.execute("SELECT to_regnamespace('contrada')").fetchone() == (None,):
                        writer.execute("CREATE SCHEMA contrada")
                    writer.execute("CREATE TABLE contrada.schema_version (version integer NOT NULL)")
                writer.execute(step.encode())
                writer.execute("INSERT INTO contrada.schema_version VALUES (%s)", (number,))

    # --- writing ---

    def write(self, change: StoreChange) -> None:
        """Make a change durable.

        If the connection is lost, the change is tried a second time unless it was done. If the server does not come
        back in time, `last_write_done` tells later whether the change was done.
        """
        token = secrets.randbits(62)
        failure: Exception | None = None
        try:
            for _ in range(2):
                writer = self._connected()
                if self._token == token:  # done, but the connection was lost before the answer came
                    return
                self._last = token
                failure = self._attempt(writer, change, token)
                if failure is None:
                    self._token = token
                    return
                if not writer.closed:
                    break
        except FAULTS as error:
            failure = error
        raise self._error(failure) from failure

    def _attempt(self, writer: Connection, change: StoreChange, token: int) -> Exception | None:
        """Run the transaction; return why it failed. Close the connection unless the transaction is surely undone."""
        try:
            _transact(writer, change, token)
        except BaseException as error:
            try:
                writer.rollback()
            except psycopg.Error:
                writer.close()
            if not isinstance(error, FAULTS):
                raise
            return error
        return None

    def _connected(self) -> Connection:
        if self._is_closed:
            raise self._error("the store is closed")
        writer = self._writer
        return self._open_writer() if writer is None or writer.closed else writer

    def last_write_done(self) -> bool:
        """Return True if the change of the last `write` is in the database, False if nothing of it is.

        The thread that writes may ask, after a `write` that raised; raise StoreError as long as nobody can know.
        """
        try:
            self._connected()
        except FAULTS as error:
            raise self._error(error) from error
        return self._last is not None and self._token == self._last

    # --- reading ---

    def _rows(self, query: str, *values: Any) -> list[Any]:
        try:
            try:
                return self._fetch(query, values)
            except psycopg.OperationalError:
                self._readers.drop_idle()  # the server was restarted perhaps: try once more with a new connection
                return self._fetch(query, values)
        except FAULTS as error:
            raise self._error(error) from error

    def _fetch(self, query: str, values: Sequence[Any]) -> list[Any]:
        with self._readers.borrow() as reader, reader.cursor(binary=True) as cursor:
            cursor.execute(query.replace("?", "%b").encode(), values)
            names = [column.name for column in cursor.description or ()]
            return list(_decoded(names, cursor.fetchall()))

    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Yield the records of a kind."""
        try:
            self._rows("SELECT 1")  # replaces lost connections
            with (
                self._readers.borrow() as reader,
                reader.transaction(),
                reader.cursor("records", binary=True) as cursor,
            ):
                cursor.itersize = 1_000
                cursor.execute("SELECT name, value FROM records WHERE kind = %b ORDER BY name", (kind,))
                for name, value in cursor:
                    yield name.decode(), value
        except FAULTS as error:
            raise self._error(error) from error

    def close(self) -> None:
        """Close the store."""
        self._is_closed = True
        self._readers.close()
        if self._writer is not None:
            self._writer.close()


def _transact(writer: Connection, change: StoreChange, token: int) -> None:
    """Run a change as one transaction, in one round trip: after an error the server skips the rest, COMMIT too."""
    records = change.latest()
    puts = [(*key, value) for key, value in records.items() if value is not None]
    deletes = [key for key, value in records.items() if value is None]
    with writer.pipeline():
        writer.execute("BEGIN")
        writer.execute("UPDATE last_write SET token = %s", (Int8(token),))
        if change.messages:
            writer.execute(INSERT_MESSAGES.encode(), _columns(change.messages))
        if puts:
            writer.execute(PUT_RECORDS, [list(column) for column in zip(*puts, strict=True)])
        if deletes:
            writer.execute(DELETE_RECORDS, [list(column) for column in zip(*deletes, strict=True)])
        if change.trim is not None:
            writer.execute(TRIM.replace("?", "%b").encode(), (Int8(change.trim),))
        writer.execute("COMMIT")


def _columns(messages: Sequence[StoredMessage]) -> list[list[Any]]:
    """Return messages by column, integers as 64 bits: one prepared statement serves all sizes."""
    columns = [list(column) for column in zip(*messages, strict=True)]
    for place in (0, 1, 7):
        columns[place] = [Int8(number) for number in columns[place]]
    return columns


def _decoded(names: Sequence[str], rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows with their texts decoded."""
    texts = [name in TEXTS for name in names]
    if not any(texts):
        return iter(rows)
    return (
        tuple(value.decode() if is_text else value for value, is_text in zip(row, texts, strict=True)) for row in rows
    )
