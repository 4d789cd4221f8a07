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
        value_of = getattr(self.local, "value_of", None)
        if value_of is None or len(value_of) < len(self.forms):
            self.local.value_of = value_of = np.full(len(self.forms), -1, np.int32)
        out = np.empty(self.filters, np.int64)
        count = kernels.scan_raw(*self.raw, self.forms, *messages, 0, value_of, out, GATE_VIEW)
        if not len(reached):
            return out[:count]
        found = np.concatenate([reached, out[:count]])
        found.sort(kind="stable")
        return found
