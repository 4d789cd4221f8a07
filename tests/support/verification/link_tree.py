"""A tree of `contrada serve` processes whose links break and whose brokers are killed, and the judge of what arrives.

The judge compares points with boxes in plain Python: it shares no code with brokers and tables.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from link_proxy import LinkProxy
from postgres_server import PostgresServer
from served import ADMIN, Served

KINDS = ("flood", "storm", "fire")
SIDE = 80.0  # of the square that messages come from, in degrees
PACE = ("--links-retry-first", "0.1", "--links-retry-most", "1", "--links-ping", "2")
ROWS = 2_000  # subscriptions in one request
AT_A_TIME = 4  # brokers that start, or that are given subscriptions
SECONDS = 240.0  # in which everything must have settled
KEYS = {"CONTRADA_LINKS_KEYS": ADMIN}
HEADERS = {"Authorization": f"Bearer {ADMIN}"}


class Wish(NamedTuple):
    """A subscription: messages of a kind, at least so severe, in a box."""

    key: str
    broker: int
    kind: str
    severity: int
    box: tuple[float, float, float, float]

    @property
    def filter(self) -> str:
        """The text of the filter."""
        x, y, right, top = self.box
        ring = f"{x} {y}, {right} {y}, {right} {top}, {x} {top}, {x} {y}"
        area = f"S_INTERSECTS(geometry, POLYGON(({ring})))"
        return f"kind = '{self.kind}' AND severity >= {self.severity} AND {area}"


class Report(NamedTuple):
    """A message: its id, and what is compared."""

    id: str
    kind: str
    severity: int
    x: float
    y: float

    def satisfies(self, wish: Wish) -> bool:
        """Compare plainly."""
        left, bottom, right, top = wish.box
        is_in = left <= self.x <= right and bottom <= self.y <= top
        return self.kind == wish.kind and self.severity >= wish.severity and is_in

    @property
    def body(self) -> dict[str, Any]:
        """The message as a GeoJSON Feature with an id of its own."""
        return {
            "type": "Feature", "id": self.id, "properties": {"kind": self.kind, "severity": self.severity},
            "geometry": {"type": "Point", "coordinates": [self.x, self.y]},
        }  # fmt: skip


def wishes(count: int, brokers: int, draw: random.Random) -> Iterator[Wish]:
    """Yield subscriptions; nine of ten lie within an earlier one, so that it covers them."""
    wide: list[Wish] = []
    for number in range(count):
        broker = draw.randrange(brokers)
        if number % 10 == 0 or not wide:
            x, y = round(draw.uniform(0, SIDE - 10), 3), round(draw.uniform(0, SIDE - 10), 3)
            found = Wish(f"w{number}", broker, draw.choice(KINDS), draw.randint(0, 2), (x, y, x + 10, y + 10))
            wide.append(found)
        else:
            outer = draw.choice(wide)
            x, y = (outer.box[side] + round(draw.uniform(0, 6), 3) for side in (0, 1))
            box = (x, y, x + round(draw.uniform(0.5, 3), 3), y + round(draw.uniform(0.5, 3), 3))
            found = Wish(f"w{number}", broker, outer.kind, outer.severity + draw.randint(0, 2), box)
        yield found


def reports(start: int, count: int, draw: random.Random) -> list[Report]:
    """Return messages at random places."""
    return [
        Report(f"m{start + k}", draw.choice(KINDS), draw.randint(0, 5),
               round(draw.uniform(0, SIDE), 3), round(draw.uniform(0, SIDE), 3))
        for k in range(count)
    ]  # fmt: skip


@dataclass
class TreeRun:
    """What a run did, and what went wrong."""

    faults: list[str] = field(default_factory=list)
    messages: int = 0
    events: int = 0
    forwarded: int = 0
    suppressed: int = 0
    cuts: int = 0
    kills: int = 0
    resident: int = 0  # bytes of the largest process at the end
    seconds: dict[str, float] = field(default_factory=dict)  # by what was done

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Note how long a block takes."""
        start = time.perf_counter()
        yield
        self.seconds[what] = time.perf_counter() - start


class LinkTree:
    """Brokers that call their parents through proxies."""

    def __init__(self, folder: Path, brokers: int, session: aiohttp.ClientSession, draw: random.Random) -> None:
        self._session, self.draw = session, draw
        self.servers: list[Served] = []
        self.proxies: list[LinkProxy] = []
        self._folder, self._count = folder, brokers

    async def start(self, delay: float, postgres: PostgresServer | None) -> None:
        """Start all processes, a few at a time; with PostgreSQL each has a database of its own."""
        for number in range(self._count):
            flags = ["--name", f"b{number}", *PACE]
            if postgres is not None:
                flags += ["--store", postgres.new_database()]
            if number:
                proxy = LinkProxy(self.servers[(number - 1) // 2].port)
                proxy.delay = delay
                await proxy.__aenter__()
                self.proxies.append(proxy)
                flags += ["--link", proxy.url]
            self.servers.append(Served(self._folder / f"b{number}", *flags, variables=KEYS))
        await self.at_each(self.start_one)

    async def start_one(self, broker: int) -> None:
        """Start a process."""
        self.servers[broker].start()
        await asyncio.to_thread(self.servers[broker].wait_until_ready)

    async def at_each(self, work: Callable[[int], Awaitable[None]]) -> None:
        """Do something at every broker, at a few of them at a time."""
        free = asyncio.Semaphore(AT_A_TIME)

        async def one(broker: int) -> None:
            async with free:
                await work(broker)

        await asyncio.gather(*map(one, range(self._count)))

    async def stop(self) -> None:
        """End all processes."""
        for proxy in self.proxies:
            await proxy.__aexit__()
        for server in self.servers:
            server.end()

    async def ask(self, broker: int, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Send a request; return its answer, which must be one of success."""
        headers = HEADERS | ({} if body is None else {"Content-Type": kind}) | {"Accept": "application/json"}
        async with self._session.request(method, self.servers[broker].url + path, data=body, headers=headers) as answer:
            found = await answer.read()
            if answer.status >= 300:
                raise OSError(f"{method} {path} at broker {broker}: {answer.status} {found[:300]!r}")
            return json.loads(found) if found else None

    async def subscribe(self, asked: list[Wish]) -> None:
        """Add subscriptions, each at its broker."""

        async def add(broker: int) -> None:
            own = [{"key": one.key, "subscriber": "ann", "filter": one.filter} for one in asked if one.broker == broker]
            for start in range(0, len(own), ROWS):
                lines = "\n".join(map(json.dumps, own[start : start + ROWS]))
                answer = await self.ask(broker, "POST", "/subscriptions", lines, "application/x-ndjson")
                assert not answer["rejected"], answer["rejected"][:3]

        await self.at_each(add)

    async def publish(self, broker: int, messages: list[Report]) -> None:
        """Publish messages, again until they are answered: they have ids."""
        lines = "\n".join(json.dumps(one.body) for one in messages)
        end = asyncio.get_running_loop().time() + SECONDS
        while True:
            try:
                answer = await self.ask(broker, "POST", "/messages", lines, "application/x-ndjson")
                assert not answer["rejected"], answer
                return
            except (OSError, aiohttp.ClientError):
                if asyncio.get_running_loop().time() > end:
                    raise
                await asyncio.sleep(0.1)

    async def links(self) -> list[dict[str, Any]]:
        """Return the links of all brokers."""
        found = await asyncio.gather(*(self.ask(number, "GET", "/network") for number in range(self._count)))
        return [link for one in found for tenant in one["tenants"] for link in tenant["links"]]

    async def settle(self) -> list[dict[str, Any]]:
        """Wait until all links are up and nothing is on its way; return the links."""
        end, quiet = asyncio.get_running_loop().time() + SECONDS, 0
        while True:
            links = await self.links()
            is_quiet = all(one["phase"] == "up" and not one["unacknowledged"] for one in links)
            quiet = quiet + 1 if is_quiet and len(links) == 2 * (self._count - 1) else 0
            if quiet == 2:
                return links
            assert asyncio.get_running_loop().time() < end, f"the network does not settle: {links}"
            await asyncio.sleep(0.2)

    async def events(self, broker: int) -> AsyncIterator[tuple[str, str]]:
        """Yield the keys and messages of all events at a broker."""
        after = ""
        while True:
            place = f"after={after}" if after else "from=1"
            page = await self.ask(broker, "GET", f"/subscribers/ann/events?wait=0&limit=1000&{place}")
            for event in page["events"]:
                yield event["key"], event["message"]["id"]
            if not page["events"]:
                return
            after = page["next"]


@asynccontextmanager
async def tree(
    folder: Path, brokers: int, draw: random.Random, delay: float, postgres: PostgresServer | None = None
) -> AsyncIterator[LinkTree]:
    """Run a tree while a block runs."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        found = LinkTree(folder, brokers, session, draw)
        try:
            await found.start(delay, postgres)
            yield found
        finally:
            await found.stop()


async def run_tree(
    folder: Path, *, brokers: int = 7, subscriptions: int = 10_000, rounds: int = 6, batch: int = 20,
    seed: int = 1, delay: float = 0.0, postgres: PostgresServer | None = None,
) -> TreeRun:  # fmt: skip
    """Publish at all brokers while links are cut and healed and brokers are killed and started again; judge it.

    In each round one link is cut and every broker publishes; in every second round a broker is killed as well, the
    root first.
    """
    draw, result = random.Random(seed), TreeRun()
    asked = list(wishes(subscriptions, brokers, draw))
    sent: list[Report] = []
    begun = time.perf_counter()
    async with tree(folder, brokers, draw, delay, postgres) as network:
        result.seconds["start"] = time.perf_counter() - begun
        with result.timed("subscribe"):
            await network.subscribe(asked)
            links = await network.settle()
        result.forwarded, result.suppressed = (sum(link[what] for link in links) for what in ("forwards", "suppresses"))
        with result.timed("messages"):
            for number in range(rounds):
                proxy = draw.choice(network.proxies)
                proxy.cut()
                result.cuts += 1
                work = []
                for broker in range(brokers):
                    messages = reports(len(sent), batch, draw)
                    sent += messages
                    work.append(network.publish(broker, messages))
                if number % 2:
                    work.append(_kill(network.servers[result.kills % brokers]))
                    result.kills += 1
                await asyncio.gather(*work)
                proxy.heal()
            await network.settle()
        result.messages = len(sent)
        result.resident = max(server.resident() for server in network.servers)
        for broker in range(brokers):
            got = Counter([event async for event in network.events(broker)])
            result.events += got.total()
            result.faults += _faults(broker, got, [wish for wish in asked if wish.broker == broker], sent)
    return result


async def _kill(server: Served) -> None:
    server.end()
    await asyncio.sleep(0.2)
    server.start()
    await asyncio.to_thread(server.wait_until_ready)


def _faults(broker: int, got: Counter[tuple[str, str]], asked: list[Wish], sent: list[Report]) -> Iterator[str]:
    """Yield what differs from plain matching of all messages with the subscriptions of a broker."""
    wanted = {(wish.key, one.id) for wish in asked for one in sent if one.satisfies(wish)}
    yield from (f"broker {broker}: {event} is missing" for event in sorted(wanted - got.keys()))
    yield from (f"broker {broker}: {event} is wrong" for event in sorted(got.keys() - wanted))
    yield from (f"broker {broker}: {event} came {count} times" for event, count in got.items() if count > 1)
