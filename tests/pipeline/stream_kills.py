"""A stream whose driver is killed (kill -9) at random points: `stream_kills.py PLACE ROUNDS [SEED]`.

Files of messages and of changes keep coming. After each round the stream goes on from its checkpoint; at the end what
is left is read, and the output is checked: every message once, and all of a batch with one version.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MESSAGES = 40  # in a file
START = 180  # seconds until a driver must have written a batch


def renamed(path, write):
    """Write a file that is there whole or not at all."""
    hidden = path.with_name(f".{path.name}")
    write(hidden)
    hidden.rename(path)


class Feed:
    """Messages and changes: file k has ids from k * MESSAGES on, and change k a subscription to all that comes."""

    def __init__(self, place):
        self.messages, self.changes, self.count = place / "messages", place / "changes", 0
        self.messages.mkdir()
        self.changes.mkdir()

    def add(self):
        k, self.count = self.count, self.count + 1
        ids = list(range(k * MESSAGES, (k + 1) * MESSAGES))
        rows = pa.table({"message_id": ids, "size": [id % 7 for id in ids]})
        renamed(self.messages / f"{k:06}.parquet", lambda path: pq.write_table(rows, path))
        if k % 3 == 0:
            record = json.dumps({"key": f"k{k:06}", "filter": "size >= 0"}) + "\n"
            renamed(self.changes / f"{k:06}.ndjson", lambda path: path.write_text(record))


def start(place, *further):
    command = [
        sys.executable, "-m", "contrada.cli.main", "stream", str(place / "messages"), "--changes",
        str(place / "changes"), "--checkpoint", str(place / "checkpoint"), "--output", str(place / "output"),
        "--format", "parquet", "--files", "1", "--master", "local[2]", "--compact-after", "3", *further,
    ]  # fmt: skip
    with (place / "log").open("a") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def batches(place):
    return len(list((place / "output" / "matches").glob("batch=*")))


def killed_round(place, feed, random):
    """Start, let it work for a while, and kill the driver, with its Java side or without."""
    process = start(place)
    wanted = batches(place) + random.randint(1, 4)
    deadline = time.monotonic() + START
    while batches(place) < wanted and time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"the stream ended by itself:\n{(place / 'log').read_text()[-3000:]}")
        if feed.count < batches(place) + 6:
            feed.add()
        time.sleep(0.05)
    time.sleep(random.random() * 1.5)
    done = batches(place)
    assert done >= wanted, "no batch in time"
    if random.random() < 0.5:
        os.kill(process.pid, signal.SIGKILL)  # Java finds out by itself
        time.sleep(random.random())
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return done


def check(place, feed):
    """Every message once with the subscription that was there first, and a batch with one version."""
    seen = Counter()
    keys_of_version = {}
    for path in sorted((place / "output" / "matches").glob("batch=*/*.parquet")):
        table = pq.ParquetFile(path).read()
        versions = set(table.column("version").to_pylist())
        assert len(versions) <= 1, f"{path} has {versions}"
        keys = {}
        for row in table.to_pylist():
            keys.setdefault(row["message_id"], []).append(row["key"])
        for id, found in keys.items():
            assert len(found) == len(set(found)), f"message {id} has a match twice: {found}"
            seen[id] += 1
            (version,) = versions
            assert keys_of_version.setdefault(version, sorted(found)) == sorted(found), f"version {version}"
    expected = range(feed.count * MESSAGES)
    assert sorted(seen) == list(expected), f"lost: {sorted(set(expected) - set(seen))[:10]}"
    assert set(seen.values()) == {1}, "a message is in two batches"
    counts = [len(keys_of_version[version]) for version in sorted(keys_of_version)]
    assert counts == sorted(counts)


def main(place, rounds, seed=0):
    place.mkdir(parents=True, exist_ok=True)
    feed, chosen = Feed(place), random.Random(seed)
    feed.add()
    for number in range(rounds):
        done = killed_round(place, feed, chosen)
        print(f"round {number + 1}: killed after {done} batches, {feed.count} files", flush=True)
    assert start(place, "--once").wait(600) == 0, (place / "log").read_text()[-3000:]
    check(place, feed)
    print(f"{feed.count * MESSAGES} messages in {batches(place)} batches, each once")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *(int(text) for text in sys.argv[3:4]))
