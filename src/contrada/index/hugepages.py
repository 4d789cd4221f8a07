"""Allocate the large arrays of a table, in huge pages where the system has them.

Matching reads a table of a million filters at random places, and the page size decides how long each step takes: with
small pages most steps wait for the address as well as for the memory. NumPy asks for huge pages too, but the C library
may return memory that was used before, in small pages.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_HUGE_BYTES = 1 << 22  # below two huge pages the gain is little
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux


def room(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return a new uninitialised array.

    >>> room((2, 3), np.int32).shape
    (2, 3)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if ADVICE is None or size < MIN_HUGE_BYTES:
        return np.empty(shape, dtype)
    try:
        mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"cannot allocate an array of {size >> 20} MiB: {error}") from error
    with contextlib.suppress(OSError):  # ordinary pages work too
        mapped.madvise(ADVICE)
    return np.frombuffer(mapped, dtype).reshape(shape)


def settled(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array for long-term reading: a large array is copied to memory of its own.

    >>> settled(np.arange(3)).tolist(), settled(np.arange(1 << 20)).sum() == (1 << 19) * ((1 << 20) - 1)
    ([0, 1, 2], np.True_)
    """
    if array.nbytes < MIN_HUGE_BYTES:
        return array
    copied = room(array.shape, array.dtype)
    copied[...] = array
    return copied
