"""Clients of servers that are killed again and again: they repeat what was not answered, and note what was.

Servers that share a log are asked by chance, and what one does not answer is repeated at any of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import aiohttp

from served import ADMIN
from verification.kill_oracle import (
    END,
    SIDE,
    Condition,
    Got,
    Lease,
    Sent,
    bucket_condition,
    random_condition,
)

PAUSE = 0.05  # seconds until a client tries again
BULK = "bulk"  # the keys of a group that is put by bulk uploads begin with this
Place = tuple[int, int]


class NoAnswerError(Exception):
    """The server has gone, or takes nothing: the request may or may not have been done."""


class World:
    """What the clients know together: what was acknowledged, and what must not have happened.

    `urls` are those of the servers, which may change; `is_shared` says that they share a log.
    """

    def __init__(
        self, urls: Sequence[str], session: aiohttp.ClientSession, rng: random.Random, is_shared: bool = False
    ) -> None:
        self._urls, self._session, self._rng, self.is_shared = urls, session, rng, is_shared
        self.faults: list[str] = []
        self.is_over = False
        self.sequences: dict[Sent, int] = {}
        self.newest = 0  # sequence number that was named by an answer
        self.leases: dict[str, list[Lease]] = defaultdict(list)
        self.killed_requests = self.repeats = 0
        self._republished: set[int] = set()
        self._serial = self._tag = 0

    @property
    def url(self) -> str:
        """That of any server."""
        return self._rng.choice(self._urls)

    async def ask(
        self, method: str, path: str, body: bytes | None = None, at: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Return status and body of an answer of the server `at`, or of any; raise NoAnswerError if there is none."""
        common = {"Authorization": f"Bearer {ADMIN}", "Accept": "application/json"}
        sent = common | {name.replace("_", "-"): text for name, text in headers.items()}
        data = None if body is None else io.BytesIO(body)  # aiohttp warns of large bytes
        try:
            async with self._session.request(method, (at or self.url) + path, data=data, headers=sent) as answer:
                text = await answer.read()
        except (aiohttp.ClientError, OSError) as error:
            self.killed_requests += not isinstance(error, aiohttp.ClientConnectorError)
            raise NoAnswerError from error
        if answer.status >= 500:
            if answer.status != 503:
                self.faults.append(f"{method} {path}: {answer.status} {text!r}")
            raise NoAnswerError
        return answer.status, json.loads(text) if text else None

    async def known(self, *paths: str) -> list[tuple[int, Any]]:
        """Return what a server answers that has applied everything that was acknowledged before."""
        message = self.new_message(self._rng) if self.is_shared else None
        while True:
            at = self.url
            await asyncio.sleep(PAUSE)  # for what a server that was killed has sent to the engine of its log
            try:
                if message is not None:  # whoever answers it has applied what is in the log before it
                    self._note([message], await self.publish_once([message], at), 0)
                return [await self.ask("GET", path, at=at) for path in paths]
            except NoAnswerError:
                continue

    def new_message(self, rng: random.Random) -> Sent:
        """Return a message with a serial number of its own."""
        self._serial += 1
        return Sent(self._serial, rng.randrange(SIDE), rng.randrange(SIDE))

    def new_tag(self) -> int:
        """Return a number that makes a filter differ from all others."""
        self._tag += 1
        return self._tag

    # --- messages ---

    async def publish(self, batch: Sequence[Sent]) -> None:
        """Publish messages until that is acknowledged; note their sequence numbers."""
        before = self.newest
        while True:
            try:
                self._note(batch, await self.publish_once(batch), before)
                return
            except NoAnswerError:
                self.repeats += 1
                await asyncio.sleep(PAUSE)

    def _note(self, batch: Sequence[Sent], found: Sequence[int], before: int) -> None:
        for sent, sequence in zip(batch, found, strict=True):
            known = self.sequences.setdefault(sent, sequence)
            if known != sequence:
                self.faults.append(f"{sent} had sequence {known}, and when it was sent again {sequence}")
            elif sequence <= before and sent.serial not in self._republished:
                self.faults.append(f"{sent} was sent after the answer {before}, and got {sequence}")
        self.newest = max(self.newest, *found)

    def republish(self, batch: Sequence[Sent]) -> None:
        """Expect that messages are sent again, and get the sequence numbers that they have."""
        self._republished.update(sent.serial for sent in batch)

    async def publish_once(self, batch: Sequence[Sent], at: str | None = None) -> list[int]:
        """Publish messages; return their sequence numbers."""
        if len(batch) == 1:
            id = f"single-{batch[0].serial}"
            kind = "application/geo+json"
            status, body = await self.ask("POST", "/messages", _body(batch[0]), at, Content_Type=kind, Message_Id=id)
            if status not in (200, 201):
                raise RuntimeError(f"publish: {status} {body}")
            return [body["sequence"]]
        lines = b"\n".join(map(_body, batch))
        status, body = await self.ask("POST", "/messages", lines, at, Content_Type="application/x-ndjson")
        again = {row["row"]: row["sequence"] for row in body.get("duplicates", ())}
        if status not in (200, 201) or body["rejected"] or body["count"] + len(again) != len(batch):
            raise RuntimeError(f"publish: {status} {body}")
        fresh = iter(range(body["first"] or 0, (body["last"] or 0) + 1))
        return [again[row] if row in again else next(fresh) for row in range(len(batch))]


def _body(sent: Sent) -> bytes:
    properties = sent._asdict() | {"bucket": sent.bucket, "kind": "end" if sent.serial < 0 else "flood"}
    geometry = {"type": "Point", "coordinates": [sent.x, sent.y]}
    feature = {"type": "Feature", "id": sent.serial, "properties": properties, "geometry": geometry}
    return json.dumps(feature).encode()


async def publish_for_ever(world: World, rng: random.Random) -> None:
    """Publish single messages and batches; now and then one again that was acknowledged."""
    while not world.is_over:
        batch = [world.new_message(rng) for _ in range(rng.choice((1, 1, 1, 5, 40)))]
        await world.publish(batch)
        if rng.random() < 0.1:
            world.republish(batch)
            await world.publish(batch)


class KeyGroup:
    """Keys that one client puts and deletes together; it knows what holds for them after each answer."""

    def __init__(self, world: World, subscriber: str, keys: Sequence[str], rng: random.Random) -> None:
        self._world, self._subscriber, self._keys, self._rng = world, subscriber, keys, rng
        self._is_bulk = keys[0].startswith(BULK)
        self._held: list[Lease] = []  # places in `leases` are found again by being the newest of their key

    async def run(self) -> None:
        """Put, replace and delete until the world ends."""
        while not self._world.is_over:
            if self._held and not self._is_bulk and self._rng.random() < 0.3:
                await self.delete()
            else:
                await self.put()
            await asyncio.sleep(self._rng.random() * (0.5 if self._is_bulk else 0.1))

    async def put(self, conditions: Sequence[Condition] | None = None) -> None:
        """Put all keys with new filters."""
        world, tag, before = self._world, self._world.new_tag(), self._world.newest
        if conditions is None and self._is_bulk:
            conditions = [bucket_condition(row, tag) for row in range(len(self._keys))]
        asked = conditions or [random_condition(self._rng, tag)]
        try:
            applies = await self.send(asked)
        except NoAnswerError:
            found = await self.found()
            if found is None or found["filter"] != asked[0].text:
                self._check_unchanged(found, before)
                return
            applies = found["applies_from"]
        if applies <= before:
            world.faults.append(f"{self._keys[0]} applies from {applies}, but was put after the answer {before}")
        self._end_leases(applies - 1, applies - 1)
        self._held = [Lease(key, one, applies) for key, one in zip(self._keys, asked, strict=True)]

    async def delete(self) -> None:
        """Delete the only key."""
        world, before = self._world, self._world.newest
        try:
            status, body = await world.ask("DELETE", f"/subscriptions/{self._keys[0]}")
            if status != 200:
                raise RuntimeError(f"delete of {self._keys[0]}: {status} {body}")
            last = latest = body["applies_until"]
        except NoAnswerError:
            found = await self.found()
            if found is not None:
                self._check_unchanged(found, before)
                return
            after = world.new_message(self._rng)  # what comes after this one was not matched any more
            await world.publish([after])
            last, latest = before, world.sequences[after] - 1
        self._end_leases(last, latest)
        self._held = []

    def settle(self) -> None:
        """Note the leases that hold at the end."""
        self._world.leases[self._subscriber] += self._held

    async def send(self, conditions: Sequence[Condition]) -> int:
        """Put all keys; return the sequence number that they apply from."""
        world, subscriber = self._world, self._subscriber
        if not self._is_bulk:
            value = json.dumps({"subscriber": subscriber, "filter": conditions[0].text}).encode()
            path = f"/subscriptions/{self._keys[0]}"
            status, body = await world.ask("PUT", path, value, Content_Type="application/json")
        else:
            lines = [
                {"key": key, "subscriber": subscriber, "filter": condition.text}
                for key, condition in zip(self._keys, conditions, strict=True)
            ]
            value = "\n".join(map(json.dumps, lines)).encode()
            status, body = await world.ask("POST", "/subscriptions", value, Content_Type="application/x-ndjson")
        if status not in (200, 201) or body.get("rejected"):
            raise RuntimeError(f"put of {self._keys[0]}: {status} {body}")
        applies: int = body["applies_from"]
        return applies

    async def found(self) -> dict[str, Any] | None:
        """Return what the server has under the first key, after a request without an answer."""
        found = await self._world.known(*(f"/subscriptions/{key}" for key in (self._keys[0], self._keys[-1])))
        if found[0][0] != found[1][0] or found[0][1].get("applies_from") != found[1][1].get("applies_from"):
            self._world.faults.append(f"{self._keys[0]} and {self._keys[-1]} were put together, and differ: {found}")
        status, body = found[0]
        return body if status == 200 else None

    def _check_unchanged(self, found: dict[str, Any] | None, before: int) -> None:
        held = self._held[0] if self._held else None
        is_same = (
            held is None
            if found is None
            else held is not None and (found["filter"], found["applies_from"]) == (held.condition.text, held.first)
        )
        if not is_same:
            self._world.faults.append(f"acknowledged subscription lost: {held} is {found} (answers up to {before})")

    def _end_leases(self, last: int, latest: int) -> None:
        self._world.leases[self._subscriber] += [lease._replace(last=last, latest=latest) for lease in self._held]


class Connection(NamedTuple):
    """The events of one connection, and the places that it may have begun after."""

    starts: set[Place]
    got: list[Got]


class StreamConsumer:
    """Receives the events of a subscriber by Server-Sent Events until its end message.

    One that resumes names the last id that it has; another connects without a place, and acknowledges now and then.
    """

    def __init__(self, world: World, session: aiohttp.ClientSession, name: str, resumes: bool, rng: random.Random):
        self._world, self._session, self._rng = world, session, rng
        self.name, self.resumes = name, resumes
        self.connections: list[Connection] = []
        self._starts: set[Place] = {(0, 0)}

    async def run(self) -> None:
        """Connect again and again; consumers that do not resume acknowledge between connections."""
        is_at_end = False
        while not is_at_end:
            connection = Connection(set(self._starts), [])
            self.connections.append(connection)
            with contextlib.suppress(aiohttp.ClientError, OSError, NoAnswerError):
                is_at_end = await self.receive(connection.got)
            if connection.got and self.resumes:
                self._starts = {connection.got[-1][:2]}
            elif connection.got and self._rng.random() < 0.5:
                await self.acknowledge(connection.got[-1])
            if not is_at_end:
                await asyncio.sleep(PAUSE)

    async def receive(self, got: list[Got]) -> bool:
        """Take events until the connection ends, or this consumer goes; return True at the end of all."""
        headers = {"Authorization": f"Bearer {ADMIN}", "Accept": "text/event-stream"}
        if self.resumes and self._starts != {(0, 0)}:
            ((sequence, number),) = self._starts
            headers["Last-Event-ID"] = f"{sequence}.{number}"
        url = f"{self._world.url}/subscribers/{self.name}/events"
        leave_after = self._rng.choice((3, 50, 2_000)) if not self._world.is_over else None
        async with self._session.get(url, headers=headers) as answer:
            if answer.status != 200:
                if answer.status != 503:
                    self._world.faults.append(f"{self.name}: {answer.status} {await answer.text()}")
                return False
            async for fields in sse_blocks(answer):
                if "event" in fields:
                    self._world.faults.append(f"{self.name}: {fields} although nothing was removed")
                if "id" in fields:
                    value = json.loads(fields["data"])
                    place = tuple(map(int, fields["id"].split(".")))
                    got.append(Got(place[0], place[1], value["key"], value["message"]["properties"]["serial"]))
                    if value["key"] == f"end-{self.name}":
                        return True
                if leave_after is not None and len(got) >= leave_after:
                    return False
        return False

    async def acknowledge(self, event: Got) -> None:
        """Acknowledge events up to one of them; without an answer either place may hold."""
        body = json.dumps({"id": f"{event.sequence}.{event.number}"}).encode()
        try:
            kind = "application/json"
            status, _ = await self._world.ask("POST", f"/subscribers/{self.name}/ack", body, Content_Type=kind)
        except NoAnswerError:
            self._starts.add(event[:2])
            return
        if status != 204:
            self._world.faults.append(f"{self.name}: acknowledgement answered with {status}")
        # Another server of a shared log may not have applied it when the consumer connects there.
        self._starts = {event[:2]} | (self._starts if self._world.is_shared else set())


async def sse_blocks(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, str]]:
    """Yield the fields of each event that arrived whole."""
    fields: dict[str, str] = {}
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
        else:
            yield fields
            fields = {}


async def subscribe_to_end(world: World, subscriber: str) -> None:
    """Subscribe to the message that ends a run."""
    group = KeyGroup(world, subscriber, [f"end-{subscriber}"], random.Random(0))
    await group.put([END])
    group.settle()
