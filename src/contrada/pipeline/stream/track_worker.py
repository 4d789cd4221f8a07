"""Follow tracked objects through a stream, in Spark's Python workers: fixes to buckets, buckets to events.

The first stage decodes and matches messages, and packs the fixes of each bucket of objects into one row. The stateful
stage has one kernel call for all fixes of a bucket. Its state is in Spark's state store: a snapshot of
`contrada.tracking.Tracks` and the deltas since, which a snapshot replaces once they have as many bytes.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.geometry import PointArray
from contrada.geometry.arrow.mixed import ValueRows
from contrada.matching.batch import SpatialColumn
from contrada.matching.census import Census
from contrada.pipeline.answers import Slices
from contrada.pipeline.batch.tracked_batches import TIME, answer_rows, event_rows
from contrada.pipeline.reasons import plain_text
from contrada.pipeline.stream import worker
from contrada.pipeline.stream.tracked_table import TrackedStreamOptions, TrackedTable, tracked_table, version_of_batch
from contrada.pipeline.stream.worker import Decoding, TaskOrders
from contrada.pipeline.systems import Systems
from contrada.tracking import Fixes, FixReader, Tracks
from contrada.tracking.relating import column_of_wkb, points_of
from contrada.tracking.transitions import Transitions

FIXES_SCHEMA = "bucket int, newest timestamp, payload binary"
PAYLOAD_SCHEMA = "payload binary"
FURTHER = {"raw": "string", "messages": "int64", "census": "string", "file": "string", "late": "int64"}
MAX_SECONDS = 1 << 43  # seconds from 1970, either way, that a timestamp of Spark's can have
MIN_SNAPSHOT = 1 << 16  # bytes


class TrackWork(NamedTuple):
    """The parameters of all tasks of a stream of tracked objects."""

    place: str  # of the versions
    options: TrackedStreamOptions
    names: tuple[str, ...]  # attributes in the columns after the id
    decoding: Decoding | None
    systems: Systems
    has_files: bool
    types: tuple[Any, Any, Any, Any]  # Arrow types of the ids of messages, of objects, keys and subscribers
    min_snapshot: int = MIN_SNAPSHOT  # bytes of deltas below which no snapshot is written

    @property
    def fields(self) -> dict[str, Any]:
        """Return the Arrow types of the columns of answers after the id of the message."""
        text, (_, thing, key, subscriber) = pa.string(), self.types
        return {
            "event": text, "subscriber": subscriber, "key": key, "object": thing, "before": text, "after": text,
            "time": TIME, "reason": text, "rejection": text,
            **{name: pa.type_for_alias(kind) for name, kind in FURTHER.items()},
        }  # fmt: skip

    def orders(self, version: Any) -> TaskOrders:
        """Return the parameters for reading batches."""
        names, decoding = self.names, self.decoding
        return TaskOrders(
            version, self.place, "subscription", names, decoding, (), self.systems, has_files=self.has_files
        )


class Packed(NamedTuple):
    """Fixes of one bucket, by row."""

    ids: list[Any]
    times: NDArray[np.int64]
    xy: NDArray[np.float64]  # NaN for regions, and for fixes without a geometry
    shapes: dict[int, bytes]  # regions, as WKB
    offsets: NDArray[np.int64]
    numbers: NDArray[np.int64]  # of the subscriptions that each fix matches
    messages: list[Any]  # their ids
    values: list[Any] | None  # attributes, if a crossing may ask for more than the region


# Stage 1


def fix_batches(batches: Iterator[Any], work: TrackWork) -> Iterator[Any]:
    """Read and match batches of an id, and attributes or a text; yield the fixes of each bucket, and answers."""
    first = next(batches, None)
    if first is None:
        return
    _, version = version_of_batch(work.place)
    table = tracked_table(version, work.place, work.options)
    orders, slices = work.orders(version), Slices()
    census, count, files = Census(table.table.asked_kinds()), 0, dict[str, None]()
    reader = FixReader(work.options.track, time=work.options.time, wrap=table.table.wrap)
    for batch in chain([first], batches):
        count += batch.num_rows
        if work.has_files:
            files |= dict.fromkeys(batch.column(batch.num_columns - 1).unique().to_pylist())
        bad: dict[int, str] = {}
        ids, groups = worker.read_batch(batch, orders, bad)
        for places, messages in groups:
            census.add(messages)
            fixes, rejected = reader.read(messages, table.attribute, 0)
            late = {item.row: plain_text(item.reason) for item in rejected}
            owners, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
            for start, answer in slices.match(table.table, messages, "subscription"):
                late |= {start + row: reason for row, reason in answer.rejected.items()}
                owners.append(start + answer.messages)
                rows.append(answer.rows)
            fixes = fixes.without(late)
            bad |= {int(places[row]): reason for row, reason in late.items()}
            pairs = np.concatenate(owners), np.concatenate(rows)
            yield from _packed(fixes, pairs, ids.take(pa.array(places)).to_pylist(), table, work)
        if bad:
            rows_of_bad = ids.take(pa.array(sorted(bad)))
            given = {"rejection": [bad[row] for row in sorted(bad)]}
            texts = worker.raw_texts(batch, orders, bad)
            if texts:
                given["raw"] = texts["raw"].take(pa.array(sorted(bad))).to_pylist()
            yield _answers(answer_rows(rows_of_bad, given, work.fields))
    totals = {"messages": [count], "census": [census.to_json()]}
    yield _answers(answer_rows(pa.nulls(1, work.types[0]), totals, work.fields))
    if files:
        yield _answers(answer_rows(pa.nulls(len(files), work.types[0]), {"file": list(files)}, work.fields))
    # Every bucket hears of every batch: its subscriptions may have changed, and time passes.
    everywhere = np.arange(work.options.buckets)
    yield _rows(everywhere, [None] * len(everywhere), [b""] * len(everywhere))


def _packed(
    fixes: Fixes,
    pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
    messages: list[Any],
    table: TrackedTable,
    work: TrackWork,
) -> Iterator[Any]:
    """Yield a row with the fixes of each bucket."""
    owners, numbers = pairs
    buckets = np.array([-1 if id is None else bucket_of(id, work.options.buckets) for id in fixes.ids])
    order = np.argsort(buckets, kind="stable")
    order = order[buckets[order] >= 0]
    if not len(order):
        return
    counts = np.bincount(owners, minlength=len(buckets))
    firsts = np.cumsum(counts) - counts
    xy = points_of(fixes.geometry, np.arange(len(buckets)))
    regions = fixes.geometry.region_of
    needs_values = any(watch.rest for watch in table.crossed())
    found, payloads, newest = [], [], []
    for rows in np.split(order, np.flatnonzero(np.diff(buckets[order])) + 1):
        shapes = {k: fixes.geometry.regions[int(at)].to_wkb() for k, at in enumerate(regions[rows].tolist()) if at >= 0}
        sizes = counts[rows]
        offsets = np.append(0, np.cumsum(sizes))
        places = np.repeat(firsts[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        values = None
        if needs_values and fixes.message is not None:
            values = [dict(fixes.message(row)) for row in rows.tolist()]
        packed = Packed(
            [fixes.ids[row] for row in rows.tolist()], fixes.times[rows], xy[rows], shapes, offsets, numbers[places],
            [messages[row] for row in rows.tolist()], values,
        )  # fmt: skip
        found.append(int(buckets[rows[0]]))
        payloads.append(b"F" + pickle.dumps(tuple(packed), pickle.HIGHEST_PROTOCOL))
        newest.append(int(fixes.times[rows].max()))
    yield _rows(np.array(found), newest, payloads)


def bucket_of(id: str | int, buckets: int) -> int:
    """Return the bucket of an object.

    >>> bucket_of("bus 7", 64), bucket_of(7, 64)
    (58, 2)
    """
    return zlib.crc32(str(id).encode(errors="replace")) % buckets


def _answers(rows: Any) -> Any:
    return _rows(np.zeros(1, np.int64), [None], [b"A" + _stream_of(rows)])


def _rows(buckets: NDArray[Any], newest: Sequence[int | None], payloads: Sequence[bytes]) -> Any:
    most = MAX_SECONDS * 1_000
    times = [None if time is None else min(max(time, -most), most) * 1_000 for time in newest]
    columns = [pa.array(buckets, pa.int32()), pa.array(times, pa.int64()).cast(TIME), pa.array(payloads, pa.binary())]
    return pa.record_batch(columns, ["bucket", "newest", "payload"])


# Stage 2


class Head(NamedTuple):
    """What is known of the state of a bucket without reading it."""

    version: int  # of the subscriptions that it is for
    digest: str  # of the snapshot and the deltas
    moves: list[list[int]]  # see `TrackedTable.view`
    timer: int | None
    deltas: int  # bytes
    snapshot: int  # bytes


class Bucket(NamedTuple):
    """The objects of a bucket, as a worker holds them between batches."""

    tracks: Tracks
    digest: str
    version: int
    source: TrackedTable


BUCKETS: dict[tuple[str, int], Bucket] = {}


class BucketWork:
    """Applies fixes to the objects of a bucket and lets time pass; `states` are Spark's state variables."""

    def __init__(
        self,
        work: TrackWork,
        key: int,
        states: tuple[Any, Any, Any],
        handle: Any,
        watermark: int,
        expired: int | None = None,  # the timer that this call is for, which is gone
    ) -> None:
        self._work, self._key, self._handle, self._watermark = work, key, handle, watermark
        self._head, self._snapshot, self._deltas = states
        _, self._version = version_of_batch(work.place)
        self._table = tracked_table(self._version, work.place, work.options)
        saved = self._head.get()
        self._text = None if saved is None else saved[0]
        self._known = None if saved is None else Head(*json.loads(saved[0]))
        if self._known is not None and self._known.timer == expired:
            self._known = self._known._replace(timer=None)

    def run(self, payloads: Sequence[bytes]) -> Iterator[bytes]:
        """Take the payloads of a batch; yield answers."""
        yield from (payload[1:] for payload in payloads if payload[:1] == b"A")
        packed = [Packed(*pickle.loads(payload[1:])) for payload in payloads if payload[:1] == b"F"]
        if self._known is None and not packed:
            return
        tracks, moves, told = self._opened()
        late = tracks.late
        if packed:
            fixes, messages = _joined(packed)
            told.append((tracks.apply(fixes), messages))
        if self._watermark > 0:
            told.append((tracks.advance(self._watermark), []))
        for transitions, names in told:
            if len(transitions):
                ids = pa.array(names, self._work.types[0])
                yield _stream_of(event_rows(transitions, self._table.table, ids, self._work.fields))
        if tracks.late > late:
            rows = answer_rows(pa.nulls(1, self._work.types[0]), {"late": [tracks.late - late]}, self._work.fields)
            yield _stream_of(rows)
        self._save(tracks, moves)

    def _opened(self) -> tuple[Tracks, list[list[int]], list[tuple[Transitions, list[Any]]]]:
        """Return the objects, with the subscriptions of this version, and the exits from those that are gone."""
        options, version = self._work.options, self._version.number
        known = self._known
        if known is None:
            moves = [[version, 0]]
            watches = self._table.view(version, moves)
            late: Any = options.late
            return Tracks(late=late, expire_after=options.expire_after, watches=watches), moves, []
        held = BUCKETS.pop((self._work.place, self._key), None)
        if held is not None and (held.digest, held.version, held.source) == (known.digest, known.version, self._table):
            tracks = held.tracks
        else:
            snapshot = self._snapshot.get()
            deltas = [bytes(row[0]) for row in self._deltas.get()] if known.deltas else []
            watches = self._table.view(known.version, known.moves)
            tracks = Tracks.restore(bytes(snapshot[0]), deltas, watches=watches)
        if known.version == version:
            return tracks, known.moves, []
        exits = self._table.move(tracks, known.version, version, self._watermark)
        moves = _with_move(known.moves, version, tracks)
        tracks.take_watches(self._table.view(version, moves))
        return tracks, moves, [(one, []) for one in exits]

    def _save(self, tracks: Tracks, moves: list[list[int]]) -> None:
        """Put what changed into the state."""
        known, version = self._known, self._version.number
        delta = tracks.take_delta()
        if known is None:
            data = tracks.snapshot()
            self._snapshot.update((data,))
            head = Head(version, _digest("", data), moves, None, 0, len(data))
        elif not delta:
            head = known._replace(version=version, moves=moves)
        elif known.deltas + len(delta) > max(known.snapshot, self._work.min_snapshot):
            data = tracks.snapshot()
            self._snapshot.update((data,))
            self._deltas.clear()
            kept = [[number, 0 if fixes < tracks.oldest else fixes] for number, fixes in moves]
            head = Head(version, _digest("", data), _merged(kept), known.timer, 0, len(data))
        else:
            self._deltas.appendValue((delta,))
            digest, size = _digest(known.digest, delta), known.deltas + len(delta)
            head = known._replace(version=version, digest=digest, moves=moves, deltas=size)
        head = head._replace(timer=self._timer(head.timer, tracks.next_due))
        text = json.dumps(head)
        if text != self._text:
            self._head.update((text,))
        BUCKETS[self._work.place, self._key] = Bucket(tracks, head.digest, version, self._table)

    def _timer(self, old: int | None, due: int | None) -> int | None:
        """Register a timer for what is due next, since batches without messages run a bucket only for a timer."""
        wanted = None if due is None or due > MAX_SECONDS * 1_000 else max(due - 1, 0)
        if wanted != old:
            if old is not None:
                self._handle.deleteTimer(old)
            if wanted is not None:
                self._handle.registerTimer(wanted)
        return wanted


def _with_move(moves: list[list[int]], version: int, tracks: Tracks) -> list[list[int]]:
    return _merged([*moves, [version, tracks.fixes]])


def _merged(moves: list[list[int]]) -> list[list[int]]:
    """Return moves without those at which no fix had been taken since the one before."""
    kept: list[list[int]] = []
    for version, fixes in moves:
        if kept and kept[-1][1] == fixes:
            kept[-1] = [version, fixes]
        else:
            kept.append([version, fixes])
    return kept


def _digest(before: str, data: bytes) -> str:
    return hashlib.blake2b(before.encode() + data, digest_size=16).hexdigest()


def _stream_of(rows: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue().to_pybytes())


def _joined(packed: list[Packed]) -> tuple[Fixes, list[Any]]:
    """Return the fixes of a bucket in the order in which they count as arrived, and the ids of their messages.

    They come in order of time, those of one object and time in order of message ids, so that a batch that comes again
    has the same order.
    """
    ids = [id for one in packed for id in one.ids]
    messages = [message for one in packed for message in one.messages]
    times, xy = np.concatenate([one.times for one in packed]), np.concatenate([one.xy for one in packed])
    starts = np.cumsum([0, *(len(one.ids) for one in packed)]).tolist()
    shapes = {start + k: wkb for start, one in zip(starts, packed, strict=False) for k, wkb in one.shapes.items()}
    order = _order(ids, times, messages, xy, shapes)
    counts = np.concatenate([np.diff(one.offsets) for one in packed])
    numbers = np.concatenate([one.numbers for one in packed])
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    values = [value for one in packed for value in one.values or [{}] * len(one.ids)]
    has_values = any(one.values is not None for one in packed)
    fixes = Fixes(
        [ids[row] for row in order.tolist()], times[order],
        _column(xy[order], {int(place[row]): wkb for row, wkb in shapes.items()}), np.repeat(place, counts), numbers,
        message=(lambda row: values[order[row]]) if has_values else None,
    )  # fmt: skip
    return fixes, [messages[row] for row in order.tolist()]


def _order(
    ids: list[Any], times: NDArray[np.int64], messages: list[Any], xy: NDArray[np.float64], shapes: dict[int, bytes]
) -> NDArray[np.int64]:
    """Return rows by time; of one object and time by message id, then by content."""
    order = np.argsort(times, kind="stable")
    known: dict[Any, int] = {}
    codes = np.array([known.setdefault(id, len(known)) for id in ids], np.int64)
    by_object = np.lexsort((times, codes))
    is_tie = (np.diff(codes[by_object]) == 0) & (np.diff(times[by_object]) == 0)
    if is_tie.any():
        keys = [(message is not None, "" if message is None else message) for message in messages]
        contents = [shapes.get(row, xy[row].tobytes()) for row in range(len(ids))]
        listed = times.tolist()
        order = np.array(sorted(range(len(ids)), key=lambda row: (listed[row], keys[row], contents[row])), np.int64)
    return order


def _column(xy: NDArray[np.float64], shapes: dict[int, bytes]) -> SpatialColumn:
    parts: list[ValueRows] = []
    points = np.flatnonzero(~np.isnan(xy[:, 0]))
    if len(points):
        parts.append(ValueRows(PointArray.of_checked(np.ascontiguousarray(xy[points]), None), points))
    if shapes:
        rows = sorted(shapes)
        parts.append(ValueRows(column_of_wkb([shapes[row] for row in rows]).regions, np.array(rows, np.int64)))
    return SpatialColumn.of_parts(parts, len(xy))


# Stage 3


def answer_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the rows of answers that the stateful stage packed."""
    for batch in batches:
        for payload in batch.column(0):
            yield from pa.ipc.open_stream(payload.as_buffer())
