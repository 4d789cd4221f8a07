"""Commands: everything that changes the state of the service but messages, as values that can be written into a log.

A command is called with the core and the change that it fills. What it does depends on the state and on nothing else,
so that servers which follow one log come to the same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import structs

from contrada.errors import ContradaError
from contrada.service.catalog import FILTER, SEPARATOR, Definition
from contrada.service.core import Core, NewSubscription
from contrada.service.cursors import Cursor, Position
from contrada.service.links.linking import tick_links
from contrada.service.store.message_store import StoreChange
from contrada.service.subscriber_retention import KeptFor


class ServiceCommand(msgspec.Struct, frozen=True, tag_field="do"):
    """Something that the engine does; the answer is what the call returns, or the ContradaError that it raises."""

    def __call__(self, core: Core, change: StoreChange) -> Any:
        """Change the core, and note it in `change`."""
        raise NotImplementedError


class PutSubscription(ServiceCommand, frozen=True):
    """Add or replace a subscription; with `is_new` an existing key is an error."""

    tenant: str
    key: str
    asked: NewSubscription
    is_new: bool = False

    def __call__(self, core: Core, change: StoreChange) -> Definition:
        """Return the subscription."""
        return core.put(self.tenant, self.key, self.asked, self.is_new, change)


class PutSubscriptions(ServiceCommand, frozen=True):
    """Add or replace subscriptions, given by key."""

    tenant: str
    asked: list[tuple[str, NewSubscription]]

    def __call__(self, core: Core, change: StoreChange) -> list[Definition | ContradaError]:
        """Return a subscription or an error for each."""
        return [self._one(core, key, asked, change) for key, asked in self.asked]

    def _one(self, core: Core, key: str, asked: NewSubscription, change: StoreChange) -> Definition | ContradaError:
        try:
            return core.put(self.tenant, key, asked, False, change)
        except ContradaError as error:
            return error


class SetPaused(ServiceCommand, frozen=True):
    """Pause or resume a subscription; a resumed one applies from the next message on."""

    tenant: str
    key: str
    is_paused: bool

    def __call__(self, core: Core, change: StoreChange) -> Definition:
        """Return the subscription."""
        old = core.catalog.require(self.tenant, self.key)
        if old.is_paused == self.is_paused:
            return old
        # Commands of one transaction follow one another: the filter may not be in the store yet.
        name = self.tenant + SEPARATOR + self.key
        filter = change.latest().get((FILTER, name)) or core.store.record(FILTER, name)
        assert filter is not None
        asked = NewSubscription(
            *(old.subscriber, msgspec.json.decode(filter), old.on, old.expires, self.is_paused, None, old.track)
        )
        return core.put(self.tenant, self.key, asked, False, change)


class DeleteSubscription(ServiceCommand, frozen=True):
    """Remove a subscription."""

    tenant: str
    key: str

    def __call__(self, core: Core, change: StoreChange) -> int:
        """Return the last sequence number that it applies to."""
        core.delete(self.tenant, self.key, change)
        return core.last


class Acknowledge(ServiceCommand, frozen=True):
    """Move the cursor of a reader forward."""

    tenant: str
    subscriber: str
    reader: str
    position: Position

    def __call__(self, core: Core, change: StoreChange) -> None:
        """Do it; a cursor that is further already stays."""
        core.cursors.acknowledge(self.tenant, self.subscriber, self.position, change, self.reader)


class SetCursor(ServiceCommand, frozen=True):
    """Put the cursor of a reader at a place, also backwards; None forgets the reader."""

    tenant: str
    subscriber: str
    reader: str
    position: Position | None

    def __call__(self, core: Core, change: StoreChange) -> None:
        """Do it; what retention took stays counted."""
        place = (self.tenant, self.subscriber, self.reader)
        if self.position is None:
            core.cursors.remove(*place, change)
            return
        lost = core.cursors.get(self.tenant, self.subscriber).lost_position  # counted for the subscriber itself too
        old = core.cursors.get(*place)
        core.cursors.put(*place, Cursor(*self.position, old.dropped, *lost), change)


class SetRetention(ServiceCommand, frozen=True):
    """Give a subscriber a retention of its own, within that of the log; what is gone stays gone."""

    tenant: str
    subscriber: str
    kept: KeptFor

    def __call__(self, core: Core, change: StoreChange) -> None:
        """Do it."""
        core.catalog.feeds.of(self.tenant, self.subscriber)
        floor = core.retentions.get(self.tenant, self.subscriber).floor
        core.retentions.put(self.tenant, self.subscriber, structs.replace(self.kept, floor=floor), change)


class WriteRecords(ServiceCommand, frozen=True):
    """Write records of other parts, such as keys and webhooks; with `is_new` only if the first is not there yet."""

    records: list[tuple[str, str, bytes | None]]  # kind, name, and value or None to delete
    is_new: bool = False

    def __call__(self, core: Core, change: StoreChange) -> bool:
        """Return whether they were written."""
        if self.is_new:
            kind, name, _ = self.records[0]
            latest = change.latest()
            known = latest[kind, name] if (kind, name) in latest else core.store.record(kind, name)
            if known is not None:
                return False
        change.records.extend(self.records)
        return True


class TickAnswer(msgspec.Struct, frozen=True):
    """The oldest message that is kept if some were removed, and whether there is more to remove."""

    oldest: int | None
    is_left: bool


class Tick(ServiceCommand, frozen=True):
    """Note acknowledgements, and remove what is past its time, a part of it at once.

    `age` in milliseconds and `bytes` are the retention.
    """

    acknowledged: list[tuple[str, str, str, Position]]  # tenant, subscriber, reader
    age: int
    bytes: int

    def run(self, core: Core, change: StoreChange, sent: Mapping[int, int]) -> TickAnswer:
        """Return what was removed; `sent` are messages of which events were handed out, as `Core.trim` takes them."""
        for tenant, subscriber, reader, position in self.acknowledged:
            core.cursors.acknowledge(tenant, subscriber, position, change, reader)
        tick_links(core, change)
        change.patient = 0  # what could wait has waited long enough
        is_left = core.raise_floors(core.store, sent, change)
        is_left |= core.retain(self.age, self.bytes, core.store, sent, change)
        is_left |= core.trackers.remove_rest(change)
        return TickAnswer(change.trim, is_left)
