"""Watches: the parameters of all watched subscriptions, by number, in arrays for kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrada.codes import CHANGE_BIT, CROSS_BIT
from contrada.errors import ArgumentError
from contrada.kernels.track.arrays import WatchArrays
from contrada.matching.batch import Integers, SpatialColumn
from contrada.tracking.growing import longer, room_for
from contrada.tracking.relating import column_of_wkb
from contrada.tracking.watch import Watch

MAX_NUMBER = (1 << 31) - 1


class Watches:
    """All watched subscriptions; `arrays` are for kernels."""

    def __init__(self) -> None:
        kinds = ("i4", "u1", "u1", "i8", "i8", "i8", "i4", "u1", "f8")
        self.arrays = WatchArrays._make([*(np.zeros(0, kind) for kind in kinds), np.zeros((0, 4))])
        self._watches: list[Watch | None] = []  # by place
        self._numbers: dict[int, int] = {}  # places by number
        self._free: list[int] = []
        self.is_timed = self.is_buffered = False  # whether one ever had a dwell or exit_after, or an exit buffer
        self.version = 0  # changes with every change of subscriptions
        self.is_view = False  # the parameters belong to others, and are not saved with a state

    def get(self, number: int) -> Watch | None:
        """Return what is watched under a number."""
        place = self._numbers.get(number)
        is_gone = place is None or self.arrays.places[number] < 0
        return None if place is None or is_gone else self._watches[place]

    def numbers(self) -> list[int]:
        """Return the watched numbers, rising."""
        return sorted(self._numbers)

    def put(self, number: int, watch: Watch, since: int) -> None:
        """Add a subscription under a number that nobody watches."""
        if not 0 <= number <= MAX_NUMBER:
            raise ArgumentError(f"number: need 0 to {MAX_NUMBER}, got {number}")
        place = self._free.pop() if self._free else len(self._watches)
        if place == len(self._watches):
            self._watches.append(None)
        self._make_room(number, place)
        self._watches[place], self._numbers[number] = watch, place
        a = self.arrays
        a.places[number] = place
        a.kinds[place], a.silent[place], a.dwells[place] = watch.kinds, watch.is_silent, watch.dwell
        a.exit_afters[place], a.since[place], a.inside[place], a.removed[place] = watch.exit_after, since, 0, 0
        a.buffers[place] = watch.exit_buffer
        self.is_timed |= watch.dwell > 0 or watch.exit_after > 0
        if watch.exit_buffer > 0:
            self.is_buffered = True
            values = column_of_wkb([watch.shape])
            xy = values.points.xy
            a.bounds[place] = [*xy[0], *xy[0]] if len(xy) else values.regions.bounds[0]
        self.version += 1

    def view(self, places: NDArray[np.int32], since: NDArray[np.int64]) -> Watches:
        """Return watches that share the parameters of these, with own places by number and own times of watching.

        These are only added to while a view is used.
        """
        made = Watches()
        size = len(self.arrays.kinds)
        own = {"inside": np.zeros(size, np.int32), "removed": np.zeros(size, np.uint8)}
        made.arrays = self.arrays._replace(places=places, since=longer(since, size, 0), **own)
        made._watches, made._numbers, made.is_view = self._watches, self._numbers, True
        made.is_timed, made.is_buffered, made.version = self.is_timed, self.is_buffered, self.version
        return made

    def drop(self, number: int) -> None:
        """Remove a subscription of which no pair is left."""
        if self.is_view:
            self.arrays.places[number] = -1
            self.version += 1
            return
        place = self._numbers.pop(number)
        self._watches[place] = None
        self._free.append(place)
        self.arrays.places[number] = -1
        self.version += 1

    def places(self, numbers: Integers) -> Integers:
        """Return the places of numbers, -1 for those that nobody watches."""
        known = self.arrays.places
        found = np.full(len(numbers), -1)
        here = (numbers >= 0) & (numbers < len(known))
        found[here] = known[numbers[here]]
        return found

    def asks_for_changes(self, numbers: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which watched numbers ask for changes of the relation."""
        found: NDArray[np.bool_] = self.arrays.kinds[self.arrays.places[numbers]] & CHANGE_BIT > 0
        return found

    def shapes(self, numbers: NDArray[Any]) -> tuple[SpatialColumn, Integers]:
        """Return the shapes of watched numbers as a column, and the row of each number there."""
        distinct, rows = np.unique(numbers, return_inverse=True)
        return column_of_wkb([self.known(number).shape for number in distinct.tolist()]), rows

    def relations(self, numbers: Integers) -> NDArray[np.uint8]:
        """Return the masks of relations that watched numbers ask for."""
        return np.array([self.known(number).relations for number in numbers.tolist()], np.uint8)

    def crossable(self) -> list[int]:
        """Return the numbers that ask for crossings."""
        known = self.arrays.places
        return [number for number in self.numbers() if known[number] >= 0 and self.known(number).kinds & CROSS_BIT]

    def known(self, number: int) -> Watch:
        """Return what is watched under a number that is watched."""
        watch = self._watches[self._numbers[number]]
        assert watch is not None
        return watch

    def _make_room(self, number: int, place: int) -> None:
        a = self.arrays
        if number >= len(a.places):
            a = a._replace(places=longer(a.places, room_for(len(a.places), number + 1), -1))
        if place >= len(a.kinds):
            size = room_for(len(a.kinds), place + 1)
            rest = {name: longer(getattr(a, name), size, 0) for name in a._fields if name != "places"}
            a = a._replace(**rest)
        self.arrays = a

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)
