"""Count rejections by reason for the summary, and write them to a file if asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from io import FileIO
from pathlib import Path

from contrada.amounts import counted
from contrada.formats.records import Rejected

MAX_SHOWN_REASONS = 5  # reasons in a summary
MAX_DISTINCT_REASONS = 1000  # reasons counted separately: memory must not grow with the number of bad rows
MAX_REASON_LENGTH = 160
_text = json.encoder.encode_basestring  # an encoder of whole objects takes three times as long per row
_known_text = lru_cache(1024)(_text)


class Rejections:
    """Rejected messages and subscriptions; `what` names the kind of rejected item."""

    def __init__(self, path: Path | None) -> None:
        # Unbuffered, so that a live stream can be watched.
        self._file: FileIO | None = None if path is None else path.open("wb", buffering=0)
        self._path = path
        self.counts: Counter[str] = Counter()
        self._reasons: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def add(self, item: Rejected, what: str) -> None:
        """Record a rejection."""
        what = f"part of a {what}" if item.is_part else what
        self.counts[what] += 1
        reason = (what, _shortened(item.reason))
        if reason not in self._first:
            if len(self._first) >= MAX_DISTINCT_REASONS:
                reason = (what, "other reasons")
            self._first.setdefault(reason, f"{item.source}, {item.unit} {item.number}")
        self._reasons[reason] += 1
        if self._file is not None:
            where = f'"source": {_known_text(item.source)}, {_known_text(item.unit)}: {item.number:d}'
            why = f'"what": {_known_text(what)}, "reason": {_known_text(item.reason)}, "raw": {_text(item.raw)}'
            line = f"{{{where}, {why}}}\n".encode("utf-8", "backslashreplace")  # handles any text
            while line:  # a full device may take a part of a line
                line = line[self._file.write(line) :]

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def lines(self) -> Iterator[str]:
        """Yield the most frequent reasons with count and first place, and the path of the file."""
        common = self._reasons.most_common(MAX_SHOWN_REASONS)
        for (what, reason), count in common:
            where = self._first[what, reason]
            yield f"  {count:,} x {what}: {reason} ({where if count == 1 else f'first: {where}'})"
        rest = len(self._reasons) - len(common)
        if rest > 0:
            yield f"  ... and {counted(rest, 'other reason')}"
        if self._path is not None and self.counts:
            yield f"  all of them: {self._path}"


def _shortened(reason: str) -> str:
    """Return the first line of a reason, shortened."""
    line = reason.partition("\n")[0]
    return line if len(line) <= MAX_REASON_LENGTH else line[: MAX_REASON_LENGTH - 3] + "..."
