"""Room for the large arrays of a table, in huge pages where the system has them.

A table of a million filters is read all over the place, and what it lies in decides how long each step takes: out of
small pages most steps wait for the address as well as for the memory. NumPy asks for huge pages too, but what it gets
from the C library may be memory that was used before, in small pages.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE = 1 << 22  # bytes: less than two huge pages gain little
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux


def room(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """A new array whose contents are whatever they are.

    >>> room((2, 3), np.int32).shape
    (2, 3)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if ADVICE is None or size < LARGE:
        return np.empty(shape, dtype)
    try:
        mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no room for an array of {size >> 20} MiB: {error}") from error
    with contextlib.suppress(OSError):  # without them the memory is as good as any
        mapped.madvise(ADVICE)
    return np.frombuffer(mapped, dtype).reshape(shape)


def settled(array: NDArray[Any]) -> NDArray[Any]:
    """The array as it will be read for long: a large one is copied to room of its own.

    >>> settled(np.arange(3)).tolist(), settled(np.arange(1 << 20)).sum() == (1 << 19) * ((1 << 20) - 1)
    ([0, 1, 2], np.True_)
    """
    if array.nbytes < LARGE:
        return array
    copied = room(array.shape, array.dtype)
    copied[...] = array
    return copied
