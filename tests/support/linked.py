"""Servers in this process that are linked with each other, and what their clients get."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from serving import ADMIN, SECONDS, Site, events, site

KEYS = {"CONTRADA_LINKS_KEYS": ADMIN}
PACE = {"links_retry_first": 0.05, "links_retry_most": 0.2, "links_ping": 0.3}


@asynccontextmanager
async def broker(folder: Path, name: str, *calls: Site | str, key: str = ADMIN, **flags: Any) -> AsyncIterator[Site]:
    """Run a server called `name` that calls others; its state is in a directory of its name."""
    urls = [one if isinstance(one, str) else link_url(one) for one in calls]
    variables = {"CONTRADA_LINKS_KEYS": key} if urls else {}
    async with site(folder / name, variables=variables, name=name, link=urls, **(PACE | flags)) as here:
        yield here


def link_url(here: Site) -> str:
    """Return the URL by which other brokers call a server."""
    return f"ws://127.0.0.1:{here.server.port}"


async def until(holds: Callable[[], Awaitable[Any]], seconds: float = SECONDS) -> Any:
    """Wait until something holds, and return it."""
    end = asyncio.get_running_loop().time() + seconds
    while not (found := await holds()):
        assert asyncio.get_running_loop().time() < end, "it does not come to hold"
        await asyncio.sleep(0.02)
    return found


async def network(here: Site) -> dict[str, Any]:
    """Return what a server tells of its links."""
    found: dict[str, Any] = (await here.ask("GET", "/network")).body
    return found


async def links_of(here: Site, tenant: str = "default") -> dict[str, dict[str, Any]]:
    """Return the links of a tenant by neighbour."""
    tenants = {one["tenant"]: one["links"] for one in (await network(here))["tenants"]}
    return {link["neighbour"]: link for link in tenants.get(tenant, [])}


async def until_settled(*sites: Site) -> None:
    """Wait until all links are up and nothing is on its way; ticks need not be waited for."""
    for _ in range(2):  # what one broker has passed on may be on its way to the next
        for here in sites:
            await until(lambda here=here: _is_quiet(here, sites))  # type: ignore[misc]


async def _is_quiet(here: Site, sites: tuple[Site, ...]) -> bool:
    for one in sites:
        await one.server.context.service.tick()
    links = (await links_of(here)).values()
    return bool(links) and all(link["phase"] == "up" and not link["unacknowledged"] for link in links)


async def got(here: Site, subscriber: str, count: int) -> list[Any]:
    """Return all messages that a subscriber has got, once there are `count` of them."""

    async def enough() -> list[Any] | None:
        found: list[Any] = []
        place = "from=oldest"
        while page := await events(here, subscriber, f"?wait=0&{place}&limit=1000"):
            found += page
            place = f"after={page[-1]['id']}"
        return found if len(found) >= count else None

    return [event["message"] for event in await until(enough)]
