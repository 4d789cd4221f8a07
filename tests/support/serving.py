"""A server of the service on a free port, in this process, and a client for it by HTTP and WebSocket."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import WSMsgType

from contrada.service.http.server import ServerRun
from contrada.service.settings import load_settings

ADMIN = "test-admin-key"
SECONDS = 20.0  # that a busy machine may take
START_SECONDS = 300.0  # to start, with kernels that are compiled, and to stop


class Answer(NamedTuple):
    """Status, decoded body and headers of an answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Site:
    """A running server and a session with it."""

    def __init__(self, server: ServerRun, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session
        scheme = "http" if server.settings.server.tls_cert is None else "https"
        self.url = f"{scheme}://127.0.0.1:{server.port}"

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

    async def overfill(self, subscriber: str) -> int:
        """Publish more to a subscriber than retention keeps (2,000 bytes); return the oldest sequence number left."""
        await self.subscribe("a", subscriber, "depth > 0")
        for depth in range(1, 11):
            await self.publish({"depth": depth, "text": "x" * 500})
        service = self.server.context.service
        await service.tick()
        assert service.oldest > 1
        return service.oldest

    async def until_unread(self, subscriber: str) -> None:
        """Wait until nobody reads the events of a subscriber."""
        for _ in range(200):
            if not (await self.ask("GET", f"/subscribers/{subscriber}")).body["readers"]:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the events of {subscriber} are still read")

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


async def next_reset(stream: AsyncIterator[dict[str, str]]) -> dict[str, Any]:
    """Return the data of the next event of another type than a match, which is a reset."""
    while "event" not in (fields := await anext(stream)):
        pass
    assert fields["event"] == "reset"
    found: dict[str, Any] = json.loads(fields["data"])
    return found


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
async def site(
    state: Path,
    keep_alive: float = 15.0,
    trusted: ssl.SSLContext | None = None,
    options: Mapping[str, Any] = {},
    variables: Mapping[str, str] = {},
    is_waiting: bool = True,
    config: Path | None = None,
    **flags: Any,
) -> AsyncIterator[Site]:
    """Run a server; `flags` are settings by the names of their flags, `variables` those of the environment.

    `config` is a file of settings.

    `options` are further arguments of ServerRun, `trusted` is what a client with TLS trusts. The server is ready when
    the block begins, or only listens if not `is_waiting`.
    """
    flags = {"port": 0, "state": str(state), **flags}
    settings = load_settings(config, {"CONTRADA_ADMIN_KEY": ADMIN, **variables}, flags)
    server = ServerRun(settings, lambda text: None, keep_alive=keep_alive, **options)
    running = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(START_SECONDS):
            while not ((server.context.is_ready if is_waiting else server.listener.started) or running.done()):
                await asyncio.sleep(0.02)
        if running.done():
            running.result()
        timeout = aiohttp.ClientTimeout(total=SECONDS * 3)
        connector = aiohttp.TCPConnector(ssl=True if trusted is None else trusted)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield Site(server, session)
    finally:
        server.stop()
        await asyncio.wait_for(running, START_SECONDS)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test on a loop of its own."""
    asyncio.run(work)


def feature(x: float, y: float, **properties: Any) -> dict[str, Any]:
    """Return a point with properties as GeoJSON."""
    return {"type": "Feature", "properties": properties, "geometry": {"type": "Point", "coordinates": [x, y]}}


async def events(here: Site, subscriber: str, query: str = "?wait=0&from=1", key: str = ADMIN) -> list[dict[str, Any]]:
    """Return the events that a long poll gets."""
    answer = await here.ask("GET", f"/subscribers/{subscriber}/events{query}", key=key, Accept="application/json")
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.body["events"]
    return found


def is_problem(answer: Any, status: int, name: str) -> bool:
    """Return True for problem details of this status and type; fail for any other answer."""
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.body["status"] == status
    assert answer.body["type"] == f"/problems/{name}", answer.body
    return True


class Talk:
    """One socket of a client."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def say(self, op: str, **members: Any) -> None:
        """Send a frame."""
        await self.socket.send_json({"op": op, **members})

    async def hear(self, count: int = 1) -> list[dict[str, Any]]:
        """Return the next frames."""
        return [json.loads((await self.socket.receive(SECONDS)).data) for _ in range(count)]

    async def silence(self) -> bool:
        """Ping: nothing else was under way if the pong comes first."""
        await asyncio.sleep(0.1)
        await self.say("ping", ref="silence")
        return await self.hear() == [{"op": "pong", "ref": "silence"}]

    async def closed(self) -> tuple[int, str]:
        """Return the code and the reason with which the server closes the socket next."""
        message = await self.socket.receive(SECONDS)
        assert message.type == WSMsgType.CLOSE, message
        return message.data, message.extra or ""


@asynccontextmanager
async def talk(here: Site, key: str | None = ADMIN) -> AsyncIterator[Talk]:
    """Open a socket."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with here.session.ws_connect(here.url + "/ws", headers=headers) as socket:
        yield Talk(socket)
