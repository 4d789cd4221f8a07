"""Signed webhooks out: `contrada serve` sends the events of many subscribers to a receiver in a process of its own.

Every message satisfies one subscription of each subscriber, and each subscriber has one endpoint. The receiver checks
every signature, and that each endpoint gets every event once, by rising sequence number.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop
from aiohttp import web

from benchmarks.broker.process import SERVE, ServerProcess

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
POST_MESSAGES = 50  # in one body
STALLED_SECONDS = 30.0  # without an event: the rest is missing
LINES = "application/x-ndjson"

Received = dict[str, list[int]]  # sequence numbers by path, in the order in which they came


class Sent(NamedTuple):
    """Events per second from the first publish to the last receipt; how many came, and how many are wrong."""

    rate: float
    seconds: float
    compared: int
    different: int


def receive(pipe: Any, count: Any) -> None:
    """Run a receiver: send its port, count events, and send what was received when asked for it."""
    got: Received = defaultdict(list)

    async def take(request: web.BaseRequest) -> web.Response:
        body, headers = await request.read(), request.headers
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        good = "v1," + base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
        if headers["webhook-signature"] != good:
            return web.Response(status=400)
        found = json.loads(body)
        sequences = [item["sequence"] for item in (found if isinstance(found, list) else [found])]
        got[request.path] += sequences
        count.value += len(sequences)
        return web.Response(status=204)

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(take))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(runner.addresses[0][1])
        await asyncio.to_thread(pipe.recv)
        pipe.send(dict(got))

    uvloop.run(serve())


@contextmanager
def receiver() -> Iterator[tuple[int, Any, Any]]:
    """Yield the port of a receiver, the number of events that it took so far, and a pipe to it."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    count = context.Value("q", 0)
    process = context.Process(target=receive, args=(theirs, count), daemon=True)
    process.start()
    try:
        yield ours.recv(), count, ours
    finally:
        process.terminate()
        process.join()


def send_all(folder: Path, endpoints: int, messages: int, batch: int) -> Sent:
    """Publish messages that all subscribers get; `batch` is the most events of one request, 0 sends each alone."""
    with receiver() as (port, count, pipe), ServerProcess(folder, SERVE, "--webhooks-allow-private", "true") as server:
        lines = [json.dumps({"key": f"k{k}", "subscriber": f"s{k}", "filter": "n >= 0"}) for k in range(endpoints)]
        server.ask("POST", "/subscriptions", "\n".join(lines).encode(), LINES)
        for k in range(endpoints):
            hook = {"url": f"http://127.0.0.1:{port}/{k}", "secret": SECRET, "batch": batch or False}
            server.ask("PUT", f"/subscribers/s{k}/webhooks/hook", json.dumps(hook).encode())
        start = time.perf_counter()
        for first in range(0, messages, POST_MESSAGES):
            numbers = range(first, min(first + POST_MESSAGES, messages))
            body = "\n".join(json.dumps({"n": n, "name": "a message"}) for n in numbers)
            server.ask("POST", "/messages", body.encode(), LINES)
        _wait(count, endpoints * messages)
        seconds = time.perf_counter() - start
        pipe.send("end")
        got: Received = pipe.recv()
    expected = list(range(1, messages + 1))
    wrong = sum(got.get(f"/{k}") != expected for k in range(endpoints))
    return Sent(count.value / seconds, seconds, count.value, wrong)


def _wait(count: Any, goal: int) -> None:
    """Wait until so many events were taken, or none came for a while."""
    last, since = -1, time.monotonic()
    while count.value < goal and time.monotonic() - since < STALLED_SECONDS:
        if count.value != last:
            last, since = count.value, time.monotonic()
        time.sleep(0.005)
