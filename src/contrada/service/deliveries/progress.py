"""Who is delivered to, and what is kept of a delivery besides its cursor."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import msgspec

from contrada.errors import FormatError
from contrada.service.catalog import SEPARATOR
from contrada.service.cursors import Position

PROGRESS = "webhook-progress"  # kind of records; sinks have them too
NAME_CHARACTERS = 255
SINK = "\x01"  # first character of the names of sinks, which no webhook can have


class DeliveryKey(NamedTuple):
    """Which delivery: those of one subscriber have names; that of a sink begins with SINK."""

    tenant: str
    subscriber: str
    name: str

    @property
    def record(self) -> str:
        """The name of its records."""
        return SEPARATOR.join(self)

    @property
    def shown(self) -> str:
        """What it is called in errors and logs."""
        return f"sink {self.name[1:]!r}" if self.name.startswith(SINK) else f"webhook {self.name!r}"

    def check(self) -> None:
        """Raise FormatError if a webhook cannot have this name."""
        for part, text in zip(("tenant", "subscriber", "name"), self, strict=True):
            is_text = all(unicodedata.category(character) not in ("Cc", "Cs") for character in text)
            if not 0 < len(text) <= NAME_CHARACTERS or not is_text:
                raise FormatError(
                    f"{part} of a webhook: need 1 to {NAME_CHARACTERS} characters without control characters,"
                    f" got {text!r:.60}"
                )


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a delivery besides its cursor; times are in milliseconds since 1970.

    The parcel after the place `after`, which ends at `until`, failed `attempts` times since `since`. Events up to
    `settled` are dead-lettered or taken. `letters` counts the dead letters that are kept.
    """

    after: Position | None = None
    until: Position | None = None
    attempts: int = 0
    since: int = 0
    reason: str = ""
    settled: Position = Position(0, 0)
    letters: int = 0


class FailureView(msgspec.Struct, frozen=True):
    """A delivery that fails: times are in milliseconds since 1970."""

    attempts: int
    since: int
    reason: str
