"""Match batches against a version whose table is in partitions, in Spark's Python workers, in two stages.

The first stage decodes messages, rejects bad ones, matches the subscriptions that changed since the base, which are
few, and sends messages to the partitions that they can match. The second one matches each partition's messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import TableError
from contrada.matching.census import Census
from contrada.pipeline.answers import AnswerWriter, SliceAnswer, Slices, answer_of, name_types
from contrada.pipeline.artifact_cache import cache_home, opened, remove_copy
from contrada.pipeline.kept import text_ids
from contrada.pipeline.partitioned.partitions import PartitionedArtifact
from contrada.pipeline.partitioned.routing import ROUTED_BYTES, ROUTED_ROWS, destinations
from contrada.pipeline.stream import worker
from contrada.pipeline.stream.partition_tables import close_table, later_table, partition_table
from contrada.pipeline.stream.worker import TaskOrders

FURTHER = {**worker.FURTHER, "number": "int64", "is_shared": "bool"}  # a shared list may repeat matches of another
ROUTE = {"partition": "int32", "fan": "int32"}  # columns between those of answers and those of messages


def route_version(batches: Iterator[Any], work: TaskOrders) -> Iterator[Any]:
    """Route batches of a number, an id, and attributes or a text; yield answers, and messages with partitions."""
    first = next(batches, None)
    if first is None:
        return
    router = _Router(first, work)
    for digest in work.retired:
        close_table(digest)
        remove_copy(digest, cache_home() / "tables")
    for batch in chain([first], batches):
        yield from router.route(batch)
    yield from router.totals()


class _Router:
    """Routes the batches of a task, and keeps its counts."""

    def __init__(self, first: Any, work: TaskOrders) -> None:
        whole = work.version.artifact
        assert isinstance(whole, PartitionedArtifact)
        self._work, self._sent_like = work, first.select(list(range(1, first.num_columns)))
        self._later = later_table(work.version, work.place) if work.version.segments else None
        ready = opened(whole.router)
        self._table = ready.table
        self._partitions = np.asarray(pa.array(ready.names.keys, pa.int64()))
        self._wide = [k for k, part in enumerate(whole.partitions) if part.is_wide]
        self._slices, self._count, self._files = Slices(), 0, dict[str, None]()
        self._rejecting = AnswerWriter(name_types(whole), work.by, FURTHER)
        self._writer = None if self._later is None else self._later.writer(whole, work.by, FURTHER)
        self._census = Census()
        for part in whole.partitions:
            self._census.ask(part.artifact.kinds)
        if self._later is not None:
            self._census.ask(self._later.table.asked_kinds())

    def route(self, batch: Any) -> Iterator[Any]:
        """Yield the answers and routed messages of a batch."""
        self._count += batch.num_rows
        work, numbers = self._work, batch.column(0)
        sent = batch.select(list(range(1, batch.num_columns)))
        if work.has_files:
            self._files |= dict.fromkeys(sent.column(sent.num_columns - 1).unique().to_pylist())
        bad: dict[int, str] = {}
        ids, groups = worker.read_batch(sent, work, bad)
        for places, messages in groups:
            self._census.add(messages)
            for start, answer in self._slices.match(self._table, messages, "subscription"):
                own = places[start : start + answer.asked]
                later = None
                if self._later is not None:
                    cut = messages[start : start + answer.asked] if isinstance(messages, list) else messages.slice(
                        start, answer.asked
                    )  # fmt: skip
                    later = answer_of(self._later.table, cut, work.by)
                    answer, later = answer.rejecting(later.rejected), later.rejecting(answer.rejected)
                yield from self._sent(sent, numbers, ids, own, answer, later)
                bad |= {int(own[row]): reason for row, reason in answer.rejected.items()}
        for rows in self._rejecting.rejections(ids, dict(sorted(bad.items())), **worker.raw_texts(sent, work, bad)):
            yield self._with_route(rows, sent)

    def _sent(
        self, sent: Any, numbers: Any, ids: Any, own: NDArray[np.int64], answer: SliceAnswer, later: SliceAnswer | None
    ) -> Iterator[Any]:
        """Yield the messages of a slice for their partitions, and the matches of later subscriptions."""
        owners, found = destinations(answer, self._partitions, self._wide)
        fans = np.bincount(owners, minlength=answer.asked)
        if later is not None and self._writer is not None:
            is_by_subscriber = self._work.by == "subscriber"
            if is_by_subscriber:
                fans += np.bincount(later.messages, minlength=answer.asked) > 0
            places = pa.array(own)
            marks = pa.repeat(pa.scalar(is_by_subscriber), answer.asked)
            for rows in self._writer.matches(ids.take(places), later, number=numbers.take(places), is_shared=marks):
                yield self._with_route(rows, sent)
        step = max(1, min(ROUTED_ROWS, ROUTED_BYTES * sent.num_rows // max(1, sent.nbytes)))
        for start in range(0, len(owners), step):
            chosen = owners[start : start + step]
            places = pa.array(own[chosen])
            rows = self._rejecting.rows(ids.take(places), number=numbers.take(places))
            yield self._with_route(
                rows, sent.take(places), pa.array(found[start : start + step], pa.int32()), pa.array(fans[chosen])
            )

    def _with_route(self, rows: Any, sent: Any, partition: Any = None, fan: Any = None) -> Any:
        """Return rows of answers with a partition and the columns of messages, all null for what is no message."""
        count, columns, names = rows.num_rows, [], []
        for (name, kind), values in zip(ROUTE.items(), (partition, fan), strict=True):
            kind = pa.type_for_alias(kind)
            columns.append(pa.nulls(count, kind) if values is None else values.cast(kind))
            names.append(name)
        for place in range(1, sent.num_columns):
            columns.append(pa.nulls(count, sent.column(place).type) if partition is None else sent.column(place))
            names.append(sent.schema.names[place])
        return pa.record_batch([*rows.columns, *columns], [*rows.schema.names, *names])

    def totals(self) -> Iterator[Any]:
        """Yield rows with the counts of the task and its files."""
        kind = self._sent_like.column(0).type if self._work.decoding is None else text_ids(self._work.keep)
        census = self._census.to_json()
        one = self._rejecting.rows(pa.nulls(1, kind), messages=[self._count], census=[census])
        files = self._rejecting.rows(pa.nulls(len(self._files), kind), file=list(self._files))
        for rows in (one, files):
            yield self._with_route(rows, self._sent_like)


def match_routed_version(batches: Iterator[Any], work: TaskOrders) -> Iterator[Any]:
    """Match routed messages: batches of partition, fan, number, id, and attributes or a text; yield matches."""
    tables: dict[int, _PartitionMatcher] = {}
    for batch in batches:
        numbers = np.asarray(batch.column(0))
        for number in np.unique(numbers).tolist():
            part = batch.filter(pa.array(numbers == number)) if (numbers != number).any() else batch
            if number not in tables:
                tables.clear()  # keep one partition open: it may be as large as a worker's memory
                tables[number] = _PartitionMatcher(work, number)
            yield from tables[number].match(part)


class _PartitionMatcher:
    """The open table of a partition, and which of its rows other partitions or later subscriptions may repeat."""

    def __init__(self, work: TaskOrders, number: int) -> None:
        whole = work.version.artifact
        assert isinstance(whole, PartitionedArtifact)
        part = whole.partitions[number]
        ready = partition_table(part, work.version, work.place)
        self._table, self._work, self._slices = ready.table, work, Slices()
        self._writer = AnswerWriter(name_types(whole), work.by, FURTHER, ready.names)
        is_once = work.by == "subscription" or not (whole.has_subscribers or work.version.segments)
        self._first_shared = part.first_shared if is_once else 0

    def match(self, batch: Any) -> Iterator[Any]:
        """Yield the matches of a routed batch."""
        fans, numbers = np.asarray(batch.column(1)), batch.column(2)
        sent = batch.select(list(range(3, batch.num_columns)))
        bad: dict[int, str] = {}
        _, groups = worker.read_batch(sent, self._work, bad)
        for places, messages in groups:
            for start, answer in self._slices.match(self._table, messages, self._work.by):
                own = places[start : start + answer.asked]
                bad |= {int(own[row]): reason for row, reason in answer.rejected.items()}
                may_repeat = (answer.rows >= self._first_shared) & (fans[own][answer.messages] > 1)
                chosen = pa.array(own)
                for is_shared in (False, True):
                    kept = may_repeat == is_shared
                    part = answer._replace(messages=answer.messages[kept], rows=answer.rows[kept])
                    marks = pa.repeat(pa.scalar(is_shared), answer.asked)
                    yield from self._writer.matches(
                        sent.column(0).take(chosen), part, number=numbers.take(chosen), is_shared=marks
                    )
        for reason in bad.values():  # impossible: the router rejects what a partition would reject
            raise TableError(f"a partition rejected a message that the router accepted: {reason}")
