"""Versions of the subscriptions of a stream, beside its checkpoint; a batch that is replayed keeps the one it had.

`<checkpoint>/contrada/` holds `stream.json` (who the stream is), `versions/<v>.json`, `segments/<v>.ndjson` (changes
that made version v), `batches/<n>.json` (the version of batch n), `artifacts/<digest>/` (compiled tables of this stream
alone) and `rejected_changes/`. A version is a compiled table and the segments after it. From time to time a task makes
a new table of both; the versions after that begin with it.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from contrada.errors import ContradaError, TableError
from contrada.language.records import Rejected
from contrada.matching import ForwardingTable
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.changes import Changes, apply_changes, apply_segment
from contrada.pipeline.place import Place
from contrada.pipeline.tables import cache_home, open_copy

FOLDER = "contrada"
Compact = Callable[["Version", str], Artifact]  # a version and where artifacts go


class Version(NamedTuple):
    """What the subscriptions are at some time: a table, changes since, and the attributes that both ask for."""

    number: int
    artifact: Artifact
    segments: tuple[int, ...]  # the versions that changes since the table were made for
    changes: int  # in these segments
    attributes: tuple[str, ...]
    subscriptions: int
    state: Any  # of where changes come from

    def text(self) -> bytes:
        """The version as JSON."""
        return json.dumps({**self._asdict(), "artifact": self.artifact._asdict()}).encode()

    @classmethod
    def of_text(cls, text: bytes) -> Version:
        """The version of such JSON."""
        about = json.loads(text)
        lists = {name: tuple(about[name]) for name in ("segments", "attributes")}
        return cls(**{**about, **lists, "artifact": Artifact.of(about["artifact"])})


class Versions:
    """The versions of one stream, in its driver. Not for several threads, but for the one that compacts.

    `check` refuses attributes that messages cannot have; `compact` makes a table of a version.
    """

    def __init__(
        self,
        checkpoint: Place,
        changes: Changes | None,
        compact: Compact,
        check: Callable[[set[str]], None] = lambda attributes: None,
        compact_after: int = 1000,
    ) -> None:
        self.place = checkpoint.inner(FOLDER)
        self._changes, self._compact, self._check, self._compact_after = changes, compact, check, compact_after
        self._compaction: Compaction | None = None
        self._retired: set[str] = set()
        self.rejected = 0  # changes, since this driver began
        self.compactions = 0

    # The beginning

    @property
    def id(self) -> str:
        """Who this stream is: the same as long as its checkpoint is."""
        told = self.place.read("stream.json")
        if told is None:
            self.place.write("stream.json", json.dumps({"id": uuid.uuid4().hex}).encode())
            return self.id
        return str(json.loads(told)["id"])

    def begin(self, first: Callable[[str], Artifact]) -> None:
        """Take up the latest version; if there is none, `first` is called for the table of version 0."""
        numbers = self._numbers("versions")
        if numbers:
            self.current = self.read(numbers[-1])
        else:
            artifact = first(self._artifacts())
            self.current = Version(0, artifact, (), 0, artifact.attributes, artifact.subscriptions, None)
            self.place.write("versions/0.json", self.current.text())
        self._table = self._opened(self.current)

    def _artifacts(self) -> str:
        return f"{self.place.where}/artifacts"

    def _opened(self, version: Version) -> ForwardingTable:
        """A version's table for the driver, which judges changes by it; mapped, and nobody else's."""
        opened = open_copy(version.artifact, cache_home() / "tables")
        self._use = opened.use
        for number in version.segments:
            apply_segment(opened.table, segment(self.place, number))
        return opened.table

    # Batches

    def of_batch(self, batch: int) -> Version:
        """The version of a batch: the one that it had if it ran before, or the newest, which is written down first."""
        told = self.place.read(f"batches/{batch}.json")
        if told is not None:
            return self.read(int(json.loads(told)["version"]))
        self._take_changes()
        self.place.write(f"batches/{batch}.json", json.dumps({"version": self.current.number}).encode())
        return self.current

    def read(self, number: int) -> Version:
        """A version that is kept; one that is not is a TableError."""
        text = self.place.read(f"versions/{number}.json")
        if text is None:
            raise TableError(f"{self.place.where} has no version {number}")
        return Version.of_text(text)

    def _take_changes(self) -> None:
        """Make a version of what has changed, if anything has."""
        if self._changes is None:
            return
        news = self._changes.since(self.current.state)
        if news.state == self.current.state or not news.records:
            if news.state != self.current.state:  # files went; to remember that makes no version
                self.current = self.current._replace(state=news.state)
                self.place.write(f"versions/{self.current.number}.json", self.current.text())
            return
        artifact = self.current.artifact
        made = apply_changes(self._table, news.records, (artifact.key_type, artifact.subscriber_type), self._check)
        number = self.current.number + 1
        self._keep_rejected(number, made.rejected)
        base, segments, count = self._base()
        if made.changes:
            lines = "".join(f"{change.line()}\n" for change in made.changes)
            self.place.write(f"segments/{number}.ndjson", lines.encode())
            segments, count = (*segments, number), count + len(made.changes)
        attributes = tuple(sorted({*self.current.attributes, *made.attributes}))
        self.current = Version(number, base, segments, count, attributes, len(self._table), news.state)
        self.place.write(f"versions/{number}.json", self.current.text())
        if base.digest != artifact.digest:
            self._table = self._opened(self.current)
        self._begin_compaction()

    def _keep_rejected(self, number: int, rejected: list[Rejected]) -> None:
        self.rejected += len(rejected)
        if rejected:
            lines = "".join(json.dumps(item._asdict(), ensure_ascii=False) + "\n" for item in rejected)
            self.place.write(f"rejected_changes/{number}.ndjson", lines.encode())

    # Compaction

    def _base(self) -> tuple[Artifact, tuple[int, ...], int]:
        """The newest table, the segments after it and their changes."""
        done = self._compaction
        if done is None or done.is_running:
            return self.current.artifact, self.current.segments, self.current.changes
        self._compaction = None
        if done.artifact is None:  # it failed, which is no reason to stop
            return self.current.artifact, self.current.segments, self.current.changes
        self.compactions += 1
        since = tuple(number for number in self.current.segments if number > done.version.number)
        return done.artifact, since, self.current.changes - done.version.changes

    def _begin_compaction(self) -> None:
        if self._compaction is None and self.current.changes >= self._compact_after:
            self._compaction = Compaction(self._compact, self.current, self._artifacts())

    def wait(self) -> None:
        """Wait until nothing is being compacted."""
        if self._compaction is not None:
            self._compaction.wait()

    # Removal

    def committed(self, batch: int) -> None:
        """Remove what batches before this one needed and no other needs."""
        for number in self._numbers("batches"):
            if number < batch:
                self.place.remove(f"batches/{number}.json")
        kept = {self.current.number}
        for number in self._numbers("batches"):
            kept.add(int(json.loads(self.place.read(f"batches/{number}.json") or b"{}").get("version", 0)))
        numbers = self._numbers("versions")
        versions = [self.read(number) for number in numbers if number in kept]
        if self._compaction is not None:
            versions.append(self._compaction.version)
        for number in set(numbers) - kept:
            self.place.remove(f"versions/{number}.json")
        used = {number for version in versions for number in version.segments}
        for number in set(self._numbers("segments")) - used:
            self.place.remove(f"segments/{number}.ndjson")
        self._remove_artifacts({version.artifact.digest for version in versions})

    def _remove_artifacts(self, used: set[str]) -> None:
        """Remove compiled tables of this stream; while one is being made, which may be like an old one, none goes."""
        if self._compaction is not None:
            if self._compaction.is_running:
                return
            if self._compaction.artifact is not None:
                used.add(self._compaction.artifact.digest)
        for digest in self.place.names("artifacts"):
            if digest not in used and digest != "rejected":
                self.place.remove(f"artifacts/{digest}")
                self._retired.add(digest)
        self._retired -= used

    @property
    def retired(self) -> tuple[str, ...]:
        """The tables that were removed, for executors to remove their copies."""
        return tuple(sorted(self._retired))

    def _numbers(self, folder: str) -> list[int]:
        stems = [name.partition(".")[0] for name in self.place.names(folder)]
        return sorted(int(stem) for stem in stems if stem.isdigit())


class Compaction:
    """A table made of a version, in a thread of its own: batches go on meanwhile."""

    def __init__(self, compact: Compact, version: Version, artifacts: str) -> None:
        self.version = version
        self.artifact: Artifact | None = None
        self.error: str | None = None
        self._thread = threading.Thread(target=self._run, args=(compact, artifacts), daemon=True)
        self._thread.start()

    def _run(self, compact: Compact, artifacts: str) -> None:
        try:
            self.artifact = compact(self.version, artifacts)
        except Exception as error:  # of Spark, of a store: the stream goes on with the table that it has
            self.error = str(error)

    @property
    def is_running(self) -> bool:
        """True until it is done."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Wait until it is done."""
        self._thread.join()


def segment(place: Place, number: int) -> bytes:
    """The lines of a segment; one that is not there is a TableError."""
    lines = place.read(f"segments/{number}.ndjson")
    if lines is None:
        raise TableError(f"{place.where} has no segment {number}")
    return lines


def checkpoint_place(checkpoint: str) -> Place:
    """The place of a checkpoint; a ContradaError where it cannot be one."""
    if not checkpoint:
        raise ContradaError("a stream has a checkpoint: a directory or URI that is its own")
    return Place(checkpoint)
