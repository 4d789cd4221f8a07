"""Progress of a stream: numbers, a line for users, and a text for Prometheus."""

from __future__ import annotations

from typing import Any, NamedTuple

from contrada.amounts import counted, rate
from contrada.matching.census import Census
from contrada.pipeline.stream.reports import BatchReport

# Metrics of Spark's sources about unread input, and their units.
LAGS = {"numFilesOutstanding": "file", "maxOffsetsBehindLatest": "message", "numBytesOutstanding": "byte"}


class StreamProgress(NamedTuple):
    """The last batch, its speed, and the unread input; `lag` is None if the source does not report it."""

    batch: int
    version: int
    subscriptions: int
    messages: int
    matches: int
    rejected: int
    seconds: float
    rate: float  # messages per second while the batch ran
    lag: int | None
    lag_unit: str
    rejected_changes: int
    compactions: int
    failed_compactions: int
    attributes: str = ""  # tested attributes that no message had, or only with another type

    def line(self) -> str:
        """Return the progress as one line for users.

        >>> StreamProgress(3, 1, 1000, 500, 70, 0, 0.5, 1000.0, 2, "file", 0, 0, 0).line()
        'batch 3, version 1 (1,000 subscriptions): 500 messages, 1,000 messages/s, 70 matches, 2 files behind'
        """
        parts = [
            counted(self.messages, "message"),
            rate(self.rate, 1, "message"),
            counted(self.matches, "match", "matches"),
        ]
        parts += [f"{self.rejected:,} rejected"] * bool(self.rejected)
        faults = (self.rejected_changes, "bad change"), (self.failed_compactions, "failed compaction")
        parts += [counted(number, fault) for number, fault in faults if number]
        parts += [] if self.lag is None else [f"{counted(self.lag, self.lag_unit)} behind"]
        parts += [self.attributes] * bool(self.attributes)
        asked = counted(self.subscriptions, "subscription")
        return f"batch {self.batch}, version {self.version} ({asked}): {', '.join(parts)}"

    def metrics(self) -> str:
        """Return the progress in Prometheus' text format.

        >>> print(StreamProgress(3, 1, 1000, 500, 70, 0, 0.5, 1000.0, None, "", 0, 0, 0).metrics().splitlines()[1])
        contrada_stream_batch 3
        """
        lines = []
        for name, value in self._asdict().items():
            if name not in ("lag_unit", "attributes") and value is not None:
                lines += [f"# TYPE contrada_stream_{name} gauge", f"contrada_stream_{name} {value}"]
        return "\n".join(lines) + "\n"


def progress_of(report: BatchReport, told: Any, census: Census) -> StreamProgress:
    """Return the progress after a batch; Spark's metrics are of the batch before while one runs."""
    lag, unit = _lag(told)
    rate = report.batch.messages / max(report.seconds, 1e-9)
    return StreamProgress(*report.batch, report.seconds, rate, lag, unit, *report.changes, census.short())


def _lag(told: Any) -> tuple[int | None, str]:
    for source in (told or {}).get("sources", ()):
        metrics = source.get("metrics") or {}
        for name, unit in LAGS.items():
            if name in metrics:
                return int(metrics[name]), unit
    return None, ""
