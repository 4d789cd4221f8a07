"""Consumers over WebSockets and webhooks of a server that is killed again and again."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import aiohttp

from served import ADMIN
from verification.kill_load import PAUSE, Connection, NoAnswerError, StreamConsumer, World
from verification.kill_oracle import Got
from webhook_receivers import SECRET, Receiver

CREDIT = 50  # events of a socket that may be under way


def got_of(value: dict[str, Any]) -> Got:
    """Return an event by its JSON object."""
    sequence, number = map(int, value["id"].split("."))
    return Got(sequence, number, value["key"], value["message"]["properties"]["serial"])


class SocketConsumer(StreamConsumer):
    """Receives the events of a subscriber by WebSocket, within credit; it resumes after the last id that it has."""

    def __init__(self, world: World, session: aiohttp.ClientSession, name: str, rng: random.Random) -> None:
        super().__init__(world, session, name, True, rng)
        self._sockets, self._servers = session, world

    async def receive(self, got: list[Got]) -> bool:
        """Take events until the connection ends; return True at the end of all."""
        asked: dict[str, Any] = {"op": "receive", "subscriber": self.name, "credit": CREDIT}
        before = [one.got[-1] for one in self.connections if one.got]
        if before:
            asked["after"] = f"{before[-1].sequence}.{before[-1].number}"
        headers = {"Authorization": f"Bearer {ADMIN}"}
        async with self._sockets.ws_connect(f"{self._servers.url}/ws", headers=headers, max_msg_size=0) as socket:
            await socket.send_json(asked)
            async for message in socket:
                frame = json.loads(message.data)
                if frame["op"] != "event":
                    if frame["op"] != "error" or frame["problem"]["status"] != 503:
                        self._servers.faults.append(f"{self.name}: {frame}")
                    return False
                got.append(got_of(frame))
                if frame["key"] == f"end-{self.name}":
                    return True
                await socket.send_json({"op": "credit", "subscriber": self.name, "count": 1})
        return False


class WebhookConsumer:
    """Receives the events of a subscriber by a webhook: at least once, and an event never before an earlier one."""

    def __init__(self, world: World, name: str, receiver: Receiver) -> None:
        self._world, self._receiver = world, receiver
        self.name, self.resumes = name, False
        self.connections = [Connection({(0, 0)}, [])]

    async def register(self) -> None:
        """Make the webhook, from the first message on."""
        asked = {"url": self._receiver.url(self.name), "secret": SECRET, "from": 1, "batch": True}
        path = f"/subscribers/{self.name}/webhooks/only"
        while True:
            try:
                status, body = await self._world.ask(
                    "PUT", path, json.dumps(asked).encode(), Content_Type="application/json"
                )
            except NoAnswerError:
                await asyncio.sleep(PAUSE)
                continue
            if status not in (200, 201):
                raise RuntimeError(f"webhook: {status} {body}")
            return

    async def run(self) -> None:
        """Take what arrives until the end message."""
        taken, seen, got = 0, set[Got](), self.connections[0].got
        while not (got and got[-1].key == f"end-{self.name}"):
            arrived = self._receiver.got[self.name]
            for event in [got_of(value) for request in arrived[taken:] for value in request.json]:
                if event not in seen and got and event[:2] < got[-1][:2]:
                    self._world.faults.append(f"{self.name}: {event} came first after {got[-1]}")
                if event not in seen:
                    got.append(event)
                seen.add(event)
            taken = len(arrived)
            await asyncio.sleep(PAUSE)
