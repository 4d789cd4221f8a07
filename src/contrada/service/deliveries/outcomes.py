"""Outcome: what became of one attempt to deliver."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

TAKEN, GONE = 200, 410
REASON_CHARACTERS = 200


class Outcome(NamedTuple):
    """What became of an attempt: the status of the answer, or 0 and why there is none.

    Of an attempt that failed, the first `taken` events were taken nevertheless. With `is_final` the event after them is
    one that the receiver never takes, such as one beyond its largest size.
    """

    status: int
    reason: str = ""
    retry_after: str | None = None
    taken: int = 0
    is_final: bool = False

    @property
    def is_taken(self) -> bool:
        """True if the receiver took the delivery."""
        return 200 <= self.status < 300

    def text(self) -> str:
        """Return why the delivery was not taken."""
        return self.reason or f"the endpoint answered {self.status}"


class ReplayAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a replay: dead letters that were taken and that are left; `failed` says why it ended early."""

    sent: int
    left: int
    failed: str | None = None
