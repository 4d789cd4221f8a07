"""Peers over sockets for tests: servers that record what they get and say, and waiting until something holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import contrada as ct
from contrada.overlay.connecting import Door
from contrada.overlay.protocol import ChildEntry, Publication
from contrada.overlay.rules import Rules
from contrada.overlay.serving import PeerServer
from contrada.overlay.space import PeerQueries, Space

SPACE = Space.parse("price,size")
ENTRY = ChildEntry((0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0))
RULES = Rules(2, 4, period=0.1, patience=3.0)  # longer than a busy machine stands still


class RecordingServer(PeerServer):
    """A peer on a free port; `got` holds what was delivered to it, `complaints` what it complained about."""

    def __init__(
        self,
        text: str = "price > 0",
        door: Door | None = None,
        rules: Rules = RULES,
        space: Space = SPACE,
        deliver: Callable[[Publication], None] | None = None,
        listen: str = "127.0.0.1:0",
        advertise: str | None = None,
    ) -> None:
        self.got: list[Publication] = []
        self.complaints: list[str] = []
        asked = PeerQueries([ct.parse(text)], space)
        super().__init__(listen, asked, space, rules, deliver or self.got.append, door, advertise)
        self.complain = self.complaints.append


async def eventually(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until something holds; fail after so many seconds."""
    for _ in range(int(seconds / 0.02)):
        if holds():
            return
        await asyncio.sleep(0.02)
    assert holds()


@asynccontextmanager
async def joined(*servers: RecordingServer) -> AsyncIterator[tuple[RecordingServer, ...]]:
    """Run servers as one tree; they are closed whatever happens, or later tests would be blamed."""
    async with AsyncExitStack() as opened:
        for k, one in enumerate(servers):
            await opened.enter_async_context(one)
            if k:
                one.join(*(other.id for other in servers[: min(k, 3)]))
        await eventually(lambda: sum(each.peer.state.parent is None for each in servers) == 1)
        yield servers
