"""A stream of which parts are killed (kill -9) at random points: `stream_kills.py MODE PLACE ROUNDS [SEED]`.

Modes: `driver` kills the driver of a stream from files to files, `kafka` that of one from Kafka to Kafka, `executor`
executors and Python workers of a cluster with two hosts, from files to files. Messages and changes of subscriptions
keep coming. A driver that ended goes on from its checkpoint; at the end what is left is read, and the output is
checked: every message is there, in files once and in Kafka with copies only that are equal, and all of a batch with
one version.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import kafka_broker
import pyarrow as pa
import pyarrow.parquet as pq

import cluster
from console import python, read_lines, write_lines

MESSAGES = 40  # in a file, or in a batch of Kafka
START = 300  # seconds until a driver must have committed a batch
KAFKA_BATCHES = 12  # for every round


EVERYTHING = "size >= 0 OR size IS NULL"
FIRST = [{"key": f"first-{k}", "subscriber": "s0", "filter": EVERYTHING} for k in range(3)]  # what a stream begins with
FIRST_KEYS = {record["key"] for record in FIRST}


def size_of(id):
    return id % 7 if id % 10 else None


class Files:
    """Files of messages and of changes: file k has ids from k * MESSAGES on, change k asks for all that comes."""

    def __init__(self, place, master="local[2]", environment=None):
        self.place, self.master, self.environment, self.count = place, master, environment, 0
        self.pace = 1.5  # seconds that the last batch took
        (place / "messages").mkdir(parents=True)
        (place / "changes").mkdir()
        write_lines(place / "subscriptions.ndjson", FIRST)
        self.add()

    @property
    def messages(self):
        return self.count * MESSAGES

    def add(self):
        k, self.count = self.count, self.count + 1
        ids = list(range(k * MESSAGES, (k + 1) * MESSAGES))
        hidden, path = (self.place / "messages" / f"{dot}{k:06}.parquet" for dot in (".", ""))
        pq.write_table(pa.table({"message_id": ids, "size": list(map(size_of, ids))}), hidden)
        hidden.rename(path)  # it is there whole or not at all
        if k % 3 == 0:
            self.change(k)

    def change(self, k):
        record = {"key": f"k{k:06}", "subscriber": f"s{k % 4}", "filter": EVERYTHING}
        write_lines(self.place / "changes" / f"{k:06}.ndjson", [record])

    def more(self):
        """Let there always be something to read."""
        if self.count < self.batches() + 6:
            self.add()

    def arguments(self):
        return [self.place / "messages", "--output", self.place / "output", "--format", "parquet", "--files", "1"]

    def start(self, *further):
        command = [
            sys.executable, "-m", "contrada.cli.main", "stream", *self.arguments(),
            self.place / "subscriptions.ndjson", "--changes", self.place / "changes",
            "--checkpoint", self.place / "checkpoint", "--master", self.master,
            "--compact-after", "3", *further,
        ]  # fmt: skip
        with (self.place / "log").open("a") as log:
            return subprocess.Popen(
                list(map(str, command)), stdout=log, stderr=log, start_new_session=True, env=self.environment
            )

    def batches(self):
        """How many are committed."""
        names = (path.name for path in (self.place / "checkpoint" / "commits").glob("*"))
        return max((int(name) + 1 for name in names if name.isdigit()), default=0)

    def finish(self, *further):
        """Read what is left."""
        assert self.start("--once", *further).wait(900) == 0, self.said()

    def said(self):
        return (self.place / "log").read_text()[-3000:]

    def check(self):
        """Every message once, and a batch with one version."""
        seen, keys = Counter(), {}
        for path in sorted((self.place / "output" / "matches").glob("batch=*/*.parquet")):
            rows = [(row["message_id"], row["key"], row["version"]) for row in pq.ParquetFile(path).read().to_pylist()]
            assert len({version for _, _, version in rows}) <= 1, f"{path} has several versions"
            seen.update(check_rows(rows, keys))
        check_all(seen, keys, self.messages)
        assert set(seen.values()) == {1}, "a message is in two batches"
        return "each once"


class Topics(Files):
    """Messages in a topic of Kafka, all there from the beginning, and matches in another."""

    def __init__(self, place, rounds, servers, jars):
        self._count, self._servers, self._jars = rounds * KAFKA_BATCHES, servers, jars
        super().__init__(place)
        texts = [{"id": id, "size": size_of(id)} for id in range(self.messages)]
        self._driver("send", write_lines(place / "texts", texts), "alerts")

    def _driver(self, action, path, topic):
        script = Path(__file__).with_name("kafka_driver.py")
        python(script, action, self._servers, self._jars, path, topic)

    @property
    def messages(self):
        return self._count * MESSAGES

    def add(self):
        k, self.count = self.count, self.count + 1
        if k % 6 == 0:
            self.change(k)

    def more(self):
        assert self.batches() < self._count, "all messages are read before the rounds are over"
        super().more()

    def arguments(self):
        topics = ["kafka:alerts", "--output", "kafka:matches", "--servers", self._servers, "--jars", self._jars]
        return [*topics, "--id", "id", "--records", MESSAGES]

    def finish(self):
        super().finish("--records", 20 * MESSAGES)  # there may be many left: the last of two options counts

    def check(self):
        """Every message with all its matches, and copies that are equal; how many there are."""
        self._driver("read", self.place / "found", "matches")
        lines = read_lines(self.place / "found")
        distinct = {}
        for line in lines:
            same = distinct.setdefault((line["message_id"], line["key"]), line)
            assert same == line, f"records of one match differ: {same}, {line}"
        rows = [(int(id), key, line["version"]) for (id, key), line in distinct.items()]
        keys = {}
        seen = check_rows(rows, keys)
        check_all(seen, keys, self.messages)
        return f"{len(lines)} records, {len(lines) - len(rows)} of them copies"


def check_rows(rows, keys_of_version):
    """The messages of rows: each has one version, and just the keys that the version has."""
    keys, versions = {}, {}
    for id, key, version in rows:
        keys.setdefault(id, []).append(key)
        assert versions.setdefault(id, version) == version, f"message {id} has versions {versions[id]} and {version}"
    for id, found in keys.items():
        assert len(found) == len(set(found)), f"message {id} has a match twice: {found}"
        expected = keys_of_version.setdefault(versions[id], sorted(found))
        assert expected == sorted(found), f"message {id} has not all of version {versions[id]}"
    return Counter(keys.keys())


def check_all(seen, keys_of_version, count, first=FIRST_KEYS):
    """Every message is there, and versions gain subscriptions and keep those that a stream begins with."""
    lost = set(range(count)) - set(seen)
    assert not lost, f"lost: {sorted(lost)[:10]}"
    assert len(seen) == count, "there is more than was sent"
    counts = [len(keys_of_version[version]) for version in sorted(keys_of_version)]
    assert counts == sorted(counts), "a later version has fewer subscriptions"
    assert all(first <= set(keys) for keys in keys_of_version.values()), "a starting subscription is lost"


def work(process, feed, chosen):
    """Let a stream commit some batches, and go on for a moment; whether it is still there."""
    seen = feed.batches()
    wanted, moment = seen + chosen.randint(1, 4), None
    deadline = time.monotonic() + START
    while feed.batches() < wanted and time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if feed.batches() > seen:
            now, seen = time.monotonic(), feed.batches()
            feed.pace, moment = feed.pace if moment is None else now - moment, now
        feed.more()
        time.sleep(0.05)
    assert feed.batches() >= wanted, f"no batch in time:\n{feed.said()}"
    # Anywhere in the next batch, also between its output and its commit, however slow the machine is.
    time.sleep(chosen.random() * 1.2 * feed.pace)
    return process.poll() is None


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_drivers(feed, rounds, chosen):
    """Kill the driver in every round, with its Java side or a little before it."""
    for number in range(rounds):
        process = feed.start()
        try:
            assert work(process, feed, chosen), f"the stream ended by itself:\n{feed.said()}"
            if chosen.random() < 0.5:
                os.kill(process.pid, signal.SIGKILL)  # Java finds out by itself
                time.sleep(chosen.random())
        finally:
            end(process)
        print(f"round {number + 1}: driver killed after {feed.batches()} batches", flush=True)


PARTS = {"executor": b"CoarseGrainedExecutorBackend", "Python worker": b"pyspark.daemon"}


def parts(workers):
    """Processes that the workers of a cluster have started: executors, and their Python workers."""
    found = {kind: [] for kind in PARTS}
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            session = int((path / "stat").read_text().rpartition(")")[2].split()[3])
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        for kind, word in PARTS.items():
            if session in workers and word in command:
                found[kind].append(int(path.name))
    return found


def kill_executors(feed, rounds, chosen, workers):
    """Kill an executor or a Python worker in every round. If a task failed four times, the stream is started again."""
    process = feed.start()
    try:
        for number in range(rounds):
            while not work(process, feed, chosen):
                print(f"the stream ended and goes on: {feed.said().strip().splitlines()[-1][:200]}", flush=True)
                process = feed.start()
            kind = "executor" if number % 2 == 0 else "Python worker"
            found = parts(workers)[kind]
            assert found, f"there is no {kind}"
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen.choice(found), signal.SIGKILL)
            print(f"round {number + 1}: {kind} killed, one of {len(found)}, after {feed.batches()}", flush=True)
        work(process, feed, chosen)
    finally:
        end(process)


def main(mode, place, rounds, seed=0):
    place.mkdir(parents=True, exist_ok=True)
    chosen = random.Random(seed)
    with contextlib.ExitStack() as stack:
        if mode == "kafka":
            jars = kafka_broker.jars()
            servers = stack.enter_context(kafka_broker.broker(jars.broker, place))
            feed = Topics(place / "stream", rounds, servers, jars.spark)
            kill_drivers(feed, rounds, chosen)
        elif mode == "executor":
            master, workers = stack.enter_context(cluster.cluster(place))
            feed = Files(place / "stream", master, cluster.environment(place / "hosts" / "driver"))
            kill_executors(feed, rounds, chosen, workers)
        else:
            feed = Files(place / "stream")
            kill_drivers(feed, rounds, chosen)
        feed.finish()
        told = feed.check()
    print(f"{feed.messages} messages in {feed.batches()} batches: {told}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:5]))
