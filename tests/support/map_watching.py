"""A client of the map's stream, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp

from serving import ADMIN, SECONDS, Site


class MapEvent(NamedTuple):
    """An event of the map: its name, its data, and its id if it has one."""

    name: str
    data: Any
    id: str | None


class MapWatch:
    """Reads an open stream of the map."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> MapEvent:
        """Return the next event; comments are passed over."""
        async with asyncio.timeout(SECONDS):
            return await self.read_event()

    async def read_event(self) -> MapEvent:
        """Return the next event, however long it takes."""
        fields: dict[str, str] = {}
        while line := await self.answer.content.readline():
            text = line.decode().rstrip("\n")
            if text:
                name, _, value = text.partition(":")
                fields[name] = value.removeprefix(" ")
            elif "event" in fields:
                return MapEvent(fields["event"], json.loads(fields["data"]), fields.get("id"))
            else:
                fields = {}
        raise EOFError

    async def until(self, name: str) -> MapEvent:
        """Return the next event of a name; others are passed over."""
        while (found := await self.next()).name != name:
            pass
        return found

    async def messages(self, count: int) -> list[Any]:
        """Return the data of the next messages."""
        found: list[Any] = []
        while len(found) < count:
            event = await self.until("message")
            assert event.id == str(event.data["sequence"])
            found.append(event.data)
        return found


@asynccontextmanager
async def watching(
    here: Site, query: str = "", key: str | None = ADMIN, last: int | None = None
) -> AsyncIterator[MapWatch]:
    """Open the stream of the map; `last` is sent as Last-Event-ID."""
    sent = {} if key is None else {"Authorization": f"Bearer {key}"}
    if last is not None:
        sent["Last-Event-ID"] = str(last)
    timeout = aiohttp.ClientTimeout(total=None)
    async with here.session.get(f"{here.url}/map/events{query}", headers=sent, timeout=timeout) as answer:
        assert answer.status == 200, await answer.text()
        watch = MapWatch(answer)
        assert (await watch.next()).name == "hello"
        yield watch
