"""Stores of every kind, on places of their own."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import postgres_server
from contrada.service.store import postgres, sqlite
from contrada.service.store.message_store import MessageStore
from contrada.service.store.postgres import PostgresStore
from contrada.service.store.sqlite import SqliteStore
from effort import slow
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


@pytest.fixture(params=["sqlite", slow("postgres")])
def store_flags(request: pytest.FixtureRequest) -> Callable[[str], dict[str, str]]:
    """The settings with which the server of a name, started again and again, has a store of its own."""
    if request.param == "sqlite":
        return lambda name: {}
    server: PostgresServer = request.getfixturevalue("postgres_process")
    urls: dict[str, str] = {}

    def flags(name: str) -> dict[str, str]:
        if name not in urls:
            urls[name] = server.new_database()
        return {"store": urls[name]}

    return flags


@pytest.fixture
def store(place: StorePlace) -> MessageStore:
    return place.open()


IS_ROOT = os.geteuid() == 0 and shutil.which("mount") is not None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if not IS_ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place]).returncode:
        pytest.skip("a disk of 4 MB cannot be mounted")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def read_only() -> Callable[[Path], AbstractContextManager[None]]:
    """A context manager that makes a directory read-only, also for root."""

    @contextmanager
    def make(place: Path) -> Iterator[None]:
        directories = [one for one in (place, *place.rglob("*")) if one.is_dir()]
        for one in directories:
            one.chmod(0o500)
        # Root may write everywhere, unless the disk is read-only.
        mount = ["mount", "--bind", "-o", "ro", place, place]
        if IS_ROOT and subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("a read-only disk cannot be mounted")
        try:
            yield
        finally:
            if IS_ROOT:
                subprocess.run(["umount", "-l", place], check=True)
            for one in directories:
                one.chmod(0o700)

    return make
