"""Route messages to the partitions that they can match, and match them there, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from contrada.errors import TableError
from contrada.geometry import Crs
from contrada.pipeline.artifact_cache import opened, opened_part
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.batches import FIRST_SLICE, Naming, SliceAnswer, answers_of
from contrada.pipeline.partitioned.partitions import NO_PARTITION, PartitionedArtifact
from contrada.pipeline.systems import NO_SYSTEMS, named_columns

# Columns before id and attributes. A row without partition and reason holds the number of messages read, in `fan`.
ROUTED_SCHEMA = "partition int, fan int, number bigint, reason string"
ID_COLUMN = 4
ROUTED_ROWS, ROUTED_BYTES = 1 << 15, 1 << 26  # approximate size of a batch that goes back to Spark

By = Literal["subscription", "subscriber"]


def route_batches(
    batches: Iterator[Any],
    router: Artifact,
    names: tuple[str, ...],
    wide: list[int],
    systems: Mapping[str, Crs] = NO_SYSTEMS,
) -> Iterator[Any]:
    """Route batches of a number, an id and attributes; yield a row per message and partition."""
    import pyarrow as pa

    seen, last, size = 0, None, FIRST_SLICE
    for batch in batches:
        ready = opened(router)
        partitions = np.asarray(pa.array(ready.names.keys, pa.int64()))
        whole = pa.Table.from_batches([batch])
        messages = named_columns(whole.select(range(2, whole.num_columns)), names, systems)
        for start, answer in answers_of(ready.table, messages, "subscription", size):
            yield from _sent(batch.slice(start, answer.asked), answer, partitions, wide)
            size = answer.next_size
        seen, last = seen + batch.num_rows, batch.slice(0, 1)
    if last is not None:
        yield _routed(last, np.zeros(1, np.int64), None, np.array([seen]), None)


def _sent(batch: Any, answer: SliceAnswer, partitions: NDArray[np.int64], wide: list[int]) -> Iterator[Any]:
    """Yield the rows of a slice of messages: one per partition, and the bad messages."""
    found = partitions[answer.rows] if len(answer.rows) else answer.rows
    is_real = found != NO_PARTITION
    owners, found = _with_wide(answer.messages[is_real], found[is_real], answer.asked, answer.rejected, wide)
    fans = np.bincount(owners, minlength=answer.asked)
    step = max(1, min(ROUTED_ROWS, ROUTED_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, len(owners), step):
        own = owners[start : start + step]
        yield _routed(batch, own, found[start : start + step], fans[own], None)
    if answer.rejected:
        bad = np.array([row for row, _ in answer.rejected], np.int64)
        yield _routed(batch, bad, None, np.zeros(len(bad), np.int64), [reason for _, reason in answer.rejected])


def _with_wide(
    owners: NDArray[np.int64], found: NDArray[np.int64], count: int, rejected: list[Any], wide: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add pairs of every good message with every wide partition to the pairs of message and partition."""
    if not wide:
        return owners, found
    good = np.setdiff1d(np.arange(count), np.array([row for row, _ in rejected], np.int64))
    everywhere = np.tile(np.array(wide, np.int64), len(good))
    return np.concatenate([owners, np.repeat(good, len(wide))]), np.concatenate([found, everywhere])


def _routed(
    batch: Any, rows: NDArray[np.int64], found: NDArray[np.int64] | None, fans: NDArray[Any], reasons: list[str] | None
) -> Any:
    import pyarrow as pa

    chosen = batch.take(pa.array(rows))
    own = [
        pa.nulls(len(rows), pa.int32()) if found is None else pa.array(found, pa.int32()),
        pa.array(fans, pa.int32()),
        chosen.column(0),
        pa.nulls(len(rows), pa.string()) if reasons is None else pa.array(reasons, pa.string()),
    ]
    names = ["partition", "fan", "number", "reason", *chosen.schema.names[1:]]
    return pa.record_batch([*own, *chosen.columns[1:]], names)


def match_routed(
    batches: Iterator[Any],
    whole: PartitionedArtifact,
    names: tuple[str, ...],
    by: By,
    systems: Mapping[str, Crs] = NO_SYSTEMS,
) -> Iterator[Any]:
    """Match routed messages; yield lists of matches and rejections. `is_shared` marks lists that may repeat others."""
    asked: dict[int, _Asked] = {}
    for batch in batches:
        partitions = batch.column(0)
        numbers = np.asarray(partitions.fill_null(-1))
        for number in np.unique(numbers).tolist():
            part = batch.filter(_is(numbers, number)) if (numbers != number).any() else batch
            if number < 0:
                yield _rejections(part, whole, by)
                continue
            if number not in asked:
                asked.clear()  # keep one partition open: it may be as large as a worker's memory
                asked[number] = _Asked(whole, number, names, systems, by)
            yield from asked[number].match(part)


def _is(numbers: NDArray[Any], number: int) -> Any:
    import pyarrow as pa

    return pa.array(numbers == number)


class _Asked:
    """The open table of a partition, and which of its rows may match in other partitions too."""

    def __init__(
        self, whole: PartitionedArtifact, number: int, names: tuple[str, ...], systems: Mapping[str, Crs], by: By
    ) -> None:
        part = whole.partitions[number]
        self._ready = opened_part(part.artifact)
        self._naming = Naming(self._ready.names, part.artifact, by)
        self._names, self._systems, self._by = names, systems, by
        is_by_key = by == "subscription" or not whole.has_subscribers
        self._first_shared = part.first_shared if is_by_key else 0
        self._size = FIRST_SLICE

    def match(self, batch: Any) -> Iterator[Any]:
        """Yield the matches of a batch of messages."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        messages = named_columns(table.select(range(ID_COLUMN + 1, table.num_columns)), self._names, self._systems)
        fans = np.asarray(batch.column(1))
        for start, answer in answers_of(self._ready.table, messages, self._by, self._size):
            if answer.rejected:  # impossible: the router rejects every message that a partition would reject
                raise TableError(f"a partition refuses a message that was good before: {answer.rejected[0][1]}")
            own = batch.slice(start, answer.asked)
            may_repeat = (answer.rows >= self._first_shared) & (fans[start : start + answer.asked][answer.messages] > 1)
            for is_shared in (False, True):
                chosen = may_repeat == is_shared
                for owners, lists in self._naming.lists(answer.messages[chosen], answer.rows[chosen]):
                    yield _found(own.take(pa.array(owners)), lists, is_shared)
            self._size = answer.next_size


def _found(messages: Any, lists: Any, is_shared: bool) -> Any:
    import pyarrow as pa

    count = messages.num_rows
    columns = [messages.column(ID_COLUMN), lists, pa.nulls(count, pa.string()), messages.column(2)]
    marks = pa.array(np.full(count, is_shared))
    return pa.record_batch([*columns, marks], ["message_id", "found", "reason", "number", "is_shared"])


def _rejections(messages: Any, whole: PartitionedArtifact, by: By) -> Any:
    import pyarrow as pa

    from contrada.pipeline.batch.batches import arrow_type

    fields = [("subscriber", arrow_type(whole.subscriber_type))]
    if by == "subscription":
        fields.append(("key", arrow_type(whole.key_type)))
    lists = pa.nulls(messages.num_rows, pa.list_(pa.struct(fields)))
    columns = [messages.column(ID_COLUMN), lists, messages.column(3), messages.column(2)]
    marks = pa.array(np.zeros(messages.num_rows, np.bool_))
    return pa.record_batch([*columns, marks], ["message_id", "found", "reason", "number", "is_shared"])
