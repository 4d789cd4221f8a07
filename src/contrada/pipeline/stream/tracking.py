"""Follow tracked objects through a stream of messages, with Structured Streaming and its state store."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from contrada.cql2.queries import Asked
from contrada.errors import ContradaError
from contrada.matching import ForwardingTable
from contrada.model import Predicate
from contrada.pipeline import manifests
from contrada.pipeline.answers import ID, arrow_type, name_types
from contrada.pipeline.artifacts import Artifact
from contrada.pipeline.batch.compiling import Compiled
from contrada.pipeline.batch.tracking import EVENT, checked_types
from contrada.pipeline.spark_types import attribute_columns, fields, sent_type
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.batches import BatchCounts, BatchWork
from contrada.pipeline.stream.changes import Changes, DirectoryChanges
from contrada.pipeline.stream.file_damage import Damage
from contrada.pipeline.stream.message_files import MessageFiles
from contrada.pipeline.stream.progress import StreamProgress
from contrada.pipeline.stream.running import Stream
from contrada.pipeline.stream.sinks import Sink, StreamBatch
from contrada.pipeline.stream.source_log import files_of_batch
from contrada.pipeline.stream.streaming import check_attributes, check_messages, check_options, first_table, sink_of
from contrada.pipeline.stream.track_processor import TrackProcessor
from contrada.pipeline.stream.track_worker import FIXES_SCHEMA, PAYLOAD_SCHEMA, TrackWork, answer_batches, fix_batches
from contrada.pipeline.stream.tracked_table import TrackedStreamOptions, tracked_table
from contrada.pipeline.stream.version import Version
from contrada.pipeline.stream.version_log import Versions
from contrada.pipeline.stream.worker import FILE, Decoding
from contrada.pipeline.systems import declared_systems, frame_systems
from contrada.tracking.durations import Duration, duration_ms
from contrada.tracking.tracks import Late
from contrada.tracking.watch import First, On, kinds_of

OPTIONS = "track.json"  # in the folder of versions
STATE_STORE = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    # A batch then saves what changed; otherwise it saves all files of the store.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
MAX_BUCKETS = 4096


class TrackedStream(Stream):
    """A running stream of tracked objects; `unwatched` says by key why subscriptions cannot be watched."""

    unwatched: Mapping[Any, str]

    @property
    def late(self) -> int:
        """Return how many fixes were left out since this process started the stream."""
        return 0 if self._last is None else self._last.late


class TrackedBatchWork(BatchWork):
    """What runs the batches of a stream of tracked objects."""

    def _counted(self, messages: DataFrame, number: int, version: Version) -> BatchCounts:
        """Run a batch, whose rows are answers, once: running it changes the state of objects."""
        damage: Mapping[str, str] = {}
        if self._files is not None:
            files, checkpoint = self._files
            damage = _damage(files, messages.sparkSession, files_of_batch(checkpoint, number))
        answers = messages.persist()
        sums = f.sum("messages"), f.count("event"), f.count("rejection"), f.sum("late"), f.collect_list("census")
        try:
            *total, censuses = answers.select(*sums).collect()[0]
        except BaseException:
            answers.unpersist()
            raise
        read, events, rejected, late = (int(value or 0) for value in total)
        self.late += late
        good = answers.where("event IS NOT NULL").select(ID, *EVENT)
        bad = answers.where("rejection IS NOT NULL").select(ID, f.col("rejection").alias("reason"), "raw")
        return BatchCounts(answers, good, bad, (answers,), read, events, rejected, censuses, [], damage)


def _damage(files: MessageFiles, session: SparkSession, uris: list[str]) -> Mapping[str, str]:
    """Return the damaged files of a batch with reasons; of these the stream reads the rows before the damage."""
    return Damage(files, session).sorted(uris).damage if uris else {}


def track_stream(
    messages: DataFrame | MessageFiles,
    subscriptions: DataFrame | Compiled | Artifact | ForwardingTable | None = None,
    changes: str | os.PathLike[str] | Changes | None = None,
    *,
    on: On,
    track: str,
    time: str,
    sink: str | os.PathLike[str] | Sink | Callable[[DataFrame, DataFrame, StreamBatch], None],
    checkpoint: str | os.PathLike[str],
    exit_buffer: float = 0.0,
    exit_after: Duration | None = None,
    first: First = "enter",
    late: Late = "ignore",
    expire_after: Duration | None = None,
    delay: Duration | None = None,
    buckets: int = 64,
    template: Asked | None = None,
    decoding: Decoding | None = None,
    trigger: Mapping[str, Any] | None = None,
    progress: Callable[[StreamProgress], None] | None = None,
) -> TrackedStream:
    """Tell when tracked objects enter, leave, touch or cross the regions of subscriptions, as a `Tracker` does.

    Messages, subscriptions, changes, sinks and checkpoints are those of `match_stream`; `on`, `track`, `time` and the
    options after `checkpoint` are those of `track` and `Tracker`. Messages of a batch count in order of time, then of
    `message_id`. After each batch time passes up to the newest message of earlier batches, less `delay`. Objects are in
    `buckets`, which a checkpoint keeps; the state is in Spark's RocksDB store.
    """
    check_options(trigger, checkpoint, "subscription", ("broadcast", None), subscriptions)
    options = _options(on, track, time, (exit_buffer, exit_after, first), (late, expire_after), buckets)
    place, files = Storage(checkpoint), None
    if isinstance(messages, MessageFiles):
        files, decoding = messages, messages.decoding if decoding is None else decoding
        messages = files.stream(place, partly=True)
    check_messages(messages, decoding, subscriptions, template)
    if decoding is None:
        checked_types(messages, options.track, options.time)  # before the checkpoint keeps the options
    slack = 0 if delay is None else duration_ms(delay, "delay")
    source = DirectoryChanges(os.fspath(changes)) if isinstance(changes, str | os.PathLike) else changes
    taken = sink_of(sink, messages, "events")
    begin = partial(first_table, subscriptions, template=template, plan="broadcast", partitions=None)
    check = partial(check_attributes, None if decoding is not None else messages.schema)
    versions, unwatched = _versions(place, source, check, taken, begin, options)
    work, sent, ids = _work(messages, decoding, versions, options)
    answers = _plan(sent, ids, work, slack)
    own = None if files is None else (files, place)
    stream = TrackedStream(TrackedBatchWork(versions, taken, "subscription", decoding, own), progress)
    stream.unwatched = unwatched
    with _state_store(messages.sparkSession):
        stream._start(answers, place.where, trigger)
    return stream


def _versions(
    place: Storage, source: Changes | None, check: Any, sink: Sink, begin: Any, options: TrackedStreamOptions
) -> tuple[Versions, Mapping[Any, str]]:
    """Return the versions of a stream that begins or goes on, and why subscriptions are not watched, by key."""
    admission = _Admission(options)
    # Numbers in the state are rows of the table, so it is never compacted.
    versions = Versions(place, source, _never, check, sys.maxsize, segment_records=sys.maxsize, admit=admission.check)
    sink.begin(versions.id)
    versions.begin(begin)
    _keep_options(versions.place, options)
    table = tracked_table(versions.current, versions.place.where, options)
    admission.attribute = table.attribute
    return versions, dict(table.unwatched)


def _plan(sent: DataFrame, ids: StructType, work: TrackWork, delay: int) -> DataFrame:
    """Return the answers of a stream of messages."""
    fixes = sent.mapInArrow(partial(fix_batches, work=work), FIXES_SCHEMA)
    # Spark would leave out late rows of a column with a watermark. Which fixes are late, each object decides.
    timed = fixes.withWatermark("newest", f"{delay} milliseconds").select("bucket", "payload")
    told = timed.groupBy("bucket").transformWithState(TrackProcessor(work), PAYLOAD_SCHEMA, "Append", "EventTime")
    schema = StructType([*ids.fields, *from_arrow_schema(pa.schema(work.fields)).fields])
    return told.mapInArrow(answer_batches, schema)


def _work(
    messages: DataFrame, decoding: Decoding | None, versions: Versions, options: TrackedStreamOptions
) -> tuple[TrackWork, DataFrame, StructType]:
    """Return the parameters of tasks, the columns that they get, and the field of the ids of messages.

    All columns are sent, since subscriptions to come may ask for any.
    """
    keys, has_files, artifact = pa.string(), FILE in messages.columns, versions.current.artifact
    key, subscriber = map(arrow_type, name_types(artifact))
    file = [FILE] if has_files else []
    if decoding is None:
        thing = arrow_type(checked_types(messages, options.track, options.time))
        columns = _sendable(messages)
        own = [*columns.values(), *file]
        sent = messages.select(ID, *own).toDF("id", *(f"c{k}" for k in range(len(own))))
        ids = messages.select(ID).schema
        systems = declared_systems(messages, columns) if has_files else frame_systems(messages, columns)
        types = sent_type(ids[0].dataType), thing, key, subscriber
        names = tuple(columns)
    else:
        sent = messages.select(messages[ID].cast("string").alias("id"), messages["value"].cast("binary"), *file)
        ids, systems, types, names = StructType().add(ID, "string"), {}, (keys, keys, key, subscriber), ()
    ids[ID].nullable = True
    work = TrackWork(versions.place.where, options, names, decoding, systems, has_files, types)
    return work, sent, ids


def _sendable(messages: DataFrame) -> dict[str, Any]:
    """Return the attributes of messages that Spark can send to Python."""
    found: dict[str, Any] = {}
    for name, _, _ in fields(messages.schema):
        if name in (ID, FILE):
            continue
        try:
            found |= attribute_columns(messages, [name])
        except ContradaError:
            continue
    return found


class _Admission:
    """Decides which changes can be watched: those that ask about one attribute."""

    def __init__(self, options: TrackedStreamOptions) -> None:
        self._options = options
        self.attribute: str | None = None

    def check(self, query: Predicate) -> None:
        """Raise for a query that cannot be watched."""
        self.attribute = self._options.watch(query, self.attribute).attribute


def _options(
    on: On,
    track: str,
    time: str,
    watching: tuple[float, Duration | None, str],
    of_tracks: tuple[str, Any],
    buckets: int,
) -> TrackedStreamOptions:
    """Return checked options."""
    kinds_of(on)
    named: tuple[tuple[str, Any], ...] = ("track", track), ("time", time)
    for name, value in named:
        if not isinstance(value, str) or not value:
            raise ContradaError(f"{name}: need the name of an attribute, got {value!r:.60}")
    if track == "thread" and buckets != 1:
        raise ContradaError("track: alerts that refer to each other must be in one bucket; pass buckets=1")
    if type(buckets) is not int or not 1 <= buckets <= MAX_BUCKETS:
        raise ContradaError(f"buckets: need a number from 1 to {MAX_BUCKETS}, got {buckets!r:.60}")
    if of_tracks[0] not in ("ignore", "arrival"):
        raise ContradaError(f'late: need "ignore" or "arrival", got {of_tracks[0]!r:.60}')
    exit_buffer, exit_after, first = watching
    wanted = on if isinstance(on, str) else [item if isinstance(item, str) else dict(item) for item in on]
    durations = [
        None if value is None else duration_ms(value, name)
        for name, value in (("exit_after", exit_after), ("expire_after", of_tracks[1]))
    ]
    made = TrackedStreamOptions(
        track,
        time,
        of_tracks[0],
        durations[1],
        json.loads(json.dumps(wanted)),
        exit_buffer,
        durations[0],
        first,
        buckets,
    )
    made.watch("S_INTERSECTS(geometry, BBOX(0, 0, 1, 1))", None)  # raises for wrong options
    return made


def _keep_options(place: Storage, options: TrackedStreamOptions) -> None:
    """Write the options of a new checkpoint; those of an existing one must be equal."""
    known = place.fields(OPTIONS, dict.fromkeys(TrackedStreamOptions._fields, manifests.anything))
    own = json.loads(json.dumps(options._asdict()))
    if known is None:
        if place.names("batches") or place.names("segments"):
            raise ContradaError(f"{place.where} is the checkpoint of a stream that tracks nothing")
        place.write(OPTIONS, json.dumps(own).encode())
        return
    for name, value in own.items():
        if known[name] != value:
            raise ContradaError(f"{name}: the stream of this checkpoint began with {known[name]!r}, got {value!r:.60}")


@contextmanager
def _state_store(session: SparkSession) -> Iterator[None]:
    """Set the state store for a query that starts now, which keeps its settings."""
    before = {name: session.conf.get(name, None) for name in STATE_STORE}
    for name, value in STATE_STORE.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def _never(version: Version, place: str, artifacts: str) -> Artifact:
    raise ContradaError("a table of tracked objects is never compacted")
