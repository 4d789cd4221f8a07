"""LinkProxy: a TCP proxy on the event loop that cuts connections, refuses them, delays bytes and garbles them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


class LinkProxy:
    """Passes connections on to a port of this machine; what it does to them can be changed at any time.

    `delay` are the seconds that bytes take each way; `change` is applied to the bytes of answers.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.delay = 0.0
        self.change: Callable[[bytes], bytes] | None = None
        self.accepted = 0
        self._is_cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> LinkProxy:
        self._server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await asyncio.sleep(0)

    @property
    def url(self) -> str:
        """Where a broker links to."""
        return f"ws://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Close all connections, and new ones at once."""
        self._is_cut = True
        self.close_all()

    def heal(self) -> None:
        """Take connections again."""
        self._is_cut = False

    def close_all(self) -> None:
        """Close all connections; new ones are taken."""
        for writer in list(self._writers):
            with suppress(RuntimeError):  # the loop is closed
                writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        self.accepted += 1
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there, beyond = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, beyond}
        await asyncio.gather(self.pump(reader, beyond, False), self.pump(there, writer, True))
        self._writers -= {writer, beyond}

    async def pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, is_answer: bool) -> None:
        """Pass bytes on, one way."""
        with suppress(OSError):
            while data := await source.read(65_536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if is_answer and self.change is not None:
                    data = self.change(data)
                sink.write(data)
                await sink.drain()
        sink.transport.abort()
