"""Compute the decompressed size of the messages of an Arrow file or stream, without decompressing anything.

A compressed buffer begins with its decompressed length, in 8 bytes; Arrow allocates that size and refuses a buffer
that holds more. The positions of buffers are in a FlatBuffer; this module reads the few fields that it needs.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

from contrada.errors import FormatError
from contrada.geometry.arrow import lazy_pyarrow as pa

_DICTIONARY, _BATCH = 2, 3  # values of the union MessageHeader
_TAIL_BYTES = 10  # bytes: the length of the footer, and "ARROW1"
_BLOCK_FORMAT = "<qi4xq"  # of a message: position, length of its metadata, length of its body
_CONTINUATION = b"\xff\xff\xff\xff"
ReadAt = Callable[[int, int], bytes]  # arguments: position and length


class Table:
    """A table of a FlatBuffer; positions outside of the buffer are a FormatError."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at
        self._fields = at - _number(self._data, "<i", at)
        self._size = _number(self._data, "<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> Table:
        """Return the outermost table of a buffer."""
        return cls(data, _number(data, "<I", 0))

    def number(self, field: int, kind: str) -> int:
        """Return a field of the `struct` format `kind`, 0 if it is absent."""
        at = self._place(field)
        return _number(self._data, kind, at) if at else 0

    def table(self, field: int) -> Table | None:
        """Return a field that is a table."""
        at = self._place(field)
        return Table(self._data, at + _number(self._data, "<I", at)) if at else None

    def structs(self, field: int, kind: str) -> Iterator[tuple[int, ...]]:
        """Return a field that is a vector of structs of the format `kind`."""
        at = self._place(field)
        if not at:
            return
        at += _number(self._data, "<I", at)
        count, size = _number(self._data, "<I", at), struct.calcsize(kind)
        if at + 4 + count * size > len(self._data):
            raise FormatError("the Arrow metadata is damaged: a vector is longer than the metadata")
        yield from struct.iter_unpack(kind, self._data[at + 4 : at + 4 + count * size])

    def _place(self, field: int) -> int:
        entry = 4 + 2 * field
        offset = _number(self._data, "<H", self._fields + entry) if entry < self._size else 0
        return self._at + offset if offset else 0


def _number(data: bytes, kind: str, at: int) -> int:
    try:
        if at < 0:
            raise FormatError("the Arrow metadata is damaged: an offset is negative")
        return int(struct.unpack_from(kind, data, at)[0])
    except struct.error as error:
        raise FormatError(f"the Arrow metadata is damaged: {error}") from None


def ipc_stream_bytes(stream: BinaryIO) -> int:
    """Return the decompressed size of all messages of an Arrow stream, up to the first damaged one.

    >>> import pyarrow as pa
    >>> sink, table = io.BytesIO(), pa.table({"a": [7] * 1000})
    >>> with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
    ...     writer.write_table(table)
    >>> len(sink.getvalue()) < 1000 < 8000 <= ipc_stream_bytes(sink)
    True
    """
    stream.seek(0)
    reader, total = pa.ipc.MessageReader.open_stream(stream), 0
    while True:
        try:
            message = reader.read_next_message()
        except Exception:  # many types; the reader of batches stops here, too, and reports the error
            return total
        metadata, body = message.metadata.to_pybytes(), memoryview(message.body or b"")
        total += _message_bytes(metadata, partial(_slice, body))


def _slice(body: memoryview, at: int, length: int) -> bytes:
    return bytes(body[at : at + length])


def ipc_file_bytes(stream: BinaryIO) -> int:
    """Return the decompressed size of all messages that the footer of an Arrow file lists.

    >>> import pyarrow as pa
    >>> sink, table = io.BytesIO(), pa.table({"a": [7] * 1000})
    >>> with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
    ...     writer.write_table(table)
    >>> len(sink.getvalue()) < 1000 < 8000 <= ipc_file_bytes(sink)
    True
    """
    size = stream.seek(0, io.SEEK_END)

    def read(at: int, length: int) -> bytes:
        if at < 0 or length < 0:
            raise FormatError(f"the Arrow file is damaged: a block of {length} bytes at byte {at}")
        stream.seek(at)
        return stream.read(length)

    length = int.from_bytes(read(max(0, size - _TAIL_BYTES), 4), "little", signed=True)
    if not 0 < length <= size - _TAIL_BYTES:
        raise FormatError(f"the Arrow file is damaged: a footer of {length} bytes")
    footer = Table.root(read(size - _TAIL_BYTES - length, length))
    # Dictionaries and record batches.
    blocks = [block for field in (2, 3) for block in footer.structs(field, _BLOCK_FORMAT)]
    listed = sum(metadata for _, metadata, _ in blocks)
    if listed > size:  # a message that is listed many times could take hours
        raise FormatError(f"the Arrow file is damaged: {listed:,} bytes of metadata in a file of {size:,} bytes")
    return sum(_block_bytes(read, *block) for block in blocks)


def _block_bytes(read: ReadAt, at: int, length: int, body: int) -> int:
    """Return the decompressed size of the message at a position of a file."""
    head = read(at, length)
    start = 8 if head[:4] == _CONTINUATION else 4
    return _message_bytes(head[start:], lambda place, count: read(at + length + place, count), body)


def _message_bytes(metadata: bytes, read: ReadAt, body: int = 0) -> int:
    """Return the decompressed size of the buffers of a message; uncompressed buffers count as they are."""
    message = Table.root(metadata)
    kind, batch = message.number(1, "<B"), message.table(2)
    if batch is not None and kind == _DICTIONARY:
        batch = batch.table(1)
    if batch is None or kind not in (_DICTIONARY, _BATCH):
        return 0
    is_compressed = batch.table(3) is not None
    total = 0
    for at, length in batch.structs(2, "<qq"):
        declared = length
        if is_compressed and length >= 8:
            declared = int.from_bytes(read(at, 8), "little", signed=True)
        total += max(declared, length, 0)
    return max(total, body)
