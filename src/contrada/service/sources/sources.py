"""Sources: all that settings name."""

from __future__ import annotations

import asyncio
import random as random_numbers
from collections.abc import Awaitable, Callable, Sequence

from contrada.errors import UnknownKeyError
from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.remotes import missing_engine
from contrada.service.service import Service, wall_clock
from contrada.service.sources.letters import SourceLetter
from contrada.service.sources.records import SourceClient
from contrada.service.sources.source_run import SourceCounts, SourceRun, SourceTools, SourceView
from contrada.service.table_settings import SourceTable

MOST_LETTERS = 10_000  # dead letters of one source; the oldest make room
MOST_BYTES = 16 << 20
PAGE = 100
RECONNECT = RetryPolicy(first=0.5, longest=60.0)


def open_source(table: SourceTable) -> SourceClient:
    """Return a client for the topic of a source; raise MissingEngineError if its library is not installed.

    Libraries are imported here, for servers that use them.
    """
    remote = table.remote()
    try:
        if remote.url.engine == "kafka":
            from contrada.service.sources.kafka import KafkaSourceClient

            return KafkaSourceClient(remote, table)
        if remote.url.engine == "nats":
            from contrada.service.sources.nats import NatsSourceClient

            return NatsSourceClient(remote, table)
        from contrada.service.sources.mqtt import MqttSourceClient

        return MqttSourceClient(remote, table)
    except ModuleNotFoundError as error:
        raise missing_engine(error, f"source {table.name!r}", remote.url.engine) from error


class TopicSources:
    """Topics whose records are published, over a service that runs.

    `clock` is in milliseconds; it, `sleep`, `random` and `open_client` are arguments for tests.
    """

    def __init__(
        self,
        service: Service,
        tables: Sequence[SourceTable],
        *,
        policy: RetryPolicy = RECONNECT,
        most_bytes: int = MOST_BYTES,
        most_letters: int = MOST_LETTERS,
        clock: Callable[[], int] = wall_clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random_numbers.random,
        open_client: Callable[[SourceTable], SourceClient] = open_source,
    ) -> None:
        self._tools = SourceTools(service, policy, clock, sleep, random, most_bytes, most_letters)
        self._is_active = False
        self._runs = {table.name: SourceRun(table, open_client(table), self._tools) for table in tables}

    def start(self) -> None:
        """Begin to read."""
        self._is_active = True
        for run in self._runs.values():
            run.start()

    async def set_active(self, is_active: bool) -> None:
        """Begin to read, or leave reading to another server that follows the same log."""
        if is_active == self._is_active:
            return
        self._is_active = is_active
        if is_active:
            self.start()
        else:
            await self.stop()

    async def stop(self) -> None:
        """Stop reading; what is not published yet is read again after the next start."""
        await asyncio.gather(*(run.stop() for run in self._runs.values()))

    def views(self) -> list[SourceView]:
        """Return all sources, by name."""
        return [self._runs[name].view for name in sorted(self._runs)]

    async def dead_letters(
        self, name: str, after: str | None = None, limit: int = PAGE
    ) -> tuple[list[SourceLetter], str | None]:
        """Return records that were not published, oldest first, after an id, and the id to go on after."""
        return await self._require(name).dead_letters(after, limit)

    async def replay(self, name: str, id: str | None = None, limit: int = PAGE) -> ReplayAnswer:
        """Publish one dead letter again, or the oldest ones up to the first that is refused."""
        return await self._require(name).replay(id, limit)

    @property
    def counts(self) -> SourceCounts:
        """Counts of all sources since the start."""
        return self._tools.counts

    def _require(self, name: str) -> SourceRun:
        found = self._runs.get(name)
        if found is None:
            raise UnknownKeyError(f"no source is called {name!r:.60}")
        return found
