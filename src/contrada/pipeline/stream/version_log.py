"""Versions of a stream's subscriptions, stored beside its checkpoint; a replayed batch keeps its version.

`<checkpoint>/contrada/` holds `stream.json` (id of the stream), `driver.json` (the driver that runs it),
`versions/<v>.json`, `segments/<v>.ndjson` (changes that made version v), `batches/<n>.json` (the version of batch n),
`artifacts/<digest>/` (compiled tables of this stream alone) and `rejected_changes/`. A version is a compiled table and
the segments after it. Compaction merges both into a new table, in a task, or in a task for each partition. More than
`MAX_SEGMENT_RECORDS` changes at once become a new table in the driver, without a segment, while batches go on; of
partitions, workers build the tables.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, NamedTuple, TypeVar

from contrada.errors import ContradaError, TableError
from contrada.matching import ForwardingTable
from contrada.model import Predicate
from contrada.pipeline import manifests
from contrada.pipeline.artifact_cache import cache_home, open_copy
from contrada.pipeline.artifact_store import record_use
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.changes import (
    Applied,
    Change,
    Changes,
    News,
    Subscriptions,
    apply_changes,
    apply_segment,
    changes_in,
    keys_in,
)
from contrada.pipeline.stream.partitioned_changes import ChangedPartitions, PartitionWork
from contrada.pipeline.stream.version import FIELDS, Table, Version, digests_of

FOLDER = "contrada"
FOLDERS = ("", "versions", "segments", "batches", "rejected_changes", "artifacts")
MAX_SEGMENT_RECORDS = 500  # records; more are applied in the background, since each takes milliseconds
MAX_RETIRED_TABLES = 100  # removed tables reported to executors; a missed copy goes when it has been unused for long
T = TypeVar("T")
Compact = Callable[[Version, str, str], Artifact]  # arguments: a version, the place of versions, that of artifacts


# Many changes as a table: the result of the changes, and the state after them.
Prepared = tuple[Table, Applied, Any]


class ChangeCounts(NamedTuple):
    """Changes that were rejected, compactions, and those that failed, since the driver started."""

    rejected: int
    compactions: int
    failed_compactions: int


class Versions:
    """The versions of one stream, in its driver. Not thread-safe, apart from its own background threads.

    `check` raises for attributes that messages cannot have, `admit` for queries; `compact` makes a table of a version,
    `work` does what tables in partitions need. If two drivers use one checkpoint, the later one continues, and the
    other raises before its next batch or output.

    Over Spark Connect these are pickled once the stream has begun. The copy, in a process of the server, goes on for
    the same driver, and the original only follows it.
    """

    def __init__(
        self,
        checkpoint: Storage,
        changes: Changes | None,
        compact: Compact,
        check: Callable[[set[str]], None] = lambda attributes: None,
        compact_after: int = 1000,
        work: PartitionWork | None = None,
        segment_records: int = MAX_SEGMENT_RECORDS,
        retired_tables: int = MAX_RETIRED_TABLES,
        admit: Callable[[Predicate], None] = lambda predicate: None,
    ) -> None:
        self.place = checkpoint.inner(FOLDER)
        self._artifacts = f"{self.place.where}/artifacts"
        self._changes, self._compact, self._check, self._compact_after = changes, compact, check, compact_after
        self._segment_records, self._retired_tables, self._work = segment_records, retired_tables, work
        self._admit = admit
        # At most one of the two is set: a table is made either of the version before the changes, or of the changes.
        self._compaction: tuple[Version, Future[Table]] | None = None
        self._preparation: Future[Prepared] | None = None
        self._is_beginning = True
        self._driver = uuid.uuid4().hex
        self._retired: dict[str, None] = {}
        self.rejected = 0  # changes, since this driver started
        self.compactions = 0
        self.failed_compactions = 0

    # Start

    @property
    def id(self) -> str:
        """Return the id of this stream, which is stored in its checkpoint."""
        told = self.place.fields("stream.json", {"id": manifests.text})
        if told is None:
            self.place.write("stream.json", json.dumps({"id": uuid.uuid4().hex}).encode())
            return self.id
        return str(told["id"])

    def begin(self, first: Callable[[str], Table], *, opens: bool = True) -> None:
        """Continue with the latest version; if there is none, `first` is called for the table of version 0.

        The table is opened unless a copy of these versions, in another process, will take changes.
        """
        self.place.write("driver.json", json.dumps({"driver": self._driver}).encode())
        for folder in FOLDERS:
            self.place.remove_unfinished(folder)
        numbers = self._numbers("versions")
        if numbers:
            self.current = self.read(numbers[-1])
            record_use(self.current.artifact, self.place, self.id)
        else:
            artifact = first(self._artifacts)
            record_use(artifact, self.place, self.id)
            self._put(Version(0, artifact, (), 0, artifact.attributes, artifact.subscriptions, None))
        if opens:
            self._table = self._opened(self.current)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs; it opens the table itself."""
        mine = ("_table", "_use", "_compaction", "_preparation", "current")
        return {name: value for name, value in self.__dict__.items() if name not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _compaction=None, _preparation=None)
        numbers = self._numbers("versions")
        if not numbers:
            raise TableError(
                f"{self.place.where} has no versions here; over Spark Connect the checkpoint must be a place that "
                "client and server share"
            )
        self.current = self.read(numbers[-1])
        self._table = self._opened(self.current)

    @property
    def counts(self) -> ChangeCounts:
        """Return counts of changes and compactions."""
        return ChangeCounts(self.rejected, self.compactions, self.failed_compactions)

    def follow(self, counts: ChangeCounts) -> None:
        """Take over the counts and the newest version of the copy that runs the batches."""
        self.rejected, self.compactions, self.failed_compactions = counts
        self.current = self.read(self._numbers("versions")[-1])

    def check_driver(self) -> None:
        """Raise a ContradaError if another driver has started on this checkpoint since this one did."""
        told = self.place.fields("driver.json", {"driver": manifests.text})
        if told is None or told["driver"] != self._driver:
            raise ContradaError(
                f"{self.place.where}: another driver has started from this checkpoint; this one stops, because two"
                " drivers would overwrite each other's output"
            )

    def _put(self, version: Version) -> None:
        self.current = version
        self.place.write(f"versions/{version.number}.json", version.text())

    def _opened(self, version: Version) -> Subscriptions:
        """Open a version's table for the driver, which validates changes with it; memory-mapped and not shared."""
        if isinstance(version.artifact, PartitionedArtifact):
            assert self._work is not None
            find = partial(self._work.find, version.artifact)
            lines = (segment(self.place, number) for number in version.segments)
            changes = [change for text in lines for change in changes_in(text)]
            return ChangedPartitions(find, changes, version.subscriptions)
        opened = open_copy(version.artifact, cache_home() / "tables")
        self._use = opened.use
        apply_segments(opened.table, self.place, version.segments)
        return opened.table

    # Batches

    def of_batch(self, batch: int) -> Version:
        """Return the version of a batch: the recorded one if the batch ran before, or the newest, recorded first."""
        self.check_driver()
        told = self.place.fields(f"batches/{batch}.json", {"version": manifests.count})
        if told is not None:
            return self.read(told["version"])
        self._take_compaction()
        self._take_changes()
        self._begin_compaction()
        self.place.write(f"batches/{batch}.json", json.dumps({"version": self.current.number}).encode())
        return self.current

    def read(self, number: int) -> Version:
        """Read a version; a missing one is a TableError."""
        told = self.place.fields(f"versions/{number}.json", FIELDS)
        if told is None:
            raise TableError(f"{self.place.where} has no version {number}")
        return Version(**told)

    def _take_changes(self) -> None:
        """Make a version of new changes; more than `segment_records` become one later, as a table."""
        if self._changes is None:
            return
        waits, self._is_beginning = self._is_beginning, False
        if self._preparation is None:
            news = self._changes.since(self.current.state)
            if len(news.records) <= self._segment_records:
                self._take_news(news)
                return
            if self._compaction is not None:
                return
            self._preparation = in_background(partial(self._prepared, news))
        if waits or self._preparation.done():  # changes from before this driver started count from its first batch on
            self._take_prepared(*self._preparation.result())

    def _take_news(self, news: News) -> None:
        """Make a version of a few changes, by a new segment."""
        if not news.records:
            if news.state != self.current.state:  # files were removed: store the state without a new version
                self._put(self.current._replace(state=news.state))
            return
        made = self._applied(news)
        last = self.current
        number, segments, changes = last.number + 1, last.segments, last.changes + len(made.changes)
        if made.changes:
            lines = "".join(f"{change.line()}\n" for change in made.changes)
            self.place.write(f"segments/{number}.ndjson", lines.encode())
            segments = (*segments, number)
        self._put_changes(Version(number, last.artifact, segments, changes, (), len(self._table), news.state), made)

    def _applied(self, news: News) -> Applied:
        types = self.current.artifact.key_type, self.current.artifact.subscriber_type
        table = self._table
        if isinstance(table, ChangedPartitions):
            table.look_up(keys_in(news.records, types[0]))
        made = apply_changes(table, news.records, types, self._check, self._admit)
        if isinstance(table, ChangedPartitions):
            for change in made.changes:
                table.note(change)
        return made

    def _prepared(self, news: News) -> Prepared:
        """Build a table of all subscriptions with many changes applied; runs in the background."""
        made, old, table = self._applied(news), self.current.artifact, self._table
        if isinstance(table, ChangedPartitions):
            return self._rebuilt(old, list(table.changes.values()), len(table)), made, news.state
        assert isinstance(table, ForwardingTable)
        types = old.key_type, old.subscriber_type
        return publish(table, self._artifacts, key_type=types[0], subscriber_type=types[1]), made, news.state

    def _rebuilt(self, old: Table, changes: list[Change], subscriptions: int) -> Table:
        """Build partitions with the changes since their base."""
        assert self._work is not None
        assert isinstance(old, PartitionedArtifact)
        return self._work.rebuild(old, changes, subscriptions, self._artifacts)

    def _take_prepared(self, artifact: Table, made: Applied, state: Any) -> None:
        """Make a version of a prepared table."""
        self._preparation = None
        self._put_changes(Version(self.current.number + 1, artifact, (), 0, (), artifact.subscriptions, state), made)
        self._table = self._opened(self.current)

    def _put_changes(self, version: Version, made: Applied) -> None:
        """Store the version that changes made, with the attributes that they add, and the rejected changes."""
        self.rejected += len(made.rejected)
        if made.rejected:
            lines = "".join(json.dumps(item._asdict(), ensure_ascii=False) + "\n" for item in made.rejected)
            self.place.write(f"rejected_changes/{version.number}.ndjson", lines.encode(errors="replace"))
        self._put(version._replace(attributes=tuple(sorted({*self.current.attributes, *made.attributes}))))

    # Compaction

    def _take_compaction(self) -> None:
        """Replace the older table and its segments by the compacted table; the version number stays."""
        if self._compaction is None or not self._compaction[1].done():
            return
        (version, done), self._compaction = self._compaction, None
        if done.exception() is not None:  # from Spark or a store: continue with the current table
            self.failed_compactions += 1
            return
        self.compactions += 1
        since = tuple(number for number in self.current.segments if number > version.number)
        changes = self.current.changes - version.changes
        self._put(self.current._replace(artifact=done.result(), segments=since, changes=changes))
        self._table = self._opened(self.current)

    def _begin_compaction(self) -> None:
        is_free = self._compaction is None and self._preparation is None
        if not is_free or self.current.changes < self._compact_after:
            return
        build: Callable[[], Table] = partial(self._compact, self.current, self.place.where, self._artifacts)
        if isinstance(self._table, ChangedPartitions):
            changes = list(self._table.changes.values())  # a copy: later changes are not part of this version
            build = partial(self._rebuilt, self.current.artifact, changes, self.current.subscriptions)
        self._compaction = self.current, in_background(build)

    def wait(self) -> None:
        """Wait until no table is being built."""
        compaction = None if self._compaction is None else self._compaction[1]
        running: list[Future[Any] | None] = [self._preparation, compaction]
        wait([work for work in running if work is not None])

    # Removal

    def committed(self, batch: int) -> None:
        """Remove the files that only batches before `batch` needed."""
        self.check_driver()  # another driver may need files unknown to this one
        kept = {self.current.number}
        for number in self._numbers("batches"):
            if number < batch:
                self.place.remove(f"batches/{number}.json")
                continue
            told = self.place.fields(f"batches/{number}.json", {"version": manifests.count})
            kept.add(0 if told is None else told["version"])
        numbers = self._numbers("versions")
        versions = [self.read(number) for number in numbers if number in kept]
        if self._compaction is not None:
            versions.append(self._compaction[0])
        for number in set(numbers) - kept:
            self.place.remove(f"versions/{number}.json")
        used = {number for version in versions for number in version.segments}
        for number in set(self._numbers("segments")) - used:
            self.place.remove(f"segments/{number}.ndjson")
        self._remove_artifacts(set().union(*(digests_of(version.artifact) for version in versions)))

    def _remove_artifacts(self, used: set[str]) -> None:
        """Remove unused tables of this stream; none while a table is built, which may equal an old one."""
        if self._preparation is not None:
            return
        if self._compaction is not None:
            compaction = self._compaction[1]
            if not compaction.done():
                return
            if compaction.exception() is None:
                used |= digests_of(compaction.result())
        for digest in self.place.names("artifacts"):
            if manifests.is_digest(digest) and digest not in used:
                self.place.remove(f"artifacts/{digest}")
                self._retired[digest] = None
        kept = [digest for digest in self._retired if digest not in used]
        self._retired = dict.fromkeys(kept[-self._retired_tables :])

    @property
    def retired(self) -> tuple[str, ...]:
        """Return the digests of the last removed tables, so that executors remove their copies."""
        return tuple(self._retired)

    def _numbers(self, folder: str) -> list[int]:
        stems = [name.partition(".")[0] for name in self.place.names(folder)]
        return sorted(int(stem) for stem in stems if stem.isdigit())


def segment(place: Storage, number: int) -> bytes:
    """Return the lines of a segment; a missing one is a TableError."""
    lines = place.read(f"segments/{number}.ndjson")
    if lines is None:
        raise TableError(f"{place.where} has no segment {number}")
    return lines


def apply_segments(table: ForwardingTable, place: Storage, numbers: Iterable[int]) -> int:
    """Apply segments to a table; return the number of their subscriptions."""
    return sum(apply_segment(table, segment(place, number)) for number in numbers)


def in_background(function: Callable[[], T]) -> Future[T]:
    """Run a function in a daemon thread, which the end of the process does not wait for.

    >>> in_background(lambda: 7).result()
    7
    """
    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(function())
        except Exception as error:  # any error is raised again by `result`
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
