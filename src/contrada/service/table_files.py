"""TableFiles: the brokers' tables on disk, so that a restart reads arrays in place of building them from records."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from contrada.broker.broker import Broker
from contrada.broker.saved_entries import SavedEntries
from contrada.errors import TableError
from contrada.service.store.message_store import MessageStore, StoreChange

TABLE = "table"  # kind of the records: the directory of a tenant's table
MIN_CHANGES = 1_000  # subscriptions that came or went since a table was saved, at least, before it is saved again
SHARE_OF_CHANGES = 10  # ... and a tenth of all


class TableFiles:
    """Saved tables, each in a directory of its own that the store names.

    A store that is older than a table, such as a restored copy, names another directory, so the two never mix.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changes: dict[str, int] = {}

    def open(self, store: MessageStore, tenant: str) -> SavedEntries | None:
        """Return a tenant's saved table; None if there is none that is whole."""
        name = store.record(TABLE, tenant)
        try:
            return None if name is None else SavedEntries.open(self._directory / name.decode())
        except TableError:
            return None

    def note_change(self, tenant: str) -> None:
        """Count a subscription that came or went."""
        self._changes[tenant] = self._changes.get(tenant, 0) + 1

    def due(self, sizes: dict[str, int], is_last: bool) -> list[str]:
        """Return the tenants whose tables should be saved now; at the end of a run all that changed."""
        return [
            tenant
            for tenant, count in self._changes.items()
            if is_last or count >= max(MIN_CHANGES, sizes.get(tenant, 0) // SHARE_OF_CHANGES)
        ]

    def begin(self, tenant: str, broker: Broker) -> Path:
        """Save a table, while commands go on; return its directory."""
        self._changes.pop(tenant, None)
        self._directory.mkdir(parents=True, exist_ok=True)
        directory = self._directory / secrets.token_hex(8)
        directory.mkdir()
        broker.save_table(directory)
        return directory

    def complete(self, tenant: str, broker: Broker, directory: Path, change: StoreChange) -> None:
        """Complete a saved table between commands; it counts from the commit of `change` on."""
        broker.save_entries(directory)
        change.records.append((TABLE, tenant, directory.name.encode()))

    def remove_others(self, store: MessageStore) -> None:
        """Remove the directories that no record names."""
        named = {value.decode() for _, value in store.records(TABLE)}
        for directory in self._directory.glob("*") if self._directory.is_dir() else ():
            if directory.name not in named:
                shutil.rmtree(directory, ignore_errors=True)
