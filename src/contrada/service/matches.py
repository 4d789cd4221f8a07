"""Match lists: the numbers of the subscriptions that a message satisfies, as bytes."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PLAIN, COMPRESSED = b"\0", b"\1"
COMPRESS_FROM = 32  # numbers; shorter lists do not become smaller


def pack_matches(numbers: Sequence[int]) -> bytes:
    """Return rising numbers as bytes; none for none.

    >>> unpack_matches(pack_matches([3, 70_000])).tolist(), pack_matches([])
    ([3, 70000], b'')
    """
    if not numbers:
        return b""
    plain = np.asarray(numbers, "<u4")
    if len(numbers) < COMPRESS_FROM:
        return PLAIN + plain.tobytes()
    steps = np.diff(plain, prepend=plain.dtype.type(0))
    return COMPRESSED + zlib.compress(steps.tobytes(), 1)


def unpack_matches(data: bytes) -> NDArray[np.uint32]:
    """Return the numbers of a match list."""
    if data[:1] == COMPRESSED:
        return np.cumsum(np.frombuffer(zlib.decompress(data[1:]), "<u4"), dtype=np.uint32)
    return np.frombuffer(data, "<u4", offset=1) if data else np.zeros(0, np.uint32)


def unpack_many(lists: Sequence[bytes]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the numbers of match lists, one list after the other, and how many each has.

    >>> numbers, counts = unpack_many([pack_matches([3, 70_000]), b"", pack_matches([5])])
    >>> numbers.tolist(), counts.tolist()
    ([3, 70000, 5], [2, 0, 1])
    """
    plain = [unpack_matches(data).tobytes() if data[:1] == COMPRESSED else data[1:] for data in lists]
    return np.frombuffer(b"".join(plain), "<u4"), np.array([len(data) // 4 for data in plain], np.int64)
