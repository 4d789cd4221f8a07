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
MAX_PENDING_LINES = 1024  # lines of the file kept in memory
LONG_TEXT = 1 << 16  # characters; a rejected text of that length is written at once
_text = json.encoder.encode_basestring  # an encoder of whole objects takes three times as long per row


class Rejections:
    """Rejected messages and subscriptions, counted by reason and written to a file.

    Lines are written in blocks. The reader of messages calls `flush` before it waits for more input, so that the file
    of a live stream can be watched.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: FileIO | None = None if path is None else path.open("wb", buffering=0)
        self._path = path
        self._pending: list[str] = []
        self._reasons: Counter[tuple[str, str]] = Counter()
        self.counts: Counter[str] = Counter()  # rejected items by kind
        self._first: dict[tuple[str, str], str] = {}

    def add(self, item: Rejected, what: str) -> None:
        """Record a rejection; `what` names the kind of item."""
        source, unit, number, why, raw, is_part = item
        reason = _reason(what, is_part, why)
        if reason not in self._first:
            if len(self._first) >= MAX_DISTINCT_REASONS:
                reason = (reason[0], "other reasons")
            self._first.setdefault(reason, f"{source}, {unit} {number}")
        self._reasons[reason] += 1
        self.counts[reason[0]] += 1
        if self._file is not None:
            start, middle = _frame(source, unit, what, is_part, why)
            self._pending.append(f"{start}{number:d}{middle}{_text(raw)}}}\n")
            if len(self._pending) >= MAX_PENDING_LINES or len(raw) >= LONG_TEXT:
                self.flush()

    def by_kind(self) -> dict[str, int]:
        """Return the numbers of rejected messages and subscriptions, and of parts of both, for a summary."""
        whole = {f"rejected_{what}s": self.counts[what] for what in ("message", "subscription")}
        return {**whole, "rejected_parts": self.counts.total() - sum(whole.values())}

    def flush(self) -> None:
        """Write the pending lines."""
        if self._file is None or not self._pending:
            return
        lines, self._pending = "".join(self._pending), []
        data = memoryview(lines.encode("utf-8", "backslashreplace"))  # handles any text
        while data:  # a full device may take a part
            data = data[self._file.write(data) :]

    def close(self) -> None:
        """Write the pending lines and close the file."""
        if self._file is not None:
            try:
                self.flush()
            finally:
                self._file.close()

    def lines(self) -> Iterator[str]:
        """Yield a heading, the most frequent reasons with count and first place, and the path of the file."""
        if not self._reasons:
            return
        yield "rejected:"
        common = self._reasons.most_common(MAX_SHOWN_REASONS)
        for (what, reason), count in common:
            where = self._first[what, reason]
            yield f"  {count:,} x {what}: {reason} ({where if count == 1 else f'first: {where}'})"
        rest = len(self._reasons) - len(common)
        if rest > 0:
            yield f"  ... and {counted(rest, 'other reason')}"
        if self._path is not None:
            yield f"  all of them: {self._path}"


def shortened(text: str) -> str:
    """Return a text of at most `MAX_REASON_LENGTH` characters; a longer one ends with dots."""
    return text if len(text) <= MAX_REASON_LENGTH else text[: MAX_REASON_LENGTH - 3] + "..."


@lru_cache(1024)
def _reason(what: str, is_part: bool, why: str) -> tuple[str, str]:
    """Return the kind of item and the first line of the reason, shortened."""
    return (f"part of a {what}" if is_part else what, shortened(why.partition("\n")[0]))


@lru_cache(1024)
def _frame(source: str, unit: str, what: str, is_part: bool, why: str) -> tuple[str, str]:
    """Return the text of a line before the number and before the raw text; successive lines often share both."""
    what, _ = _reason(what, is_part, why)
    return f'{{"source": {_text(source)}, {_text(unit)}: ', f', "what": {_text(what)}, "reason": {_text(why)}, "raw": '
