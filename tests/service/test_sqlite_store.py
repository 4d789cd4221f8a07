"""SqliteStore on files that are damaged, read-only or not its own, and on disks that are full or fail."""

import os
import random
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from contrada.service.store.message_store import StoreChange, StoredMessage, StoreError
from contrada.service.store.sqlite import FILE, SqliteStore


def message(sequence: int, size: int = 600) -> StoredMessage:
    body = random.Random(sequence).randbytes(size)
    return StoredMessage(sequence, sequence, "t", str(sequence), "f", body, b"\0", size * sequence)


def filled(directory: Path, count: int = 200) -> None:
    """Make a store with messages, and close it."""
    store = SqliteStore(directory)
    store.write(StoreChange([message(k) for k in range(1, count + 1)], [("k", str(k), b"") for k in range(count)]))
    store.close()


def test_a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1 << 20))
    store = SqliteStore(small_disk / "state")
    done = 0

    def fill() -> None:
        nonlocal done
        while done < 1_000:
            store.write(StoreChange([message(done + 1, 20_000)], [("k", "last", str(done + 1).encode())]))
            done += 1

    with pytest.raises(StoreError, match="full"):
        fill()
    assert 20 < done < 1_000
    for _ in range(3):
        with pytest.raises(StoreError):
            store.write(StoreChange([message(done + 1, 4_000_000)]))
    assert list(store.messages(1, 1_000)) == [message(k, 20_000) for k in range(1, done + 1)]
    assert store.record("k", "last") == str(done).encode()
    ballast.unlink()
    store.write(StoreChange([message(done + 1, 20_000)]))
    store.close()
    store = SqliteStore(small_disk / "state")
    assert list(store.messages(1, 1_000)) == [message(k, 20_000) for k in range(1, done + 2)]
    store.close()


def test_a_store_opens_on_a_full_disk_or_says_why_not(small_disk):
    filled(small_disk / "state")
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4_096))
    with pytest.raises(StoreError):
        SqliteStore(small_disk / "state")
    ballast.unlink()
    store = SqliteStore(small_disk / "state")
    assert store.span() == (1, 200)
    store.close()


def test_a_read_only_directory_is_an_error(tmp_path, read_only):
    place = tmp_path / "place"
    filled(place / "state")
    with read_only(place):
        for directory in (place / "state", place / "new"):
            with pytest.raises(StoreError, match=str(directory)):
                SqliteStore(directory)
    store = SqliteStore(place / "state")
    assert store.span() == (1, 200)
    store.close()


@pytest.mark.parametrize("content", [b"not a database " * 500, b"SQLite format 3\0" + bytes(4_080), os.urandom(8_192)])
def test_a_file_that_is_no_database_is_an_error_and_stays(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(StoreError, match=FILE):
        SqliteStore(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_the_database_of_another_program_is_refused_and_stays(tmp_path):
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("CREATE TABLE messages (mine TEXT)")
    other.close()
    with pytest.raises(StoreError, match="already exists"):
        SqliteStore(tmp_path)
    other = sqlite3.connect(tmp_path / FILE)
    assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["messages"]
    other.close()


def test_a_directory_in_place_of_the_file_and_a_file_in_place_of_the_directory(tmp_path):
    (tmp_path / "a" / FILE).mkdir(parents=True)
    (tmp_path / "b").write_bytes(b"")
    for place in ("a", "b", "b/c"):
        with pytest.raises(StoreError):
            SqliteStore(tmp_path / place)


def read_all(directory: Path) -> None:
    store = SqliteStore(directory)
    try:
        store.messages(0, 1_000)
        list(store.records("k"))
    finally:
        store.close()


@pytest.mark.parametrize("kept", [0.9, 0.5, 0.1])
def test_a_file_that_was_cut_is_an_error(tmp_path, kept):
    filled(tmp_path)
    size = (tmp_path / FILE).stat().st_size
    os.truncate(tmp_path / FILE, int(size * kept) // 4_096 * 4_096)
    with pytest.raises(StoreError):
        read_all(tmp_path)


def test_damaged_pages_are_an_error_or_do_not_matter(tmp_path):
    """Zeros over any page: a StoreError or an answer, never another error."""
    filled(tmp_path / "good")
    content = (tmp_path / "good" / FILE).read_bytes()
    faults = 0
    for page in range(0, len(content), 4_096):
        place = tmp_path / str(page)
        place.mkdir()
        (place / FILE).write_bytes(content[:page] + bytes(4_096) + content[page + 4_096 :])
        try:
            read_all(place)
        except StoreError:
            faults += 1
    assert faults > len(content) / 4_096 / 2


@pytest.mark.parametrize("error", [OSError("the disk is gone"), sqlite3.OperationalError("busy")])
def test_a_commit_that_fails_leaves_nothing(tmp_path, error):
    failures = [error]

    def fail() -> None:
        if failures:
            raise failures.pop()

    store = SqliteStore(tmp_path, before_commit=fail)
    with pytest.raises(StoreError, match=str(error)):
        store.write(StoreChange([message(1)]))
    assert store.newest() is None
    store.write(StoreChange([message(1)]))
    failures.append(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        store.write(StoreChange([message(2)]))
    store.write(StoreChange([message(2)]))
    assert store.span() == (1, 2)
    store.close()


def test_every_commit_is_asked_to_wait(tmp_path):
    commits: list[int] = []
    store = SqliteStore(tmp_path, before_commit=lambda: commits.append(1))
    for k in (1, 2, 3):
        store.write(StoreChange([message(k)]))
    store.close()
    assert len(commits) == 3
