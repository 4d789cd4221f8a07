"""A service with webhooks in a process of its own that tests kill: python webhook_child.py DIRECTORY URL SECRET.

It publishes messages {"n": 0}, {"n": 1}, ... and prints the sequence number of each after it is durable.
"""

import asyncio
import json
import sys
from pathlib import Path

from contrada.service.access.addresses import AddressPolicy
from contrada.service.core import NewSubscription
from contrada.service.intake import Post
from contrada.service.service import Service
from contrada.service.store.sqlite import SqliteStore
from contrada.service.webhooks import EndpointRequest, HttpSender, Webhooks


async def serve(directory: Path, url: str, secret: str) -> None:
    """Publish until somebody kills the process."""
    service = Service(SqliteStore(directory))
    await service.start()
    webhooks = Webhooks(service, HttpSender(addresses=AddressPolicy(allow_private=True)))
    await webhooks.start()
    if not webhooks.list("t"):
        await service.put("t", "all", NewSubscription("ann", "n >= 0"))
        await webhooks.put("t", "ann", "a", EndpointRequest(url=url, secret=secret))
    while True:
        published = await service.publish("t", Post("json", json.dumps({"n": service.newest}).encode()))
        print(published.last, flush=True)
        await asyncio.sleep(0.005)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), *sys.argv[2:]))
