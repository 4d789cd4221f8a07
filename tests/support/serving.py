"""A server of the service on a free port, in this process, and a client for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from contrada.service.http.server import ServerRun
from contrada.service.settings import load_settings

ADMIN = "test-admin-key"
SECONDS = 20.0  # that a busy machine may take


class Answer(NamedTuple):
    """Status, decoded body and headers of an answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Site:
    """A running server and a session with it."""

    def __init__(self, server: ServerRun, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session
        self.url = f"http://127.0.0.1:{server.port}"

    async def ask(
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        key: str | None = ADMIN,
        data: bytes | str | None = None,
        kind: str = "application/json",
        **headers: str,
    ) -> Answer:
        """Send a request; `value` is sent as JSON, `data` as it is. Underscores in names of headers become hyphens."""
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        if value is not None:
            data = json.dumps(value)
        if data is not None and kind:
            sent["Content-Type"] = kind
        # A path is sent as it is written, encoded slashes included.
        from yarl import URL

        async with self.session.request(method, URL(self.url + path, encoded=True), data=data, headers=sent) as answer:
            text = await answer.read()
            is_json = "json" in answer.headers.get("Content-Type", "")
            return Answer(answer.status, json.loads(text) if text and is_json else text, answer.headers)

    async def publish(self, *messages: dict[str, Any], key: str = ADMIN) -> Answer:
        """Publish one message, or several as newline JSON."""
        if len(messages) == 1:
            return await self.ask("POST", "/messages", messages[0], key=key)
        lines = "\n".join(map(json.dumps, messages))
        return await self.ask("POST", "/messages", data=lines, kind="application/x-ndjson", key=key)

    async def subscribe(self, key: str, subscriber: str, filter: str, **more: Any) -> Answer:
        """Add a subscription."""
        return await self.ask("PUT", f"/subscriptions/{key}", {"subscriber": subscriber, "filter": filter, **more})

    @asynccontextmanager
    async def stream(
        self, subscriber: str, query: str = "", key: str | None = ADMIN, **headers: str
    ) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
        """Open a stream of Server-Sent Events; it yields the fields of each, comments as the field ""."""
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        if key is not None:
            sent["Authorization"] = f"Bearer {key}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(
            f"{self.url}/subscribers/{subscriber}/events{query}", headers=sent, timeout=timeout
        ) as answer:
            assert answer.status == 200, await answer.text()
            yield _blocks(answer)


async def _blocks(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, str]]:
    fields: dict[str, str] = {}
    while line := await asyncio.wait_for(answer.content.readline(), SECONDS):
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            yield fields
            fields = {}


async def take(stream: AsyncIterator[dict[str, str]], count: int) -> list[dict[str, Any]]:
    """Return the data of the next events that have an id."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        fields = await anext(stream)
        if "id" in fields:
            found.append(json.loads(fields["data"]))
            assert found[-1]["id"] == fields["id"]
    return found


@asynccontextmanager
async def site(state: Path, keep_alive: float = 15.0, **flags: Any) -> AsyncIterator[Site]:
    """Run a server; `flags` are settings by the names of their flags."""
    flags = {"port": 0, "state": str(state), **flags}
    settings = load_settings(None, {"CONTRADA_ADMIN_KEY": ADMIN}, flags)
    server = ServerRun(settings, lambda text: None, keep_alive=keep_alive)
    running = asyncio.create_task(server.serve())
    try:
        while not (server.context.is_ready or running.done()):
            await asyncio.sleep(0.02)
        if running.done():
            running.result()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=SECONDS * 3)) as session:
            yield Site(server, session)
    finally:
        server.stop()
        await running
