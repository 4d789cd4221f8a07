"""Versions of subscriptions without Spark: ends at any point, two drivers, very many changes, tables that fail."""

import threading
from unittest import mock

import pytest

import contrada as ct
from console import read_lines
from contrada.pipeline.storage import Storage
from contrada.pipeline.stream import version_log as versions
from contrada.pipeline.stream import worker as versioned
from effort import slow


def subscribed(*keys):
    """Changes that subscribe: each two keys in the order of the alphabet have one subscriber."""
    return [{"key": key, "subscriber": subscriber_of(key), "filter": "size > 1"} for key in keys]


def subscriber_of(key):
    return f"s{ord(key[-1]) // 2}"


def answer(driver, version):
    """What a worker finds with a version."""
    ready = versioned.ready_table(version, driver.place.where)
    rows = ready.opened.table.match_keys({"size": 5}).rows
    found = ready.writer(version.artifact, "subscription").names(rows).to_pylist()
    assert all(item["subscriber"] == subscriber_of(item["key"]) for item in found)
    assert {item["subscriber"] for item in found} == set(ready.opened.table.match({"size": 5}))
    return sorted(item["key"] for item in found)


class End(BaseException):
    """The driver ends here."""


EXPECTED = {0: ["a", "b"], 1: ["b", "c"], 2: ["b", "c", "d", "e"], 3: ["b", "c", "e"]}


def play(home, state):
    """A driver that runs the batches from the first that is not committed on, as Spark would."""
    driver = state["driver"] = home.driver(compact_after=2)
    for batch in range(state["committed"] + 1, 4):
        if batch not in state["come"]:
            state["come"].add(batch)
            given = [subscribed("a", "b"), [*subscribed("c"), {"action": "unsubscribe", "key": "a"}],
                     subscribed("d", "e"), [{"action": "unsubscribe", "key": "d"}]]  # fmt: skip
            home.change(f"{batch}.ndjson", *given[batch])
        driver.committed(batch)
        found = answer(driver, driver.of_batch(batch))
        assert state["answers"].setdefault(batch, found) == found, "a batch that comes again is what it was"
        driver.wait()
        state["committed"] = batch
    driver.committed(4)
    return driver


@pytest.mark.parametrize("step", [6, slow(1)])
def test_the_end_may_come_between_any_two_writes(make_home, tmp_path_factory, monkeypatch, step):
    steps = {"left": 10**9, "done": 0}

    def counted(method):
        def wrapped(self, *arguments):
            steps["done"] += 1
            steps["left"] -= 1
            if steps["left"] < 0:
                raise End
            return method(self, *arguments)

        return wrapped

    monkeypatch.setattr(Storage, "write", counted(Storage.write))
    monkeypatch.setattr(Storage, "remove", counted(Storage.remove))
    total = 1
    for last in [10**9, *range(0, 1000, step)]:
        if last < 10**9 and last >= total:
            break
        home = make_home(tmp_path_factory.mktemp("end"))
        state = {"committed": -1, "come": set(), "answers": {}}
        steps.update(left=last, done=0)
        try:
            driver = play(home, state)
        except End:
            steps["left"] = 10**9
            if "driver" in state:
                state["driver"].wait()  # its threads would have ended with it
            driver = play(home, state)
        else:
            total = steps["done"]
            assert last == 10**9
        assert state["answers"] == EXPECTED, f"ended before write {last}"
        assert home.names("versions") == [f"{driver.current.number}.json"]
        assert home.names("segments") == [f"{number}.ndjson" for number in driver.current.segments]
        assert home.names("batches") == []
        assert driver.current.artifact.digest in home.names("artifacts")
    assert total > 20


def test_of_two_drivers_the_later_goes_on(home):
    first = home.driver()
    first.of_batch(0)
    second = home.driver()
    home.change("1.ndjson", *subscribed("a"))
    for late in (lambda: first.of_batch(1), first.check_driver, lambda: first.committed(2)):
        with pytest.raises(ct.ContradaError, match="another driver"):
            late()
    assert second.of_batch(1).number == 1
    assert home.names("versions") == ["0.json", "1.json"]


def test_very_many_changes_are_a_table(home, monkeypatch):
    home.change("1.ndjson", *subscribed("a", "b", "c", "d"), {"key": "bad", "filter": "size >"})
    driver = home.driver(segment_records=3)
    version = driver.of_batch(0)
    assert (version.number, version.segments, version.subscriptions) == (1, (), 4), "the first batch waits for them"
    assert answer(driver, version) == ["a", "b", "c", "d"]
    assert home.names("rejected_changes") == ["1.ndjson"]
    home.change("2.ndjson", *subscribed("e", "f", "g", "h"))
    home.change("3.ndjson", {"action": "unsubscribe", "key": "h"})
    publish = mock.Mock(wraps=versions.publish)
    monkeypatch.setattr(versions, "publish", publish)
    version = driver.of_batch(1)
    home.change("4.ndjson", {"action": "unsubscribe", "key": "g"})
    driver.wait()
    driver.committed(2)
    version = driver.of_batch(2)
    assert answer(driver, version) == ["a", "b", "c", "d", "e", "f", "g"]
    version = driver.of_batch(3)
    assert answer(driver, version) == ["a", "b", "c", "d", "e", "f"], "what came meanwhile comes after"
    publish.assert_called_once()
    again = home.driver(segment_records=3)
    assert answer(again, again.of_batch(3)) == ["a", "b", "c", "d", "e", "f"]


def test_batches_go_on_while_very_many_changes_are_applied(home, monkeypatch):
    driver = home.driver(segment_records=3)
    driver.of_batch(0)
    home.change("1.ndjson", *subscribed("a", "b", "c", "d"))
    gate, apply_all = threading.Event(), versions.apply_changes

    def delayed(*arguments):
        gate.wait(60)
        return apply_all(*arguments)

    monkeypatch.setattr(versions, "apply_changes", delayed)
    assert driver.of_batch(1).number == 0
    driver.committed(2)
    assert driver.of_batch(2).number == 0
    gate.set()
    driver.wait()
    assert driver.of_batch(3).number == 1


def test_very_many_changes_that_cannot_be_kept_end_the_stream(home):
    home.change("1.ndjson", *subscribed("a", "b", "c", "d"))
    driver = home.driver(segment_records=3)
    full = mock.patch.object(versions, "publish", side_effect=OSError("no space left"))
    with full, pytest.raises(OSError, match="no space"):
        driver.of_batch(0)
    driver = home.driver(segment_records=3)
    assert answer(driver, driver.of_batch(0)) == ["a", "b", "c", "d"]


def test_a_compaction_that_fails_is_told_and_tried_again(home):
    compact = mock.Mock(wraps=home.compact, side_effect=[OSError("no space left"), mock.DEFAULT])
    driver = home.driver(compact, compact_after=2)
    home.change("1.ndjson", *subscribed("a", "b"))
    driver.of_batch(0)
    driver.wait()
    version = driver.of_batch(1)
    assert (driver.failed_compactions, driver.compactions, version.segments) == (1, 0, (1,))
    driver.wait()
    version = driver.of_batch(2)
    assert (driver.compactions, version.number, version.segments) == (1, 1, ()), "without waiting for changes"
    assert answer(driver, version) == ["a", "b"]


def test_a_file_that_changes_after_it_was_read_is_told_of_once(home):
    driver = home.driver()
    half = home.changes / "1.ndjson"
    half.write_text('{"key": "a", "filter": "size > 1"}\n{"key": "b", "fil')
    driver.of_batch(0)
    assert driver.rejected == 1, "the half of a record"
    with half.open("a") as file:
        file.write('ter": "size > 1"}\n')
    version = driver.of_batch(1)
    assert driver.rejected == 2
    (told,) = read_lines(home.kept / "rejected_changes" / f"{version.number}.ndjson")
    assert "not read again" in told["reason"]
    driver.of_batch(2)
    assert driver.rejected == 2
    half.unlink()
    assert driver.of_batch(3).state == {}


def test_what_was_begun_and_not_ended_is_removed(home):
    home.driver()
    (home.kept / "artifacts" / ".new-table").mkdir()
    (home.kept / "versions" / ".new-1").touch()
    home.driver()
    assert not [name for name in home.names("artifacts") + home.names("versions") if name.startswith(".")]


def test_executors_are_told_of_the_last_tables_that_went(home):
    driver = home.driver(compact_after=1, retired_tables=3)
    for number in range(6):
        home.change(f"{number}.ndjson", *subscribed(f"k{number}"))
        driver.committed(number)
        driver.of_batch(number)
        driver.wait()
    driver.of_batch(6)
    driver.committed(7)
    assert len(driver.retired) == 3
    assert driver.current.artifact.digest not in driver.retired


def test_the_version_of_a_batch_is_written_before_it_runs(home):
    driver = home.driver()
    home.change("1.ndjson", *subscribed("a"))
    assert driver.of_batch(0).number == 1
    home.change("2.ndjson", *subscribed("b"))
    assert driver.of_batch(0).number == 1, "asked again, the batch has what it had"
    again = home.driver()
    assert again.of_batch(0).number == 1
    assert again.of_batch(1).number == 2
    again.committed(1)
    assert home.names("versions") == ["2.json"]
    with pytest.raises(ct.ContradaError, match="no version 1"):
        again.read(1)
