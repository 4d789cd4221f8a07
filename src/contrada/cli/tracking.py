"""`contrada match --track`: follow objects through the messages, and write what they do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from contrada.cli.message_reader import MessageBatch
from contrada.cli.results import BINARY, ResultFile, ResultFormat, csv_line, writer_of
from contrada.cli.subscribing import Asking, FirstRejected, Reject, good_subscriptions, no_subscription
from contrada.errors import ContradaError
from contrada.formats.records import Rejected
from contrada.matching import ForwardingTable
from contrada.tracking import Tracker, TrackEvent

COLUMNS = ("message", "event", "subscriber", "key", "object", "before", "after", "time", "reason")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Tracking(NamedTuple):
    """The options of tracking: the attribute of ids, the arguments of a Tracker, and those of its subscriptions."""

    track: str
    of_tracker: dict[str, Any]
    of_subscriptions: dict[str, Any]


def tracking_of(track: str | None, of_tracker: dict[str, Any], of_subscriptions: dict[str, Any]) -> Tracking | None:
    """Return the options of tracking; None without --track."""
    return None if track is None else Tracking(track, of_tracker, of_subscriptions)


class TrackedRun:
    """A tracker with the subscriptions of a file, and batches of messages for it."""

    def __init__(self, tracking: Tracking, asking: Asking, reject: Reject) -> None:
        table = ForwardingTable(wrap=asking.options.get("wrap"))
        self.tracker = Tracker(table, tracking.track, **tracking.of_tracker)
        note = FirstRejected(reject)
        self._subscribers: dict[Any, Any] = {}
        for item in good_subscriptions(asking, note):
            key = len(self._subscribers) if item.key is None else item.key
            try:
                self.tracker.subscribe(key, item.predicate, subscriber=item.subscriber, **tracking.of_subscriptions)
            except ContradaError as error:
                note(Rejected(item.source, item.unit, item.number, str(error), str(item.predicate)))
                continue
            self._subscribers[key] = item.subscriber
        if not len(self.tracker):
            raise no_subscription(asking, note.first)

    def take(self, batch: MessageBatch, threads: int | None) -> tuple[list[dict[str, Any]], list[Rejected]]:
        """Take a batch; return what objects do, and the messages that are not tracked."""
        events = self.tracker.publish(batch.messages, threads=threads)
        bad = {**{item.row: item.reason for item in events.rejected}, **batch.bad}
        rejected = [Rejected(*batch.places[row], bad[row], batch.raw(row)) for row in sorted(bad)]
        return [self._line(event, batch.ids) for event in events], rejected

    def finish(self) -> list[dict[str, Any]]:
        """Let time pass up to the newest message; return what objects without further messages do."""
        newest = self.tracker.newest
        return [] if newest is None else [self._line(event, []) for event in self.tracker.advance(newest)]

    def _line(self, event: TrackEvent, ids: Sequence[str | int]) -> dict[str, Any]:
        own = event.to_dict()
        message = None if event.row is None or event.row >= len(ids) else ids[event.row]
        values = (message, event.kind, self._subscribers[event.key], event.key, event.object)
        return dict(zip(COLUMNS, (*values, own["before"], own["after"], _shown(event.time), event.reason), strict=True))


def _shown(time: int) -> str | int:
    """Return a time as text, or as milliseconds if it has no year of four digits."""
    try:
        return (_EPOCH + timedelta(milliseconds=time)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return time


class EventWriter:
    """Writes events as newline JSON, CSV, Parquet or Arrow; columns of the latter two are text."""

    def __init__(self, file: ResultFile, csv_safe: bool) -> None:
        self._file, self._is_safe = file, csv_safe
        self._writer: Any = None
        if file.format in BINARY:
            import pyarrow as pa

            self._schema = pa.schema([(name, pa.string()) for name in COLUMNS])
            self._writer = writer_of(file, self._schema)
        elif file.format is ResultFormat.csv:
            file.write(csv_line(list(COLUMNS)))

    def write(self, events: list[dict[str, Any]]) -> None:
        """Write events."""
        if not events:
            return
        if self._writer is not None:
            self._write_table(events)
        else:
            self._file.write(b"".join(map(self._text, events)))
        self._file.flush()

    def _text(self, event: dict[str, Any]) -> bytes:
        if self._file.format is ResultFormat.csv:
            return csv_line(list(event.values()), self._is_safe)
        return (json.dumps(event, ensure_ascii=False) + "\n").encode("utf-8", "replace")

    def _write_table(self, events: Iterable[dict[str, Any]]) -> None:
        import pyarrow as pa

        rows = [{name: None if value is None else str(value) for name, value in event.items()} for event in events]
        self._writer.write_table(pa.Table.from_pylist(rows, self._schema))

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()
        self._file.close()
