"""RecordView: scalar constraints that are not packed yet, tested one after another."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from contrada import kernels
from contrada.index.packed import GATE_VIEW
from contrada.index.raw import FILTER, RawRecords
from contrada.index.scalars import EncodedMessages


class RecordView:
    """View of the raw records of `filters` filters; `forms` is indexed by place."""

    __slots__ = ("_forms", "_local", "_raw", "filters")

    def __init__(self, raw: RawRecords, forms: NDArray[np.uint8], filters: int, local: threading.local) -> None:
        self._raw = raw
        self._forms = forms
        self._local = local  # the buffer's: its views share their scratch space
        self.filters = filters

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._raw)

    @property
    def reached(self) -> NDArray[np.int64]:
        """The filters that are reached here, each once."""
        return np.unique(self._raw.records[:, FILTER])

    def raw(self) -> RawRecords:
        """Return the records."""
        return self._raw

    def match(self, messages: EncodedMessages, reached: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `reached`, filters without records here, and the filters here that a message satisfies."""
        value_of = getattr(self._local, "value_of", None)
        if value_of is None or len(value_of) < len(self._forms):
            self._local.value_of = value_of = np.full(len(self._forms), -1, np.int32)
        out = np.empty(self.filters, np.int64)
        count = kernels.scan_raw(*self._raw, self._forms, *messages, 0, value_of, out, GATE_VIEW)
        if not len(reached):
            return out[:count]
        found = np.concatenate([reached, out[:count]])
        found.sort(kind="stable")
        return found
