"""Rate-limited warnings: at most one of a kind in ten seconds, so that hostile peers cannot fill a log."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

COMPLAINT_INTERVAL_SECONDS = 10.0  # between two complaints of a kind
MAX_KINDS = 256  # kinds that are distinguished; all further ones share one kind


class Complaints:
    """Show the first complaint of a kind, then one per COMPLAINT_INTERVAL_SECONDS with a count of the others.

    Complaints that differ only in numbers, such as ports, are of one kind.

    >>> shown, now = [], [0.0]
    >>> complain = Complaints(shown.append, lambda: now[0])
    >>> for port in (7001, 7002, 7003):
    ...     complain(f"dropped 127.0.0.1:{port}: it was silent")
    >>> now[0] = 11.0
    >>> complain("dropped 127.0.0.1:7004: it was silent")
    >>> shown  # doctest: -NORMALIZE_WHITESPACE
    ['dropped 127.0.0.1:7001: it was silent', 'dropped 127.0.0.1:7004: it was silent (and 2 more like it)']
    """

    def __init__(self, show: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._show, self._clock = show, clock
        self._shown: dict[str, float] = {}  # time at which each kind was last shown
        self._held: dict[str, tuple[int, str]] = {}  # number of complaints held back since then, and the last of them

    def __call__(self, text: str) -> None:
        """Show a complaint, or count it."""
        kind, now = re.sub(r"\d+", "0", text), self._clock()
        if kind not in self._shown and len(self._shown) >= MAX_KINDS:
            # Forget kinds that have not occurred for COMPLAINT_INTERVAL_SECONDS.
            recent = now - COMPLAINT_INTERVAL_SECONDS
            self._shown = {each: at for each, at in self._shown.items() if at > recent or each in self._held}
            kind = kind if len(self._shown) < MAX_KINDS else ""
        if now - self._shown.get(kind, -COMPLAINT_INTERVAL_SECONDS) < COMPLAINT_INTERVAL_SECONDS:
            count, _ = self._held.get(kind, (0, ""))
            self._held[kind] = count + 1, text
            return
        self._shown[kind] = now
        count, _ = self._held.pop(kind, (0, ""))
        self._show(f"{text} (and {count:,} more like it)" if count else text)

    def close(self) -> None:
        """Show the last complaint of each kind that was held back."""
        for count, text in self._held.values():
            self._show(f"{text} (and {count - 1:,} more like it)" if count > 1 else text)
        self._held.clear()
