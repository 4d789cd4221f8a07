"""Watcher: what one open map has not been told yet. It holds so much and no more, whatever the client takes."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from contrada.service.map.schemas import LostEvent
from contrada.service.map.viewers import Viewer
from contrada.service.store.message_store import StoredMessage

MOST_MESSAGES, MOST_BYTES = 5_000, 16 << 20  # that wait for a watcher
MOST_CHANGES = 1_000  # subscriptions that have changed; beyond, all are loaded again


class WatchLimits(NamedTuple):
    """How much waits for one watcher."""

    messages: int = MOST_MESSAGES
    bytes: int = MOST_BYTES
    changes: int = MOST_CHANGES


DEFAULT_LIMITS = WatchLimits()


class Waiting(NamedTuple):
    """What a watcher is told next: what it lost, keys of subscriptions that have changed, and messages."""

    lost: list[LostEvent]
    keys: list[str]
    messages: list[StoredMessage]


class Watcher:
    """What waits for one open map; the event loop alone uses it.

    Once more waits than may, all of it is dropped, and the watcher is told what it lost: somebody who looks at a map
    wants to see what happens now.
    """

    def __init__(self, viewer: Viewer, limits: WatchLimits = DEFAULT_LIMITS) -> None:
        self.viewer, self._limits = viewer, limits
        self._messages: deque[StoredMessage] = deque()
        self._bytes = 0
        self._keys: dict[str, None] = {}  # in order
        self._lost: list[LostEvent] = []
        self._gap: tuple[int, int, bool] | None = None  # first and last message, and whether the client was slow
        self._news = asyncio.Event()
        self.is_writing = False  # the client takes its time

    def offer(self, messages: Sequence[StoredMessage], keys: Iterable[str]) -> None:
        """Take messages of the tenant and keys of its subscriptions that have changed."""
        self._messages.extend(messages)
        self._bytes += sum(len(one.body) for one in messages)
        if len(self._messages) > self._limits.messages or self._bytes > self._limits.bytes:
            self._drop_messages()
        self._keys.update(dict.fromkeys(keys))
        if len(self._keys) > self._limits.changes:
            self._keys.clear()
            self.lose("subscriptions", "many")
        if messages or self._keys or self._lost:
            self._news.set()

    def _drop_messages(self) -> None:
        first, _, is_slow = (self._messages[0].sequence, 0, False) if self._gap is None else self._gap
        self._gap = first, self._messages[-1].sequence, is_slow or self.is_writing
        self._messages.clear()
        self._bytes = 0
        self._news.set()

    def lose(self, what: str, reason: str) -> None:
        """Note that the watcher is not told of something; once is enough."""
        event = LostEvent(what, reason)
        if event not in self._lost:
            self._lost.append(event)
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something to tell, or some seconds have passed; return whether there is."""
        try:
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may swallow that the task is cancelled
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def take(self, limit: int, most: int = 1 << 20) -> Waiting:
        """Return what is next; of messages at most `limit`, and of several no more than `most` bytes."""
        lost, self._lost = self._lost, []
        if self._gap is not None:
            first, last, is_slow = self._gap
            lost.append(LostEvent("messages", "slow" if is_slow else "many", first, last))
            self._gap = None
        keys, self._keys = list(self._keys), {}
        messages, size = list[StoredMessage](), 0
        while self._messages and len(messages) < limit:
            if messages and size + len(self._messages[0].body) > most:
                break
            messages.append(self._messages.popleft())
            size += len(messages[-1].body)
        self._bytes -= size
        if not self._messages:
            self._news.clear()
        return Waiting(lost, keys, messages)
