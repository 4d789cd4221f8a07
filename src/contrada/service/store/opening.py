"""Opens the store that a place names: a directory, or the URL of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from contrada.installation import missing
from contrada.service.store.message_store import MessageStore, StoreError
from contrada.service.store.sqlite import SqliteStore

POSTGRES = ("postgresql://", "postgres://")


def open_store(place: str) -> MessageStore:
    """Return the store of a directory or a PostgreSQL URL; raise StoreError if it cannot be opened."""
    if not place.startswith(POSTGRES):
        return SqliteStore(Path(place))
    try:
        from contrada.service.store.postgres import PostgresStore
    except ImportError as error:
        raise StoreError(missing("a store in PostgreSQL needs psycopg", "postgres")) from error
    return PostgresStore(place)
