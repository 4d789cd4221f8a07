"""Raw records: constraints on scalars and text as arrays, before their constants are ranked.

A record is a row of seven integers: filter, place, the question (with the kinds of interval ends), two integers for the
lower operand and two for the upper one. An operand is (key, rest) of a scalar, or the begin and end of its text in the
blob. For a set, the first two give the range of its members; for a pattern, the range of its code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.model.forms import LIKE, SET, Operand, Test

FILTER, PLACE, ASKED, LOW, LOW_REST, HIGH, HIGH_REST = range(7)
UNBOUNDED, CLOSED, OPEN = range(3)  # kinds of interval ends
LOW_SHIFT, HIGH_SHIFT = 8, 16


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

    for number, test in enumerate(tests):
        asked, low, high = test.asks, (0, 0), (0, 0)
        if test.asks < SET:
            if test.low is not None:
                asked |= (OPEN if test.low.is_open else CLOSED) << LOW_SHIFT
                low = kept(test.low.operand)
            if test.high is not None:
                asked |= (OPEN if test.high.is_open else CLOSED) << HIGH_SHIFT
                high = kept(test.high.operand)
        elif test.asks < LIKE:
            members += map(kept, test.members)
            low = len(members) - len(test.members), len(members)
        else:
            low = kept(test.pattern)
        records.append((number, 0, asked, *low, *high))
    return RawRecords(
        np.array(records, np.int64).reshape(-1, 7),
        np.array(members, np.int64).reshape(-1, 2),
        np.frombuffer(b"".join(texts), np.uint8),
    )


class RawBuffer:
    """Raw records that grow at the end; views of them do not change."""

    def __init__(self, room: int = 256) -> None:
        self._records = np.empty((room, 7), np.int64)
        self._members = np.empty((room, 2), np.int64)
        self._blob = np.empty(16 * room, np.uint8)
        self._counts = [0, 0, 0]

    def append(self, number: int, place: int, test: Test) -> None:
        """Add a test of filter `number`."""
        asked, operands = test.asks, [0, 0, 0, 0]
        if test.asks < SET:
            for side, (bound, shift) in enumerate(((test.low, LOW_SHIFT), (test.high, HIGH_SHIFT))):
                if bound is not None:
                    asked |= (OPEN if bound.is_open else CLOSED) << shift
                    operands[2 * side : 2 * side + 2] = self._kept(bound.operand)
        elif test.asks < LIKE:
            first = self._counts[1]
            self._members = with_room(self._members, first, len(test.members))
            for k, member in enumerate(test.members, first):
                self._members[k] = self._kept(member)
            self._counts[1] += len(test.members)
            operands[:2] = first, self._counts[1]
        else:
            operands[:2] = self._kept(test.pattern)
        count = self._counts[0]
        self._records = with_room(self._records, count, 1)
        self._records[count] = number, place, asked, *operands
        self._counts[0] = count + 1

    def _kept(self, operand: Operand) -> tuple[int, int]:
        """Return an operand as two integers; text goes to the blob."""
        if not isinstance(operand, bytes):
            return operand
        start = self._counts[2]
        self._blob = with_room(self._blob, start, len(operand))
        self._blob[start : start + len(operand)] = np.frombuffer(operand, np.uint8)
        self._counts[2] = start + len(operand)
        return start, self._counts[2]

    def raw(self) -> RawRecords:
        """Return a read-only view of the records so far."""
        views = (array[:count] for array, count in zip(self._arrays(), self._counts, strict=True))
        return RawRecords(*(_frozen(view) for view in views))

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self._records, self._members, self._blob


def _frozen(view: NDArray[Any]) -> NDArray[Any]:
    view.setflags(write=False)
    return view


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
        asks = rows[:, ASKED] & 7
        texts = is_text[rows[:, PLACE]]
        low = texts & (asks < SET) & (rows[:, ASKED] >> LOW_SHIFT & 3 != UNBOUNDED) | (asks >= LIKE)
        high = texts & (asks < SET) & (rows[:, ASKED] >> HIGH_SHIFT & 3 != UNBOUNDED)
        rows[low, LOW : LOW_REST + 1] += text
        rows[high, HIGH : HIGH_REST + 1] += text
        sets = (asks >= SET) & (asks < LIKE)
        edges = np.zeros(len(own) + 1, np.int64)
        np.add.at(edges, rows[sets & texts, LOW], 1)
        np.add.at(edges, rows[sets & texts, LOW_REST], -1)
        own[np.cumsum(edges[:-1]) > 0] += text
        rows[sets, LOW : LOW_REST + 1] += member_count
        records.append(rows)
        members.append(own)
        text += len(part.blob)
        member_count += len(own)
    return RawRecords(np.concatenate(records), np.concatenate(members), np.concatenate([part.blob for part in parts]))
