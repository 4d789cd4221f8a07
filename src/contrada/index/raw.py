"""Raw records: constraints on scalars and text as arrays, before their constants are ranked.

A record is a row of seven integers: filter, place, the question (with the kinds of interval ends), two integers for the
lower operand and two for the upper one. An operand is (key, rest) of a scalar, or the begin and end of its text in the
blob. For a set, the first two give the range of its members; for a pattern, the range of its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada import codes
from contrada.geometry.arrays import frozen
from contrada.model.forms import Operand, Test


class RawRecords(NamedTuple):
    """Records, the members of their sets, and text."""

    records: NDArray[np.int64]
    members: NDArray[np.int64]
    blob: NDArray[np.uint8]


def raw_of_tests(tests: Iterable[Test]) -> RawRecords:
    """Return the records of many tests, numbered in order; the caller fills in the place."""
    records: list[tuple[int, ...]] = []
    members: list[tuple[int, int]] = []
    texts: list[bytes] = []
    end = 0

    def kept(operand: Operand) -> tuple[int, int]:
        nonlocal end
        if not isinstance(operand, bytes):
            return operand
        texts.append(operand)
        end += len(operand)
        return end - len(operand), end

    def kept_members(given: tuple[Operand, ...]) -> tuple[int, int]:
        members.extend(map(kept, given))
        return len(members) - len(given), len(members)

    for number, test in enumerate(tests):
        records.append((number, 0, *_asked(test, kept, kept_members)))
    return RawRecords(
        np.array(records, np.int64).reshape(-1, 7),
        np.array(members, np.int64).reshape(-1, 2),
        np.frombuffer(b"".join(texts), np.uint8),
    )


def _asked(
    test: Test,
    kept: Callable[[Operand], tuple[int, int]],
    kept_members: Callable[[tuple[Operand, ...]], tuple[int, int]],
) -> tuple[int, ...]:
    """Return the question of a test and its two operands; `kept` and `kept_members` store operands and members."""
    asked, low, high = test.asks, (0, 0), (0, 0)
    if test.asks >= codes.LIKE:
        low = kept(test.pattern)
    elif test.asks >= codes.SET:
        low = kept_members(test.members)
    else:
        if test.low is not None:
            asked |= (codes.OPEN if test.low.is_open else codes.CLOSED) << codes.LOW_SHIFT
            low = kept(test.low.operand)
        if test.high is not None:
            asked |= (codes.OPEN if test.high.is_open else codes.CLOSED) << codes.HIGH_SHIFT
            high = kept(test.high.operand)
    return asked, *low, *high


class GrowingArray:
    """Array that grows at the end. Earlier views keep their entries."""

    __slots__ = ("_room", "count")

    def __init__(self, capacity: int, dtype: Any, *columns: int) -> None:
        self._room = np.empty((capacity, *columns), dtype)
        self.count = 0

    def append(self, entry: Any) -> None:
        """Add one entry."""
        if self.count == len(self._room):
            self._room = with_room(self._room, self.count, 1)
        self._room[self.count] = entry
        self.count += 1

    def extend(self, entries: NDArray[Any]) -> None:
        """Add several entries."""
        stop = self.count + len(entries)
        self._room = with_room(self._room, self.count, len(entries))
        self._room[self.count : stop] = entries
        self.count = stop

    def view(self) -> NDArray[Any]:
        """Return a view of the entries so far."""
        return self._room[: self.count]


class RawBuffer:
    """Raw records that grow at the end; views of them do not change."""

    def __init__(self) -> None:
        self._records = GrowingArray(256, np.int64, 7)
        self._members = GrowingArray(256, np.int64, 2)
        self._blob = GrowingArray(4096, np.uint8)

    def append(self, number: int, place: int, test: Test) -> None:
        """Add a test of filter `number`."""
        self._records.append((number, place, *_asked(test, self._kept, self._kept_members)))

    def _kept(self, operand: Operand) -> tuple[int, int]:
        """Return an operand as two integers; text goes to the blob."""
        if not isinstance(operand, bytes):
            return operand
        start = self._blob.count
        self._blob.extend(np.frombuffer(operand, np.uint8))
        return start, self._blob.count

    def _kept_members(self, members: tuple[Operand, ...]) -> tuple[int, int]:
        """Add the members of a set; return where they begin and end."""
        first = self._members.count
        for member in members:
            self._members.append(self._kept(member))
        return first, self._members.count

    def raw(self) -> RawRecords:
        """Return a read-only view of the records so far."""
        return RawRecords(*(frozen(part.view()) for part in (self._records, self._members, self._blob)))


def with_room(array: NDArray[Any], used: int, more: int) -> NDArray[Any]:
    """Return an array with the first `used` entries and room for `more`; the same array if it has room."""
    if used + more <= len(array):
        return array
    grown = np.empty((max(2 * len(array), used + more), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


def joined_raw(parts: list[RawRecords], is_text: NDArray[np.bool_]) -> RawRecords:
    """Concatenate records; operands point to the new positions of text and members. `is_text` is indexed by place."""
    if len(parts) == 1:
        return parts[0]
    records, members, text, member_count = [], [], 0, 0
    for part in parts:
        rows, own = part.records.copy(), part.members.copy()
        asks = rows[:, codes.ASKED] & 7
        texts = is_text[rows[:, codes.PLACE]]
        spans = texts & (asks < codes.SET)
        low = spans & (rows[:, codes.ASKED] >> codes.LOW_SHIFT & 3 != codes.UNBOUNDED) | (asks >= codes.LIKE)
        high = spans & (rows[:, codes.ASKED] >> codes.HIGH_SHIFT & 3 != codes.UNBOUNDED)
        rows[low, codes.LOW : codes.LOW_REST + 1] += text
        rows[high, codes.HIGH : codes.HIGH_REST + 1] += text
        sets = (asks >= codes.SET) & (asks < codes.LIKE)
        edges = np.zeros(len(own) + 1, np.int64)
        np.add.at(edges, rows[sets & texts, codes.LOW], 1)
        np.add.at(edges, rows[sets & texts, codes.LOW_REST], -1)
        own[np.cumsum(edges[:-1]) > 0] += text
        rows[sets, codes.LOW : codes.LOW_REST + 1] += member_count
        records.append(rows)
        members.append(own)
        text += len(part.blob)
        member_count += len(own)
    return RawRecords(np.concatenate(records), np.concatenate(members), np.concatenate([part.blob for part in parts]))
