"""Match Arrow batches of messages against a table, in Spark's Python workers; this module does not use Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.geometry import Crs
from contrada.halving import in_halves
from contrada.matching import ForwardingTable, ManyMatches
from contrada.matching.storage import SavedNames
from contrada.pipeline.artifact_cache import opened
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.reasons import plain_text, reason_of
from contrada.pipeline.systems import NO_SYSTEMS, named_columns

# An answer may be as large as the table, so a batch is matched in slices. The first slice has FIRST_SLICE messages;
# later slices are sized for answers of about ANSWER_ROWS rows.
ANSWER_ROWS, FIRST_SLICE = 1 << 20, 512
OUTPUT_ROWS = 1 << 16  # maximum number of matches in a batch that goes back to Spark
LIST_ROWS = 128  # maximum number of matches in a list: Spark buffers 10,000 lists in memory, however long they are


class SliceAnswer(NamedTuple):
    """The matches of a slice as pairs of message and table row, and the rejected messages with reasons."""

    asked: int  # messages in the slice
    messages: NDArray[np.int64]
    rows: NDArray[np.int64]
    rejected: list[tuple[int, str]]

    @property
    def next_size(self) -> int:
        """Return the number of messages of the next slice."""
        return max(1, ANSWER_ROWS * self.asked // max(1, len(self.rows)))


def match_batches(
    batches: Iterator[Any],
    artifact: Artifact,
    names: tuple[str, ...],
    by: Literal["subscription", "subscriber"],
    systems: Mapping[str, Crs] = NO_SYSTEMS,
) -> Iterator[Any]:
    """Match batches of an id and attributes (`names`, in `systems`); yield batches of matches and rejections."""
    import pyarrow as pa

    naming: Naming | None = None
    size = FIRST_SLICE
    for batch in batches:
        if naming is None:
            ready = opened(artifact)
            naming = Naming(ready.names, artifact, by)
        whole = pa.Table.from_batches([batch])
        messages = named_columns(whole.select(range(1, whole.num_columns)), names, systems)
        for start, answer in answers_of(ready.table, messages, by, size):
            yield from naming.batches(batch.column(0).slice(start, answer.asked), answer)
            size = answer.next_size


def answers_of(
    table: ForwardingTable, messages: Any, by: Literal["subscription", "subscriber"], size: int
) -> Iterator[tuple[int, SliceAnswer]]:
    """Match slices of messages; yield the first message and the answer of each. The first slice has `size` messages."""
    start = 0
    while start < messages.num_rows:
        part = messages.slice(start, min(size, messages.num_rows - start))  # Arrow clips no table without columns
        answer = answer_of(table, part, by)
        yield start, answer
        start += part.num_rows
        size = answer.next_size


def answer_of(table: ForwardingTable, messages: Any, by: Literal["subscription", "subscriber"]) -> SliceAnswer:
    """Match a list of messages or the rows of an Arrow table.

    If the messages fail together, each half is tried until the bad ones are alone. Every type of error counts as a
    rejection: a bad message must not end the task, or a stream would fail on it at every restart.
    """
    owners, rows, rejected = [np.empty(0, np.int64)], [np.empty(0, np.int64)], list[tuple[int, str]]()

    def matched(start: int, stop: int) -> ManyMatches:
        some = messages[start:stop] if isinstance(messages, list) else messages.slice(start, stop - start)
        return table.match_many(some, by=by, threads=1)

    for part in in_halves(len(messages), matched, Exception, fatal=(MemoryError, OSError)):
        if part.result is None:
            assert part.error is not None
            rejected.append((part.start, reason_of(part.error)))
            continue
        found = part.result
        owners.append(part.start + np.repeat(np.arange(len(found)), np.diff(found.offsets)))
        rows.append(found.rows)
        rejected += [(part.start + item.row, plain_text(item.reason)) for item in found.rejected]
    return SliceAnswer(len(messages), np.concatenate(owners), np.concatenate(rows), rejected)


class Naming:
    """Turns answers into columns of names; every name is created once and then selected by row."""

    def __init__(self, names: SavedNames, artifact: Artifact, by: str) -> None:
        self._by = by
        self._keys = names_array(names.keys, artifact.key_type)
        self._subscribers = names_array(names.subscribers, artifact.subscriber_type)
        self._owners = names.owners

    def batches(self, ids: Any, answer: SliceAnswer) -> Iterator[Any]:
        """Yield the record batches of an answer: lists of matches by message, then rejections."""
        import pyarrow as pa

        for owners, lists in self.lists(answer.messages, answer.rows):
            yield _batch(ids.take(pa.array(owners)), lists, pa.nulls(len(owners), pa.string()))
        if answer.rejected:
            bad = pa.array([row for row, _ in answer.rejected], pa.int64())
            reasons = pa.array([reason for _, reason in answer.rejected], pa.string())
            yield _batch(ids.take(bad), pa.nulls(len(bad), self.list_type), reasons)

    def lists(self, owners: NDArray[np.int64], rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Any]]:
        """Yield pairs of message and row as short lists of names: the message of each list, and the lists."""
        import pyarrow as pa

        for start in range(0, len(rows), OUTPUT_ROWS):
            found, own = self._found(rows[start : start + OUTPUT_ROWS]), owners[start : start + OUTPUT_ROWS]
            is_head = np.append(True, own[1:] != own[:-1])
            is_head[::LIST_ROWS] = True
            heads = np.flatnonzero(is_head)
            offsets = pa.array(np.append(heads, len(own)), pa.int32())
            yield own[heads], pa.ListArray.from_arrays(offsets, found)

    @property
    def list_type(self) -> Any:
        """Return the Arrow type of a list of names."""
        import pyarrow as pa

        return pa.list_(self._found(_NO_ROWS).type)

    def _found(self, rows: NDArray[np.int64]) -> Any:
        """Return the names of rows as structs."""
        import pyarrow as pa

        if self._by == "subscriber":
            return pa.StructArray.from_arrays([self._subscribers.take(pa.array(rows))], ["subscriber"])
        whose = rows if self._owners is None else self._owners[rows]
        columns = [self._subscribers.take(pa.array(whose)), self._keys.take(pa.array(rows))]
        return pa.StructArray.from_arrays(columns, ["subscriber", "key"])


_NO_ROWS = np.empty(0, np.int64)


def _batch(ids: Any, found: Any, reasons: Any) -> Any:
    import pyarrow as pa

    return pa.record_batch([ids, found, reasons], ["message_id", "found", "reason"])


def names_array(names: Any, kind: str) -> Any:
    """Return names as an Arrow array of a Spark type; a mix of text and integers becomes text.

    >>> names_array(["a", 7], "string").to_pylist()
    ['a', '7']
    """
    import pyarrow as pa

    if isinstance(names, list):
        names = pa.array([str(name) for name in names], pa.string())
    return names.cast(arrow_type(kind))


def arrow_type(kind: str) -> Any:
    """Return the Arrow type of names that have a Spark type.

    >>> arrow_type("int")
    DataType(int32)
    """
    import pyarrow as pa

    types = {"string": pa.string(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32()}
    return types.get(kind, pa.int64())
