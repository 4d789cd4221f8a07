"""SubscriberTable: a read-only table with one subscription per subscriber."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from contrada.arguments import checks_methods
from contrada.errors import TableError
from contrada.geometry.crs import Crs
from contrada.geometry.globe import Globe, globes_of
from contrada.matching.encoding import MessageEncoder
from contrada.matching.matching_table import MatchingTable
from contrada.matching.names import Names
from contrada.matching.store import storage
from contrada.matching.store.levels import Store
from contrada.matching.store.snapshot import Snapshot
from contrada.matching.table_simplification import Progress, simplified_subscribers
from contrada.simplification.simplifying import Simplification


@checks_methods("save", "open")
class SubscriberTable(MatchingTable):
    """The result of `ForwardingTable.simplified`: read-only, without keys, one subscription per subscriber.

    `report` counts what simplification dropped.

    >>> from contrada import ForwardingTable
    >>> table = ForwardingTable()
    >>> keys = [table.subscribe("ops-team", text) for text in ("severity >= 3", "severity >= 5")]
    >>> shorter = table.simplified(by="subscriber")
    >>> len(shorter), shorter.match({"severity": 3}), shorter.report.filters_after
    (1, {'ops-team'}, 1)
    """

    _keys = None
    report = Simplification()

    def save(self, path: str | os.PathLike[str], *, replace: bool = False) -> None:
        """Write the table to a new directory, as `ForwardingTable.save` does."""
        saved = storage.packed(self._store, self._crs, None, self._subscribers, wrap=self.wrap)
        storage.save_table(saved, path, replace)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = True) -> SubscriberTable:
        """Open a saved table by memory map, as `ForwardingTable.open` does; its report is empty."""
        saved = storage.open_table(path, verify)
        if saved.has_keys:
            raise TableError(f"{os.fspath(path)} has keys of subscriptions; open it with ForwardingTable.open")
        names = storage.names_from(saved.subscribers)
        return cls(storage.store_of(saved), names, dict(saved.crs), saved.rows, globes_of(saved.wrap))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the table through the files of `save`."""
        return storage.opened_bytes, (storage.packed_bytes(self.save), SubscriberTable.open), {"report": self.report}


def simplified_by_subscriber(
    snapshot: Snapshot,
    encoder: MessageEncoder,
    subscribers: Names,
    crs: dict[str, Crs | None],
    progress: Progress | None = None,
    globes: Mapping[str, Globe] = MappingProxyType({}),
) -> SubscriberTable:
    """Return a table in which the filters of each subscriber are one simplified subscription; `snapshot` is packed."""
    store, named, report = Store(), Names(), Simplification()
    with store.lock:
        for row, predicate, one in simplified_subscribers(snapshot, encoder, crs, progress):
            report = report.plus(one)
            store.encoder.check(constraint for part in predicate for constraint in part)
            store.append(named.append(subscribers[row]), predicate, None)
        store.pack()
    table = SubscriberTable(store, named, crs, len(named), globes)
    table.report = report
    return table
