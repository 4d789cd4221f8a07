"""Readers that run keep their events when the engine starts again from the store."""

import asyncio

import pytest

from contrada.service.core import NewSubscription
from contrada.service.service import Service
from contrada.service.store.message_store import StoreError
from contrada.service.store.sqlite import SqliteStore
from webhook_receivers import Disk, publish


def test_readers_get_their_own_events_after_the_store_failed(tmp_path):
    async def run():
        disk = Disk()
        service = Service(SqliteStore(tmp_path, before_commit=disk.before_commit))
        await service.start()
        filters = {("t", "zoe"): "n >= 0", ("u", "ann"): "n < 0", ("t", "bob"): "n < 0"}  # not in the order of names
        for (tenant, subscriber), filter in filters.items():
            await service.put(tenant, f"key of {subscriber}", NewSubscription(subscriber, filter))
        readers = {key: await service.reader(*key, None) for key in filters}
        disk.is_full = True
        with pytest.raises(StoreError):
            await publish(service, 1)
        disk.is_full = False
        await publish(service, 2, -2)
        found = {key: await asyncio.wait_for(readers[key].read(), 60) for key in (("t", "zoe"), ("t", "bob"))}
        await service.stop()
        return found

    found = asyncio.run(run())
    assert {key: [(event.sequence, event.key) for event in events] for key, events in found.items()} == {
        ("t", "zoe"): [(1, "key of zoe")],
        ("t", "bob"): [(2, "key of bob")],
    }
