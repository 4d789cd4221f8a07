"""RecordView: scalar constraints that are not packed yet, tested one after another."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.codes import FILTER
from contrada.index.packed import GATE_VIEW
from contrada.index.raw import RawRecords
from contrada.index.scalars import EncodedMessages


@dataclass(eq=False, slots=True)
class RecordView:
    """View of the raw records of `filters` filters; `forms` is indexed by place."""

    raw: RawRecords
    forms: NDArray[np.uint8]
    filters: int
    local: threading.local  # the buffer's: its views share their scratch space

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.raw)

    @property
    def reached(self) -> NDArray[np.int64]:
        """The filters that are reached here, each once."""
        return np.unique(self.raw.records[:, FILTER])

    def match(self, messages: EncodedMessages, reached: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `reached`, filters without records here, and the filters here that a message satisfies."""
        out, ends = np.empty(self.filters, np.int64), np.empty(1, np.int64)
        kernels.scan_raw(*self.raw, self.forms, *messages, 0, self._value_of(), out, ends, GATE_VIEW)
        found = out[: ends.item(0)]
        if len(reached):
            found = np.concatenate([reached, found])
            found.sort(kind="stable")
        return found

    def match_many(self, messages: EncodedMessages) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how many filters here each message satisfies, and the filters, message by message."""
        out = np.empty(max(4 * len(self.raw.records), 1 << 16), np.int64)
        ends = np.empty(messages.size, np.int64)
        start, counts, answers = 0, [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        while start < messages.size:
            done = kernels.scan_raw(*self.raw, self.forms, *messages, start, self._value_of(), out, ends, GATE_VIEW)
            counts.append(np.diff(ends[start:done], prepend=0))
            answers.append(out[: ends[done - 1]].copy())
            start = done
        return np.concatenate(counts), np.concatenate(answers)

    def _value_of(self) -> NDArray[np.int32]:
        """Return scratch space for the values of a message by place, one per thread."""
        value_of = getattr(self.local, "value_of", None)
        if value_of is None or len(value_of) < len(self.forms):
            self.local.value_of = value_of = np.full(len(self.forms), -1, np.int32)
        return value_of
