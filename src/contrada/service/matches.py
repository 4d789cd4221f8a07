"""Match lists: the subscriptions that a message satisfies, and the events of tracked objects, as bytes.

An event of a message has a number: that of its subscription, plus `rank << NUMBER_BITS` for a second or later event of
the same message and subscription. Plain matches, and first events of tracked objects, have rank 0.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import Struct

import msgspec
import numpy as np
from numpy.typing import NDArray

PLAIN, COMPRESSED, TRACKED = b"\0", b"\1", b"\2"
COMPRESS_FROM = 32  # numbers; shorter lists do not become smaller
SHORT = [Struct(f"<{count}I") for count in range(COMPRESS_FROM)]  # five times as quick as an array of NumPy
NUMBER_BITS = 32
NUMBER_MASK = (1 << NUMBER_BITS) - 1

TrackedEvent = tuple[int, bytes]  # the number of an event, and the JSON of its member `track`


class _TrackedList(msgspec.Struct, frozen=True, array_like=True):
    """A match list with events of tracked objects; `plain` are the other matches."""

    plain: bytes
    tracked: Sequence[TrackedEvent]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_TrackedList).decode


def pack_matches(numbers: Sequence[int], tracked: Sequence[TrackedEvent] = ()) -> bytes:
    """Return rising numbers as bytes, with events of tracked objects if there are any; none for none.

    >>> unpack_matches(pack_matches([3, 70_000])).tolist(), pack_matches([])
    ([3, 70000], b'')
    >>> data = pack_matches([3], [(2, b"{}"), (2 + (1 << NUMBER_BITS), b"[]")])
    >>> unpack_matches(data).tolist(), unpack_tracks(data)
    ([2, 3, 4294967298], {2: b'{}', 4294967298: b'[]'})
    """
    plain = _pack_numbers(numbers) if numbers else b""
    return TRACKED + _encode(_TrackedList(plain, tracked)) if tracked else plain


def _pack_numbers(numbers: Sequence[int]) -> bytes:
    if len(numbers) < COMPRESS_FROM:
        return PLAIN + SHORT[len(numbers)].pack(*numbers)
    plain = np.asarray(numbers, "<u4")
    steps = np.diff(plain, prepend=plain.dtype.type(0))
    return COMPRESSED + zlib.compress(steps.tobytes(), 1)


def unpack_matches(data: bytes) -> NDArray[np.int64]:
    """Return the numbers of the events of a match list, rising."""
    if data[:1] == TRACKED:
        found = _decode(memoryview(data)[1:])
        tracked = np.array([number for number, _ in found.tracked], np.int64)
        return np.sort(np.concatenate([unpack_matches(found.plain), tracked]))
    if data[:1] == COMPRESSED:
        return np.cumsum(np.frombuffer(zlib.decompress(data[1:]), "<u4"), dtype=np.int64)
    return np.frombuffer(data, "<u4", offset=1).astype(np.int64) if data else np.zeros(0, np.int64)


def list_matches(data: bytes) -> list[int]:
    """Return the numbers of the events of a match list, rising.

    >>> list_matches(pack_matches([3, 70_000])), list_matches(b"")
    ([3, 70000], [])
    """
    if data[:1] == PLAIN and len(data) // 4 < COMPRESS_FROM:
        return list(SHORT[len(data) // 4].unpack_from(data, 1))
    return unpack_matches(data).tolist() if data else []


def unpack_tracks(data: bytes) -> dict[int, bytes]:
    """Return the members `track` in a match list, by the number of the event."""
    return dict(_decode(memoryview(data)[1:]).tracked) if data[:1] == TRACKED else {}


def unpack_many(lists: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of match lists, one list after the other, and how many each has.

    >>> numbers, counts = unpack_many([pack_matches([3, 70_000]), b"", pack_matches([5])])
    >>> numbers.tolist(), counts.tolist()
    ([3, 70000, 5], [2, 0, 1])
    """
    if any(data[:1] == TRACKED for data in lists):
        found = [unpack_matches(data) for data in lists]
        return np.concatenate(found), np.array([len(own) for own in found], np.int64)
    plain = [unpack_matches(data).astype("<u4").tobytes() if data[:1] == COMPRESSED else data[1:] for data in lists]
    counts = np.array([len(data) // 4 for data in plain], np.int64)
    return np.frombuffer(b"".join(plain), "<u4").astype(np.int64), counts
