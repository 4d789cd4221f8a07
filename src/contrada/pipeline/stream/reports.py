"""Reports of batches: over Spark Connect the process that runs a batch writes them, the one that started it reads them.

They are files beside the checkpoint: `reports/<n>.json` about batch n, the last 100 of them. `ending.json` asks the
process that runs batches to begin no other.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from contrada.pipeline import manifests
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream.sinks import StreamBatch
from contrada.pipeline.stream.version_log import ChangeCounts

FOLDER, ENDING = "reports", "ending.json"
MAX_REPORTS = 100
POLL_SECONDS = 0.5  # seconds


class BatchReport(NamedTuple):
    """The outcome of a batch; counts of changes, `late` and `census` are since the stream was started."""

    batch: StreamBatch
    seconds: float
    changes: ChangeCounts
    late: int
    census: str  # as JSON

    def to_json(self) -> bytes:
        """Return the report as JSON."""
        return json.dumps(self).encode()

    @classmethod
    def of(cls, data: bytes) -> BatchReport:
        """Return the report in a text of `to_json`."""
        batch, seconds, changes, late, census = manifests.parsed(data)
        return cls(StreamBatch(*batch), seconds, ChangeCounts(*changes), late, census)


class Reports:
    """The reports of one start of a stream, in the folder of its versions."""

    def __init__(self, place: Storage) -> None:
        self._place = place

    def begin(self) -> None:
        """Remove what an earlier start left."""
        self._place.remove(FOLDER)
        self._place.remove(ENDING)

    def write(self, report: BatchReport) -> None:
        """Write the report of a batch, and remove the one that is `MAX_REPORTS` older."""
        number = report.batch.number
        self._place.write(f"{FOLDER}/{number}.json", report.to_json())
        self._place.remove(f"{FOLDER}/{number - MAX_REPORTS}.json")

    def after(self, number: int) -> list[BatchReport]:
        """Return the reports of the batches after one, in order."""
        names = (name.partition(".")[0] for name in self._place.names(FOLDER))
        numbers = sorted(int(name) for name in names if name.isdigit())
        found = [self._place.read(f"{FOLDER}/{one}.json") for one in numbers if one > number]
        return [BatchReport.of(data) for data in found if data is not None]

    def end(self) -> None:
        """Ask for the end of the stream after the batch that runs."""
        self._place.write(ENDING, b"{}")

    def is_ending(self) -> bool:
        """Return True if the end was asked for."""
        return self._place.read(ENDING) is not None


class ReportReader:
    """Calls `take` with each new report, in a thread; if that raises, calls `stop`, and `finish` raises it again."""

    def __init__(self, reports: Reports, take: Callable[[BatchReport], Any], stop: Callable[[], Any]) -> None:
        self._reports, self._take, self._stop = reports, take, stop
        self._ended, self._number = threading.Event(), -1
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Take the last reports, and end the thread."""
        self._ended.set()
        self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            while not self._ended.wait(POLL_SECONDS):
                with suppress(OSError):  # of the store; the reports are read next time
                    self._take_new()
            self._take_new()
        except BaseException as error:  # of the user's function, or the last reading
            self._error = error
            self._stop()

    def _take_new(self) -> None:
        for report in self._reports.after(self._number):
            self._number = report.batch.number
            self._take(report)
