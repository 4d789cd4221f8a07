"""PostGIS under the same load: a trigger finds the subscriptions of each row and NOTIFYs their owners.

POSTGIS_BIN names the folder of initdb and postgres; POSTGIS_LIB names folders of libraries (as LD_LIBRARY_PATH does) if
the server was unpacked and not installed. Connections speak the PostgreSQL protocol on raw sockets, as those to our
server speak HTTP. Commits are synchronised (the defaults of PostgreSQL), one message is one transaction.
"""

import asyncio
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import shapely

from benchmarks.broker.clients import Arrival, Consumer, Tally, close, connect
from benchmarks.broker.runs import CONNECTIONS, Load
from benchmarks.broker.work import Messages, Workload, difference
from benchmarks.report import SkippedError
from contrada.collecting import collections_paused

UNPRIVILEGED = "nobody"  # PostgreSQL refuses to run as root
SETTINGS = {"listen_addresses": "127.0.0.1", "max_connections": "1200", "shared_buffers": "1GB", "jit": "off"}
START_SECONDS = 60.0
QUIET_SECONDS = 5.0  # without a notification: the rest is missing
WARM_UP = 8  # rows that each connection inserts before the clock runs: PostgreSQL settles on a plan after five
NOWHERE = shapely.box(10, 10, 10.1, 10.1)  # no subscription is there
READY = b"Z\0\0\0\5I"  # ends every answer outside of a transaction

# One notification for each consumer of a message. The notified text is the number of the message, then `, s<row>` for
# each of its subscriptions. `consumers` is the argument of the trigger. The function keeps its plan.
SCHEMA = """
CREATE EXTENSION postgis;
CREATE TABLE subscriptions (row int PRIMARY KEY, geometry geometry NOT NULL);
CREATE TABLE messages_1 (number int PRIMARY KEY, geometry geometry NOT NULL);
CREATE TABLE messages_many (number int PRIMARY KEY, geometry geometry NOT NULL);
CREATE FUNCTION notify_owners() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE consumers int := TG_ARGV[0];
BEGIN
    PERFORM pg_notify('c' || s.row % consumers, NEW.number || string_agg(', s' || s.row, ''))
        FROM subscriptions s WHERE ST_Intersects(s.geometry, NEW.geometry) GROUP BY s.row % consumers;
    RETURN NULL;
END $$;
CREATE TRIGGER notify AFTER INSERT ON messages_1 FOR EACH ROW EXECUTE FUNCTION notify_owners(1);
CREATE TRIGGER notify AFTER INSERT ON messages_many FOR EACH ROW EXECUTE FUNCTION notify_owners({owners});
"""
INDEX = "CREATE INDEX ON subscriptions USING gist (geometry); VACUUM ANALYZE subscriptions"


def packet(kind: bytes, body: bytes) -> bytes:
    """Return a message of the PostgreSQL protocol.

    >>> packet(b"S", b"")
    b'S\\x00\\x00\\x00\\x04'
    """
    return kind + struct.pack("!I", 4 + len(body)) + body


STARTUP = packet(b"", struct.pack("!I", 3 << 16) + b"user\0postgres\0database\0postgres\0\0")
SYNC = packet(b"S", b"")


def prepare(table: str) -> bytes:
    """Return the request that prepares the statement which publishes."""
    text = f"INSERT INTO {table} VALUES ($1, ST_GeomFromWKB($2))".encode()
    return packet(b"P", b"publish\0" + text + b"\0" + struct.pack("!HII", 2, 23, 17)) + SYNC  # int4 and bytea


def publish(number: int, wkb: bytes) -> bytes:
    """Return the request that publishes a message, in binary."""
    values = struct.pack("!HHHIiI", 1, 1, 2, 4, number, len(wkb)) + wkb + struct.pack("!H", 0)
    return packet(b"B", b"\0publish\0" + values) + packet(b"E", b"\0" + bytes(4)) + SYNC


class ListeningConsumer(Consumer):
    """Receives the notifications of one channel."""

    marker, end = b", s", b"\0"
    _found = re.compile(rb"(\d+)((?:, s\d+)+)\0")

    def request(self) -> bytes:
        """Return the first message of a connection."""
        return STARTUP

    def _begin(self, data: bytes) -> None:
        self._tail += data
        if not self._tail.endswith(READY):
            return
        if b"LISTEN\0" in self._tail:
            self._is_open = True
            self._opened()
        else:
            self.transport.write(packet(b"Q", f"LISTEN c{self.owner}\0".encode()))
        self._tail = b""

    def take(self) -> Iterator[Arrival]:
        """Yield the events that came, all with the time of the last."""
        parts, self._parts = self._parts, []
        for number, rows in self._found.findall(b"".join([data for _, data in parts])):
            for row in rows.split(self.marker)[1:]:
                yield Arrival((int(number), int(row)), parts[-1][0])


class RowPublisher(asyncio.Protocol):
    """One connection: a request follows when the last one was answered; `finished` is set after the last answer."""

    def __init__(self, table: str, warm_up: Iterator[bytes], requests: Iterator[bytes]) -> None:
        self._steps, self._requests = chain([STARTUP, prepare(table)], islice(warm_up, WARM_UP)), requests
        self._answer = b""
        self.ready, self.finished = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: Any) -> None:
        """Begin the session."""
        self.transport = transport
        transport.write(next(self._steps))

    def data_received(self, data: bytes) -> None:
        """Take an answer."""
        self._answer += data
        if not self._answer.endswith(READY):
            return
        answer, self._answer = self._answer, b""
        if (step := next(self._steps, None)) is not None:
            self.transport.write(step)
            return
        assert b"INSERT 0 1\0" in answer, answer[:500]
        if self.ready.is_set():
            self.send()
        self.ready.set()

    def send(self) -> None:
        """Send the next request, if there is one."""
        request = next(self._requests, None)
        if request is None:
            self.finished.set()
        else:
            self.transport.write(request)


class PostGis:
    """A running server that has loaded a workload."""

    def __init__(self, workload: Workload) -> None:
        programs = os.environ.get("POSTGIS_BIN")
        if not programs:
            raise SkippedError("PostGIS: POSTGIS_BIN names no folder with initdb and postgres")
        self._workload, self._programs = workload, Path(programs)
        self._warm_up = (publish(number, shapely.to_wkb(NOWHERE)) for number in count(-1, -1))
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 bytes
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._start()
            self.load_seconds = self._load()
        except BaseException:
            self.stop()
            raise

    def _run(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        is_root = os.geteuid() == 0
        libraries = os.environ.get("POSTGIS_LIB")
        return subprocess.Popen(
            [str(self._programs / command[0]), *command[1:]],
            cwd=self._folder, user=UNPRIVILEGED if is_root else None, extra_groups=[] if is_root else None,
            env={**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}, **options,
        )  # fmt: skip

    def _start(self) -> None:
        """Make a cluster and start its server on a free port."""
        if os.geteuid() == 0:
            shutil.chown(self._folder, UNPRIVILEGED)
        data = str(self._folder / "data")
        made = self._run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale",
                         stdout=subprocess.DEVNULL)  # fmt: skip
        if made.wait():
            raise SystemExit(f"{self._programs / 'initdb'}: status {made.returncode}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = [f"--{name}={value}" for name, value in {**SETTINGS, "port": str(self.port)}.items()]
        log = (self._folder / "log").open("wb")
        self._process = self._run("postgres", "-D", data, "-k", str(self._folder), *settings, stdout=log, stderr=log)

    def _load(self) -> float:
        """Add all subscriptions; return the seconds that it took."""
        connection = self._connect()
        with connection:
            self.version = str(connection.execute("SELECT version()").fetchone()[0]).split()[1]
            start = time.perf_counter()
            connection.execute(SCHEMA.replace("{owners}", str(self._workload.owners)))
            with connection.cursor().copy("COPY subscriptions FROM STDIN") as copy:
                for row, wkb in enumerate(shapely.to_wkb(self._workload.shapes, hex=True)):
                    copy.write_row((row, wkb))
            for statement in INDEX.split(";"):
                connection.execute(statement)
            seconds = time.perf_counter() - start
            self.version += f" with PostGIS {connection.execute('SELECT postgis_lib_version()').fetchone()[0]}"
        return seconds

    def _connect(self) -> Any:
        """Return a connection for the load, once the server answers."""
        import psycopg  # of the extra `postgres`, which no other section needs

        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", autocommit=True)
            except psycopg.OperationalError:
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(
                        "PostgreSQL did not start: " + (self._folder / "log").read_text()[-1000:]
                    ) from None
                time.sleep(0.1)

    def stop(self) -> None:
        """End the server; remove its files."""
        if self._process is not None:
            self._process.terminate()  # SIGTERM waits for connections, which are closed by now
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.send_signal(3)  # SIGQUIT: stop at once
                self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def publish(self, messages: Messages, listeners: int) -> Load:
        """Insert all messages, one in a transaction, over as many connections as ours, while the listeners listen."""
        tally = Tally(QUIET_SECONDS)
        consumers = await connect(self.port, ListeningConsumer, listeners, tally)
        numbered = enumerate(shapely.to_wkb(messages.shapes), messages.first)
        requests = iter([publish(number, wkb) for number, wkb in numbered])
        table, loop = "messages_1" if listeners == 1 else "messages_many", asyncio.get_running_loop()
        made = [
            loop.create_connection(lambda: RowPublisher(table, self._warm_up, requests), "127.0.0.1", self.port)
            for _ in range(CONNECTIONS)
        ]
        publishers = [protocol for _, protocol in await asyncio.gather(*made)]
        await asyncio.wait_for(asyncio.gather(*(publisher.ready.wait() for publisher in publishers)), 60)
        with collections_paused():
            start = time.perf_counter()
            for publisher in publishers:
                publisher.send()
            await asyncio.wait_for(asyncio.gather(*(publisher.finished.wait() for publisher in publishers)), 120)
            seconds = time.perf_counter() - start
            await tally.reached(len(messages.expected))
            delivered = len(messages.expected) / (time.perf_counter() - start)
        for publisher in publishers:
            publisher.transport.abort()
        close(consumers)
        arrivals = [one.event for consumer in consumers for one in consumer.take()]
        wrong = sum(difference(messages.expected, arrivals))
        return Load(len(messages.bodies) / seconds, delivered, 0.0, messages.mean, len(arrivals), wrong)
