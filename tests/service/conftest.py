"""Stores of every kind, on places of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import postgres_server
from contrada.service.store import postgres, sqlite
from contrada.service.store.message_store import MessageStore
from contrada.service.store.postgres import PostgresStore
from contrada.service.store.sqlite import SqliteStore
from postgres_server import PostgresServer


class StorePlace(NamedTuple):
    """Where stores of a kind can be opened, again and again."""

    open: Callable[..., MessageStore]
    migrations: tuple[str, ...]


@pytest.fixture(scope="session")
def postgres_process() -> Iterator[PostgresServer]:
    if reason := postgres_server.missing():
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorePlace]:
    """A place for stores; those that a test leaves open are closed."""
    opened: list[MessageStore] = []
    where: Any
    if request.param == "sqlite":
        where, kind, migrations = tmp_path / "state", SqliteStore, sqlite.MIGRATIONS
    else:
        where = request.getfixturevalue("postgres_process").new_database()
        kind, migrations = PostgresStore, postgres.MIGRATIONS

    def open_store(**arguments: Any) -> MessageStore:
        if request.param == "postgres":
            arguments.setdefault("patience", 0.3)
        store: MessageStore = kind(where, **arguments)
        opened.append(store)
        return store

    yield StorePlace(open_store, migrations)
    for store in opened:
        store.close()


@pytest.fixture
def store(place: StorePlace) -> MessageStore:
    return place.open()
