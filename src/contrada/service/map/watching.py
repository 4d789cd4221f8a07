"""Watcher: the messages and changes that wait to be sent to one open map, at most `WatchLimits` of them."""

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
    """Bounds of what waits for one watcher: messages, their bytes, and changed subscriptions."""

    messages: int = MOST_MESSAGES
    bytes: int = MOST_BYTES
    changes: int = MOST_CHANGES


DEFAULT_LIMITS = WatchLimits()


class Waiting(NamedTuple):
    """What is sent next to an open map: what was dropped, keys of changed subscriptions, and messages."""

    lost: list[LostEvent]
    keys: list[str]
    messages: list[StoredMessage]


class Watcher:
    """Messages and changes that wait for one open map; only the event loop may use it.

    When a limit is exceeded, all messages that wait are dropped and a `LostEvent` names them: an open map shows the
    present rather than a growing backlog.
    """

    def __init__(self, viewer: Viewer, limits: WatchLimits = DEFAULT_LIMITS) -> None:
        self.viewer, self._limits = viewer, limits
        self._messages: deque[StoredMessage] = deque()
        self._bytes = 0
        self._keys: dict[str, None] = {}  # in order
        self._lost: list[LostEvent] = []
        self._gap: tuple[int, int, bool] | None = None  # first and last message, and whether the client was slow
        self._news = asyncio.Event()
        self.is_writing = False  # until the client has read what was sent

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
        """Add a `LostEvent`, unless an equal one waits already."""
        event = LostEvent(what, reason)
        if event not in self._lost:
            self._lost.append(event)
        self._news.set()

    async def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for something to send; return whether there is something."""
        try:
            async with asyncio.timeout(seconds):  # `wait_for` of Python 3.11 may swallow that the task is cancelled
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def take(self, limit: int, most: int = 1 << 20) -> Waiting:
        """Return what to send next: at most `limit` messages, and at most `most` bytes unless one message has more."""
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
