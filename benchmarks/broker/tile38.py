"""Tile38 under the same load: a fence of its own for each subscription, a consumer for each owner's channels.

TILE38_SERVER names its program. Messages are SET over pipelined connections; it synchronises its log once a second.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import shapely

from benchmarks.broker.clients import Arrival, Consumer, Tally, close, connect
from benchmarks.broker.runs import CONNECTIONS, Load
from benchmarks.broker.work import Messages, Workload, difference, owner_name
from benchmarks.report import SkippedError
from contrada.collecting import collections_paused

PIPELINE = 100  # commands that a connection sends before it waits
QUIET_SECONDS = 3.0  # without a notification: the rest is missing

Argument = bytes | str


def command(*arguments: Argument) -> bytes:
    """Return a command in RESP.

    >>> command("GET", "a")
    b'*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\na\\r\\n'
    """
    texts = [one.encode() if isinstance(one, str) else one for one in arguments]
    return b"*%d\r\n" % len(texts) + b"".join([b"$%d\r\n%b\r\n" % (len(text), text) for text in texts])


class ChannelConsumer(Consumer):
    """Receives the notifications of an owner's fences."""

    marker, end = b"pmessage\r\n", b"}\r\n"
    _found = re.compile(rb'"hook":"[^"]*:s(\d+)".*?"id":"m(\d+)"')

    def request(self) -> bytes:
        """Return the command that subscribes."""
        return command("PSUBSCRIBE", f"{owner_name(self.owner)}:*")

    def _begin(self, data: bytes) -> None:
        self._tail += data
        if self._tail.endswith(b":1\r\n"):
            self._is_open, self._tail = True, b""
            self._opened()

    def take(self) -> Iterator[Arrival]:
        """Yield the events that came, all with the time of the last."""
        parts, self._parts = self._parts, []
        for subscription, number in self._found.findall(b"".join([data for _, data in parts])):
            yield Arrival((int(number), int(subscription)), parts[-1][0])


class Tile38:
    """A running server that has loaded a workload."""

    def __init__(self, folder: Path, port: int, workload: Workload, detect: str = "inside") -> None:
        program = os.environ.get("TILE38_SERVER")
        if not program:
            raise SkippedError("Tile38: TILE38_SERVER names no program")
        self._workload, self.port, self._detect = workload, port, detect
        folder.mkdir()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([program, "-h", "127.0.0.1", "-p", str(port), "-d", str(folder)], **quiet)  # type: ignore[call-overload]

    def stop(self) -> None:
        """End the server."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def memory(self) -> float:
        """Return the resident memory in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6

    async def load(self) -> float:
        """Add a fence for each subscription; return the seconds that it took."""
        owners = self._workload.owners
        fences = [
            command("SETCHAN", f"{owner_name(row % owners)}:s{row}", "INTERSECTS", "m", "FENCE", "DETECT", self._detect,
                    "COMMANDS", "set", "OBJECT", shapely.to_geojson(shape))
            for row, shape in enumerate(self._workload.shapes)
        ]  # fmt: skip
        for _ in range(100):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                break
            except OSError:
                await asyncio.sleep(0.1)
        start = time.perf_counter()
        for first in range(0, len(fences), 1000):
            part = fences[first : first + 1000]
            await pipelined(reader, writer, part)
        seconds = time.perf_counter() - start
        writer.close()
        return seconds

    async def publish(self, messages: Messages) -> Load:
        """Set all messages, over as many connections as ours, while all owners listen."""
        tally, count = Tally(QUIET_SECONDS), len(messages.bodies)
        consumers = await connect(self.port, ChannelConsumer, self._workload.owners, tally)
        commands = [
            command("SET", "m", f"m{number}", "OBJECT", json.dumps(json.loads(body)["geometry"], separators=(",", ":")))
            for number, body in enumerate(messages.bodies, messages.first)
        ]
        streams = [await asyncio.open_connection("127.0.0.1", self.port) for _ in range(CONNECTIONS)]
        batches = iter([commands[start : start + PIPELINE] for start in range(0, count, PIPELINE)])

        async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for batch in batches:
                await pipelined(reader, writer, batch)
            writer.close()

        with collections_paused():
            start = time.perf_counter()
            await asyncio.gather(*(send(*stream) for stream in streams))
            seconds = time.perf_counter() - start
            await tally.reached(len(messages.expected))
        close(consumers)
        arrivals = [one.event for consumer in consumers for one in consumer.take()]
        wrong = sum(difference(messages.expected, arrivals))
        return Load(count / seconds, 0.0, 0.0, messages.mean, len(arrivals), wrong)


async def pipelined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, commands: list[bytes]) -> None:
    """Send commands at once; wait for the line that answers each."""
    writer.write(b"".join(commands))
    for _ in commands:
        answer = await reader.readline()
        assert answer.startswith((b"+OK", b":")), answer
