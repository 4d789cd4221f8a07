"""What was rejected: kept in a file if asked, counted by reason for the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from io import FileIO
from pathlib import Path

from contrada.amounts import counted
from contrada.language.records import Rejected

SHOWN = 5  # reasons in a summary
KEPT = 1000  # reasons that are told apart: memory must not grow with the number of bad rows
REASON_WIDTH = 160
LONG_TEXT = 1 << 16  # characters of a rejected text that is not kept in memory
MAX_PENDING_LINES = 1024  # of the file, until they are written together
_text = json.encoder.encode_basestring  # an encoder of whole objects takes three times as long for a row


class Rejections:
    """Rejected messages and subscriptions, counted by reason and kept in a file.

    Lines of the file are written together, and by `flush` at once: whoever reads messages calls it before it waits for
    more, so that the file of a live stream can be watched.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: FileIO | None = None if path is None else path.open("wb", buffering=0)
        self._path = path
        self._pending: list[str] = []
        self._reasons: dict[tuple[str, str], int] = {}
        self._first: dict[tuple[str, str], str] = {}

    @property
    def counts(self) -> Counter[str]:
        """How many were rejected, by the word for what they are."""
        counts: Counter[str] = Counter()
        for (what, _), count in self._reasons.items():
            counts[what] += count
        return counts

    def add(self, item: Rejected, what: str) -> None:
        """Take note of a rejection; `what` is the word for what was rejected."""
        source, unit, number, why, raw, is_part = item
        reason = _reason(what, is_part, why)
        count = self._reasons.get(reason)
        if count is None:
            reason, count = self._new_reason(reason, f"{source}, {unit} {number}")
        self._reasons[reason] = count + 1
        if self._file is not None:
            start, middle = _frame(source, unit, what, is_part, why)
            self._pending.append(f"{start}{number:d}{middle}{_text(raw)}}}\n")
            if len(self._pending) >= MAX_PENDING_LINES or len(raw) >= LONG_TEXT:
                self.flush()

    def _new_reason(self, reason: tuple[str, str], where: str) -> tuple[tuple[str, str], int]:
        """The reason to count a rejection by that nobody had before, and how many have it."""
        if len(self._first) >= KEPT:
            reason = (reason[0], "other reasons")
        self._first.setdefault(reason, where)
        return reason, self._reasons.get(reason, 0)

    def flush(self) -> None:
        """Write the lines that are pending."""
        if self._file is None or not self._pending:
            return
        lines, self._pending = "".join(self._pending), []
        data = memoryview(lines.encode("utf-8", "backslashreplace"))  # any text can be written
        while data:  # a full device takes a part
            data = data[self._file.write(data) :]

    def close(self) -> None:
        """Write what is pending and close the file."""
        if self._file is not None:
            try:
                self.flush()
            finally:
                self._file.close()

    def lines(self) -> Iterator[str]:
        """The most frequent reasons, with how often and where first; and where the rest is."""
        common = Counter(self._reasons).most_common(SHOWN)
        for (what, reason), count in common:
            where = self._first[what, reason]
            yield f"  {count:,} x {what}: {reason} ({where if count == 1 else f'first: {where}'})"
        rest = len(self._reasons) - len(common)
        if rest > 0:
            yield f"  ... and {counted(rest, 'other reason')}"
        if self._path is not None and self._reasons:
            yield f"  all of them: {self._path}"


@lru_cache(1024)
def _reason(what: str, is_part: bool, why: str) -> tuple[str, str]:
    """What was rejected, and the first line of why."""
    line = why.partition("\n")[0]
    short = line if len(line) <= REASON_WIDTH else line[: REASON_WIDTH - 3] + "..."
    return (f"part of a {what}" if is_part else what, short)


@lru_cache(1024)
def _frame(source: str, unit: str, what: str, is_part: bool, why: str) -> tuple[str, str]:
    """The text of a line of the file before the number and before the raw text: mostly those of the line before."""
    what, _ = _reason(what, is_part, why)
    return f'{{"source": {_text(source)}, {_text(unit)}: ', f', "what": {_text(what)}, "reason": {_text(why)}, "raw": '
