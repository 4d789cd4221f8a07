"""The engine's transactions: records that can wait are written with the next one, in order, or with the next tick."""

import threading
import time
from contextlib import contextmanager

import pytest

from contrada.service.catalog import FeedPlaces
from contrada.service.commands import Tick
from contrada.service.core import Core
from contrada.service.engine import Engine
from contrada.service.store.message_store import StoreError
from contrada.service.store.sqlite import SqliteStore

SECONDS = 30


class Answers:
    """Waits for what an engine answers."""

    def __init__(self):
        self._answers, self._some = {}, threading.Condition()

    def __call__(self, committed):
        with self._some:
            self._answers.update(committed.answers)
            self._some.notify_all()

    def of(self, ticket):
        with self._some:
            assert self._some.wait_for(lambda: ticket in self._answers, SECONDS)
            return self._answers[ticket]


@contextmanager
def engine(directory, **options):
    store, answers = SqliteStore(directory, **options), Answers()
    running = Engine(store, lambda: Core(store, lambda: time.time_ns() // 1_000_000, FeedPlaces()), answers)
    running.start()
    try:
        yield store, running, answers
    finally:
        running.stop()
        store.close()


def note(*records, patient=0):
    """Work that notes records, of which some can wait."""

    def work(core, change):
        change.records.extend(records)
        change.patient += patient
        return "noted"

    return work


def tick(core, change):
    return Tick([], 1 << 40, 1 << 40).run(core, change, {})


@pytest.mark.parametrize("next_work", [note(("k", "b", b"2"), ("k", "a", b"3")), tick], ids=["a transaction", "a tick"])
def test_records_that_can_wait_are_written_with_what_comes_next(tmp_path, next_work):
    commits = []
    with engine(tmp_path, before_commit=lambda: commits.append(1)) as (store, running, answers):
        running.do("first", note(("k", "a", b"1"), ("k", "c", b"1"), patient=2))
        assert answers.of("first") == "noted"
        assert not commits
        assert not store.names("k")
        running.do("next", next_work)
        answers.of("next")
        assert len(commits) == 1
        found = dict(store.records("k"))
        assert found.pop("c") == b"1"
        assert found == ({"a": b"1"} if next_work is tick else {"a": b"3", "b": b"2"})


def test_records_that_waited_are_dropped_with_the_core_that_noted_them(tmp_path):
    fails = False

    def fail():
        if fails:
            raise OSError("no space left")

    with engine(tmp_path, before_commit=fail) as (store, running, answers):
        running.do("waits", note(("k", "a", b"1"), patient=1))
        answers.of("waits")
        fails = True
        running.do("fails", note(("k", "b", b"1")))
        assert isinstance(answers.of("fails"), StoreError)
        fails = False
        running.do("goes on", note(("k", "c", b"1")))
        assert answers.of("goes on") == "noted"
        assert store.names("k") == ["c"]
