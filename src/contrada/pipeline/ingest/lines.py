"""Newline JSON by ranges of bytes, so that several tasks read one file; lines keep their numbers."""

from __future__ import annotations

from typing import BinaryIO


class LineRange:
    """The lines of a file that begin within a range of its bytes, as a stream that `lines` of the core reads.

    >>> import io
    >>> part = LineRange(io.BytesIO(b"one\\ntwo\\nthree"), 1, 9)
    >>> part.readline(), part.readline(), part.readline(), part.count
    (b'two\\n', b'three', b'', 2)
    """

    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        self._file, self._stop = file, stop
        self.count = 0  # lines so far, empty ones too
        if start > 0:  # the line that runs into the range belongs to the one before
            file.seek(start - 1)
            file.readline()
        self._next = file.tell()
        self._is_new = True

    def readline(self, limit: int = -1) -> bytes:
        """The next line, or so many bytes of it; nothing at the end."""
        if self._is_new and self._next >= self._stop:
            return b""
        line = self._file.readline(limit)
        self._next += len(line)
        self.count += self._is_new and bool(line)
        self._is_new = line.endswith(b"\n")
        return line
