"""A running stream: its progress, and its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pickle import PicklingError
from typing import Any

from pyspark.errors import PySparkException, PySparkPicklingError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from contrada.errors import ContradaError
from contrada.matching.census import Census
from contrada.pipeline.stream.batches import BatchWork, ReportedBatches
from contrada.pipeline.stream.progress import StreamProgress, progress_of
from contrada.pipeline.stream.reports import BatchReport, ReportReader, Reports
from contrada.pipeline.systems import is_connect

POLL_SECONDS = 0.05  # seconds
STARTS, SLOW_START = 3, "connect back"  # tries, and words of Spark's error


def _started(writer: DataStreamWriter) -> StreamingQuery:
    """Start a query of Spark Connect.

    Spark fails if the process for batches takes more than ten seconds to start, as on a busy server. Nothing has begun
    by then, so it is tried again.
    """
    for _ in range(STARTS - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if SLOW_START not in str(error):
                raise
    return writer.start()


class Stream:
    """A running stream; `query` is Spark's own handle on it, `versions` are those of its subscriptions.

    `census` counts tested attributes and messages since this process started the stream. Over Spark Connect a process
    of the server runs the batches, and this one reads its reports.
    """

    query: StreamingQuery  # set when the stream has started, which may be after its first batch

    def __init__(self, work: BatchWork, told: Callable[[StreamProgress], None] | None) -> None:
        self.versions, self.census = work.versions, Census()
        self._work, self._told = work, told
        self._reports = Reports(work.versions.place)
        self._reader: ReportReader | None = None
        self._last: BatchReport | None = None

    def _start(self, rows: DataFrame, checkpoint: str, trigger: Mapping[str, Any] | None) -> None:
        """Start the query of these rows."""
        writer = rows.writeStream.option("checkpointLocation", checkpoint)
        if trigger:
            writer = writer.trigger(**trigger)
        if not is_connect(rows):
            self.query = writer.foreachBatch(self._run).start()
            return
        self._reports.begin()
        try:
            writer = writer.foreachBatch(ReportedBatches(self._work, self._reports))
        except (PySparkPicklingError, PicklingError, TypeError) as error:
            raise ContradaError(
                "over Spark Connect a process of the server runs the batches; sink and changes are sent to it,"
                f" and one of them cannot be: {error}"
            ) from error
        self.query = _started(writer)
        self._reader = ReportReader(self._reports, self._follow, self.query.stop)

    def progress(self) -> StreamProgress | None:
        """Return the last batch, rates, lag and version; None before the first batch."""
        told = self.query.lastProgress if hasattr(self, "query") else None
        return None if self._last is None else progress_of(self._last, told, self.census)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait up to `seconds` for the stream to end; return True if it has ended. Raises the error that ended it."""
        is_over = True
        try:
            ended = self.query.awaitTermination(seconds)  # type: ignore[arg-type]
            is_over = seconds is None or bool(ended)
        finally:
            if is_over:
                self._finish()
        return is_over

    def stop(self, *, finish: bool = False) -> None:
        """Stop. A running batch is repeated when a new stream continues from the same checkpoint.

        With `finish`, the running batch is completed and committed first, and no other begins.
        """
        if finish:
            self._work.is_ending = True
            if self._reader is not None:
                self._reports.end()
            while self.query.isActive and self.query.status["isTriggerActive"]:
                time.sleep(POLL_SECONDS)
        self.query.stop()
        self._finish()
        self.versions.wait()

    def _run(self, messages: DataFrame, number: int) -> None:
        self._take(self._work.run(messages, number))

    def _take(self, report: BatchReport) -> None:
        """Take a report over, and tell it."""
        self._last, self.census = report, Census()
        self.census.merge(report.census)
        if self._told is not None:
            progress = self.progress()
            assert progress is not None
            self._told(progress)

    def _follow(self, report: BatchReport) -> None:
        """Take over the report of another process, which made the versions."""
        self.versions.follow(report.changes)
        self._take(report)

    def _finish(self) -> None:
        if self._reader is not None:
            self._reader.finish()
