"""Frames in pieces: a WebSocket message has a limit, a frame between brokers has another one.

A message is one byte, then a piece of a frame; the byte says whether more pieces follow. An empty message is a sign of
life.
"""

from __future__ import annotations

from collections.abc import Iterator

from contrada.limits import check_limit
from contrada.service.links.greeting import LinkError

MORE, LAST = b"\0", b"\1"
PIECE_BYTES = 256 << 10  # of one message, at most


def pieces_of(frame: bytes, size: int) -> Iterator[bytes]:
    """Yield a frame in messages of at most `size` bytes.

    >>> list(pieces_of(b"abcde", 3))
    [b'\\x00ab', b'\\x00cd', b'\\x01e']
    """
    step = max(1, size - 1)
    last = max(0, (len(frame) - 1) // step) * step
    for start in range(0, last + 1, step):
        yield (LAST if start == last else MORE) + frame[start : start + step]


class PieceJoiner:
    """Puts pieces together.

    >>> joiner = PieceJoiner()
    >>> [joiner.add(piece) for piece in (b"\\0ab", b"\\0cd", b"\\1e", b"\\1f")]
    [None, None, b'abcde', b'f']
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, message: bytes) -> bytes | None:
        """Take a piece; return the frame if it was the last one. Raise an error if it is none, or too much."""
        mark, piece = message[:1], message[1:]
        if mark == LAST and not self._parts:
            return piece
        if mark not in (MORE, LAST):
            raise LinkError("a message that is no piece of a frame")
        self._size += len(piece)
        check_limit("link_frame_bytes", self._size, "a frame")
        self._parts.append(piece)
        if mark == MORE:
            return None
        frame = b"".join(self._parts)
        self._parts, self._size = [], 0
        return frame
