"""Signed webhooks out: python -m benchmarks.broker.webhooks [--endpoints 100] [--events 30000] [--batch N].

A service publishes messages that satisfy one subscription of each subscriber; each subscriber has one endpoint, and all
endpoints are on one receiver in a process of its own on loopback. The receiver checks every signature, and that the
events of each endpoint come in order. The time is from the first publish to the last answer.
"""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import multiprocessing
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import uvloop
from aiohttp import web

from contrada.service.access.addresses import AddressPolicy
from contrada.service.core import NewSubscription
from contrada.service.intake import Post
from contrada.service.service import Service
from contrada.service.store.sqlite import SqliteStore
from contrada.service.webhooks import EndpointRequest, HttpSender, Webhooks

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
POST_MESSAGES = 50  # in one body


def receive(ports, counts, stop):
    """Run a receiver; put its port, and once it is to stop how much of each path it received and in which order."""
    got = defaultdict(list)

    async def take(request):
        body, headers = await request.read(), request.headers
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        good = "v1," + base64.b64encode(hmac.digest(KEY, signed, hashlib.sha256)).decode()
        if headers["webhook-signature"] != good:
            return web.Response(status=400)
        found = json.loads(body)
        got[request.path] += [item["sequence"] for item in (found if isinstance(found, list) else [found])]
        return web.Response(status=204)

    async def serve():
        runner = web.ServerRunner(web.Server(take))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.put(runner.addresses[0][1])
        await asyncio.to_thread(stop.wait)
        counts.put({path: (len(found), found == sorted(found), len(set(found))) for path, found in got.items()})

    uvloop.run(serve())


async def send(port, endpoints, events, batch):
    with tempfile.TemporaryDirectory() as directory:
        service = Service(SqliteStore(Path(directory)))
        await service.start()
        webhooks = Webhooks(service, HttpSender(addresses=AddressPolicy(allow_private=True)))
        await webhooks.start()
        for place in range(endpoints):
            await service.put("t", f"k{place}", NewSubscription(f"s{place}", "n >= 0"))
            asked = EndpointRequest(url=f"http://127.0.0.1:{port}/{place}", secret=SECRET, batch=batch or False)
            await webhooks.put("t", f"s{place}", "hook", asked)
        numbers = range(events // endpoints)
        started = time.perf_counter()
        for first in numbers[::POST_MESSAGES]:
            lines = (json.dumps({"n": n, "name": "a message"}) for n in numbers[first : first + POST_MESSAGES])
            await service.publish("t", Post("ndjson", "\n".join(lines).encode()))
        published = time.perf_counter() - started
        while webhooks.counts.sent < len(numbers) * endpoints:
            await asyncio.sleep(0.005)
        taken = time.perf_counter() - started
        counts = webhooks.counts
        await webhooks.stop()
        await service.stop()
    print(f"{endpoints} endpoints, {len(numbers) * endpoints:,} events, batches of {batch or 'none'}:"
          f" {counts.sent / taken:,.0f} events/s ({counts.failed} failed, published in {published:.2f} s)")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=100)
    parser.add_argument("--events", type=int, default=30_000)
    parser.add_argument("--batch", type=int, default=0)
    options = parser.parse_args()
    context = multiprocessing.get_context("fork")
    ports, counts, stop = context.Queue(), context.Queue(), context.Event()
    process = context.Process(target=receive, args=(ports, counts, stop))
    process.start()
    uvloop.run(send(ports.get(), options.endpoints, options.events, options.batch))
    stop.set()
    found = counts.get()
    process.join()
    events = options.events // options.endpoints
    assert len(found) == options.endpoints
    assert set(found.values()) == {(events, True, events)}, found


if __name__ == "__main__":
    main()
