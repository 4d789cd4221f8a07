"""The stateful operator of a stream of tracked objects: Spark's interface around `BucketWork`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from contrada.pipeline.stream.track_worker import BucketWork, TrackWork


class TrackProcessor(StatefulProcessor):
    """Follows the objects of a bucket; the state of a bucket is a head, a snapshot and the deltas since."""

    def __init__(self, work: TrackWork) -> None:
        self._work = work

    def init(self, handle: Any) -> None:
        """Open the state variables."""
        self._handle = handle
        self._states = (
            handle.getValueState("head", "text string"),
            handle.getValueState("snapshot", "data binary"),
            handle.getListState("deltas", "data binary"),
        )

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Take the fixes of a batch."""
        yield from self._run(key, [bytes(row.payload) for row in rows], timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Let time pass; the timer that expired is gone."""
        yield from self._run(key, [], timerValues, expiredTimerInfo.getExpiryTimeInMs())

    def _run(self, key: Any, payloads: list[bytes], times: Any, expired: int | None = None) -> Iterator[Row]:
        bucket = BucketWork(
            self._work, int(key[0]), self._states, self._handle, times.getCurrentWatermarkInMs(), expired
        )  # fmt: skip
        for answer in bucket.run(payloads):
            yield Row(payload=answer)

    def close(self) -> None:
        """Close nothing: objects stay in memory for the next batch."""
