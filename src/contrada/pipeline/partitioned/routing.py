"""Route messages to the partitions that they can match, and match them there, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import TableError
from contrada.matching.answer import By
from contrada.pipeline.answers import AnswerWriter, SliceAnswer, Slices, name_types
from contrada.pipeline.artifact_cache import opened, opened_part
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.partitioned.partitions import NO_PARTITION, PartitionedArtifact
from contrada.pipeline.systems import NO_SYSTEMS, Systems, named_columns

# Columns before id and attributes. A row without partition and reason holds the number of messages read, in `fan`.
ROUTED_SCHEMA = "partition int, fan int, number bigint, reason string"
ID_COLUMN = 4
FURTHER = {"number": "int64", "is_shared": "bool"}  # columns of answers; a shared list may repeat another
ROUTED_ROWS, ROUTED_BYTES = 1 << 15, 1 << 26  # approximate size of a batch that goes back to Spark


def route_batches(
    batches: Iterator[Any], router: Artifact, names: tuple[str, ...], wide: list[int], systems: Systems = NO_SYSTEMS
) -> Iterator[Any]:
    """Route batches of a number, an id and attributes; yield a row per message and partition."""
    seen, last, slices = 0, None, Slices()
    for batch in batches:
        ready = opened(router)
        partitions = np.asarray(pa.array(ready.names.keys, pa.int64()))
        messages = named_columns(batch, names, systems, 2)
        for start, answer in slices.match(ready.table, messages, "subscription"):
            yield from _sent(batch.slice(start, answer.asked), answer, partitions, wide)
        seen, last = seen + batch.num_rows, batch.slice(0, 1)
    if last is not None:
        yield _routed(last, np.zeros(1, np.int64), None, np.array([seen]), None)


def _sent(batch: Any, answer: SliceAnswer, partitions: NDArray[np.int64], wide: list[int]) -> Iterator[Any]:
    """Yield the rows of a slice of messages: one per partition, and the bad messages."""
    owners, found = destinations(answer, partitions, wide)
    fans = np.bincount(owners, minlength=answer.asked)
    step = max(1, min(ROUTED_ROWS, ROUTED_BYTES * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, len(owners), step):
        own = owners[start : start + step]
        yield _routed(batch, own, found[start : start + step], fans[own], None)
    if answer.rejected:
        bad = np.array(list(answer.rejected), np.int64)
        yield _routed(batch, bad, None, np.zeros(len(bad), np.int64), list(answer.rejected.values()))


def destinations(
    answer: SliceAnswer, partitions: NDArray[np.int64], wide: list[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of message and partition: those that a router found, and every good message in `wide` partitions.

    `partitions` are the keys of the router's subscriptions.
    """
    found = partitions[answer.rows] if len(answer.rows) else answer.rows
    is_real = found != NO_PARTITION
    good = np.setdiff1d(np.arange(answer.asked), np.array(list(answer.rejected), np.int64)) if wide else answer.rows[:0]
    everywhere = np.tile(np.array(wide, np.int64), len(good))
    owners = np.concatenate([answer.messages[is_real], np.repeat(good, len(wide))])
    return owners, np.concatenate([found[is_real], everywhere])


def _routed(
    batch: Any, rows: NDArray[np.int64], found: NDArray[np.int64] | None, fans: NDArray[Any], reasons: list[str] | None
) -> Any:
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
    systems: Systems = NO_SYSTEMS,
    kept: Any = None,
) -> Iterator[Any]:
    """Match routed messages; yield lists of matches, which carry columns of the Arrow type `kept`, and rejections."""
    rejecting = AnswerWriter(name_types(whole), by, FURTHER, kept=kept)
    tables: dict[int, _PartitionTable] = {}
    for batch in batches:
        numbers = np.asarray(batch.column(0).fill_null(-1))
        for number in np.unique(numbers).tolist():
            part = batch.filter(pa.array(numbers == number)) if (numbers != number).any() else batch
            if number < 0:
                yield rejecting.rows(part.column(ID_COLUMN), number=part.column(2), reason=part.column(3))
                continue
            if number not in tables:
                tables.clear()  # keep one partition open: it may be as large as a worker's memory
                tables[number] = _PartitionTable(whole, number, by, kept)
            yield from tables[number].match(part, named_columns(part, names, systems, ID_COLUMN + 1))


class _PartitionTable:
    """The open table of a partition, and which of its rows may match in other partitions too."""

    def __init__(self, whole: PartitionedArtifact, number: int, by: By, kept: Any) -> None:
        part = whole.partitions[number]
        ready = opened_part(part.artifact)
        self._table, self._slices = ready.table, Slices()
        self._writer = AnswerWriter(name_types(whole), by, FURTHER, ready.names, kept, ready.kept(kept))
        is_by_key = by == "subscription" or not whole.has_subscribers
        self._first_shared = part.first_shared if is_by_key else 0

    def match(self, batch: Any, messages: Any) -> Iterator[Any]:
        """Yield the matches of a routed batch, whose attributes are the columns of `messages`."""
        fans = np.asarray(batch.column(1))
        for start, answer in self._slices.match(self._table, messages, self._writer.matched_by):
            for reason in answer.rejected.values():  # impossible: the router rejects what a partition would reject
                raise TableError(f"a partition rejected a message that the router accepted: {reason}")
            own, answer = batch.slice(start, answer.asked), self._writer.one_each(answer)
            may_repeat = (answer.rows >= self._first_shared) & (fans[start : start + answer.asked][answer.messages] > 1)
            for is_shared in (False, True):
                chosen = may_repeat == is_shared
                part = answer._replace(messages=answer.messages[chosen], rows=answer.rows[chosen])
                marks = pa.repeat(pa.scalar(is_shared), answer.asked)
                yield from self._writer.matches(own.column(ID_COLUMN), part, number=own.column(2), is_shared=marks)
