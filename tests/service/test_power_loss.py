"""Nothing acknowledged is lost by a power cut, as far as fsync goes.

A recorder (tests/support/power_loss) notes every write and fsync of a process that writes through SqliteStore; a model
of a disk rebuilds files as after a cut at any moment: what was synchronised, and any part of everything else.
"""

import random
import re
import shutil
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from contrada.service.store.message_store import StoreChange, StoredMessage
from contrada.service.store.sqlite import SqliteStore
from effort import slow
from power_loss import recording
from power_loss.disk import Disk
from power_loss.recording import Call
from power_loss.writer import KIND, changes, mark

WRITER = ("-m", "power_loss.writer")
State = tuple[list[StoredMessage], dict[str, bytes]]


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := recording.missing():
        pytest.skip(reason)
    return recording.compile_recorder(tmp_path_factory.mktemp("recorder"))


def after(state: State, change: StoreChange) -> State:
    """The state of a store after a change."""
    messages, records = [*state[0], *change.messages], dict(state[1])
    if change.trim is not None:
        messages = [one for one in messages if one.sequence >= change.trim] or messages[-1:]
    for _, name, value in change.records:
        records.pop(name, None)
        if value is not None:
            records[name] = value
    return messages, records


def states(seed: int, count: int) -> list[State]:
    """The states of a store before, between and after changes."""
    return list(accumulate(changes(seed, count), after, initial=([], {})))


def acknowledged(calls: Sequence[Call]) -> list[int]:
    """The number of acknowledged changes after each call."""
    return list(accumulate(call.data.startswith(b"acknowledged") for call in calls))


def state_of(directory: Path) -> State:
    store = SqliteStore(directory)
    try:
        return list(store.messages(0, 1 << 40)), dict(store.records(KIND))
    finally:
        store.close()


def cuts(calls: list[Call], below: Path, count: int, draw: random.Random, folder: Path) -> Any:
    """Rebuild the files of random moments; yield the number of changes that were acknowledged, and the directory."""
    done = acknowledged(calls)
    moments = sorted(draw.sample(range(len(calls) + 1), min(count, len(calls) + 1)))
    disk, applied = Disk(below), 0
    for moment in moments:
        for call in calls[applied:moment]:
            disk.apply(call)
        applied = moment
        target = folder / f"cut{moment}"
        disk.rebuild(target, draw)
        yield done[moment - 1] if moment else 0, target / "new" / "state"
        shutil.rmtree(target)


@pytest.mark.parametrize(("seed", "count", "moments"), [(1, 400, 12), slow(2, 1_500, 400)])
def test_every_acknowledged_change_survives_a_power_cut(recorder, tmp_path, seed, count, moments):
    below = tmp_path / "disk"
    below.mkdir()
    calls = recording.record(recorder, below, *WRITER, below / "new" / "state", seed, count)
    assert acknowledged(calls)[-1] == count
    copied = [call for call in calls if call.kind == "w" and call.path.endswith(".sqlite")]
    assert len(copied) > 1_000  # the log was copied into the file several times meanwhile
    expected = states(seed, count)
    found_later = 0
    for done, directory in cuts(calls, below, moments, random.Random(seed), tmp_path):
        found = state_of(directory)
        is_expected = found in expected[done : done + 2]
        assert is_expected, f"{done} changes were acknowledged"  # pytest would compare megabytes for its report
        found_later += found != expected[done]
    # A change that was cut off before its acknowledgement may be there: as a whole.
    assert found_later < moments


def test_the_model_notices_a_store_that_does_not_synchronise(recorder, tmp_path):
    below = tmp_path / "disk"
    below.mkdir()
    calls = recording.record(recorder, below, *WRITER, below / "new" / "state", 1, 60, "careless")
    messages = [found for found, _ in states(1, 60)]
    lost = 0
    for done, directory in cuts(calls, below, 12, random.Random(1), tmp_path):
        try:
            lost += len(state_of(directory)[0]) < len(messages[done])
        except Exception:  # a damaged file is a loss as well
            lost += 1
    assert lost


def covered(calls: Sequence[tuple[str, str, str]], seed: int, count: int) -> None:
    """Check that each message was written and then synchronised, in the same file, before its acknowledgement."""
    syncs: dict[str, list[int]] = {}
    written: dict[str, tuple[int, str]] = {}  # where a message was written first
    ends: dict[int, int] = {}
    for place, (kind, path, data) in enumerate(calls):
        if kind == "s":
            syncs.setdefault(path, []).append(place)
        elif kind == "w":
            for found in re.findall(r"<message \d{8}>", data):
                written.setdefault(found, (place, path))
        elif kind == "p" and data.startswith("acknowledged"):
            ends[len(ends) + 1] = place
    assert len(ends) == count
    checked = 0
    for number, change in enumerate(changes(seed, count), 1):
        for message in change.messages:
            place, path = written[mark(message.sequence)]
            sync = syncs[path][bisect_left(syncs[path], place)]
            assert place < sync < ends[number], message.sequence
            checked += 1
    assert checked > count


def test_an_fsync_covers_each_message_before_its_acknowledgement(recorder, tmp_path):
    below = tmp_path / "disk"
    below.mkdir()
    calls = recording.record(recorder, below, *WRITER, below / "state", 5, 200)
    covered([(call.kind, call.path, call.data.decode("latin-1")) for call in calls], 5, 200)


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_strace_sees_the_same(tmp_path):
    trace = tmp_path / "trace"
    command = ["strace", "-f", "-y", "-s", "100000", "-e", "trace=pwrite64,write,fsync,fdatasync", "-o", trace]
    arguments = (*WRITER, tmp_path / "state", 6, 60)
    done = subprocess.run([*command, sys.executable, "-B", *map(str, arguments)], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    calls = []
    kinds = {"pwrite64": "w", "write": "p", "fsync": "s", "fdatasync": "s"}
    for line in trace.read_text().splitlines():
        if found := re.match(r'\d+ +(\w+)\((\d+)<(.*?)>(?:, "(.*)"[^"]*)?\) += \d+', line):
            name, file, path, data = found.groups()
            if name != "write" or file == "1":
                calls.append((kinds[name], path, data or ""))
    covered(calls, 6, 60)
