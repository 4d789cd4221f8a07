"""TrackedObjects: the ids, last fixes and pairs of all tracked objects, by slot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from contrada.codes import BLOCK_CLASSES, FOREVER, NEXT_DUE, NO_BLOCK, TAIL, TRACK_STATE_LENGTH
from contrada.geometry import PointArray
from contrada.geometry.arrow.mixed import ValueRows
from contrada.kernels.track.arrays import TrackArrays
from contrada.matching.batch import Integers, SpatialColumn
from contrada.tracking.growing import longer, room_for
from contrada.tracking.relating import column_of_wkb
from contrada.tracking.transitions import ObjectId

BY_SLOT = ("newest", "seen", "starts", "counts", "classes")
BY_PAIR = ("numbers", "relations", "flags", "entered", "left")


class TrackedObjects:
    """Objects by slot: id, last fix, and, in blocks of `arrays`, the subscriptions that each is inside of."""

    def __init__(self) -> None:
        kinds = ("i8", "i8", "i4", "i4", "u1", "i4", "u1", "u1", "i8", "i8")
        state = np.zeros(TRACK_STATE_LENGTH, np.int64)
        state[NEXT_DUE] = FOREVER
        free = np.full(BLOCK_CLASSES, -1, np.int64)
        self.arrays = TrackArrays._make([*(np.zeros(0, kind) for kind in kinds), free, state])
        self.xy = np.zeros((0, 2))  # last fix of points; NaN if it is a region or nothing
        self.ids: list[ObjectId | None] = []
        self.shapes: dict[int, bytes] = {}  # last fix of regions, as WKB
        self._slots: dict[ObjectId, int] = {}
        self._aliases: dict[int, list[ObjectId]] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.ids) - len(self._free)

    def slot(self, id: ObjectId) -> int | None:
        """Return the slot of an id or alias."""
        return self._slots.get(id)

    def slots_of(
        self, ids: Sequence[ObjectId | None], aliases: Sequence[ObjectId | None] | None
    ) -> tuple[NDArray[np.int32], list[int], list[tuple[ObjectId, int]]]:
        """Return the slot of each id, -1 for None; also the slots of new objects, and new aliases with their slots."""
        known = self._slots
        found = [known.get(id, -1) if id is not None else -1 for id in ids]
        new: list[int] = []
        named: list[tuple[ObjectId, int]] = []
        if -1 in found or aliases is not None:
            for row, id in enumerate(ids):
                if id is None:
                    continue
                slot = known.get(id)
                if slot is None:
                    slot = self.add(id)
                    new.append(slot)
                found[row] = slot
                alias = None if aliases is None else aliases[row]
                if alias is not None and alias not in known:
                    self.alias(alias, slot)
                    named.append((alias, slot))
        return np.array(found, np.int32), new, named

    def add(self, id: ObjectId, slot: int | None = None) -> int:
        """Give an id a free slot, or a given one."""
        if slot is None:
            slot = self._free.pop() if self._free else len(self.ids)
        if slot == len(self.ids):
            self.ids.append(None)
            if slot >= len(self.xy):
                self.make_slots(slot + 1)
        self.ids[slot] = id
        self._slots[id] = slot
        return slot

    def alias(self, alias: ObjectId, slot: int) -> None:
        """Give an object another id."""
        self._slots[alias] = slot
        self._aliases.setdefault(slot, []).append(alias)

    def drop(self, slot: int, is_free: bool = True) -> None:
        """Forget an object that is inside of nothing."""
        id = self.ids[slot]
        if id is not None:
            for name in (id, *self._aliases.pop(slot, ())):
                self._slots.pop(name, None)
            self.ids[slot] = None
        self.shapes.pop(slot, None)
        self.xy[slot] = np.nan
        self.arrays.newest[slot] = self.arrays.seen[slot] = 0
        if is_free:
            self._free.append(slot)

    def gone(self) -> list[int]:
        """Return the slots of objects that have an id but no fix."""
        without = np.flatnonzero(self.arrays.seen[: len(self.ids)] == 0)
        return [slot for slot in without.tolist() if self.ids[slot] is not None]

    def parts_of(self, id: ObjectId) -> list[int]:
        """Return the slots of the further parts of an id: `id#2`, `id#3` and so on."""
        found: list[int] = []
        while isinstance(id, str) and (slot := self._slots.get(f"{id}#{len(found) + 2}")) is not None:
            found.append(slot)
        return found

    def aliases(self) -> list[tuple[ObjectId, int]]:
        """Return all aliases with their slots."""
        return [(alias, slot) for slot, names in self._aliases.items() for alias in names]

    # Last fixes

    def keep_last(self, slots: NDArray[np.int32], rows: Integers, column: SpatialColumn) -> None:
        """Keep the geometry of the fixes in `rows` as the last ones of `slots`; the last of repeated slots counts."""
        at = column.point_of[rows]
        if len(column.points) and (at >= 0).all():
            self.xy[slots] = column.points.xy[at]
            for slot in self.shapes.keys() & set(slots.tolist()) if self.shapes else ():
                del self.shapes[slot]
            return
        last = {slot: row for slot, row in zip(slots.tolist(), rows.tolist(), strict=True)}
        for slot, row in last.items():
            self.shapes.pop(slot, None)
            self.xy[slot] = np.nan
            if column.point_of[row] >= 0:
                self.xy[slot] = column.points.xy[column.point_of[row]]
            elif column.region_of[row] >= 0:
                self.shapes[slot] = column.regions[int(column.region_of[row])].to_wkb()

    def last(self, slots: Integers) -> SpatialColumn:
        """Return the last fixes of objects as a column, row k that of slots[k]."""
        parts: list[ValueRows] = []
        points = np.flatnonzero(~np.isnan(self.xy[slots, 0]))
        if len(points):
            parts.append(ValueRows(PointArray.of_checked(self.xy[slots[points]], None), points))
        regions = [row for row, slot in enumerate(slots.tolist()) if slot in self.shapes] if self.shapes else []
        if regions:
            column = column_of_wkb([self.shapes[int(slots[row])] for row in regions]).regions
            parts.append(ValueRows(column, np.array(regions, np.int64)))
        return SpatialColumn.of_parts(parts, len(slots))

    def pairs(self, slot: int | None = None) -> tuple[Integers, Integers, Integers]:
        """Return all pairs, or those of one slot: slots, numbers of subscriptions, and places in the arrays."""
        a = self.arrays
        if slot is not None:
            places = np.arange(a.starts[slot], a.starts[slot] + a.counts[slot], dtype=np.int64)
            return np.full(len(places), slot), a.numbers[places].astype(np.int64), places
        counts = a.counts[: len(self.ids)].astype(np.int64)
        first = np.repeat(a.starts[: len(self.ids)] - (np.cumsum(counts) - counts), counts)
        places = first + np.arange(len(first))
        return np.repeat(np.arange(len(counts)), counts), a.numbers[places].astype(np.int64), places

    # Room

    def make_slots(self, needed: int) -> None:
        """Make room for objects."""
        size = room_for(len(self.xy), needed)
        self.xy = longer(self.xy, size, np.nan)
        grown = {name: longer(getattr(self.arrays, name), size, 0) for name in BY_SLOT[:-1]}
        classes = longer(self.arrays.classes, size, NO_BLOCK)
        self.arrays = self.arrays._replace(**grown, classes=classes)

    def make_pairs(self, more: int) -> None:
        """Make room for blocks of `more` pairs."""
        a = self.arrays
        size = room_for(len(a.numbers), int(a.state[TAIL]) + more)
        self.arrays = a._replace(**{name: longer(getattr(a, name), size, 0) for name in BY_PAIR})

    def fill_slots(self, count: int) -> None:
        """Make the number of slots `count`; slots without an id are free."""
        self.make_slots(count)
        self.ids += [None] * (count - len(self.ids))

    def find_free(self) -> None:
        """Make all slots without an id free."""
        self._free = [slot for slot, id in enumerate(self.ids) if id is None]

    @property
    def pair_nbytes(self) -> int:
        """Bytes of the arrays of pairs."""
        return sum(getattr(self.arrays, name).nbytes for name in BY_PAIR)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.xy.nbytes + sum(array.nbytes for array in self.arrays))
