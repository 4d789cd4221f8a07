"""The state of tracked objects, or a change of it, as bytes: arrays one after another, with a checksum."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FormatError

MAGIC = b"CTT1"
_HEAD = struct.Struct("<4sI")


class SavedTracks(NamedTuple):
    """What changed in tracked objects; a snapshot is the change from nothing.

    `watched` and `since` belong to `watches`; `unwatched` are numbers that were removed. `newest`, `seen` and `xy` are
    the last fixes of the objects in `slots`; `seen` is 0 for objects that are gone. `named` are slots that hold a new
    object, with its id in `ids`. `shaped` are slots whose last fix is a region, with its WKB in `shapes`, one after
    another. The rest are changed pairs, in order.
    """

    head: NDArray[np.int64]  # fixes taken, late fixes, slots ever used, expire_after, whether late fixes are taken
    unwatched: NDArray[np.int32]
    watched: NDArray[np.int32]
    since: NDArray[np.int64]
    watches: NDArray[np.uint8]
    slots: NDArray[np.int32]
    newest: NDArray[np.int64]
    seen: NDArray[np.int64]
    xy: NDArray[np.float64]
    named: NDArray[np.int32]
    ids: NDArray[np.uint8]
    aliases: NDArray[np.uint8]
    shaped: NDArray[np.int32]
    shape_sizes: NDArray[np.int64]
    shapes: NDArray[np.uint8]
    pair_slots: NDArray[np.int32]
    pair_numbers: NDArray[np.int32]
    pair_flags: NDArray[np.uint8]
    pair_relations: NDArray[np.uint8]
    pair_entered: NDArray[np.int64]
    pair_left: NDArray[np.int64]


# Type of each array in the bytes.
TYPES = (
    "<i8", "<i4", "<i4", "<i8", "u1", "<i4", "<i8", "<i8", "<f8", "<i4", "u1", "u1", "<i4", "<i8", "u1",
    "<i4", "<i4", "u1", "u1", "<i8", "<i8",
)  # fmt: skip


def packed(saved: SavedTracks) -> bytes:
    """Return a saved state as bytes."""
    sizes = np.array([array.size for array in saved], "<u4")
    arrays = [np.ascontiguousarray(array, kind).tobytes() for array, kind in zip(saved, TYPES, strict=True)]
    body = b"".join([sizes.tobytes(), *arrays])
    return _HEAD.pack(MAGIC, zlib.crc32(body)) + body


def unpacked(data: bytes) -> SavedTracks:
    """Return the saved state in bytes from `packed`; raise FormatError for anything else."""
    try:
        magic, checksum = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size :]
        if magic != MAGIC or zlib.crc32(body) != checksum:
            raise ValueError("the checksum does not match")
        sizes = np.frombuffer(body[: 4 * len(TYPES)], "<u4").tolist()
        at, arrays = 4 * len(TYPES), []
        for kind, size in zip(TYPES, sizes, strict=True):
            arrays.append(np.frombuffer(body, kind, size, at).copy())  # aligned, for kernels
            at += size * np.dtype(kind).itemsize
    except (struct.error, ValueError, TypeError) as error:
        raise FormatError(f"not a saved state of tracks, or damaged: {error}") from error
    saved = SavedTracks(*arrays)
    return saved._replace(xy=saved.xy.reshape(-1, 2))


def json_bytes(value: Any) -> NDArray[np.uint8]:
    """Return a value as the bytes of its JSON; none for an empty list."""
    return np.frombuffer(json.dumps(value, separators=(",", ":")).encode() if value else b"", np.uint8)


def json_list(data: NDArray[np.uint8]) -> list[Any]:
    """Return the list in bytes from `json_bytes`."""
    return list(json.loads(data.tobytes())) if len(data) else []
