"""Save tracked objects while commands go on: a snapshot is written part by part, then put in force."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any

from contrada.service.core import Core
from contrada.service.engine import Work
from contrada.service.store.message_store import StoreChange
from contrada.service.tracks.groups import GroupKey
from contrada.service.tracks.journal import BegunSnapshot

PARTS_TOGETHER = 8  # in one transaction


async def save_tracks(core: Core, do: Callable[[Work], Awaitable[Any]]) -> None:
    """Write snapshots of the groups of a core that have changed much since the last one; `do` runs work on a core."""
    for key in core.trackers.due():
        begun: BegunSnapshot | None = await do(_begin(key))
        if begun is None:
            continue
        records = iter(begun.records())
        while part := list(islice(records, PARTS_TOGETHER)):
            await do(_write(part))
        await do(_complete(core, begun))


def _begin(key: GroupKey) -> Work:
    return lambda core, change: core.trackers.begin_snapshot(key, change)


def _write(records: list[tuple[str, str, bytes | None]]) -> Work:
    return lambda core, change: change.records.extend(records)


def _complete(begun_by: Core, begun: BegunSnapshot) -> Work:
    def work(core: Core, change: StoreChange) -> None:
        if core is begun_by:  # one that was loaded again has begun with what the store holds
            core.trackers.complete_snapshot(begun, change)

    return work
