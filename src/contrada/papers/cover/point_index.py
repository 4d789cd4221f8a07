"""PointIndex: base of all indexes of points, with rows, growing arrays and counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import index
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contrada import kernels
from contrada.errors import CoveringError, KeyInUseError, UnknownKeyError
from contrada.kernels.cover.arrays import GraphArrays

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MAX_DIMENSIONS = 64  # kernels keep one bit per dimension in a word
MAX_ROW = 2**31 - 2
INITIAL_ROWS = 64
AFTER_ALL_ARRIVALS = np.iinfo(np.int64).max
NOBODY = -1


class SearchWork(NamedTuple):
    """The work of searches: nodes or blocks visited, and points compared."""

    nodes: int
    comparisons: int


class PointIndex(ABC):
    """A dynamic set of points by row number; finds points that dominate another.

    A point equal to the query counts only if it arrived earlier: of equal points the earlier covers the later.
    """

    _name: ClassVar[str]  # prefix of the names of its kernels

    def __init__(self, dimensions: int) -> None:
        """Make an empty index of points with 1 to 64 dimensions."""
        if not 1 <= index(dimensions) <= MAX_DIMENSIONS:
            raise CoveringError(f"need 1 to {MAX_DIMENSIONS} dimensions, got {dimensions}")
        self.dimensions = index(dimensions)
        self._live = np.zeros(INITIAL_ROWS, bool)
        self._count = 0
        self._counters = np.zeros(2, np.int64)
        self._arrays = self._empty(INITIAL_ROWS)

    @abstractmethod
    def _empty(self, room: int) -> Any:
        """Return the arrays of an empty index with room for `room` rows, as its kernels take them."""

    def _has_room(self) -> bool:
        """Return True if the arrays have room for one more point; by default they grow with the rows alone."""
        return True

    def __len__(self) -> int:
        return self._count

    def __contains__(self, row: int) -> bool:
        return 0 <= row < len(self._live) and bool(self._live[row])

    @property
    def work(self) -> SearchWork:
        """The work of all searches so far."""
        return SearchWork(*self._counters.tolist())

    def add(self, row: int, point: ArrayLike, arrival: int | None = None) -> None:
        """Add a point under a row number (small numbers save memory); `arrival` defaults to the row."""
        row, checked = index(row), self.checked(point)
        if not 0 <= row <= MAX_ROW:
            raise CoveringError(f"row {row} is not between 0 and {MAX_ROW}")
        if row in self:
            raise KeyInUseError(f"row {row} is already in the index")
        if row >= len(self._live):
            self.grow(max(row + 1, 2 * len(self._live)))
        while not self._has_room():
            self.grow(len(self._live))
        self._arrays.points[row] = checked
        self._arrays.arrivals[row] = row if arrival is None else arrival
        self._call("add", row)
        self._live[row] = True
        self._count += 1

    def remove(self, row: int) -> None:
        """Remove a row."""
        row = index(row)
        if row not in self:
            raise UnknownKeyError(f"row {row} is not in the index")
        self._call("drop", row)
        self._live[row] = False
        self._count -= 1

    def find_covers(self, point: ArrayLike, k: int | None = 1, before: int = AFTER_ALL_ARRIVALS) -> Integers:
        """Return at most `k` rows (None: all) whose points dominate `point`, or equal it and came before `before`."""
        if k is not None and k < 1:
            raise CoveringError(f"k: need a number of at least 1, got {k}")
        query = self.checked(point)[None]
        query.setflags(write=False)
        out = np.empty(self._count if k is None else min(k, self._count), np.int64)
        found = self._call("search", query, before, out, self._counters) if len(out) else 0
        return out[:found]

    def checked(self, point: ArrayLike) -> Floats:
        """Return a copy of a point as doubles; raise CoveringError if it does not fit this index."""
        try:
            coordinates = np.array(point, np.float64)
        except (TypeError, ValueError) as error:
            raise CoveringError(f"point: need a sequence of numbers: {error}") from None
        if coordinates.shape != (self.dimensions,):
            raise CoveringError(f"point: need {self.dimensions} numbers, got shape {coordinates.shape}")
        if np.isnan(coordinates).any():
            raise CoveringError(f"dimension {int(np.isnan(coordinates).argmax())} of a point is NaN")
        return coordinates

    def grow(self, room: int) -> None:
        """Make room for `room` rows, and for more nodes or blocks: twice as many, or what the rows suggest."""
        old = self._arrays
        self._arrays = self._empty(room)
        for kept, array in zip(old, self._arrays, strict=True):
            array[: len(kept)] = kept
        self._live = np.concatenate([self._live, np.zeros(room - len(self._live), bool)])

    def run(self, points: Floats, graph: GraphArrays, commands: Integers, log: Integers, tally: Integers) -> None:
        """Replay commands on this empty index, with the rows of `points`; the kernel `replay` says what it writes."""
        if self._count:
            raise CoveringError(f"replay needs an empty index; this one has {self._count} points")
        self.grow(max(len(points), len(self._live)))
        self._arrays.points[: len(points)] = points
        self._call("replay", graph, commands, log, tally)
        while tally[-1] < len(commands):
            self.grow(len(self._live))
            self._call("replay", graph, commands, log, tally)

    def _call(self, action: str, *arguments: Any) -> Any:
        return getattr(kernels, f"{self._name}_{action}")(self._arrays, *arguments)


def nobody(*shape: int) -> NDArray[np.int32]:
    """Return an array of null references."""
    return np.full(shape, NOBODY, np.int32)


def room_for_points(room: int, dimensions: int) -> tuple[Floats, Integers]:
    """Return empty arrays of points and arrivals for `room` rows."""
    return np.zeros((room, dimensions)), np.zeros(room, np.int64)
