"""Keep the memory of a server small: freed memory goes back to the system, and modules without a use stay out.

The C library keeps freed memory for later, in a heap for each of many threads, and Arrow's own allocator does so too.
After 100,000 subscriptions were loaded, that was as much as everything that the server needs.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # of mallopt in glibc
MAPPED_BYTES = 1 << 18  # an array of this size has pages of its own, which are unmapped when it is freed
FREE_BYTES = 1 << 20  # at the end of the heap
HEAPS = 2


def save_memory() -> None:
    """Set the allocators of a process that has not imported PyArrow yet; other processes stay as they are.

    PyArrow must not find pandas, which it imports to recognise its types: a server has none of them.
    """
    if "pyarrow" in sys.modules:
        return
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for option, value in ((M_MMAP_THRESHOLD, MAPPED_BYTES), (M_TRIM_THRESHOLD, FREE_BYTES), (M_ARENA_MAX, HEAPS)):
            mallopt(option, value)
    absent = _AbsentPandas()
    sys.meta_path.insert(0, absent)
    try:
        import pyarrow as pa

        pa.array([0])  # PyArrow looks for pandas once
    finally:
        sys.meta_path.remove(absent)


def release_free_memory() -> None:
    """Give freed memory back to the system, where the C library can; takes some milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class _AbsentPandas(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)
