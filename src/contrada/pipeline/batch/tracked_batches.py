"""Follow tracked objects through batches of messages, in Spark's Python workers; this module does not use Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from contrada.matching import ForwardingTable
from contrada.pipeline.answers import ID, arrow_type, name_types
from contrada.pipeline.artifact_cache import opened
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.reasons import plain_text
from contrada.pipeline.systems import Systems, named_columns
from contrada.tracking import KINDS, REASONS, Tracker, TrackEvents
from contrada.tracking.transitions import RELATIONS, Transitions

TIME = pa.timestamp("us", "UTC")
UNWATCHED = pa.schema({"key": pa.string(), "reason": pa.string()})
_KINDS, _REASONS = pa.array(KINDS), pa.array(REASONS)
_RELATIONS = pa.array([None if one is None else str(one) for one in RELATIONS])  # the last one stands for none


class TrackJob(NamedTuple):
    """What workers are told: the subscriptions, the attributes of the messages, and the options of a Tracker."""

    artifact: Artifact
    names: tuple[str, ...]
    systems: Systems
    of_tracker: Mapping[str, Any]
    of_watches: Mapping[str, Any]
    id_type: str  # Spark's type of the ids of objects

    def tracker(self) -> tuple[Tracker, dict[Any, str]]:
        """Return a tracker of all subscriptions, and by key why others cannot be watched."""
        tracker = Tracker(opened(self.artifact).table, **self.of_tracker)
        return tracker, tracker.watch_all(**self.of_watches)


def event_fields(job: TrackJob) -> dict[str, Any]:
    """Return the Arrow types of all columns but the id of the message; `rejection` says why one was rejected."""
    key, subscriber = map(arrow_type, name_types(job.artifact))
    text = pa.string()
    return {
        "event": text, "subscriber": subscriber, "key": key, "object": arrow_type(job.id_type), "before": text,
        "after": text, "time": TIME, "reason": text, "rejection": text,
    }  # fmt: skip


def follow_batches(batches: Iterator[Any], job: TrackJob, newest: int | None) -> Iterator[Any]:
    """Follow the objects of batches, which come in order of time; then let time pass up to `newest`."""
    tracker: Tracker | None = None
    kind: Any = None
    fields = event_fields(job)
    for batch in batches:
        if tracker is None:
            tracker, _ = job.tracker()
        ids, kind = batch.column(0), batch.column(0).type
        told = tracker.publish(named_columns(batch, job.names, job.systems, 1), now=0, threads=1)
        if len(told):
            yield event_rows(told.transitions, tracker.table, ids, fields)
        if told.rejected:
            yield _rejections(told, ids, fields)
    if tracker is not None and newest is not None:
        told = tracker.advance(newest)
        if len(told):
            yield event_rows(told.transitions, tracker.table, pa.nulls(0, kind), fields)


def event_rows(own: Transitions, table: ForwardingTable, ids: Any, fields: Mapping[str, Any]) -> Any:
    """Return events as a record batch; `ids` are those of messages by row, and what time told has none."""
    # An id of None is taken for rows of -1, which lie behind the last one.
    with_none = pa.concat_arrays([ids, pa.nulls(1, ids.type)])
    columns = {
        "event": _KINDS.take(pa.array(own.kinds)),
        "subscriber": table.subscribers_of(own.numbers, "subscription"),
        "key": table.keys_of(own.numbers),
        "object": list(own.objects),
        "before": _relations(own.befores),
        "after": _relations(own.afters),
        "time": pa.array(own.times * 1_000).cast(TIME),
        "reason": _REASONS.take(pa.array(own.reasons)),
    }
    messages = with_none.take(pa.array(np.where(own.rows < 0, len(ids), own.rows)))
    return answer_rows(messages, columns, fields)


def _relations(codes: Any) -> Any:
    return _RELATIONS.take(pa.array(np.where(codes < 0, len(RELATIONS) - 1, codes).astype(np.int64)))


def _rejections(told: TrackEvents, ids: Any, fields: Mapping[str, Any]) -> Any:
    reasons = [plain_text(item.reason) for item in told.rejected]
    return answer_rows(ids.take(pa.array([item.row for item in told.rejected])), {"rejection": reasons}, fields)


def answer_rows(ids: Any, columns: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """Return a record batch with a row per id; a column that is not given is null."""

    def column(name: str, kind: Any) -> Any:
        values = columns.get(name)
        if values is None:
            return pa.nulls(len(ids), kind)
        return values.cast(kind) if isinstance(values, pa.Array) else pa.array(_of_kind(values, kind), kind)

    return pa.record_batch([ids, *(column(name, kind) for name, kind in fields.items())], [ID, *fields])


def _of_kind(values: list[Any], kind: Any) -> list[Any]:
    """Return keys, subscribers and objects for a column; in a column of text, numbers become text."""
    return [None if value is None else str(value) for value in values] if kind == pa.string() else values


def unwatched(batches: Iterator[Any], job: TrackJob) -> Iterator[Any]:
    """Yield the subscriptions that cannot be watched, with reasons, after reading all batches."""
    list(batches)
    _, refused = job.tracker()
    yield pa.RecordBatch.from_pylist(
        [{"key": str(key), "reason": plain_text(reason)} for key, reason in refused.items()], UNWATCHED
    )
