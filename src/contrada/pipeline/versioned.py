"""Batches of messages through one version of the subscriptions: what runs in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from contrada.errors import ContradaError, FormatError
from contrada.language.messages import message_of
from contrada.matching import ForwardingTable
from contrada.matching.storage import SavedNames
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.batches import FIRST_SLICE, OUTPUT_ROWS, Answer, answer_of, arrow_type
from contrada.pipeline.changes import apply_segment
from contrada.pipeline.place import Place
from contrada.pipeline.tables import Opened, cache_home, open_copy, remove_copy
from contrada.pipeline.versions import Version, segment

By = Literal["subscription", "subscriber"]
RAW_LENGTH = 10_000  # characters of a bad message that are kept


class Decoding(NamedTuple):
    """How texts become messages: each is JSON, a GeoJSON Feature or a CloudEvent.

    `ids` are attributes of which the first that a message has identifies it, if `is_id_needed` one of them must be
    there; else the column `message_id` does. `options` are those of `contrada.language.messages.message_of`.
    """

    ids: tuple[str, ...] = ()
    is_id_needed: bool = False
    options: dict[str, Any] = {}  # noqa: RUF012


class Work(NamedTuple):
    """What a task is told: its version, where segments are, and how messages come."""

    version: Version
    place: str  # of the versions
    by: By
    names: tuple[str, ...]  # of the attributes that columns hold, after the id
    decoding: Decoding | None  # if there is one column of texts instead
    retired: tuple[str, ...]  # tables that are no longer needed


class Ready(NamedTuple):
    """The table of a version, open in this process, with the segments that were applied and the names of its rows."""

    opened: Opened
    digest: str
    segments: tuple[int, ...]
    added: int  # subscriptions after those that were saved


_READY: Ready | None = None  # a worker does one task at a time; versions of one stream come one after another


def ready_table(version: Version, place: str) -> Ready:
    """The table of a version: the one of the version before, if that is a part of it, with what came since."""
    global _READY
    held = _READY
    digest = f"{place} {version.artifact.digest}"
    if held is None or held.digest != digest or held.segments != version.segments[: len(held.segments)]:
        _forget()
        held = Ready(open_copy(version.artifact, cache_home() / "tables"), digest, (), 0)
    added = held.added
    _READY = None  # if a segment cannot be read, the table is neither one version nor the other
    for number in version.segments[len(held.segments) :]:
        added += apply_segment(held.opened.table, segment(Place(place), number))
    _READY = Ready(held.opened, digest, version.segments, added)
    return _READY


def _forget() -> None:
    """Give up the table that is open."""
    global _READY
    if _READY is not None:
        _READY.opened.use.close()
        _READY = None


def compact_version(batches: Iterator[Any], version: Version, place: str, artifacts: str) -> Iterator[Any]:
    """Make a table of a version and put it where artifacts are: one row that tells where. Runs in one task."""
    import json

    import pyarrow as pa

    for _ in batches:
        pass
    opened = open_copy(version.artifact, cache_home() / "tables")
    try:
        for number in version.segments:
            apply_segment(opened.table, segment(Place(place), number))
        old = version.artifact
        made = publish(opened.table, artifacts, key_type=old.key_type, subscriber_type=old.subscriber_type)
    finally:
        opened.use.close()
    yield pa.record_batch([pa.array([json.dumps(made._asdict())])], ["about"])


def match_version(batches: Iterator[Any], work: Work) -> Iterator[Any]:
    """Batches of an id and attributes, or of an id and a text, to batches of what came of them."""
    naming: _Naming | None = None
    size = FIRST_SLICE
    for batch in batches:
        if naming is None:
            ready = ready_table(work.version, work.place)
            naming = _Naming(ready, work.version.artifact, work.by)
            for digest in work.retired:
                remove_copy(digest, cache_home() / "tables")
        slices = _decoded if work.decoding is not None else _columns
        start = 0
        while start < batch.num_rows:
            count = min(size, batch.num_rows - start)
            ids, answer, raw = slices(ready.opened.table, batch.slice(start, count), work)
            yield from naming.batches(ids, answer, raw)
            start += count
            size = answer.next_size


def _columns(table: ForwardingTable, batch: Any, work: Work) -> tuple[Any, Answer, dict[int, str]]:
    """Messages as columns."""
    import pyarrow as pa

    whole = pa.Table.from_batches([batch])
    messages = whole.select(range(1, whole.num_columns)).rename_columns(work.names)
    return batch.column(0), answer_of(table, messages, work.by), {}


def _decoded(table: ForwardingTable, batch: Any, work: Work) -> tuple[Any, Answer, dict[int, str]]:
    """Messages as texts."""
    import pyarrow as pa

    decoding = work.decoding
    assert decoding is not None
    ids, texts = batch.column(0).to_pylist(), batch.column(1).to_pylist()
    good: list[dict[str, Any]] = []
    rows: list[int] = []
    rejected: list[tuple[int, str]] = []
    for row, text in enumerate(texts):
        try:
            if text is None:
                raise FormatError("no text")
            message = message_of(text, **decoding.options)
            ids[row] = _identifier(message, decoding, ids[row])
        except ContradaError as error:
            rejected.append((row, str(error)))
        else:
            good.append(message)
            rows.append(row)
    found = table.match_many(good, by=work.by, threads=1)
    owners = np.array(rows, np.int64)[np.repeat(np.arange(len(good)), np.diff(found.offsets))]
    rejected += [(rows[item.row], item.reason) for item in found.rejected]
    raw = {row: _text(texts[row]) for row, _ in rejected}
    return pa.array(ids, pa.string()), Answer(len(texts), owners, found.rows, sorted(rejected)), raw


def _identifier(message: dict[str, Any], decoding: Decoding, place: Any) -> str | None:
    for name in decoding.ids:
        value = message.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    if decoding.is_id_needed:
        raise FormatError(f"no attribute {decoding.ids[0]!r}, which shall identify the message")
    return None if place is None else str(place)


def _text(value: Any) -> str:
    text = value.decode(errors="replace") if isinstance(value, bytes | bytearray) else str(value or "")
    return text[:RAW_LENGTH]


class _Naming:
    """Answers as columns of names: every name is made once for a version, and chosen by its row."""

    def __init__(self, ready: Ready, artifact: Artifact, by: By) -> None:
        table, names = ready.opened.table, ready.opened.names
        types = arrow_type(artifact.key_type), arrow_type(artifact.subscriber_type)
        self._by = by
        if by == "subscriber":
            first = len(names.subscribers)
            new = table.subscribers_of(np.arange(first, table.stats().subscribers), "subscriber")
            self._columns = {"subscriber": _joined(names.subscribers, new, types[1])}
            return
        rows = np.arange(len(names.keys), len(names.keys) + ready.added)
        owners = _joined(names.subscribers, [], types[1])
        if names.owners is not None:
            owners = owners.take(_indices(names))
        self._columns = {
            "subscriber": _joined(owners, table.subscribers_of(rows, "subscription"), types[1]),
            "key": _joined(names.keys, table.keys_of(rows), types[0]),
        }

    def batches(self, ids: Any, answer: Answer, raw: dict[int, str]) -> Iterator[Any]:
        """The record batches of an answer: how many messages there were, matches in lists, and rejections."""
        import pyarrow as pa

        kind = self._found(np.empty(0, np.int64)).type
        nothing = pa.nulls(1, pa.list_(kind))
        yield _batch(pa.nulls(1, ids.type), nothing, pa.nulls(1, pa.string()), pa.nulls(1, pa.string()), [answer.asked])
        for start in range(0, len(answer.rows), OUTPUT_ROWS):
            owners = answer.messages[start : start + OUTPUT_ROWS]
            heads = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
            offsets = pa.array(np.append(heads, len(owners)), pa.int32())
            lists = pa.ListArray.from_arrays(offsets, self._found(answer.rows[start : start + OUTPUT_ROWS]))
            none = pa.nulls(len(heads), pa.string())
            yield _batch(ids.take(pa.array(owners[heads])), lists, none, none, [0] * len(heads))
        if answer.rejected:
            rows = [row for row, _ in answer.rejected]
            reasons = pa.array([reason for _, reason in answer.rejected], pa.string())
            texts = pa.array([raw.get(row) for row in rows], pa.string())
            nothing = pa.nulls(len(rows), pa.list_(kind))
            yield _batch(ids.take(pa.array(rows, pa.int64())), nothing, reasons, texts, [0] * len(rows))

    def _found(self, rows: Any) -> Any:
        import pyarrow as pa

        chosen = [column.take(pa.array(rows)) for column in self._columns.values()]
        return pa.StructArray.from_arrays(chosen, list(self._columns))


def _indices(names: SavedNames) -> Any:
    import pyarrow as pa

    return pa.array(np.asarray(names.owners))


def _joined(saved: Any, new: list[Any], kind: Any) -> Any:
    """Names of a saved table and those after them, as one Arrow array."""
    import pyarrow as pa

    if isinstance(saved, list):
        saved = pa.array([str(name) for name in saved], pa.string())
    if isinstance(saved, pa.ChunkedArray):
        saved = saved.combine_chunks()
    if not new:
        return saved.cast(kind)
    texts = pa.array(new if pa.types.is_integer(kind) else [str(name) for name in new], kind)
    return pa.concat_arrays([saved.cast(kind), texts])


def _batch(ids: Any, found: Any, reasons: Any, raw: Any, messages: list[int]) -> Any:
    import pyarrow as pa

    columns = [ids, found, reasons, raw, pa.array(messages, pa.int64())]
    return pa.record_batch(columns, ["message_id", "found", "reason", "raw", "messages"])
