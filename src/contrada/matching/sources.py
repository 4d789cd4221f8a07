"""Sources: what users wrote for their subscriptions, which the packed constraints do not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

UNWRITTEN = -1  # a subscription that was made of objects


class WrittenRows(NamedTuple):
    """Distinct texts, and the number of the text of each row."""

    texts: list[str]
    number_of: NDArray[np.int32]


class Sources:
    """The text of each subscription in CQL2, or the template of many; equal texts are kept once.

    Takes four bytes per subscription besides the distinct texts. Writers hold the lock of the table.

    >>> sources = Sources()
    >>> sources.put(0, ["severity > 3"])
    >>> sources.put(1, ["kind = $kind"] * 1000)
    >>> sources.find(0), sources.find(700), sources.find(5000)
    ('severity > 3', 'kind = $kind', None)
    """

    def __init__(self, saved: WrittenRows | None = None) -> None:
        self._texts, self._number_of = WrittenRows([], np.empty(0, np.int32)) if saved is None else saved
        self._numbers = {text: number for number, text in enumerate(self._texts)}

    def put(self, first: int, written: Sequence[str]) -> None:
        """Note the texts of rows from `first` on."""
        distinct = dict.fromkeys(written)
        for text in distinct:
            if text not in self._numbers:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
        stop = first + len(written)
        if stop > len(self._number_of) or not self._number_of.flags.writeable:
            room = np.full(stop + stop // 2, UNWRITTEN, np.int32)
            room[: len(self._number_of)] = self._number_of
            self._number_of = room
        if len(distinct) == 1:
            self._number_of[first:stop] = self._numbers[written[0]]
        else:
            self._number_of[first:stop] = [self._numbers[text] for text in written]

    def find(self, row: int) -> str | None:
        """Return the text of a row; None if it was made of objects."""
        number = int(self._number_of[row]) if row < len(self._number_of) else UNWRITTEN
        return None if number == UNWRITTEN else self._texts[number]

    def chosen(self, rows: NDArray[np.int64]) -> WrittenRows:
        """Return the texts of some rows."""
        numbers = np.full(len(rows), UNWRITTEN, np.int32)
        known = rows < len(self._number_of)
        numbers[known] = self._number_of[rows[known]]
        kept = np.unique(numbers[numbers >= 0])
        place_of = np.full(len(self._texts) + 1, UNWRITTEN, np.int32)
        place_of[kept] = np.arange(len(kept))
        return WrittenRows([self._texts[number] for number in kept.tolist()], place_of[numbers])
