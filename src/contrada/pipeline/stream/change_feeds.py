"""Changes of subscriptions from the change feed of a Delta or Iceberg table, whose rows are subscriptions.

The state is the version (Delta) or snapshot (Iceberg) that was read last. At first all rows of the newest version are
subscribed. Afterwards a row that was inserted or updated subscribes its key, and a key without a row any more is
unsubscribed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.errors import ContradaError, FormatError
from contrada.formats.records import Rejected
from contrada.pipeline.java_errors import SPARK_ERRORS, java_reason
from contrada.pipeline.stream.changes import Change, News, parsed_change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROVIDERS = ("delta", "iceberg")
COLUMNS = ("key", "subscriber", "filter")
KIND, COMMIT = "_change_type", "_commit"  # of a row of a feed
REMOVED = ("delete", "update_preimage", "update_before")


class ChangeFeed:
    """The change feed of a Delta or Iceberg table with the columns `key`, `subscriber` and `filter`.

    A Delta table needs `delta.enableChangeDataFeed = true` from its creation on, or from the version that the stream
    starts with. Keys should be unique: of several rows with one key that a commit writes, the last by text counts.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        self._session, self._name = session, name
        provider = self._provider()
        self._feed: _DeltaFeed | _IcebergFeed = (_DeltaFeed if provider == "delta" else _IcebergFeed)(session, name)

    def since(self, state: Any) -> News:
        """Return the changes after a state, in order of commits."""
        self._told(lambda: self._session.catalog.refreshTable(self._name))  # others write to it
        newest = self._told(self._feed.newest)
        if newest is None or newest == state:
            return News([], state)
        if state is None:
            rows = self._told(lambda: self._collected(self._feed.table(newest), first=True))
        else:
            rows = self._told(lambda: self._collected(self._feed.between(state, newest), first=False))
        return News(list(_records(rows, self._name)), newest)

    def _provider(self) -> str:
        """Return the name of the format, from the description of the table."""
        rows = self._told(lambda: self._session.sql(f"DESCRIBE TABLE EXTENDED {self._name}").collect())
        found = next((str(row.data_type).lower() for row in rows if row.col_name == "Provider"), "none")
        if found not in PROVIDERS:
            raise ContradaError(f"{self._name}: need a table of {' or '.join(PROVIDERS)}, got one of {found}")
        return found

    def _collected(self, rows: DataFrame, first: bool) -> list[_FeedRow]:
        from pyspark.sql import functions as f

        for name in ("key", "filter"):
            if name not in rows.columns:
                raise FormatError(f"{self._name} needs column {name!r}; columns: {', '.join(rows.columns)}")
        known = [f.col(name) if name in rows.columns else f.lit(None).alias(name) for name in COLUMNS]
        marks = [f.lit("insert").alias(KIND), f.lit(0).alias(COMMIT)] if first else [f.lower(KIND).alias(KIND), COMMIT]
        return [_FeedRow(*row) for row in rows.select(*known, *marks).collect()]

    def _told(self, ask: Callable[[], Any]) -> Any:
        """Call a function; an error of Spark is a ContradaError that names the table."""
        try:
            return ask()
        except SPARK_ERRORS as error:
            raise ContradaError(f"{self._name}: the change feed cannot be read: {java_reason(error)}") from error


class _FeedRow(NamedTuple):
    key: Any
    subscriber: Any
    filter: Any
    kind: str
    commit: int


def _records(rows: list[_FeedRow], source: str) -> Iterator[Change | Rejected]:
    """Yield the net changes of each commit: keys that are left without a row first, then rows by key."""
    commits: dict[int, list[_FeedRow]] = {}
    for row in rows:
        commits.setdefault(row.commit, []).append(row)
    for number, commit in sorted(commits.items()):
        there = {repr(row.key) for row in commit if row.kind not in REMOVED}
        gone = {repr(row.key): row.key for row in commit if row.kind in REMOVED and repr(row.key) not in there}
        for _, key in sorted(gone.items()):
            yield parsed_change({"action": "unsubscribe", "key": key}, source, "commit", number)
        for row in sorted((row for row in commit if row.kind not in REMOVED), key=lambda row: repr(row[:3])):
            yield parsed_change(dict(zip(COLUMNS, row[:3], strict=True)), source, "commit", number)


class _DeltaFeed:
    """Versions of a Delta table, and the changes between them."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self._session, self._name = session, name

    def newest(self) -> int:
        """Return the newest version."""
        return int(self._session.sql(f"DESCRIBE HISTORY {self._name} LIMIT 1").collect()[0]["version"])

    def table(self, version: int) -> DataFrame:
        """Return the rows of a version."""
        return self._session.sql(f"SELECT * FROM {self._name} VERSION AS OF {int(version)}")

    def between(self, after: int, upto: int) -> DataFrame:
        """Return the changes of the versions after one, up to another."""
        options = {"readChangeFeed": "true", "startingVersion": str(after + 1), "endingVersion": str(upto)}
        rows = self._session.read.format("delta").options(**options).table(self._name)
        return rows.withColumnRenamed("_commit_version", COMMIT)


class _IcebergFeed:
    """Snapshots of an Iceberg table, and the changes between them."""

    def __init__(self, session: SparkSession, name: str) -> None:
        self._session, self._name = session, name
        self._catalog = name.split(".")[0] if name.count(".") > 1 else session.catalog.currentCatalog()

    def newest(self) -> int | None:
        """Return the snapshot of the main branch; None of a table without one."""
        rows = self._session.sql(f"SELECT snapshot_id FROM {self._name}.refs WHERE name = 'main'").collect()
        return int(rows[0][0]) if rows else None

    def table(self, snapshot: int) -> DataFrame:
        """Return the rows of a snapshot."""
        return self._session.sql(f"SELECT * FROM {self._name} VERSION AS OF {int(snapshot)}")

    def between(self, after: int, upto: int) -> DataFrame:
        """Return the changes of the snapshots after one, up to another."""
        view = f"contrada_changes_{uuid.uuid4().hex}"
        options = f"map('start-snapshot-id', '{int(after)}', 'end-snapshot-id', '{int(upto)}')"
        self._session.sql(
            f"CALL {self._catalog}.system.create_changelog_view(table => '{self._name}', options => {options},"
            f" changelog_view => '{view}')"
        )
        rows = self._session.table(view).withColumnRenamed("_change_ordinal", COMMIT)
        self._session.catalog.dropTempView(view)  # the frame has its plan by now
        return rows
