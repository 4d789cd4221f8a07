"""Decompress gzip and Zstandard files while they are read, up to the limit `expansion`."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.formats.bounded import check_expansion

SUFFIXES = {".gz": "gzip", ".zst": "zstd"}
MAGICS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
CHUNK_BYTES = 1 << 16  # bytes decompressed at once


def compression_of(path: str | os.PathLike[str]) -> str | None:
    """Return the compression that a file's suffix names, or None.

    >>> compression_of("a.ndjson.gz"), compression_of("a.zst"), compression_of("a.csv")
    ('gzip', 'zstd', None)
    """
    return SUFFIXES.get(Path(path).suffix.lower())


def compression_at(head: bytes) -> str | None:
    """Return the compression of a file that begins with `head`, or None."""
    return next((name for magic, name in MAGICS.items() if head.startswith(magic)), None)


def decompressed(stream: BinaryIO, name: str, compression: str) -> BinaryIO:
    """Return a stream of the decompressed content; exceeding the limit `expansion` is a LimitError.

    >>> import gzip, io
    >>> decompressed(io.BytesIO(gzip.compress(b"size: 3")), "a.gz", "gzip").read()
    b'size: 3'
    """
    made: Any = io.BufferedReader(_Decompressed(stream, name, compression), CHUNK_BYTES)
    return made  # type: ignore[no-any-return]


class PieceStream(io.RawIOBase):
    """A stream that is read piece by piece; subclasses define `piece`."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next piece into the buffer; return its length, 0 at the end."""
        piece = self.piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def piece(self, most: int) -> bytes:
        """Return the next bytes, at most `most`."""
        raise NotImplementedError


class _CountingStream(PieceStream):
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def piece(self, most: int) -> bytes:
        piece = self._stream.read(most)
        self.count += len(piece)
        return piece


class _Decompressed(PieceStream):
    """The decompressed content of a stream; stops before it takes all memory."""

    def __init__(self, stream: BinaryIO, name: str, compression: str) -> None:
        self._source, self._name = _CountingStream(stream), Path(name).name
        self.name = name
        self._size = _size_of(stream)
        self._count = 0
        self._inner: Any
        if compression == "gzip":
            self._inner = gzip.GzipFile(fileobj=io.BufferedReader(self._source, CHUNK_BYTES))
        else:
            import pyarrow as pa

            self._inner = pa.CompressedInputStream(pa.PythonFile(self._source, "r"), "zstd")

    def piece(self, most: int) -> bytes:
        try:
            piece = bytes(self._inner.read(min(most, CHUNK_BYTES)))
        except input_errors(OSError, EOFError, zlib.error) as error:
            raise FormatError(f"{self._name} cannot be decompressed: {reason_of(error)}") from error
        self._count += len(piece)
        check_expansion(self._name, self._count, max(self._size, self._source.count))
        return piece


def _size_of(stream: BinaryIO) -> int:
    """Return the size of a file, 0 if unknown."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, AttributeError):
        return 0
