"""Tables of partitions in Spark's Python workers: opened with the changes since the base, searched and rebuilt."""

from __future__ import annotations

import json
import resource
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from contrada.errors import UnknownKeyError
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.matching.store.storage import SavedNames
from contrada.pipeline.answers import AnswerWriter, Further, name_types, names_array
from contrada.pipeline.artifact_cache import MAX_OPEN_PARTITION_BYTES, OpenTable, cache_home, open_copy
from contrada.pipeline.artifacts import publish
from contrada.pipeline.partitioned.partitions import Partition, PartitionedArtifact
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.changes import Change, Name, changes_in
from contrada.pipeline.stream.partitioned_changes import Boxes, apply_later
from contrada.pipeline.stream.version import Version
from contrada.pipeline.stream.version_log import segment


class Opened(NamedTuple):
    """The open table of a partition, without the subscriptions that segments have changed since."""

    opened: OpenTable
    segments: tuple[int, ...]


class Later(NamedTuple):
    """The subscriptions of a version that are not in its base."""

    table: ForwardingTable
    segments: tuple[int, ...]
    rows: int  # ever used

    def writer(self, whole: PartitionedArtifact, by: By, further: Further) -> AnswerWriter:
        """Return a writer of answers of this table, in which names have the types of the whole table."""
        count = self.table.stats().subscribers if by == "subscriber" else self.rows
        rows = np.arange(count)
        subscribers = names_array(self.table.subscribers_of(rows, by), whole.subscriber_type)
        keys = subscribers if by == "subscriber" else names_array(self.table.keys_of(rows), whole.key_type)
        return AnswerWriter(name_types(whole), by, further, SavedNames(keys, subscribers, None))


_OPEN: OrderedDict[str, Opened] = OrderedDict()
_LATER: dict[str, Later] = {}  # at most one: a worker runs one task at a time, and versions come in order


def later_table(version: Version, place: str) -> Later:
    """Return the subscriptions that are not in the base; those of an earlier version are updated if possible."""
    name = f"{place} {version.artifact.digest}"
    held = _LATER.pop(name, None)
    _LATER.clear()
    if held is None or held.segments != version.segments[: len(held.segments)]:
        held = Later(ForwardingTable(), (), 0)
    for number in version.segments[len(held.segments) :]:
        changes = _changes(place, number)
        apply_later(held.table, changes)
        held = held._replace(rows=held.rows + sum(change.filter is not None for change in changes))
    _LATER[name] = held._replace(segments=version.segments)
    return _LATER[name]


def partition_table(part: Partition, version: Version, place: str) -> OpenTable:
    """Return the table of a partition, without subscriptions that were changed since; few stay open.

    Where address space is limited, one does: a partition may be as large as a worker's memory.
    """
    name = f"{place} {part.artifact.digest}"
    held = _OPEN.pop(name, None)
    if held is not None and held.segments != version.segments[: len(held.segments)]:
        held.opened.use.close()
        held = None
    if held is None:
        limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
        most = 0 if limited else MAX_OPEN_PARTITION_BYTES
        while _OPEN and sum(one.opened.bytes for one in _OPEN.values()) + part.artifact.bytes > most:
            _OPEN.popitem(last=False)[1].opened.use.close()
        held = Opened(open_copy(part.artifact, cache_home() / "tables"), ())
    for number in version.segments[len(held.segments) :]:
        remove_changed(held.opened.table, _changes(place, number))
    _OPEN[name] = Opened(held.opened, version.segments)
    return held.opened


def close_table(digest: str) -> None:
    """Close the table of a partition, if it is open."""
    for name in [name for name in _OPEN if name.endswith(f" {digest}")]:
        _OPEN.pop(name).opened.use.close()


def remove_changed(table: ForwardingTable, changes: Iterable[Change]) -> int:
    """Remove the subscriptions of a base that were changed since; return their number."""
    count = 0
    for change in changes:
        with suppress(UnknownKeyError):
            table.unsubscribe(change.key)
            count += 1
    return count


@lru_cache(maxsize=64)
def _changes(place: str, number: int) -> tuple[Change, ...]:
    """Return the changes of a segment, which never changes."""
    return tuple(changes_in(segment(Storage(place), number)))


# Work for the driver


def find_keys(batches: Iterator[Any], base: PartitionedArtifact, keys: Sequence[Name]) -> Iterator[Any]:
    """Yield the places of the keys that partitions have; the batches hold the numbers of partitions."""
    for number in _numbers(batches):
        opened = open_copy(base.partitions[number].artifact, cache_home() / "tables")
        with closing(opened.use):
            found = [place for place, key in enumerate(keys) if _row_of(opened.table, key) is not None]
        yield pa.record_batch([pa.array(found, pa.int32())], ["place"])


def rebuild_partitions(
    batches: Iterator[Any],
    base: PartitionedArtifact,
    changes: Sequence[Change],
    added: dict[int, list[Change]],
    boxes: dict[int, Boxes],
    artifacts: str,
) -> Iterator[Any]:
    """Build the tables of partitions with changes; yield rows about partitions, as `build_partition` does.

    The batches hold the numbers of partitions, of which the last may be new. One that no change concerns stays.
    """
    for number in _numbers(batches):
        about = _rebuilt(number, base, changes, (added.get(number, []), boxes.get(number, {})), artifacts)
        if about is not None:
            yield pa.record_batch([pa.array([json.dumps({"partition": number, "rejected": [], **about})])], ["about"])


def _rebuilt(
    number: int,
    base: PartitionedArtifact,
    changes: Sequence[Change],
    news: tuple[list[Change], Boxes],
    artifacts: str,
) -> dict[str, Any] | None:
    """Return the fields of a partition with changes; None if no subscription is left."""
    added, boxes = news
    types: dict[str, Any] = {"key_type": base.key_type, "subscriber_type": base.subscriber_type}
    if number >= len(base.partitions):
        if not added:
            return None
        table = ForwardingTable()
        apply_later(table, added)
        made = publish(table, artifacts, **types)
        return {"artifact": made._asdict(), "first_shared": made.subscriptions, "boxes": boxes}
    part = base.partitions[number]
    opened = open_copy(part.artifact, cache_home() / "tables")
    with closing(opened.use):
        table, saved = opened.table, part.artifact.subscriptions
        if not remove_changed(table, changes) and not added:
            return {**part._asdict(), "artifact": part.artifact._asdict()}
        shared = sum(_row_of(table, key) is not None for key in table.keys_of(np.arange(part.first_shared, saved)))
        own = len(table) - shared
        if not len(table) and not added:
            return None
        apply_later(table, added)
        made = publish(table, artifacts, **types)
    # Rows are saved in order, so added ones lie behind shared ones: they count as shared too, if there are any.
    return {
        "artifact": made._asdict(),
        "first_shared": own if shared else made.subscriptions,
        "boxes": boxes if added else part.boxes,
    }


def _row_of(table: ForwardingTable, key: Name) -> int | None:
    """Return the row of a key; None if the table has no such subscription."""
    try:
        return table.rows_of([key])[0]
    except UnknownKeyError:
        return None


def _numbers(batches: Iterator[Any]) -> list[int]:
    return [number for batch in batches for number in batch.column(0).to_pylist()]
