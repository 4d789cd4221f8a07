"""Decompress gzip and Zstandard files while they are read, up to the limit `expansion`."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from contrada.doors import input_errors, reason_of
from contrada.errors import FormatError
from contrada.formats.bounded import check_expansion
from contrada.geometry.arrow import lazy_pyarrow as pa

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
    size, packed, unpacked = _size_of(stream), 0, 0

    def next_packed(most: int) -> bytes:
        nonlocal packed
        piece = stream.read(most)
        packed += len(piece)
        return piece

    def next_unpacked(most: int) -> bytes:
        nonlocal unpacked
        try:
            piece = bytes(inner.read(min(most, CHUNK_BYTES)))
        except input_errors(OSError, EOFError, zlib.error) as error:
            raise FormatError(f"{Path(name).name} cannot be decompressed: {reason_of(error)}") from error
        unpacked += len(piece)
        check_expansion(Path(name).name, unpacked, max(size, packed))
        return piece

    source = PieceStream(next_packed)
    inner: Any
    if compression == "gzip":
        inner = gzip.GzipFile(fileobj=io.BufferedReader(source, CHUNK_BYTES))
    else:
        inner = pa.CompressedInputStream(pa.PythonFile(source, "r"), "zstd")
    return io.BufferedReader(PieceStream(next_unpacked, name), CHUNK_BYTES)


class PieceStream(io.RawIOBase):
    """A stream of the pieces that a function returns, which takes the largest size of a piece; b"" is the end."""

    def __init__(self, next_piece: Callable[[int], bytes], name: str | None = None) -> None:
        self._next_piece = next_piece
        if name is not None:
            self.name = name

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next piece into the buffer; return its length, 0 at the end."""
        piece = self._next_piece(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _size_of(stream: BinaryIO) -> int:
    """Return the size of a file, 0 if unknown."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, AttributeError):
        return 0
