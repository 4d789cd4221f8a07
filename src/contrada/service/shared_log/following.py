"""Following: what a server does for all that follow its log: duties, snapshots, and settings they agree on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from contrada.service.commands import ServiceCommand
from contrada.service.shared_log.duties import CLAIM_LASTS, SNAPSHOT, Claim, Holder, Mark, NoteSnapshot, SetTerms, Terms
from contrada.service.shared_log.shared_engine import SharedEngine
from contrada.service.shared_log.shared_log import SharedLogError
from contrada.service.shared_log.snapshots import write_snapshot
from contrada.service.store.message_store import MessageStore
from contrada.service.store.sqlite import SqliteStore

SNAPSHOT_LASTS = 600_000  # milliseconds that a server has to copy its store before another one may do it


class Following:
    """The part of one server in a shared log; `do` runs a command, `name` is what others call the server."""

    def __init__(
        self, engine: SharedEngine, store: MessageStore, do: Callable[[ServiceCommand], Awaitable[Any]], name: str
    ) -> None:
        self._engine, self._store, self._do, self.name = engine, store, do, name

    @property
    def origin(self) -> str:
        """What tells this run of the server from all others."""
        return self._engine.origin

    @property
    def fault(self) -> str | None:
        """Why the log cannot be reached, or its records not be applied, at the moment; None if all is well."""
        found = self._engine.fault
        return None if found is None else str(found)

    @property
    def position(self) -> int:
        """The position up to which the log is applied."""
        return self._engine.core.place.position

    @property
    def rematched(self) -> int:
        """The number of messages that were matched again, because the table had changed before they came."""
        return self._engine.core.rematched

    @property
    def foreign(self) -> int:
        """The number of records that no server wrote."""
        return self._engine.foreign

    @property
    def lost(self) -> str | None:
        """Why this server can never follow the log again, but from a newer snapshot; None if it can."""
        return self._engine.log.lost()

    async def agree(self, terms: Terms) -> None:
        """Apply what the log holds now; raise SharedLogError unless the other servers have the same settings."""
        agreed: Terms = await self._do(SetTerms(terms))
        if agreed != terms:
            raise SharedLogError(f"the servers of this log have {agreed}, but the settings here say {terms}")

    async def catch_up(self) -> None:
        """Apply what the log holds now."""
        await self._do(Mark())

    async def claim(self, duty: str, lasts: int = CLAIM_LASTS) -> Holder | None:
        """Ask for a duty, for some milliseconds; return who has it now."""
        holder: Holder | None = await self._do(Claim(duty, self.origin, self.name, lasts))
        return holder

    def holder(self, duty: str) -> Holder | None:
        """Return who has had a duty last."""
        return self._engine.core.place.holders.get(duty)

    async def save_snapshot(self, least: int) -> None:
        """Put a copy of the store into the log if it has grown by `least` bytes and as many as the last, and cut it."""
        place = self._engine.core.place
        if place.grown < max(least, place.size):
            return
        assert isinstance(self._store, SqliteStore)
        holder = await self.claim(SNAPSHOT, SNAPSHOT_LASTS)
        if holder is None or holder.origin != self.origin:
            return
        try:
            noted = NoteSnapshot(*await asyncio.to_thread(write_snapshot, self._store, self._engine.log))
            useless: int = await self._do(noted)
            await asyncio.to_thread(self._engine.log.trim, useless)
        finally:
            await self.claim(SNAPSHOT, 0)
