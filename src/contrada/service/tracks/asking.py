"""What a subscription asks of tracked objects, as it is written in requests and kept in the catalog."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from contrada.tracking import Watch, duration_ms, watch_of

Duration = Annotated[str, Meta(min_length=1, max_length=40, description="such as 90s, 5m or 1h30m")] | float
Attribute = Annotated[str, Meta(min_length=1, max_length=200)]
PlainKind = Literal["enter", "exit", "change", "cross"]
FirstFix = Literal["enter", "silent"]
LateFix = Literal["ignore", "arrival"]


class DwellAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event once an object was inside for a time."""

    dwell: Duration


class TrackAsked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a tracked subscription asks for.

    Messages with the same value of the attribute `track` are states of one object. `time` is the attribute of their
    times; without it the time of arrival counts. An object has left once it is further than `exit_buffer` outside, for
    at least `exit_after`. `first` is the rule for an object whose first fix is inside, `late` that for a fix that is
    older than one that came before.
    """

    track: str
    on: tuple[PlainKind | DwellAsked, ...] = ("enter", "exit")
    exit_buffer: float = 0.0
    exit_after: Duration | None = None
    time: str | None = None
    first: FirstFix = "enter"
    late: LateFix = "ignore"

    def normal(self) -> tuple[Any, ...]:
        """Return what is asked for in one form only, for comparisons: durations in milliseconds, kinds in any order."""
        kinds = frozenset(one if isinstance(one, str) else duration_ms(one.dwell, "on") for one in self.on)
        after = 0 if self.exit_after is None else duration_ms(self.exit_after, "exit_after")
        return self.track, kinds, self.exit_buffer, after, self.time, self.first, self.late

    def watch(self, filter: Any) -> Watch:
        """Return what the tracker needs to know; raise FilterError if the filter or a value does not fit."""
        on = [one if isinstance(one, str) else {"dwell": one.dwell} for one in self.on]
        return watch_of(filter, on, exit_buffer=self.exit_buffer, exit_after=self.exit_after, first=self.first)
