"""Duties: what one server of a shared log does for all, as the log itself says, and what all have to agree on."""

from __future__ import annotations

import msgspec
from msgspec import structs

from contrada.service.commands import ServiceCommand, Tick, TickAnswer
from contrada.service.core import Core
from contrada.service.store.message_store import StoreChange

SNAPSHOT, DELIVERIES = "snapshot", "deliveries"  # duties
CLAIM_LASTS = 10_000  # milliseconds without a new claim after which another server may take a duty


class Holder(msgspec.Struct, frozen=True):
    """Who has a duty, by the name that it gave, and until when."""

    origin: str
    name: str
    until: int


class Terms(msgspec.Struct, frozen=True):
    """Settings that decide what servers make of a log, so that all must have the same."""

    message_ids: int
    subscriptions: int
    track_expiry: int | None


class LogPlace(msgspec.Struct, frozen=True):
    """How far a server has applied a shared log, and what the log says about its servers.

    `origins` has, by origin, the count and the time of its last record, `versions`, by tenant, how often its table has
    changed. `grown` are bytes of records since the last snapshot, which has `size` bytes and the state after
    `snapshot`; the one before it has the state after `earlier`. `mark` tells the unit at `position` from others.
    """

    position: int = 0
    at: int = 0
    origins: dict[str, tuple[int, int]] = {}
    versions: dict[str, int] = {}
    holders: dict[str, Holder] = {}
    ticked: int = 0
    grown: int = 0
    size: int = 0
    snapshot: int = 0
    earlier: int = 0
    terms: Terms | None = None
    mark: str = ""


class PlacedCore(Core):
    """A core that has a place in a shared log."""

    place: LogPlace


def _shared(core: Core) -> PlacedCore:
    assert isinstance(core, PlacedCore)
    return core


class SharedTick(Tick, frozen=True):
    """A tick of one server for all."""

    def __call__(self, core: Core, change: StoreChange) -> TickAnswer:
        """Return what was removed; what was not acknowledged counts as dropped."""
        shared = _shared(core)
        shared.place = structs.replace(shared.place, ticked=shared.now())
        return self.run(core, change, {})


class Claim(ServiceCommand, frozen=True):
    """Take a duty, or keep it, for some milliseconds; none give it back."""

    duty: str
    origin: str
    name: str
    lasts: int = CLAIM_LASTS

    def __call__(self, core: Core, change: StoreChange) -> Holder | None:
        """Return who has the duty now."""
        shared = _shared(core)
        place, now = shared.place, shared.now()
        held = place.holders.get(self.duty)
        if held is not None and held.origin != self.origin and held.until > now:
            return held
        holders = {duty: holder for duty, holder in place.holders.items() if duty != self.duty}
        found = Holder(self.origin, self.name, now + self.lasts) if self.lasts > 0 else None
        shared.place = structs.replace(place, holders=holders if found is None else holders | {self.duty: found})
        return found


class NoteSnapshot(ServiceCommand, frozen=True):
    """A snapshot of the state after a position is kept, of so many bytes."""

    position: int
    size: int

    def __call__(self, core: Core, change: StoreChange) -> int:
        """Return the position up to which records are of no use to a server that has the snapshot before."""
        shared = _shared(core)
        place = shared.place
        if self.position > place.snapshot:
            place = structs.replace(place, grown=0, size=self.size, snapshot=self.position, earlier=place.snapshot)
            shared.place = place
        return place.earlier


class Mark(ServiceCommand, frozen=True):
    """Change nothing: a server that answers this has applied what was in the log before it."""

    def __call__(self, core: Core, change: StoreChange) -> None:
        """Do nothing."""


class SetTerms(ServiceCommand, frozen=True):
    """Agree on settings; the first server's count."""

    terms: Terms

    def __call__(self, core: Core, change: StoreChange) -> Terms:
        """Return the settings that count."""
        shared = _shared(core)
        if shared.place.terms is None:
            shared.place = structs.replace(shared.place, terms=self.terms)
        return shared.place.terms or self.terms
