"""How far a stream is: numbers, a line for people, and a text for Prometheus."""

from __future__ import annotations

from typing import Any, NamedTuple

from contrada.amounts import counted, rate
from contrada.matching.census import Census
from contrada.pipeline.stream.sinks import StreamBatch
from contrada.pipeline.stream.version_log import Versions

# What sources of Spark say of what they have not read yet, and its unit.
LAGS = {
    "numFilesOutstanding": "file",
    "maxOffsetsBehindLatest": "message",
    "numBytesOutstanding": "byte",
}


class StreamProgress(NamedTuple):
    """The last batch, how fast it was, and what waits; `lag` is None where the source does not tell."""

    batch: int
    version: int
    subscriptions: int
    messages: int
    matches: int
    rejected: int
    seconds: float
    rate: float  # messages a second while the batch ran
    lag: int | None
    lag_unit: str
    rejected_changes: int
    compactions: int
    failed_compactions: int
    attributes: str = ""  # asked for that no message had, or only with another type

    def line(self) -> str:
        """One line for people.

        >>> StreamProgress(3, 1, 1000, 500, 70, 0, 0.5, 1000.0, 2, "file", 0, 0, 0).line()
        'batch 3, version 1 (1,000 subscriptions): 500 messages, 1,000 messages/s, 70 matches, 2 files behind'
        """
        parts = [
            counted(self.messages, "message"),
            rate(self.rate, 1, "message"),
            counted(self.matches, "match", "matches"),
        ]
        parts += [f"{self.rejected:,} rejected"] * bool(self.rejected)
        parts += [counted(self.rejected_changes, "bad change")] * bool(self.rejected_changes)
        parts += [counted(self.failed_compactions, "failed compaction")] * bool(self.failed_compactions)
        if self.lag is not None:
            parts.append(f"{counted(self.lag, self.lag_unit)} behind")
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


def progress_of(
    last: tuple[StreamBatch, float] | None, told: Any, versions: Versions, census: Census
) -> StreamProgress | None:
    """What the last batch did, with what Spark says of the sources (as of the batch before, while one runs)."""
    if last is None:
        return None
    batch, seconds = last
    lag, unit = _lag(told)
    rate = batch.messages / max(seconds, 1e-9)
    counts = versions.rejected, versions.compactions, versions.failed_compactions
    return StreamProgress(*batch, seconds, rate, lag, unit, *counts, census.short())


def _lag(told: Any) -> tuple[int | None, str]:
    for source in (told or {}).get("sources", ()):
        metrics = source.get("metrics") or {}
        for name, unit in LAGS.items():
            if name in metrics:
                return int(metrics[name]), unit
    return None, ""
