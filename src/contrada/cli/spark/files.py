"""Read and match files in the tasks of `contrada match --spark`, against a whole table or its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.cli.message_reader import Intake, MessageBatch, MessageOptions
from contrada.formats.records import Rejected
from contrada.matching import ForwardingTable
from contrada.matching.answer import By
from contrada.pipeline.answers import AnswerWriter, SliceAnswer, name_types
from contrada.pipeline.artifact_cache import opened, opened_part
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.census import asked_census
from contrada.pipeline.kept import ids_of, text_ids
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.routing import destinations

Table = Artifact | PartitionedArtifact
# Columns of answers: the place and text of a bad message, and counts at the end of a file.
FURTHER = {
    "source": "string", "unit": "string", "number": "int64", "raw": "string", "is_part": "bool",
    "read": "int64", "matched": "int64", "census": "string",
}  # fmt: skip


def read_files(
    batches: Iterator[Any], reading: MessageOptions, table: Table, by: By, several: bool, keep: tuple[str, ...] = ()
) -> Iterator[Any]:
    """Read and match the files that batches name, as `contrada match` does, in a worker.

    The attributes `keep` travel with the ids, as text.
    """
    for batch in batches:
        for path in batch.column(0).to_pylist():
            yield from _FileMatch(table, by, several, keep).run(Path(path), reading)


class _FileMatch:
    """Matches one file; the results are returned when the file ends."""

    def __init__(self, table: Table, by: By, several: bool, keep: tuple[str, ...]) -> None:
        self._keep, self._id_type = keep, text_ids(keep)
        self._matched = _Parts(table, by) if isinstance(table, PartitionedArtifact) else _Whole(table, by)
        self._writer = AnswerWriter(name_types(table), by, FURTHER)
        self._several, self._census = several, asked_census(table)
        self._parts: list[Any] = []
        self._rejected: list[Rejected] = []
        self._counts = np.zeros(2, np.int64)  # good messages, matched messages

    def run(self, path: Path, reading: MessageOptions) -> Iterator[Any]:
        """Yield the record batches of a file."""
        Intake(reading, self._take, self._rejected.append, several=self._several).run(path)
        yield from self._parts
        bad = dict(zip(Rejected._fields, map(list, zip(*self._rejected, strict=True)), strict=False))
        yield self._writer.rows(pa.nulls(len(self._rejected), self._id_type), **bad)
        counts = dict(zip(("read", "matched"), self._counts.reshape(2, 1), strict=True))
        yield self._writer.rows(pa.nulls(1, self._id_type), census=[self._census.to_json()], **counts)

    def _take(self, batch: MessageBatch) -> None:
        found = self._matched.match(batch)
        self._census.add(batch.messages)
        for row, reason in found.rejected.items():
            self._rejected.append(Rejected(*batch.places[row], reason, batch.raw(row)))
        messages = batch.messages if isinstance(batch.messages, list) or not self._keep else batch.messages.to_pylist()
        ids = ids_of(list(map(str, batch.ids)), messages, self._keep)
        self._parts += self._writer.lists(ids, found.owners, found.names)
        self._counts += len(ids) - len(found.rejected), len(np.unique(found.owners))


class _Found(NamedTuple):
    """The matches of a batch, the message and the names of each, and the reasons of rejected messages."""

    owners: NDArray[np.int64]
    names: Any  # Arrow structs
    rejected: dict[int, str]


class _Whole:
    """A table that is held whole."""

    def __init__(self, artifact: Artifact, by: By) -> None:
        ready = opened(artifact)
        self._table, self._by = ready.table, by
        self._writer = AnswerWriter(name_types(artifact), by, names=ready.names)

    def match(self, batch: MessageBatch) -> _Found:
        """Match a batch."""
        answer = _answer(self._table, batch, self._by)
        return _Found(answer.messages, self._writer.names(answer.rows), answer.rejected)


class _Parts:
    """A partitioned table: messages are matched in each partition that they can match, one open at a time."""

    def __init__(self, artifact: PartitionedArtifact, by: By) -> None:
        self._whole, self._by = artifact, by
        self._may_repeat = artifact.has_shared or by == "subscriber"

    def match(self, batch: MessageBatch) -> _Found:
        """Match a batch."""
        router = opened(self._whole.router)
        answer = _answer(router.table, batch, "subscription")
        keys = np.asarray(pa.array(router.names.keys, pa.int64()))
        wide = [number for number, part in enumerate(self._whole.partitions) if part.is_wide]
        messages, numbers = destinations(answer, keys, wide)
        found = [self._visit(batch, number, messages[numbers == number]) for number in np.unique(numbers).tolist()]
        if not found:
            return _Found(np.empty(0, np.int64), None, answer.rejected)
        owners, names = np.concatenate([own for own, _ in found]), pa.concat_arrays([some for _, some in found])
        if self._may_repeat:  # a subscriber, or a subscription, may have filters in several partitions
            codes = np.asarray(names.field(names.type.num_fields - 1).dictionary_encode().indices, np.int64)
            kept = np.sort(np.unique(owners * (len(codes) + 1) + codes, return_index=True)[1])
            owners, names = owners[kept], names.take(pa.array(kept))
        return _Found(owners, names, answer.rejected)

    def _visit(self, batch: MessageBatch, number: int, own: NDArray[np.int64]) -> tuple[NDArray[np.int64], Any]:
        """Match some messages of a batch in a partition; return the message and the names of each match."""
        ready = opened_part(self._whole.partitions[number].artifact)
        answer = SliceAnswer.of(ready.table.match_many(_some(batch.messages, own), self._by, 1))
        writer = AnswerWriter(name_types(self._whole), self._by, names=ready.names)
        return own[answer.messages], writer.names(answer.rows)


def _answer(table: ForwardingTable, batch: MessageBatch, by: By) -> SliceAnswer:
    return SliceAnswer.of(table.match_many(batch.messages, by, 1)).rejecting(batch.bad)


def _some(messages: Any, rows: NDArray[np.int64]) -> Any:
    """Return some rows of messages, a list or an Arrow table."""
    return [messages[row] for row in rows.tolist()] if isinstance(messages, list) else messages.take(rows)
