"""Match batches of messages against one version of the subscriptions, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from contrada.errors import ContradaError, FormatError
from contrada.formats.messages import message_of
from contrada.geometry import Crs
from contrada.matching import ForwardingTable
from contrada.matching.census import Census
from contrada.matching.storage import SavedNames
from contrada.pipeline.artifact_cache import OpenTable, cache_home, open_copy, remove_copy
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.batch.batches import FIRST_SLICE, Naming, SliceAnswer, answer_of, names_array
from contrada.pipeline.ingestion.quarantine import path_of
from contrada.pipeline.reasons import plain_text, reason_of
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.changes import apply_segment
from contrada.pipeline.stream.version_log import Version, segment
from contrada.pipeline.systems import NO_SYSTEMS, file_systems, named_columns

By = Literal["subscription", "subscriber"]
COLUMNS = ["message_id", "found", "reason", "raw", "messages", "census", "files"]
FILE = "__file"  # column with the URI of a message's file
RAW_LENGTH = 10_000  # characters of a bad message that are kept


class Decoding(NamedTuple):
    """How texts become messages: each text is JSON, a GeoJSON Feature or a CloudEvent.

    The first attribute in `ids` that a message has identifies it; without one, the message is rejected if
    `is_id_needed`, else the column `message_id` identifies it. `options` are those of
    `contrada.formats.messages.message_of`.
    """

    ids: tuple[str, ...] = ()
    is_id_needed: bool = False
    options: dict[str, Any] = {}  # noqa: RUF012


class TaskOrders(NamedTuple):
    """The parameters of a task: its version, the place of segments, and the form of messages."""

    version: Version
    place: str  # of the versions
    by: By
    names: tuple[str, ...]  # attributes in the columns after the id
    decoding: Decoding | None  # set if one column of texts replaces them
    retired: tuple[str, ...]  # tables no longer needed
    systems: Mapping[str, Crs] = NO_SYSTEMS  # of the columns that name one
    has_files: bool = False  # the last column is FILE, and the task reports the files it saw
    has_systems: bool = False  # the files name the CRS of their columns


class Ready(NamedTuple):
    """The open table of a version, the segments applied to it, and the names of its rows."""

    opened: OpenTable
    digest: str
    segments: tuple[int, ...]
    added: int  # subscriptions added since the table was saved
    namings: dict[By, Naming]  # made on demand; tasks of one version share them

    def naming(self, artifact: Artifact, by: By) -> Naming:
        """Return the `Naming` that turns answers into columns of names."""
        if by not in self.namings:
            self.namings[by] = Naming(_names(self, artifact, by), artifact, by)
        return self.namings[by]


_READY: Ready | None = None  # a worker runs one task at a time, and the versions of a stream come in order


def ready_table(version: Version, place: str) -> Ready:
    """Return the table of a version; an open table of an earlier version is updated if possible."""
    global _READY
    held = _READY
    digest = f"{place} {version.artifact.digest}"
    if held is None or held.digest != digest or held.segments != version.segments[: len(held.segments)]:
        _forget()
        held = Ready(open_copy(version.artifact, cache_home() / "tables"), digest, (), 0, {})
    elif held.segments == version.segments:
        return held
    added = held.added
    _READY = None  # if a segment cannot be read, the table is between two versions
    for number in version.segments[len(held.segments) :]:
        added += apply_segment(held.opened.table, segment(Storage(place), number))
    _READY = Ready(held.opened, digest, version.segments, added, {})
    return _READY


def _forget() -> None:
    """Close the open table."""
    global _READY
    if _READY is not None:
        _READY.opened.use.close()
        _READY = None


def compact_version(batches: Iterator[Any], version: Version, place: str, artifacts: str) -> Iterator[Any]:
    """Merge table and segments of a version into a new artifact, in one task; yield one row about it as JSON."""
    import json

    import pyarrow as pa

    for _ in batches:
        pass
    opened = open_copy(version.artifact, cache_home() / "tables")
    try:
        for number in version.segments:
            apply_segment(opened.table, segment(Storage(place), number))
        old = version.artifact
        made = publish(opened.table, artifacts, key_type=old.key_type, subscriber_type=old.subscriber_type)
    finally:
        opened.use.close()
    yield pa.record_batch([pa.array([json.dumps(made._asdict())])], ["about"])


def match_version(batches: Iterator[Any], work: TaskOrders) -> Iterator[Any]:
    """Match batches of an id and attributes, or of an id and a text; yield matches, rejections and counts."""
    naming: Naming | None = None
    size = FIRST_SLICE
    files: dict[str, None] = {}
    for batch in batches:
        if naming is None:
            ready = ready_table(work.version, work.place)
            naming = ready.naming(work.version.artifact, work.by)
            census = Census(ready.opened.table.asked_kinds())
            for digest in work.retired:
                remove_copy(digest, cache_home() / "tables")
        if work.has_files:
            files.update(dict.fromkeys(batch.column(batch.num_columns - 1).unique().to_pylist()))
        slices = _decoded if work.decoding is not None else _columns
        start = 0
        while start < batch.num_rows:
            count = min(size, batch.num_rows - start)
            count = _of_one_file(batch.slice(start, count), work)
            ids, answer, raw = slices(ready.opened.table, batch.slice(start, count), work, census)
            yield from _batches(naming, ids, answer, raw)
            start += count
            size = answer.next_size
    if naming is not None:
        yield _last_batch(naming, ids, census, list(files))


def _columns(
    table: ForwardingTable, batch: Any, work: TaskOrders, census: Census
) -> tuple[Any, SliceAnswer, dict[int, str]]:
    """Match messages given as columns."""
    import pyarrow as pa

    whole = pa.Table.from_batches([batch])
    columns = whole.select(range(1, len(work.names) + 1))
    try:
        messages = named_columns(columns, work.names, _systems(batch, work))
    except ContradaError as error:
        nothing = np.empty(0, np.int64)
        bad = [(row, str(error)) for row in range(batch.num_rows)]
        return batch.column(0), SliceAnswer(batch.num_rows, nothing, nothing, bad), {}
    census.add(messages)
    return batch.column(0), answer_of(table, messages, work.by), {}


def _systems(batch: Any, work: TaskOrders) -> Mapping[str, Crs]:
    """Return the CRS of the columns of messages, which come from one file."""
    if not work.has_systems:
        return work.systems
    own = file_systems(path_of(batch.column(batch.num_columns - 1)[0].as_py()))
    declared = {name: crs for name, crs in work.systems.items() if name not in own}
    return {**declared, **{name: crs for name, crs in own.items() if crs is not None}}


def _of_one_file(batch: Any, work: TaskOrders) -> int:
    """Return how many of the first messages come from one file, if the CRS depends on the file."""
    if not work.has_systems:
        return int(batch.num_rows)
    files = batch.column(batch.num_columns - 1).to_pylist()
    return next((row for row, file in enumerate(files) if file != files[0]), len(files))


def _decoded(
    table: ForwardingTable, batch: Any, work: TaskOrders, census: Census
) -> tuple[Any, SliceAnswer, dict[int, str]]:
    """Match messages given as texts."""
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
        except Exception as error:  # any error: a task that fails on a message would end the stream
            rejected.append((row, reason_of(error)))
        else:
            good.append(message)
            rows.append(row)
    census.add(good)
    found = answer_of(table, good, work.by)
    numbers = np.array(rows, np.int64)
    rejected += [(rows[row], reason) for row, reason in found.rejected]
    raw = {row: _text(texts[row]) for row, _ in rejected}
    answer = SliceAnswer(len(texts), numbers[found.messages], found.rows, sorted(rejected))
    return pa.array(ids, pa.string()), answer, raw


def _identifier(message: dict[str, Any], decoding: Decoding, place: Any) -> str | None:
    for name in decoding.ids:
        value = message.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return plain_text(str(value))
    if decoding.is_id_needed:
        raise FormatError(f"no attribute {decoding.ids[0]!r}, which shall identify the message")
    return None if place is None else str(place)


def _text(value: Any) -> str:
    """Return the text of a bad message; bytes that are not UTF-8 become replacement characters."""
    text = value.decode(errors="replace") if isinstance(value, bytes | bytearray) else str(value or "")
    return plain_text(text[:RAW_LENGTH])


def _batches(naming: Naming, ids: Any, answer: SliceAnswer, raw: dict[int, str]) -> Iterator[Any]:
    """Yield the record batches of an answer: the number of messages, lists of matches, and rejections."""
    import pyarrow as pa

    def batch(rows: Any, found: Any = None, reasons: Any = None, texts: Any = None, messages: int = 0) -> Any:
        count = len(rows)
        nulls = pa.nulls(count, naming.list_type), pa.nulls(count, pa.string())
        given = [
            nulls[0] if found is None else found,
            nulls[1] if reasons is None else reasons,
            nulls[1] if texts is None else texts,
            pa.array([messages] * count, pa.int64()),
        ]
        return pa.record_batch([ids.take(rows), *given, nulls[1], pa.nulls(count, pa.list_(pa.string()))], COLUMNS)

    yield batch(pa.nulls(1, pa.int64()), messages=answer.asked)
    for owners, lists in naming.lists(answer.messages, answer.rows):
        yield batch(pa.array(owners), lists)
    if answer.rejected:
        rows = [row for row, _ in answer.rejected]
        reasons = pa.array([reason for _, reason in answer.rejected], pa.string())
        yield batch(pa.array(rows, pa.int64()), None, reasons, pa.array([raw.get(row) for row in rows], pa.string()))


def _last_batch(naming: Naming, ids: Any, census: Census, files: list[str]) -> Any:
    """Return the last batch of a task: the census of its messages, and their files."""
    import pyarrow as pa

    nothing = [pa.nulls(1, naming.list_type), *(pa.nulls(1, pa.string()) for _ in range(2)), pa.array([0], pa.int64())]
    told = pa.array([census.to_json()], pa.string()), pa.array([files], pa.list_(pa.string()))
    return pa.record_batch([pa.nulls(1, ids.type), *nothing, *told], COLUMNS)


def _names(ready: Ready, artifact: Artifact, by: By) -> SavedNames:
    """Return the names of the saved table and of later subscriptions, with a subscriber for every row."""
    import pyarrow as pa

    def joined(saved: Any, new: list[Any], kind: str) -> Any:
        return pa.concat_arrays([names_array(saved, kind), names_array(new, kind)])

    table, saved = ready.opened.table, ready.opened.names
    if by == "subscriber":
        new = table.subscribers_of(np.arange(len(saved.subscribers), table.stats().subscribers), "subscriber")
        return SavedNames(saved.keys, joined(saved.subscribers, new, artifact.subscriber_type), None)
    rows = np.arange(len(saved.keys), len(saved.keys) + ready.added)
    owners = names_array(saved.subscribers, artifact.subscriber_type)
    if saved.owners is not None:
        owners = owners.take(pa.array(np.asarray(saved.owners)))
    owners = joined(owners, table.subscribers_of(rows, "subscription"), artifact.subscriber_type)
    return SavedNames(joined(saved.keys, table.keys_of(rows), artifact.key_type), owners, None)
