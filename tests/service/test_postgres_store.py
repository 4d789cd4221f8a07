"""PostgresStore when its server goes away: what was written stays, and nothing is written twice."""

import random
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

import postgres_server
from contrada.service.store.message_store import StoreChange, StoredMessage, StoreError
from contrada.service.store.opening import open_store
from contrada.service.store.postgres import LOCK, PostgresStore
from contrada.service.store.sqlite import SqliteStore
from effort import slow
from postgres_server import PostgresServer

SESSIONS = "SELECT pid, application_name FROM pg_stat_activity WHERE application_name LIKE 'contrada %'"
WRITER = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'contrada %'"
EVERYONE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname LIKE 'd%'"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that tests may kill."""
    if reason := postgres_server.missing():
        pytest.skip(reason)
    server = PostgresServer()
    yield server
    server.close()


def change(number: int, size: int = 3) -> StoreChange:
    """The change with a number: messages, and a record that names it."""
    first = (number - 1) * size + 1
    rows = [StoredMessage(k, k, "t", str(k), "f", b"x" * 600, b"", 600 * k) for k in range(first, first + size)]
    return StoreChange(rows, [("k", "last", str(number).encode()), ("k", str(number), b"")])


def check(store: PostgresStore, numbers: list[int], size: int = 3) -> None:
    """Check that a store holds these changes, each once and as a whole, and no others."""
    expected = [row for number in numbers for row in change(number, size).messages]
    assert list(store.messages(0, 1_000_000)) == expected
    names = {name for name, _ in store.records("k")} - {"last"}
    assert names == {str(number) for number in numbers}


def test_a_url_opens_a_store_in_postgresql_and_a_path_one_in_sqlite(server, tmp_path):
    for place, kind in ((server.new_database(), PostgresStore), (str(tmp_path / "state"), SqliteStore)):
        store = open_store(place)
        assert type(store) is kind
        store.close()


def test_a_lost_connection_is_replaced(server):
    store = PostgresStore(server.new_database())
    store.write(change(1))
    server.execute(WRITER)
    store.write(change(2))
    server.execute(EVERYONE)
    assert store.span().newest == 6
    server.execute(EVERYONE)
    assert len(list(store.records("k"))) == 3
    check(store, [1, 2])
    store.close()


def test_a_restart_of_the_server_is_waited_for(server):
    store = PostgresStore(server.new_database(), patience=60)
    store.write(change(1))
    server.stop()
    restart = threading.Thread(target=lambda: (time.sleep(0.3), server.start()))
    restart.start()
    store.write(change(2))
    restart.join()
    check(store, [1, 2])
    store.close()


def test_a_server_that_stays_away_is_an_error_until_it_is_back(server):
    store = PostgresStore(server.new_database(), patience=0.1)
    store.write(change(1))
    server.kill()
    with pytest.raises(StoreError, match="PostgreSQL database d"):
        store.write(change(2))
    for ask in (store.span, store.last_write_done, lambda: list(store.records("k"))):
        with pytest.raises(StoreError):
            ask()
    server.start()
    assert not store.last_write_done()
    store.write(change(2))
    assert store.last_write_done()
    check(store, [1, 2])
    store.close()


def test_a_refused_change_is_not_done(server):
    store = PostgresStore(server.new_database())
    store.write(change(1))
    with pytest.raises(StoreError) as caught:
        store.write(change(1))
    assert "xxx" not in str(caught.value)
    assert not store.last_write_done()
    store.close()


def test_the_writes_of_another_server_are_noticed(server):
    """The connection is lost, another server takes over and writes: changes that do not know of it are refused."""
    url = server.new_database()
    store = PostgresStore(url, patience=0.1)
    store.write(change(1))
    server.execute(WRITER)
    other = PostgresStore(url, patience=0.1)
    other.write(StoreChange(records=[("k", "2", b"")]))
    with pytest.raises(StoreError, match="another server uses this database"):
        store.write(change(3))
    other.close()
    with pytest.raises(StoreError, match="another server wrote"):
        store.write(change(3))
    assert store.span().newest == 3
    store.write(change(2))  # whoever goes on has read the store again
    check(store, [1, 2])
    store.close()


def test_a_change_that_waits_when_its_connection_is_cut_is_written_once(server):
    url = server.new_database()
    store = PostgresStore(url, patience=20)
    store.write(change(1))
    with psycopg.connect(url) as blocking:
        blocking.execute("LOCK TABLE contrada.messages IN EXCLUSIVE MODE")
        writing = threading.Thread(target=store.write, args=(change(2),))
        writing.start()
        while not server.execute(f"{SESSIONS} AND wait_event_type = 'Lock'"):
            time.sleep(0.01)
        server.execute(WRITER)
    writing.join()
    assert store.last_write_done()
    check(store, [1, 2])
    store.close()


def test_an_earlier_session_of_ours_that_keeps_the_lock_is_ended(server):
    """As after a connection that broke without the server noticing."""
    url = server.new_database()
    store = PostgresStore(url, patience=20)
    ((pid, name),) = server.execute(SESSIONS)
    with psycopg.connect(url, application_name=str(name), autocommit=True) as earlier:
        waiting = threading.Thread(target=earlier.execute, args=(f"SELECT pg_advisory_lock({LOCK})".encode(),))
        waiting.start()
        while not server.execute(f"{SESSIONS} AND wait_event_type = 'Lock'"):
            time.sleep(0.01)
        server.execute(f"SELECT pg_terminate_backend({pid})")
        waiting.join()
        store.write(change(1))
        with pytest.raises(psycopg.OperationalError):
            earlier.execute("SELECT 1")
    check(store, [1])
    store.close()


def test_a_server_that_does_not_synchronise_is_refused(server):
    url = server.new_database()
    server.stop()
    server.start(fsync="off")
    with pytest.raises(StoreError, match="fsync"):
        PostgresStore(url)
    server.stop()
    server.start(synchronous_commit="off")
    store = PostgresStore(url)
    store.write(change(1))
    server.kill()
    server.start()
    check(store, [1])
    store.close()


@pytest.mark.parametrize("url", ["postgresql://[", "nonsense", "postgresql:///none?host=/nowhere"])
def test_a_place_that_is_none_is_an_error(url):
    with pytest.raises(StoreError):
        PostgresStore(url, patience=0)


def test_errors_do_not_show_the_password():
    with pytest.raises(StoreError) as caught:
        PostgresStore("postgresql://me:secret@127.0.0.1:1/none", patience=0)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("rounds", [slow(3), slow(12)])
@pytest.mark.parametrize("patience", [0.0, 60.0], ids=["raises", "waits"])
def test_a_killed_server_loses_no_write_and_halves_none(server, rounds, patience):
    """The server is killed during writes, again and again.

    A write that returned is there; one that raised is there or not, as the store says once it is connected again.
    """
    draw = random.Random(rounds)
    url = server.new_database()
    store = PostgresStore(url, patience=patience)
    done: list[int] = []
    number, size = 0, 40
    for _ in range(rounds):
        killed = threading.Event()

        def kill(pause: float = draw.uniform(0.01, 0.3), killed: threading.Event = killed) -> None:
            time.sleep(pause)
            server.kill()
            if patience:
                server.start()
            killed.set()

        killing = threading.Thread(target=kill)
        killing.start()
        is_up = patience > 0
        while not killed.is_set():
            number += 1
            try:
                store.write(change(number, size))
                done.append(number)
            except StoreError:
                assert not patience
                killing.join()
                server.start()
                is_up = True
                if store.last_write_done():
                    done.append(number)
                break
        killing.join()
        if not is_up:
            server.start()
    check(store, done, size)
    assert done
    store.close()
    again = PostgresStore(url)
    check(again, done, size)
    again.close()
