"""ScalarIndex: immutable, packed constraints of many filters on numbers, times, booleans and text.

A constraint is a record of three integers: the slot of a place with the question, and an interval of ranks among the
constants of the slot (kernels/match/ranks.py), or the number of a set or pattern. Records are grouped by filter; a
filter is reached through its first record, unless it is reached through a region. Entries lead to filters: by the
constant that a value equals, by the pattern that it matches, by the interval that contains it, or by its presence.
"""

from __future__ import annotations

import threading
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import A_POINT, ABSENT, MAX_LANE, NOTHING, OTHERS_PER_SLOT, TEXT
from contrada.geometry import Line, Point
from contrada.geometry.arrays import frozen
from contrada.geometry.circle import Circle
from contrada.geometry.line_relating import AnyValue
from contrada.index.entries import filters_of
from contrada.index.packed import GATE_VIEW
from contrada.index.ranking import ScalarArrays
from contrada.kernels.match.tables import SCALARS, SCRATCH

NO_VALUE = 0x80008000 | MAX_LANE << 16  # ABSENT in the form that entries are compared with
EVERYWHERE = frozen(np.array([[-np.inf, -np.inf, np.inf, np.inf]]))
NOWHERE = frozen(np.array([[np.inf, np.inf, -np.inf, -np.inf]]))


class EncodedMessages(NamedTuple):
    """Messages as kernels take them (kernels/match/ranks.py)."""

    offsets: NDArray[np.int64]
    values: NDArray[np.int64]
    blob: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """The number of messages."""
        return len(self.offsets) - 1

    def one(self, k: int, forms: NDArray[np.uint8]) -> EncodedMessages:
        """Return a copy of message k with its own text alone; `forms` are the forms of the slots."""
        values = self.values[self.offsets[k] : self.offsets[k + 1]].copy()
        is_text = forms[values[:, 0]] >= TEXT
        texts = [np.empty(0, np.uint8), *(self.blob[start:stop] for start, stop in values[is_text, 1:].tolist())]
        ends = np.cumsum([len(text) for text in texts])
        values[is_text, 1], values[is_text, 2] = ends[:-1], ends[1:]
        return EncodedMessages(frozen(np.array([0, len(values)])), frozen(values), frozen(np.concatenate(texts)))


NO_TABLE = NO_PLACES = frozen(np.empty(0, np.int64))
NO_REGIONS = (
    frozen(np.empty((0, 2))), frozen(np.zeros(1, np.int64)), frozen(np.zeros(1, np.int32)),
    frozen(np.empty(0, np.uint8)), frozen(np.empty((0, 4))), np.empty((0, 4)), frozen(np.empty(0, np.int64)),
)  # fmt: skip


class Beside(NamedTuple):
    """Spatial values of messages: boxes to exclude entries by, regions, and constraints on the regions.

    Message k has region region_of[k], or A_POINT, which is its box, or NOTHING. If there is a table of constraints
    (matching/residual.py), they are checked after the scalars.
    """

    boxes: NDArray[np.float64]
    regions: tuple[Any, ...]  # as kernels take a column
    region_of: NDArray[np.int64]
    table: NDArray[np.int64]


_FIRST, _NO_REGION, _POINT = (frozen(np.array([number], np.int64)) for number in (0, NOTHING, A_POINT))
_BOX = Struct("=4d").pack
NOTHING_BESIDE = Beside(EVERYWHERE, NO_REGIONS, _NO_REGION, NO_TABLE)


def beside_of(value: AnyValue | None, table: NDArray[np.int64]) -> Beside:
    """Return the spatial value of one message with a table of constraints; None if the message has no value.

    Of a circle or line only the box is there, and no table: kernels know regions and points.
    """
    if isinstance(value, Point):
        x, y = value.x, value.y
        box = np.ndarray((1, 4), np.float64, _BOX(x, y, x, y))
        return tuple.__new__(Beside, (box, NO_REGIONS, _POINT, table))  # calling the class takes three times as long
    if value is None:
        return Beside(NOWHERE, NO_REGIONS, _NO_REGION, table)
    if isinstance(value, Circle | Line):
        return Beside(value._column.bounds, NO_REGIONS, _NO_REGION, NO_TABLE)
    arrays = value._kernel_arrays
    return Beside(arrays[4], arrays, _FIRST, table)


class ScalarIndex:
    """Scalar constraints of filters first, first + 1, ...; finds the filters that messages satisfy."""

    __slots__ = ("_local", "_table", "arrays", "expected", "first", "region_slot")

    def __init__(
        self, first: int, arrays: ScalarArrays, region_slot: tuple[str, str] | None = None, expected: float = np.inf
    ) -> None:
        self.first = first
        self.expected = expected  # estimated number of filters that a message reaches through scalars
        self.region_slot = region_slot  # attribute and type of the regions that entries are ordered by
        self.arrays = ScalarArrays(*(frozen(array) for array in arrays))
        self._table = SCALARS.addresses(self.arrays._asdict())
        self._local = threading.local()

    def __len__(self) -> int:
        """Return the number of constraints."""
        return len(self.arrays.records)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def reached(self) -> NDArray[np.int64]:
        """The filters that are reached here, each once."""
        return np.sort(self.filters_at(np.flatnonzero(self._is_reached())))

    @property
    def filters(self) -> int:
        """Number of filters that are reached here."""
        return int(np.count_nonzero(self._is_reached()))

    def _is_reached(self) -> NDArray[np.bool_]:
        """Return whether each place has an entry; sorting the entries would take many times as long."""
        marks = np.zeros(len(self.arrays.numbers), bool)
        marks[filters_of(self.arrays.entries)] = True
        return marks

    def renumbered(self, filters: NDArray[np.int64]) -> ScalarIndex:
        """Return the index with filter filters[k] renumbered to k; filters that are not listed have no records."""
        first, stop = np.searchsorted(filters, (self.first, self.first + len(self.arrays.local_of))).tolist()
        local_of = self.arrays.local_of[filters[first:stop] - self.first]
        numbers = np.full(len(self.arrays.numbers), -1, np.int32)
        numbers[local_of] = np.arange(len(local_of))
        arrays = self.arrays._replace(numbers=numbers, local_of=local_of)
        return ScalarIndex(first, arrays, self.region_slot, self.expected)

    def filters_at(self, places: NDArray[Any]) -> NDArray[np.int64]:
        """Return the filters at places of records and entries."""
        filters: NDArray[np.int64] = self.arrays.numbers[places] + np.int64(self.first)
        return filters

    def owners(self) -> NDArray[np.int64]:
        """Return the filter of every record."""
        offsets = self.arrays.offsets
        return self.filters_at(np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)))

    def match(
        self, messages: EncodedMessages, reached: NDArray[np.int64] = NO_PLACES, beside: Beside = NOTHING_BESIDE
    ) -> NDArray[np.int64]:
        """Return the places of the filters that one message satisfies, of those in `reached` and those reached here.

        Entries whose regions lie apart from the box are skipped if the index knows their regions.
        """
        scratch = self._scratch()
        room = len(reached) + len(self.arrays.entries)
        if len(scratch.out) < room:
            scratch.out = np.empty(room, np.int64)
        if reached is not NO_PLACES:
            reached = frozen(reached)
        if len(reached) != scratch.reached:
            scratch.limits[1] = scratch.reached = len(reached)
        boxes, regions, region_of, table = beside
        kernels.match_scalars(
            self._table, *messages, boxes, *regions, region_of, table, scratch.limits_view, reached,
            0, scratch.table, scratch.out, scratch.ends,
        )  # fmt: skip
        count = scratch.ends.item(0)
        return scratch.out[:count].copy() if count else NO_PLACES

    def match_many(
        self, messages: EncodedMessages, offsets: NDArray[np.int64], reached: NDArray[np.int64], beside: Beside
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Match many messages; return the number of filters of each, and their places here, unordered."""
        scratch = self._scratch()  # one per thread
        most = (int(np.diff(offsets).max(initial=0)) if len(reached) else 0) + len(self.arrays.entries)
        out, ends = np.empty(max(4 * most, 1 << 16), np.int64), np.empty(messages.size, np.int64)
        start, counts, answers = 0, [], []
        boxes, regions, region_of, table = beside
        while start < messages.size:
            done = kernels.match_scalars(
                self._table, *messages, boxes, *regions, region_of, table, frozen(offsets), frozen(reached),
                start, scratch.table, out, ends,
            )  # fmt: skip
            counts.append(np.diff(ends[start:done], prepend=0))
            answers.append(out[: ends[done - 1]].copy())
            start = done
        return np.concatenate([*counts, np.empty(0, np.int64)]), np.concatenate([*answers, np.empty(0, np.int64)])

    def ranks(self, messages: EncodedMessages) -> NDArray[np.int32]:
        """Return the rank of each message's value in every slot, ABSENT without a value."""
        out = np.empty((messages.size, len(self.arrays.forms)), np.int32)
        kernels.rank_messages(self._table, *messages, EVERYWHERE, *ScalarScratch(self.arrays).room, out)
        return out

    def reach(self, messages: EncodedMessages) -> float:
        """Return how many filters a message reaches through scalars (no regions or patterns), on average."""
        a, total = self.arrays, 0
        for slot, ranks in enumerate(self.ranks(messages).T):
            ranks = ranks[ranks >= 0].astype(np.int64)
            at = a.equal_base[slot] + (ranks[ranks & 1 == 1] >> 1)
            total += int((a.equal_offsets[at + 1] - a.equal_offsets[at]).sum())
            first, last, end, _, span = a.others[:-1].reshape(-1, OTHERS_PER_SLOT)[slot].tolist()
            low, high = np.sort(a.spans[2 * span : 2 * (span + last - first)].reshape(-1, 2), axis=0).T
            total += int((np.searchsorted(low, ranks, "right") - np.searchsorted(high, ranks, "left")).sum())
            total += (end - last) * len(ranks)
        return total / messages.size

    def _scratch(self) -> ScalarScratch:
        try:
            return self._local.scratch  # type: ignore[no-any-return]
        except AttributeError:
            self._local.scratch = made = ScalarScratch(self.arrays)
            return made


class ScalarScratch:
    """Arrays that one thread writes to while it matches."""

    __slots__ = ("ends", "limits", "limits_view", "out", "reached", "room", "table", "words")

    def __init__(self, arrays: ScalarArrays) -> None:
        texts = len(arrays.text_offsets) - 1
        self.room: tuple[Any, ...] = (
            np.full(len(arrays.forms), ABSENT, np.int32), np.zeros(texts, np.uint8), np.empty(texts, np.int32)
        )  # fmt: skip
        self.words = np.full(len(arrays.forms), NO_VALUE, np.uint64)
        named = zip(SCRATCH.fields, (*self.room, self.words, GATE_VIEW), strict=True)
        self.table = SCRATCH.addresses(dict(named))
        self.out = np.empty(len(arrays.entries) + 64, np.int64)
        self.ends = np.empty(1, np.int64)
        self.limits, self.reached = np.zeros(2, np.int64), 0
        self.limits_view = frozen(self.limits)
