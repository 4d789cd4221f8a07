"""Match batches of messages against one version of the subscriptions, in Spark's Python workers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import ContradaError, FormatError
from contrada.formats.messages import message_of
from contrada.matching.answer import By
from contrada.matching.census import Census
from contrada.matching.store.storage import SavedNames
from contrada.pipeline.answers import AnswerWriter, Slices, name_types, names_array
from contrada.pipeline.artifact_cache import OpenTable, cache_home, open_copy, remove_copy
from contrada.pipeline.artifacts import Artifact, publish
from contrada.pipeline.kept import ids_of, text_ids
from contrada.pipeline.reasons import plain_text, reason_of
from contrada.pipeline.storage import Storage, path_of
from contrada.pipeline.stream.version import Version
from contrada.pipeline.stream.version_log import apply_segments
from contrada.pipeline.systems import NO_SYSTEMS, Systems, file_systems, named_columns

FURTHER = {"raw": "string", "messages": "int64", "census": "string", "file": "string"}  # columns of answers
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
    systems: Systems = NO_SYSTEMS  # of the columns that name one
    keep: tuple[str, ...] = ()  # attributes of texts that travel with the ids
    has_files: bool = False  # the last column is FILE: the task reports the files it saw, which may name a CRS


class Ready(NamedTuple):
    """The open table of a version, the segments applied to it, and the names of its rows."""

    opened: OpenTable
    digest: str
    segments: tuple[int, ...]
    added: int  # subscriptions added since the table was saved
    writers: dict[By, AnswerWriter]  # made on demand; tasks of one version share them

    def writer(self, artifact: Artifact, by: By) -> AnswerWriter:
        """Return the writer of answers."""
        if by not in self.writers:
            self.writers[by] = AnswerWriter(name_types(artifact), by, FURTHER, _names(self, artifact, by))
        return self.writers[by]


_READY: Ready | None = None  # a worker runs one task at a time, and the versions of a stream come in order


def ready_table(version: Version, place: str) -> Ready:
    """Return the table of a version; an open table of an earlier version is updated if possible."""
    global _READY
    held, artifact = _READY, version.artifact
    assert isinstance(artifact, Artifact)
    digest = f"{place} {artifact.digest}"
    if held is None or held.digest != digest or held.segments != version.segments[: len(held.segments)]:
        _READY = None
        if held is not None:
            held.opened.use.close()
        held = Ready(open_copy(artifact, cache_home() / "tables"), digest, (), 0, {})
    elif held.segments == version.segments:
        return held
    _READY = None  # if a segment cannot be read, the table is between two versions
    added = apply_segments(held.opened.table, Storage(place), version.segments[len(held.segments) :])
    _READY = Ready(held.opened, digest, version.segments, held.added + added, {})
    return _READY


def compact_version(batches: Iterator[Any], version: Version, place: str, artifacts: str) -> Iterator[Any]:
    """Merge table and segments of a version into a new artifact, in one task; yield one row about it as JSON.

    The batches, which hold nothing, are read first.
    """
    list(batches)
    old = version.artifact
    assert isinstance(old, Artifact)
    opened = open_copy(old, cache_home() / "tables")
    with closing(opened.use):
        apply_segments(opened.table, Storage(place), version.segments)
        made = publish(opened.table, artifacts, key_type=old.key_type, subscriber_type=old.subscriber_type)
    yield pa.record_batch([pa.array([json.dumps(made._asdict())])], ["about"])


def match_version(batches: Iterator[Any], work: TaskOrders) -> Iterator[Any]:
    """Match batches of an id and attributes, or of an id and a text; yield matches, rejections and counts."""
    first = next(batches, None)
    if first is None:
        return
    ready, count, files = ready_table(work.version, work.place), 0, dict[str, None]()
    assert isinstance(work.version.artifact, Artifact)
    table, slices, writer = ready.opened.table, Slices(), ready.writer(work.version.artifact, work.by)
    census = Census(table.asked_kinds())
    for digest in work.retired:
        remove_copy(digest, cache_home() / "tables")
    for batch in chain([first], batches):
        count += batch.num_rows
        if work.has_files:
            files |= dict.fromkeys(batch.column(batch.num_columns - 1).unique().to_pylist())
        bad: dict[int, str] = {}
        ids, groups = read_batch(batch, work, bad)
        for places, messages in groups:
            census.add(messages)
            for start, answer in slices.match(table, messages, work.by):
                own = places[start : start + answer.asked]
                yield from writer.matches(ids.take(pa.array(own)), answer)
                bad |= {int(own[row]): reason for row, reason in answer.rejected.items()}
        yield from writer.rejections(ids, dict(sorted(bad.items())), **raw_texts(batch, work, bad))
    id_type = first.column(0).type if work.decoding is None else text_ids(work.keep)
    yield writer.rows(pa.nulls(1, id_type), messages=[count], census=[census.to_json()])
    yield writer.rows(pa.nulls(len(files), id_type), file=list(files))


Group = tuple[NDArray[np.int64], Any]  # places of messages in a batch, and the messages


def read_batch(batch: Any, work: TaskOrders, bad: dict[int, str]) -> tuple[Any, list[Group]]:
    """Return the ids and messages of a batch of an id, and attributes or a text; others are added to `bad`."""
    return (_columns if work.decoding is None else _decoded)(batch, work, bad)


def raw_texts(batch: Any, work: TaskOrders, bad: Collection[int]) -> dict[str, Any]:
    """Return the column `raw` with the texts of bad messages, if messages are texts."""
    if not bad or work.decoding is None:
        return {}
    texts = [_text(text) if row in bad else None for row, text in enumerate(batch.column(1).to_pylist())]
    return {"raw": pa.array(texts, pa.string())}


def _columns(batch: Any, work: TaskOrders, bad: dict[int, str]) -> tuple[Any, list[Group]]:
    """Return ids and messages given as columns; a file whose CRS cannot be read has its messages added to `bad`."""
    groups: list[Group] = []
    # The CRS may depend on the file, so the rows are cut where the file changes.
    files = batch.column(batch.num_columns - 1).to_pylist() if work.has_files else [None] * batch.num_rows
    for _, numbers in groupby(range(batch.num_rows), files.__getitem__):
        places = np.array(list(numbers))
        rows = batch.slice(places[0], len(places))
        try:
            groups.append((places, named_columns(rows, work.names, _systems(rows, work), 1)))
        except ContradaError as error:
            bad.update(dict.fromkeys(places.tolist(), str(error)))
    return batch.column(0), groups


def _systems(batch: Any, work: TaskOrders) -> Systems:
    """Return the CRS of the columns of messages, which come from one file."""
    if not work.has_files:
        return work.systems
    own = file_systems(path_of(batch.column(batch.num_columns - 1)[0].as_py()))
    declared = {name: crs for name, crs in work.systems.items() if name not in own}
    return {**declared, **{name: crs for name, crs in own.items() if crs is not None}}


def _decoded(batch: Any, work: TaskOrders, bad: dict[int, str]) -> tuple[Any, list[Group]]:
    """Return ids and messages given as texts; texts that are no messages are added to `bad`."""
    decoding = work.decoding
    assert decoding is not None
    ids = batch.column(0).to_pylist()
    good: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = [{} for _ in ids]
    for row, text in enumerate(batch.column(1).to_pylist()):
        try:
            if text is None:
                raise FormatError("no text")
            message = message_of(text, **decoding.options)
            ids[row] = _identifier(message, decoding, ids[row])
        except Exception as error:  # any error: a task that fails on a message would end the stream
            bad[row] = reason_of(error)
        else:
            good.append(message)
            messages[row] = message
    places = np.setdiff1d(np.arange(len(ids)), np.array(list(bad), np.int64))
    return ids_of(ids, messages, work.keep), [(places, good)]


def _identifier(message: dict[str, Any], decoding: Decoding, place: Any) -> str | None:
    for name in decoding.ids:
        value = message.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return plain_text(str(value))
    if decoding.is_id_needed:
        raise FormatError(f"need attribute {decoding.ids[0]!r} to identify the message")
    return None if place is None else str(place)


def _text(value: Any) -> str:
    """Return the text of a bad message; bytes that are not UTF-8 become replacement characters."""
    text = value.decode(errors="replace") if isinstance(value, bytes | bytearray) else str(value or "")
    return plain_text(text[:RAW_LENGTH])


def _names(ready: Ready, artifact: Artifact, by: By) -> SavedNames:
    """Return the names of the saved table and of later subscriptions, with a subscriber for every row."""

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
