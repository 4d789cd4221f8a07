"""The records of the broker core in the store, and brokers restored from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import msgspec

from contrada.broker.broker import Broker
from contrada.broker.effects import RecordKey
from contrada.broker.record_bytes import record_value
from contrada.errors import TableError
from contrada.service.catalog import SEPARATOR
from contrada.service.links.link_state import LinkState
from contrada.service.store.message_store import MessageStore
from contrada.service.table_files import TableFiles

BROKER = "broker"  # kind of the records of the broker core, but for those of its subscriptions
BROKER_SUBSCRIPTION = "broker-subscription"


def restored_brokers(
    store: MessageStore, window: int, tables: TableFiles | None, name: str, links: LinkState
) -> dict[str, Broker]:
    """Return the broker of each tenant, as the store holds it; what a saved table has is not read again.

    `name` is what all of them are called in a network; `links` hears how much waits for neighbours.
    """
    records: defaultdict[str, dict[RecordKey, Any]] = defaultdict(dict)
    for text, data in store.records(BROKER):
        tenant, _, rest = text.partition(SEPARATOR)
        key: RecordKey = tuple(msgspec.json.decode(rest))
        records[tenant][key] = record_value(key, data)
        links.backlogs.note(tenant, key, len(data))
    live: defaultdict[str, list[int]] = defaultdict(list)
    for text in store.names(BROKER_SUBSCRIPTION):
        tenant, _, number = text.partition(SEPARATOR)
        live[tenant].append(int(number))
    return {
        tenant: _restored_broker(store, tenant, found, live[tenant], window, tables, name)
        for tenant, found in records.items()
    }


def _restored_broker(
    store: MessageStore,
    tenant: str,
    records: dict[RecordKey, Any],
    live: list[int],
    window: int,
    tables: TableFiles | None,
    name: str,
) -> Broker:
    saved = None if tables is None else tables.open(store, tenant)
    if saved is not None:
        try:
            records |= _subscription_records(store, tenant, set(live) - saved.numbers)
            return Broker.restore(records, window=window, saved=saved, live=live, id=name, relays_early=True)
        except TableError:  # the table is damaged, but the records have everything
            pass
    records = records | _subscription_records(store, tenant, live)
    return Broker.restore(records, window=window, id=name, relays_early=True)


def _subscription_records(store: MessageStore, tenant: str, numbers: Collection[int]) -> dict[RecordKey, Any]:
    """Return the records of subscriptions with these numbers, each of which has one."""
    names = {f"{tenant}{SEPARATOR}{number}": number for number in numbers}
    records: dict[RecordKey, Any] = {}
    for name, data in store.chosen(BROKER_SUBSCRIPTION, names).items():
        key: RecordKey = ("subscription", names[name])
        records[key] = record_value(key, data)
    assert len(records) == len(names)
    return records
