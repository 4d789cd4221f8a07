"""A service in this process whose sinks and sources are topics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from contrada.service.deliveries.retries import RetryPolicy
from contrada.service.service import Service
from contrada.service.sinks import TopicSinks
from contrada.service.sources import TopicSources
from contrada.service.store.sqlite import SqliteStore
from contrada.service.table_settings import SinkTable, SourceTable


@asynccontextmanager
async def here(
    directory: Path, sinks: Sequence[SinkTable] = (), sources: Sequence[SourceTable] = ()
) -> AsyncIterator[tuple[Service, TopicSinks, TopicSources]]:
    """Run a service with sinks and sources; both try again soon."""
    service = Service(SqliteStore(directory))
    await service.start()
    policy = RetryPolicy(first=0.1, longest=0.5)
    outward, inward = TopicSinks(service, sinks, policy=policy), TopicSources(service, sources, policy=policy)
    await outward.start()
    inward.start()
    try:
        yield service, outward, inward
    finally:
        await inward.stop()
        await outward.stop()
        await service.stop()
