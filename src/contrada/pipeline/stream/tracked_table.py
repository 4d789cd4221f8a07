"""The table of a stream of tracked objects, in Spark's Python workers: subscriptions with numbers that never change.

A number is the row of a subscription in the table: rows of the table that the checkpoint began with, then a row for
each subscription since. The table is never compacted, so numbers in the state of objects stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.codes import CROSS_BIT
from contrada.cql2.queries import bound_predicate
from contrada.errors import ContradaError, FilterError, UnknownKeyError
from contrada.formats.wrapping import wrapped_predicate
from contrada.geometry.globe import globes_of
from contrada.matching import ForwardingTable
from contrada.pipeline import manifests
from contrada.pipeline.artifact_cache import OpenTable, cache_home, open_copy
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.changes import Change, Name, changes_in
from contrada.pipeline.stream.version import FIELDS, Version
from contrada.pipeline.stream.version_log import segment
from contrada.tracking.tracks import Tracks
from contrada.tracking.transitions import REASONS, Transitions
from contrada.tracking.watch import Watch, kinds_of, watch_of
from contrada.tracking.watches import Watches

NEVER = np.iinfo(np.int64).max
UNSUBSCRIBED, REPLACED = REASONS.index("unsubscribed"), REASONS.index("replaced")


class TrackedStreamOptions(NamedTuple):
    """What is tracked, as a checkpoint keeps it."""

    track: str
    time: str
    late: str
    expire_after: int | None
    on: Any
    exit_buffer: float
    exit_after: int | None
    first: str
    buckets: int

    def watch(self, query: Any, attribute: str | None, wrap: Mapping[str, str] = MappingProxyType({})) -> Watch:
        """Return what a query asks of objects; raise FilterError for one that cannot be watched.

        `wrap` says by attribute how regions and points are wrapped.
        """
        options: dict[str, Any] = {"exit_buffer": self.exit_buffer, "first": self.first}
        if self.exit_after is not None:
            options["exit_after"] = f"{self.exit_after}ms"
        wrapped = wrapped_predicate(bound_predicate(query), globes_of(wrap)) if wrap else query
        made = watch_of(wrapped, self.on, **options)
        if attribute not in (None, made.attribute):
            raise FilterError(
                f"subscriptions of this stream track by {attribute!r}, this one by {made.attribute!r};"
                " use another stream for it"
            )
        return made


class TrackedTable:
    """A table with what its subscriptions ask of objects, at one version; later versions are added to it."""

    def __init__(self, opened: OpenTable, options: TrackedStreamOptions) -> None:
        self.opened, self.options = opened, options
        self.table: ForwardingTable = opened.table
        if self.table.wrap and kinds_of(options.on)[0] & CROSS_BIT:
            raise ContradaError("cross: not for a table that wraps attributes at the date line; use enter and exit")
        self.watches = Watches()
        self.attribute: str | None = None
        self.unwatched: dict[Name, str] = {}  # by key, of those that the checkpoint began with
        self._rows = len(opened.names.keys)
        # By number: the versions from which on a subscription counts, and from which on not; the reason of its end.
        self._added, self._removed, self._reasons = np.zeros(0, np.int64), np.zeros(0, np.int64), dict[int, int]()
        for row, (key, predicate) in enumerate(self.table.predicates()):
            try:
                self._watch(row, self.options.watch(predicate, self.attribute, self.table.wrap), 0)
            except FilterError as error:
                self.unwatched[key] = str(error)

    def _watch(self, row: int, watch: Watch, version: int) -> None:
        self.attribute = watch.attribute
        self.watches.put(row, watch, 0)
        if row >= len(self._added):
            size = 2 * row + 16
            self._added = np.append(self._added, np.full(size - len(self._added), NEVER))
            self._removed = np.append(self._removed, np.full(size - len(self._removed), NEVER))
        self._added[row] = version

    def apply(self, version: int, changes: list[Change]) -> None:
        """Make the changes of a version."""
        for change in changes:
            old = self._row_of(change.key)
            if change.filter is None:
                self.table.unsubscribe(change.key)
            else:
                watch = self.options.watch(change.filter, self.attribute, self.table.wrap)
                if old is not None and self.watches.get(old) == watch:
                    continue  # an equal one changes nothing
                self.table.subscribe(change.subscriber, change.filter, change.key, replace=True)
                self._watch(self._rows, watch, version)
                self._rows += 1
            if old is not None and old < len(self._removed):
                self._removed[old] = version
                self._reasons[old] = UNSUBSCRIBED if change.filter is None else REPLACED

    def crossed(self) -> list[Watch]:
        """Return what subscriptions ask for that ask for crossings."""
        return [self.watches.known(number) for number in self.watches.crossable()]

    def _row_of(self, key: Name) -> int | None:
        try:
            return self.table.rows_of([key])[0]
        except UnknownKeyError:
            return None

    def view(self, version: int, moves: list[list[int]]) -> Watches:
        """Return the subscriptions of a version, for the objects of a bucket.

        `moves` are pairs of a version that the bucket moved to, and the fixes that it had taken then, rising.
        """
        known = self.watches.arrays.places
        size = len(known)
        added, removed = _longer(self._added, size), _longer(self._removed, size)
        places = np.where((added <= version) & (removed > version), known, -1).astype(np.int32)
        steps = np.array(moves, np.int64).reshape(-1, 2)
        since = np.zeros(len(self.watches.arrays.kinds), np.int64)
        here = np.flatnonzero(places >= 0)
        since[places[here]] = steps[np.searchsorted(steps[:, 0], added[here]), 1]
        return self.watches.view(places, since)

    def move(self, tracks: Tracks, old: int, new: int, time: int) -> list[Transitions]:
        """End the subscriptions that a later version lacks; return the exits of objects inside of them."""
        numbers = np.flatnonzero((self._added <= old) & (self._removed > old) & (self._removed <= new)).tolist()
        told = []
        for reason in (UNSUBSCRIBED, REPLACED):
            chosen = [number for number in numbers if self._reasons[number] == reason]
            if chosen:
                told.append(tracks.unwatch(chosen, time, REASONS[reason]))
        return told


def _longer(values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.append(values, np.full(max(0, size - len(values)), NEVER))[:size]


class _Ready(NamedTuple):
    name: str
    table: TrackedTable
    segments: tuple[int, ...]


READY: list[_Ready] = []  # at most one: a worker runs one task at a time, and the versions of a stream come in order


def tracked_table(version: Version, place: str, options: TrackedStreamOptions) -> TrackedTable:
    """Return the table of a version; that of an earlier version is updated if possible."""
    held, artifact = READY.pop() if READY else None, version.artifact
    assert isinstance(artifact, Artifact)
    name = f"{place} {artifact.digest} {options}"
    if held is None or held.name != name or held.segments != version.segments[: len(held.segments)]:
        if held is not None:
            held.table.opened.use.close()
        held = _Ready(name, TrackedTable(open_copy(artifact, cache_home() / "tables"), options), ())
    # If a segment cannot be read, the table is between two versions, and is not kept.
    for number in version.segments[len(held.segments) :]:
        held.table.apply(number, list(changes_in(segment(Storage(place), number))))
    READY.append(held._replace(segments=version.segments))
    return held.table


def version_of_batch(place: str) -> tuple[int, Version]:
    """Return the number and the version of the batch whose task this is; the driver wrote it before the batch ran.

    Spark Connect does not tell tasks the batch. It is the newest one: batches run one after another.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    told = context.getLocalProperty("streaming.sql.batchId")
    names = [told] if told is not None else [name.partition(".")[0] for name in Storage(place).names("batches")]
    batch = max(map(int, names))
    return batch, read_version(place, batch)


def read_version(place: str, batch: int) -> Version:
    """Return the version of a batch."""
    storage = Storage(place)
    found = storage.fields(f"batches/{batch}.json", {"version": manifests.count})
    assert found is not None, f"batch {batch} has no version"
    fields = storage.fields(f"versions/{found['version']}.json", FIELDS)
    assert fields is not None, f"{place} has no version {found['version']}"
    return Version(**fields)
