"""Server-Sent Events as the HTML standard defines them, from bytes in any pieces."""

from __future__ import annotations

from typing import NamedTuple

from contrada.client.errors import ProtocolError

MOST_BYTES = 64 << 20  # of one event: a server that never ends one must not fill the memory
MARK = b"\xef\xbb\xbf"  # of the byte order, which may begin a stream


class SseEvent(NamedTuple):
    """An event; `id` is that of the last event that had one."""

    type: str
    data: str
    id: str


class SseParser:
    r"""Reads a stream of events; an event counts once the empty line after it has come.

    >>> parser = SseParser()
    >>> parser.feed(b"id: 7\ndata: fl"), parser.feed(b"ood\r\n: a comment\r\n\r\n")
    ([], [SseEvent(type='message', data='flood', id='7')])
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._pieces: list[bytes] = []  # of a line without an end
        self._is_first_line, self._ended_by_return = True, False
        self._begun = self._size = 0  # bytes of a line without an end, and of lines since the last empty one
        self._data: list[str] = []
        self._type, self._id = "", ""
        self.retry: int | None = None  # milliseconds until a browser connects again

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that a piece of the stream completes."""
        if self._ended_by_return and data[:1] == b"\n":  # the line ended with the last piece
            data = data[1:]
        elif not data:
            return []
        self._ended_by_return = False
        if b"\n" not in data and b"\r" not in data:
            self._pieces.append(data)
            self._begun += len(data)
            self._check_size()
            return []
        lines = b"".join((*self._pieces, data)).splitlines(keepends=True)
        self._pieces = [] if lines[-1][-1:] in (b"\r", b"\n") else [lines.pop()]
        self._begun = sum(map(len, self._pieces))
        self._ended_by_return = not self._pieces and lines[-1][-1:] == b"\r"
        return [event for line in lines if (event := self._take(line.rstrip(b"\r\n"))) is not None]

    def _check_size(self) -> None:
        if self._size + self._begun > self._most:
            raise ProtocolError(f"the server sent an event of more than {self._most:,} bytes")

    def _take(self, line: bytes) -> SseEvent | None:
        """Take a line; return the event that it ends, if any."""
        if self._is_first_line:
            self._is_first_line, line = False, line.removeprefix(MARK)
        if not line:
            return self._end_event()
        self._size += len(line)
        self._check_size()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id":
            self._id = self._id if "\0" in value else value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value)
        return None

    def _end_event(self) -> SseEvent | None:
        data, type = self._data, self._type
        self._data, self._type, self._size = [], "", 0
        return SseEvent(type or "message", "\n".join(data), self._id) if data else None
