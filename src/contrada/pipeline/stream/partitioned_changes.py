"""Changes of subscriptions whose base table is in partitions: what the driver knows, and how a base takes them up.

The driver holds no partition. It keeps the last change of each key since the base, and asks workers which keys the base
has. The base without these keys, and the subscriptions among the changes, are the version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from contrada.cql2 import parse
from contrada.cql2.queries import Asked
from contrada.errors import UnknownKeyError
from contrada.index.cells import covering_boxes
from contrada.matching import ForwardingTable
from contrada.matching.routing_boxes import Heads, heads_of
from contrada.pipeline.partitioned.building import BOXES_PER_ATTRIBUTE
from contrada.pipeline.partitioned.partitions import Partition, PartitionedArtifact
from contrada.pipeline.stream.changes import Change, Name

Boxes = dict[str, list[list[float]]]


class PartitionWork(Protocol):
    """The work on partitions that workers do for the driver."""

    def find(self, base: PartitionedArtifact, keys: Sequence[Name]) -> set[Name]:
        """Return which keys the base has."""

    def rebuild(
        self, base: PartitionedArtifact, changes: Sequence[Change], subscriptions: int, artifacts: str
    ) -> PartitionedArtifact:
        """Return a base with the last changes of some keys; the new tables go to the directory `artifacts`."""


class ChangedPartitions:
    """The subscriptions of a version in partitions, for `apply_changes`: the changes since the base, and a count.

    Keys must be looked up in the base, by `look_up`, before they are changed.
    """

    def __init__(self, find: Callable[[list[Name]], set[Name]], changes: Iterable[Change], subscriptions: int) -> None:
        self._find, self._count = find, subscriptions
        self._is_there: dict[Name, bool] = {}
        self.changes: dict[Name, Change] = {}  # the last one of each key
        self._later = ForwardingTable()
        for change in changes:
            apply_later(self._later, [change])
            self.note(change)

    def __len__(self) -> int:
        return self._count

    def look_up(self, keys: Iterable[Name]) -> None:
        """Find out which of some keys the base has, in one job; nothing is done for keys that are known."""
        unknown = [key for key in dict.fromkeys(keys) if key not in self._is_there]
        if unknown:
            found = self._find(unknown)
            self._is_there |= {key: key in found for key in unknown}

    def note(self, change: Change) -> None:
        """Note a change that was made."""
        self.changes[change.key] = change
        self._is_there[change.key] = change.filter is not None

    def subscribe(self, subscriber: Name, what: Asked, key: Name, replace: bool = True) -> Name:
        """Add a subscription, or replace the one with this key."""
        self._later.subscribe(subscriber, what, key, replace=replace)
        self._count += not self._is_there[key]
        self._is_there[key] = True
        return key

    def unsubscribe(self, key: Name) -> None:
        """Remove a subscription; raise UnknownKeyError for an unknown key."""
        if not self._is_there[key]:
            raise UnknownKeyError(f"no subscription has the key {key!r}")
        with suppress(UnknownKeyError):  # one of the base
            self._later.unsubscribe(key)
        self._count -= 1
        self._is_there[key] = False


def apply_later(later: ForwardingTable, changes: Iterable[Change]) -> None:
    """Apply changes to the table of the subscriptions that are not in the base."""
    for change in changes:
        if change.filter is None:
            with suppress(UnknownKeyError):
                later.unsubscribe(change.key)
        else:
            later.subscribe(change.subscriber, change.filter, change.key, replace=True)


class Spread(NamedTuple):
    """Changed subscriptions by partition; numbers from the number of partitions on are new partitions."""

    subscriptions: dict[int, list[Change]]
    boxes: dict[int, Boxes]  # of each of these partitions, with those of its new filters


def spread_changes(base: PartitionedArtifact, changes: Sequence[Change], most_bytes: int) -> Spread:
    """Assign subscriptions to the partitions whose boxes grow least; partitions of `most_bytes` take no more.

    What no partition takes goes to one new partition. A subscription with a filter that may match anywhere goes to a
    partition that sees every message.
    """
    added = [change for change in changes if change.filter is not None]
    heads = heads_of(parse(change.filter or "") for change in added)
    count = len(base.partitions)
    free = [k for k, part in enumerate(base.partitions) if part.artifact.bytes < most_bytes]
    wide = next((k for k in free if base.partitions[k].is_wide), count + 1)
    nearest = _Nearest(base.partitions, free)
    chosen: dict[int, list[int]] = {}
    for row in range(len(added)):
        own = range(heads.offsets[row], heads.offsets[row + 1])
        if not own or any(heads.attributes[k] < 0 for k in own):
            number = wide
        else:
            found = nearest.find(heads.names[heads.attributes[own[0]]], heads.boxes[own[0]])
            number = count if found is None else found
        chosen.setdefault(number, []).append(row)
    boxes = {
        number: {} if number == wide else _grown(_boxes_of(base, number), heads, rows)
        for number, rows in chosen.items()
    }
    return Spread({number: [added[row] for row in rows] for number, rows in chosen.items()}, boxes)


class _Nearest:
    """Finds the partition with a box that grows least around another box."""

    def __init__(self, partitions: Sequence[Partition], free: Sequence[int]) -> None:
        self._boxes: dict[str, NDArray[np.float64]] = {}
        self._owners: dict[str, list[int]] = {}
        found: Boxes = {}
        for number in free:
            for name, boxes in partitions[number].boxes.items():
                found.setdefault(name, []).extend(boxes)
                self._owners.setdefault(name, []).extend([number] * len(boxes))
        self._boxes = {name: np.array(boxes) for name, boxes in found.items()}

    def find(self, attribute: str, box: NDArray[np.float64]) -> int | None:
        """Return a partition; None if none has a box of the attribute."""
        if attribute not in self._boxes:
            return None
        known = self._boxes[attribute]
        low, high = np.minimum(known[:, :2], box[:2]), np.maximum(known[:, 2:], box[2:])
        growth = (high - low).sum(axis=1) - (known[:, 2:] - known[:, :2]).sum(axis=1)
        return self._owners[attribute][int(np.argmin(growth))]


def _boxes_of(base: PartitionedArtifact, number: int) -> Boxes:
    if number >= len(base.partitions):
        return {}
    return {name: list(boxes) for name, boxes in base.partitions[number].boxes.items()}


def _grown(boxes: Boxes, heads: Heads, rows: Sequence[int]) -> Boxes:
    """Return boxes that cover those of a partition and the heads of further filters."""
    found: dict[str, list[Any]] = {name: list(some) for name, some in boxes.items()}
    for row in rows:
        for k in range(heads.offsets[row], heads.offsets[row + 1]):
            found.setdefault(heads.names[heads.attributes[k]], []).append(heads.boxes[k].tolist())
    return {name: covering_boxes(np.array(some), BOXES_PER_ATTRIBUTE).tolist() for name, some in found.items()}
