"""Servers that share a log, and the engine that keeps it, all as processes that a test can kill."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import msgspec

from contrada.service.catalog import SUBSCRIPTION, Definition
from served import Served

OWN_RECORDS = ("broker", "log-", "table", "probe", "track")  # beginnings of kinds of records of one server alone
DOWN_SECONDS = (0.0, 1.0)  # that an engine stays away


class KillableEngine(Protocol):
    """A server of NATS or Kafka."""

    def start(self) -> None:
        """Start it, and wait until it answers."""

    def kill(self) -> None:
        """End it as a crash does."""


class SharedFleet:
    """Servers on one log, each with a directory of its own; `urls` are those of the servers that run."""

    def __init__(self, folder: Path, engine: KillableEngine, log: str, rng: random.Random, *flags: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._engine, self._rng = folder, engine, rng
        self._flags = ("--log", log, "--telemetry-log-level", "error", *flags)
        self.servers: list[Served] = []
        self.urls: list[str] = []
        self.done: Counter[str] = Counter()
        self._made: list[Served] = []

    def start(self, count: int) -> None:
        """Start so many servers with empty directories, and wait until they are ready."""
        joined = [self._new() for _ in range(count)]
        for server in joined:
            server.wait_until_ready()
            self._add(server)

    def _new(self) -> Served:
        server = Served(self._folder / f"server-{len(self._made) + 1}", *self._flags)
        self._made.append(server)
        server.start()
        return server

    def _add(self, server: Served) -> None:
        self.servers.append(server)
        self.urls.append(server.url)

    def _remove(self, server: Served) -> None:
        self.servers.remove(server)
        self.urls.remove(server.url)

    @property
    def faults(self) -> Sequence[Callable[[], None]]:
        """What can happen to servers and engine, in the order in which a short run tries it."""
        return self.restart, self.restart_engine, self.replace, self.leave_and_come_back

    def restart(self) -> None:
        """Kill a server, and start it again in its directory."""
        server = self._rng.choice(self.servers)
        server.end()
        server.start()
        server.wait_until_ready()
        self.done["servers killed and started again"] += 1

    def replace(self) -> None:
        """Kill a server for ever; a new one joins with an empty directory."""
        server = self._rng.choice(self.servers)
        server.end()
        self._remove(server)
        self.start(1)
        self.done["servers killed and replaced by new ones"] += 1

    def leave_and_come_back(self) -> None:
        """Stop a server in good order; it comes back after others have gone on."""
        server = self._rng.choice(self.servers)
        server.end(signal.SIGTERM)
        self._remove(server)
        time.sleep(self._rng.uniform(*DOWN_SECONDS))
        server.start()
        server.wait_until_ready()
        self._add(server)
        self.done["servers that left and came back"] += 1

    def restart_engine(self) -> None:
        """Kill the engine, and start it again."""
        self._engine.kill()
        time.sleep(self._rng.uniform(*DOWN_SECONDS))
        self._engine.start()
        self.done["engine killed"] += 1

    def stop(self) -> None:
        """Stop all servers in good order."""
        for server in self.servers:
            server.process.send_signal(signal.SIGTERM)
        for server in self.servers:
            server.process.wait(60)

    def end(self) -> None:
        """Kill all servers, those that did not become ready too."""
        for server in self._made:
            server.end()


def store_faults(servers: Sequence[Served]) -> Iterator[str]:
    """Say where the stores of servers that have stopped differ: in messages with their matches, or in records."""
    first = _content(servers[0].state)
    for server in servers[1:]:
        for what, rows in _content(server.state).items():
            if rows != first[what]:
                differing = sorted(rows.items() ^ first[what].items(), key=repr)
                yield f"{server.state.name} has other {what} than {servers[0].state.name}: {differing[:4]!r:.500}"


def _content(state: Path) -> dict[str, dict[tuple[object, ...], bytes]]:
    """Return messages and records of a store, but for those of one server alone."""
    with closing(sqlite3.connect(state / "contrada.sqlite")) as connection:
        messages = {row[:-2]: row[-2] + row[-1] for row in connection.execute(
            "SELECT sequence, at, tenant, id, format, total, body, matches FROM messages"
        )}  # fmt: skip
        records = {(kind, name): value for kind, name, value in connection.execute("SELECT * FROM records")}
    kept = {key: value for key, value in records.items() if not key[0].startswith(OWN_RECORDS)}
    for key in [key for key in kept if key[0] == SUBSCRIPTION]:  # defaults may be written or left out
        kept[key] = repr(msgspec.msgpack.decode(kept[key], type=Definition)).encode()
    return {"messages": messages, "records": kept}
