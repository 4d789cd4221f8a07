"""Receivers of webhooks: a real HTTP server, and a network in simulated time. Both check every signature."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from contrada.service.core import NewSubscription
from contrada.service.deliveries.outcomes import Outcome
from contrada.service.intake import Post
from contrada.service.service import Service
from contrada.service.store.sqlite import SqliteStore
from contrada.service.webhooks import Webhooks

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()


class Received(NamedTuple):
    """A request with a good signature."""

    path: str
    id: str
    timestamp: int
    content_type: str
    body: bytes

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)

    @property
    def ids(self) -> list[str]:
        """The ids of the events."""
        return [item["id"] for item in (self.json if isinstance(self.json, list) else [self.json])]


def signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    """Return a signature after the Standard Webhooks specification, written anew for the tests."""
    key = base64.b64decode(secret.split("_", 1)[1])
    signed = b".".join([id.encode(), timestamp.encode(), body])
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def checked(path: str, headers: Mapping[str, str], body: bytes, *secrets: str) -> Received:
    """Return a request; fail unless it has one good signature for each secret."""
    id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    assert headers["webhook-signature"].split(" ") == [signature(secret, id, timestamp, body) for secret in secrets]
    return Received(path, id, int(timestamp), headers["content-type"], body)


Handler = Callable[[web.Request, int], Awaitable[web.StreamResponse]]


class Receiver:
    """An HTTP server that keeps what it got by path; `answers` say by path how the n-th request is answered."""

    def __init__(self, *secrets: str) -> None:
        self.secrets = secrets or (SECRET,)
        self.got: defaultdict[str, list[Received]] = defaultdict(list)
        self.answers: dict[str, Handler] = {}
        self.peers: set[Any] = set()
        self.headers: list[Mapping[str, str]] = []
        self.faults: list[str] = []
        self.port = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of a path."""
        return f"http://{host}:{self.port}/{path}"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Take a request."""
        path = request.path[1:]
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        self.headers.append(request.headers)
        try:
            self.got[path].append(checked(path, request.headers, await request.read(), *self.secrets))
        except (AssertionError, KeyError) as error:
            self.faults.append(f"{path}: {error!r}")
        answer = self.answers.get(path)
        return web.Response(status=204) if answer is None else await answer(request, len(self.got[path]))


@asynccontextmanager
async def receiving(*secrets: str, tls: Any = None) -> AsyncIterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver(*secrets)
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/{name}", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    receiver.port = runner.addresses[0][1]
    try:
        yield receiver
    finally:
        await runner.cleanup()
    assert not receiver.faults


class SimulatedTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def clock(self) -> int:
        """Return the time in milliseconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * 1_000)
        await asyncio.sleep(0)


class SimulatedNetwork:
    """A sender that hands requests to `answer`, with the number of requests so far to the path (from 1 on).

    `attempts` are all requests, `taken` those that were answered with 2xx.
    """

    def __init__(self, answer: Callable[[Received, int], Outcome] = lambda request, count: Outcome(200)) -> None:
        self.answer = answer
        self.attempts: defaultdict[str, list[Received]] = defaultdict(list)
        self.taken: defaultdict[str, list[Received]] = defaultdict(list)

    def taken_ids(self, path: str) -> list[str]:
        """Return the ids of the events that were taken."""
        return [id for request in self.taken[path] for id in request.ids]

    def check_url(self, url: str) -> None:
        """Take any URL."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Take a request."""
        await asyncio.sleep(0)
        path = urlsplit(url).path[1:]
        request = checked(path, headers, body, SECRET)
        self.attempts[path].append(request)
        outcome = self.answer(request, len(self.attempts[path]))
        if outcome.is_taken:
            self.taken[path].append(request)
        return outcome

    async def close(self) -> None:
        """Keep what was recorded."""


class Disk:
    """A disk that stops to take anything when `is_full` is set, as if the process had been killed then."""

    def __init__(self) -> None:
        self.is_full = False

    def before_commit(self) -> None:
        """Fail if the disk is full."""
        if self.is_full:
            raise OSError("no space left")


@asynccontextmanager
async def serving(
    directory: Path, sender: Any, *, disk: Disk | None = None, service: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[Service, Webhooks]]:
    """Run a service with webhooks; `options` are those of Webhooks."""
    store = SqliteStore(directory, before_commit=(disk or Disk()).before_commit)
    served = Service(store, **(service or {}))
    await served.start()
    webhooks = Webhooks(served, sender, **options)
    await webhooks.start()
    try:
        yield served, webhooks
    finally:
        await webhooks.stop(0.0 if disk is not None and disk.is_full else 5.0)
        await served.stop()


async def subscribe(service: Service, subscriber: str = "ann", filter: str = "n >= 0", key: str = "all") -> None:
    """Add a subscription."""
    await service.put("t", key, NewSubscription(subscriber, filter))


async def publish(service: Service, *numbers: int, padding: str = "") -> None:
    """Publish a message {"n": number} for each number."""
    lines = [json.dumps({"n": number, "padding": padding}) for number in numbers]
    await service.publish("t", Post("ndjson", "\n".join(lines).encode()))


async def until(is_done: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something holds; fail if it does not within a long time."""
    deadline = time.monotonic() + seconds
    while not is_done():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)
