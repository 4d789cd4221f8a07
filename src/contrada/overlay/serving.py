"""A peer over asyncio sockets: the same state machine, with a clock and connections around it.

Every peer listens, and opens a connection to each peer that it sends to. What cannot be sent is dropped: heartbeats
tell when a neighbour is gone, and what was said is said again.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from contrada.errors import ContradaError, OverlayError
from contrada.language.messages import message_of
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import AnyNote, PeerId, Publication, Sent
from contrada.overlay.rules import Rules
from contrada.overlay.space import Asked, Space
from contrada.overlay.wire import Answer, Offer, check_note, encode, read_frame, shake_hands

MOST_WAITING = 1000  # frames for one neighbour
CONNECT_SECONDS = 3.0
IDLE_SECONDS = 60.0  # after which a connection that carries nothing is closed
LEAVING_SECONDS = 2.0
CLOSING_SECONDS = 1.0


@dataclass(frozen=True)
class Door:
    """Who may come in: those who know a secret, those with a certificate, or, with neither, anybody."""

    secret: bytes | None = None
    server_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None


@dataclass
class Link:
    """The frames that wait for one neighbour, and the task that sends them."""

    frames: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(MOST_WAITING))
    task: asyncio.Task[None] | None = None


def address_of(text: str) -> tuple[str, int]:
    """Host and port.

    >>> address_of("127.0.0.1:7000"), address_of("[::1]:80")
    (('127.0.0.1', 7000), ('::1', 80))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise OverlayError(f"an address is HOST:PORT, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def overlay_name(space: Space, rules: Rules) -> str:
    """What two peers must agree on: the dimensions and the rules.

    >>> named(overlay_name(Space.parse("price"), Rules(2, 4)))[1].most
    4
    """
    return f"{space} {json.dumps(asdict(rules), sort_keys=True)}"


def named(overlay: str) -> tuple[Space, Rules]:
    """The dimensions and rules that a name says; an OverlayError if it is none."""
    text, brace, rules = overlay.partition(" {")
    try:
        return Space.parse(text), Rules(**json.loads(brace[1:] + rules))
    except (TypeError, ValueError) as error:
        raise OverlayError(f"{overlay[:80]!r} is no name of an overlay: {error}") from error


class PeerServer:
    """One peer of an overlay on this machine; use it as an async context."""

    def __init__(
        self,
        listen: str,
        asked: Asked,
        space: Space,
        rules: Rules,
        deliver: Callable[[Publication], None],
        door: Door | None = None,
        advertise: str | None = None,
    ) -> None:
        self.space, self.rules, self.deliver = space, rules, deliver
        self.door = Door() if door is None else door
        self.overlay = overlay_name(space, rules)
        self.complain: Callable[[str], None] = lambda text: print(
            f"contrada overlay: {text}", file=sys.stderr, flush=True
        )
        self._listen, self._asked, self._advertise = listen, asked, advertise
        self._links: dict[PeerId, Link] = {}
        self._welcomes: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> PeerServer:
        host, port = address_of(self._listen)
        self._asked.warm_up()
        self._server = await asyncio.start_server(self._welcome, host, port, ssl=self.door.server_tls)
        port = self._server.sockets[0].getsockname()[1]
        self.id = self._advertise or (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        self.peer = Peer(self.id, self._asked, self.rules, uuid.uuid4().int)
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()
        tasks = [self._ticking, *self._welcomes, *(link.task for link in self._links.values() if link.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()

    def join(self, *contacts: str) -> None:
        """Enter the overlay through these peers."""
        for contact in contacts:
            address_of(contact)
        others = [contact for contact in contacts if contact != self.id]
        if others:
            self._send(self.peer.join(*others))

    def publish(self, body: str) -> str:
        """Publish a message in JSON; a ContradaError if it is none. Returns its key."""
        key = uuid.uuid4().hex
        where = self.space.where(message_of(body))
        self._send(self.peer.publish(Publication(key, where, body)))
        return key

    async def leave(self) -> None:
        """Leave in order: neighbours are told before this returns, as far as they listen."""
        self._ticking.cancel()
        self._send(self.peer.leave())
        waiting = [asyncio.create_task(link.frames.join()) for link in self._links.values() if link.task is not None]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=LEAVING_SECONDS)
            for task in late:
                task.cancel()

    # --- notes that come ---

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection that somebody opened: greet, then answer until it ends or says rubbish."""
        task = asyncio.current_task()
        assert task is not None
        self._welcomes.add(task)
        where = writer.get_extra_info("peername")
        try:
            hello = await shake_hands(reader, writer, self.id, self.overlay, self.door.secret, is_server=True)
            sender = hello.peer
            while (frame := await read_frame(reader)) is not None:
                if sender is None:
                    writer.write(encode(self._offered(frame)))
                    await writer.drain()
                else:
                    check_note(frame, self.space.dimensions)
                    self._handle(sender, frame)  # type: ignore[arg-type]
        except (ContradaError, TimeoutError) as error:
            self.complain(f"dropped {where}: {str(error) or 'it was silent'}")
        except (ConnectionError, ssl.SSLError, asyncio.CancelledError):
            pass  # asyncio would report a cancelled task of a server as an error
        finally:
            self._welcomes.discard(task)
            await _closed(writer)

    def _offered(self, frame: object) -> Answer:
        if not isinstance(frame, Offer):
            raise OverlayError(f"{type(frame).__name__} from somebody who is no peer")
        try:
            return Answer(self.publish(frame.body))
        except ContradaError as error:
            return Answer(None, str(error))

    def _handle(self, sender: PeerId, note: AnyNote) -> None:
        self._send(self.peer.handle(sender, note, asyncio.get_running_loop().time()))

    async def _tick(self) -> None:
        """Heartbeats, at times of this peer's own."""
        await asyncio.sleep(self.rules.period * self.peer.state.rng.random())
        while True:
            self._send(self.peer.tick(asyncio.get_running_loop().time()))
            await asyncio.sleep(self.rules.period)

    # --- notes that go ---

    def _send(self, sent: list[Sent]) -> None:
        for publication in self.peer.take_deliveries():
            self.deliver(publication)
        for to, note in sent:
            if to == self.id:
                asyncio.get_running_loop().call_soon(self._handle, self.id, note)
                continue
            link = self._links.setdefault(to, Link())
            try:
                link.frames.put_nowait(encode(note))
            except (asyncio.QueueFull, OverlayError) as error:
                self.complain(f"a note for {to} is dropped: {str(error) or 'too many wait'}")
                continue
            if link.task is None:
                link.task = asyncio.create_task(self._carry(to, link))

    async def _carry(self, to: PeerId, link: Link) -> None:
        """Send what waits for one neighbour, until that fails or nothing comes for long; the next note begins anew."""
        writer = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(*address_of(str(to)), ssl=self.door.client_tls)
                await shake_hands(reader, writer, self.id, self.overlay, self.door.secret, is_server=False)
            while True:
                async with asyncio.timeout(IDLE_SECONDS):  # wait_for of Python 3.11 may swallow a cancellation
                    frame = await link.frames.get()
                link.frames.task_done()
                writer.write(frame)
                await writer.drain()
                if reader.at_eof():
                    break
        except ContradaError as error:
            self.complain(f"{to} cannot be spoken to: {error}")
        except (OSError, TimeoutError):
            pass
        finally:
            while not link.frames.empty():
                link.frames.get_nowait()
                link.frames.task_done()
            self._links.pop(to, None)
            if writer is not None:
                await _closed(writer)


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, whatever state it is in."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSING_SECONDS):
            await writer.wait_closed()


async def offer(to: str, bodies: list[str], door: Door) -> list[Answer]:
    """Publish messages through a peer, as somebody who is none."""
    async with asyncio.timeout(CONNECT_SECONDS + len(bodies)):
        reader, writer = await asyncio.open_connection(*address_of(to), ssl=door.client_tls)
        try:
            await shake_hands(reader, writer, None, "", door.secret, is_server=False)
            answers = []
            for body in bodies:
                writer.write(encode(Offer(body)))
                answer = await read_frame(reader)
                if not isinstance(answer, Answer):
                    raise OverlayError(f"{to} gave no answer")
                answers.append(answer)
            return answers
        finally:
            await _closed(writer)


async def discover(contacts: list[str], door: Door) -> tuple[Space, Rules]:
    """The dimensions and rules of an overlay, from the first of some peers that answers."""
    reasons = []
    for contact in contacts:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(*address_of(contact), ssl=door.client_tls)
                try:
                    return named((await shake_hands(reader, writer, None, "", door.secret, is_server=False)).overlay)
                finally:
                    await _closed(writer)
        except (OSError, TimeoutError) as error:
            reasons.append(f"{contact}: {str(error) or 'it does not answer'}")
    raise OverlayError("; ".join(reasons))
