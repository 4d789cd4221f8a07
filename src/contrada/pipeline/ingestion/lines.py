"""Read newline JSON by ranges of bytes, so that several tasks can share a file and still number its lines."""

from __future__ import annotations

from typing import BinaryIO


class LineRange:
    """The lines that begin within a byte range of a file, as a stream for `formats.records.lines`.

    >>> import io
    >>> part = LineRange(io.BytesIO(b"one\\ntwo\\nthree"), 1, 9)
    >>> part.readline(), part.readline(), part.readline(), part.count
    (b'two\\n', b'three', b'', 2)
    """

    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        self._file, self._stop = file, stop
        self.count = 0  # lines so far, including empty ones
        if start > 0:  # the line that crosses `start` belongs to the previous range
            file.seek(start - 1)
            file.readline()
        self._next = file.tell()
        self._is_new = True

    def read1(self, limit: int) -> bytes:
        """Return whole lines of about `limit` bytes, or a part of a longer one; b"" at the end."""
        lines = [self.readline(limit)]
        size = len(lines[0])
        while size < limit and lines[-1].endswith(b"\n"):
            lines.append(self.readline(limit))
            size += len(lines[-1])
        return b"".join(lines)

    def readline(self, limit: int = -1) -> bytes:
        """Return the next line, at most `limit` bytes of it; b"" at the end."""
        if self._is_new and self._next >= self._stop:
            return b""
        line = self._file.readline(limit)
        self._next += len(line)
        self.count += self._is_new and bool(line)
        self._is_new = line.endswith(b"\n")
        return line
