"""A peer over asyncio sockets: the state machine of `Peer` with a clock and connections.

Every peer listens, and opens a connection to each peer that it sends to. Notes that cannot be sent are dropped:
heartbeats detect dead neighbours, and lost notes and messages are repeated.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import uuid
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any, NamedTuple, cast

from contrada.cancelling import end_tasks
from contrada.errors import ContradaError, OverlayError
from contrada.formats.messages import message_of
from contrada.limits import limit, variable
from contrada.overlay.complaints import Complaints
from contrada.overlay.connecting import Dials, Door, address_of, check_guest, closed, connect, peer_address, tls_options
from contrada.overlay.peer import Peer
from contrada.overlay.protocol import AnyNote, PeerId, Publication, Sent
from contrada.overlay.rules import Rules
from contrada.overlay.simulation.simulator import Simulator
from contrada.overlay.space import PeerQueries, Space
from contrada.overlay.wire import Hello, Offer, OfferAnswer, check_note, encode, peers_in, read_frame, shake_hands

MAX_WAITING_FRAMES = 1000  # per neighbour
CONNECT_SECONDS = 3.0
IDLE_SECONDS = 60.0  # the side that opened an unused connection closes it
LEAVING_SECONDS = 2.0


def _now() -> float:
    return asyncio.get_running_loop().time()


class PeerLink(NamedTuple):
    """The frames that wait for one neighbour, and the task that sends them."""

    frames: asyncio.Queue[bytes]
    task: asyncio.Task[None]


def overlay_name(space: Space, rules: Rules) -> str:
    """Return the text on which two peers must agree: the dimensions and the rules.

    >>> named(overlay_name(Space.parse("price"), Rules(2, 4)))[1].most
    4
    """
    return f"{space} {json.dumps(asdict(rules), sort_keys=True)}"


def named(overlay: str) -> tuple[Space, Rules]:
    """Return the dimensions and rules in an overlay name; raise OverlayError if it is invalid."""
    text, brace, rules = overlay.partition(" {")
    try:
        return Space.parse(text), Rules(**json.loads(brace[1:] + rules))
    except (TypeError, ValueError) as error:
        raise OverlayError(f"{overlay[:80]!r} is not the name of an overlay: {error}") from error


def load_kernels(dimensions: int, rules: Rules) -> None:
    """Load all kernels that a peer uses, with a small tree: loading later may exceed the neighbours' patience."""
    tree = Simulator(rules)
    for number in range(rules.most + 2):  # enough to split one node
        tree.add([(*[float(number)] * dimensions, *[number + 1.0] * dimensions)])
    tree.publish((1.0,) * (2 * dimensions))


class PeerServer:
    """One peer of an overlay on this machine; an async context manager."""

    def __init__(
        self,
        listen: str,
        asked: PeerQueries,
        space: Space,
        rules: Rules,
        deliver: Callable[[Publication], None],
        door: Door | None = None,
        advertise: str | None = None,
    ) -> None:
        self.space, self.rules, self.deliver = space, rules, deliver
        self.door = Door() if door is None else door
        self.overlay = overlay_name(space, rules)
        self.complain: Callable[[str], None] = Complaints(
            lambda text: print(f"contrada overlay: {text}", file=sys.stderr, flush=True)
        )
        self._listen, self._asked, self._advertise = listen, asked, advertise
        self._links: dict[PeerId, PeerLink] = {}
        self._waiting = 0  # bytes in all links
        self._dropped = 0  # messages that the peer did not keep long enough, as last complained of
        self._dials = Dials()
        self.guests: Counter[str] = Counter()  # accepted connections by host
        self._welcomes: set[asyncio.Task[Any]] = set()
        self._undelivered = asyncio.Event()
        self.fault: Exception | None = None  # error of `deliver`, which is then not called again

    async def __aenter__(self) -> PeerServer:
        host, port = address_of(self._listen)
        if self._advertise is not None:
            peer_address(self._advertise)
        most = limit("note_peers")
        if 4 * (self.rules.most + 1) > most:
            raise OverlayError(
                f"nodes of {self.rules.most} children need notes of more than {most} addresses; raise the limit"
                f" {variable('note_peers')} for all peers"
            )
        self._asked.warm_up()
        load_kernels(self.space.dimensions, self.rules)
        try:
            self._server = await asyncio.start_server(self._welcome, host, port, **tls_options(self.door.server_tls))
        except OSError as error:
            raise OverlayError(f"cannot listen on {self._listen}: {error.strerror or error}") from error
        port = self._server.sockets[0].getsockname()[1]
        self.id = self._advertise or (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        self.peer = Peer(self.id, self._asked, self.rules, uuid.uuid4().int)
        self._ticking = asyncio.create_task(self._tick())
        return self

    async def __aexit__(self, *_: Any) -> None:
        self._server.close()
        tasks = [self._ticking, *self._welcomes, *(link.task for link in self._links.values())]
        await end_tasks(*tasks)
        await self._server.wait_closed()

    def join(self, *contacts: str) -> None:
        """Enter the overlay through these peers."""
        for contact in contacts:
            peer_address(contact)
        others = [contact for contact in contacts if contact != self.id]
        if others:
            self._send(self.peer.join(*others, now=_now()))

    def publish(self, body: str) -> str:
        """Publish a message in JSON and return its key; raise ContradaError if it is invalid."""
        key = uuid.uuid4().hex
        self._send(self.peer.publish(Publication(key, self.space.where(message_of(body)), body), _now()))
        return key

    async def leave(self) -> None:
        """Leave the overlay; return when reachable neighbours have been notified, or after LEAVING_SECONDS."""
        self._ticking.cancel()
        self._send(self.peer.leave())
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                await asyncio.gather(*(link.frames.join() for link in self._links.values()))

    # --- incoming notes ---

    async def _welcome(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one accepted connection: handshake, then notes until it ends, is silent or sends invalid data."""
        task = asyncio.current_task()
        assert task is not None
        self._welcomes.add(task)
        where = writer.get_extra_info("peername")
        host = str(where[0] if isinstance(where, tuple) else where)
        self.guests[host] += 1
        try:
            check_guest(host, self.guests)
            await self._converse(reader, writer)
        except (ContradaError, TimeoutError) as error:
            self.complain(f"dropped {where}: {str(error) or 'no data for too long'}")
        except (ConnectionError, ssl.SSLError, asyncio.CancelledError):
            pass  # asyncio would report a cancelled task of a server as an error
        finally:
            self.guests -= Counter([host])
            self._welcomes.discard(task)
            await closed(writer)

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        sender = (await shake_hands(reader, writer, self.id, self.overlay, self.door, is_server=True)).peer
        if sender is not None:
            peer_address(sender)
        while True:
            async with asyncio.timeout(self.door.silent_seconds):
                frame = await read_frame(reader)
                if frame is None:
                    return
                if sender is None:
                    writer.write(encode(self._offered(frame)))
                    await writer.drain()
                    continue
            self._handle(sender, self._checked(frame))

    def _checked(self, frame: Any) -> AnyNote:
        """Return the note if every part of it is valid, else raise ContradaError before anything is acted on."""
        check_note(frame, self.space.dimensions)
        for peer in peers_in(frame):
            peer_address(peer)
        publication = getattr(frame, "publication", None)
        if publication is not None and self.space.where(self._asked.read(publication.body)) != publication.where:
            raise OverlayError(f"the box of a message differs from the box in its note, {publication.where}")
        return cast("AnyNote", frame)

    def _offered(self, frame: object) -> OfferAnswer:
        if not isinstance(frame, Offer):
            raise OverlayError(f"unexpected {type(frame).__name__} from a client that is not a peer")
        try:
            return OfferAnswer(self.publish(frame.body))
        except ContradaError as error:
            return OfferAnswer(None, str(error))

    def _handle(self, sender: PeerId, note: AnyNote) -> None:
        self._send(self.peer.handle(sender, note, _now()))

    async def _tick(self) -> None:
        """Send heartbeats, with a random phase."""
        await asyncio.sleep(self.rules.period * self.peer.state.rng.random())
        while True:
            self._send(self.peer.tick(_now()))
            self._complain_of_dropped()
            await asyncio.sleep(self.rules.period)

    def _complain_of_dropped(self) -> None:
        dropped = self.peer.state.kept.dropped
        if dropped > self._dropped:
            self.complain(
                f"{dropped - self._dropped:,} messages are not kept for {self.rules.retention:g} seconds: more than"
                f" {self.rules.kept:,} messages, or {limit('kept_bytes'):,} bytes ({variable('kept_bytes')}), came;"
                " a peer whose parent fails may miss them"
            )
            self._dropped = dropped

    # --- outgoing notes ---

    def _send(self, sent: list[Sent]) -> None:
        for to, note in sent:
            if to == self.id:
                asyncio.get_running_loop().call_soon(self._handle, self.id, note)
            else:
                self._post(to, note)
        for publication in self.peer.take_deliveries():  # after forwarding, so that a slow `deliver` does not delay it
            self._deliver(publication)

    def _post(self, to: PeerId, note: AnyNote) -> None:
        """Queue a note for a neighbour; a dropped note is repeated by later heartbeats."""
        try:
            frame = encode(note)
            most = limit("waiting_bytes")
            if self._waiting + len(frame) > most:
                raise OverlayError(f"more than {most:,} bytes wait to be sent ({variable('waiting_bytes')})")
            link = self._links.get(to)
            if link is None:
                refusal = self._dials.refusal(_now(), len(self._links))
                if refusal is not None:
                    raise OverlayError(refusal)
                frames: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING_FRAMES)
                link = self._links[to] = PeerLink(frames, asyncio.create_task(self._carry(to, frames)))
            link.frames.put_nowait(frame)
            self._waiting += len(frame)
        except (asyncio.QueueFull, ContradaError) as error:
            self.complain(f"dropped a note for {to}: {str(error) or 'too many notes wait to be sent'}")

    def _deliver(self, publication: Publication) -> None:
        """Deliver a message; if `deliver` fails it is not called again, and `undelivered` returns."""
        if self.fault is not None:
            return
        try:
            self.deliver(publication)
        except Exception as error:  # no error may affect the neighbours
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Stop deliveries; `undelivered` returns."""
        self.fault = error
        self._undelivered.set()

    async def undelivered(self) -> None:
        """Wait until a message could not be delivered; `fault` holds the error."""
        await self._undelivered.wait()

    async def _carry(self, to: PeerId, frames: asyncio.Queue[bytes]) -> None:
        """Send frames to one neighbour until that fails or none comes for IDLE_SECONDS; the next note reconnects."""
        writer = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await connect(to, self.door)
                await shake_hands(reader, writer, self.id, self.overlay, self.door, is_server=False)
            while True:
                async with asyncio.timeout(IDLE_SECONDS):  # wait_for of Python 3.11 may swallow a cancellation
                    frame = await frames.get()
                    self._waiting -= len(frame)
                    writer.write(frame)
                    try:
                        await writer.drain()
                    finally:
                        frames.task_done()
                if reader.at_eof():
                    break
        except ContradaError as error:
            self.complain(f"cannot send to {to}: {error}")
        except (OSError, TimeoutError):
            pass
        finally:
            while not frames.empty():
                self._waiting -= len(frames.get_nowait())
                frames.task_done()
            self._links.pop(to, None)
            if writer is not None:
                await closed(writer)


@asynccontextmanager
async def _client(to: str, door: Door) -> AsyncIterator[tuple[StreamReader, StreamWriter, Hello]]:
    """Connect to a peer as a client that is not a peer."""
    reader, writer = await connect(to, door)
    try:
        yield reader, writer, await shake_hands(reader, writer, None, "", door, is_server=False)
    finally:
        await closed(writer)


async def offer(to: str, bodies: list[str], door: Door) -> list[OfferAnswer]:
    """Publish messages through a peer, as a client that is not a peer."""
    answers = []
    async with asyncio.timeout(CONNECT_SECONDS + len(bodies)), _client(to, door) as (reader, writer, _):
        for body in bodies:
            writer.write(encode(Offer(body)))
            answer = await read_frame(reader)
            if not isinstance(answer, OfferAnswer):
                raise OverlayError(f"{to} did not answer")
            answers.append(answer)
    return answers


async def discover(contacts: list[str], door: Door) -> tuple[Space, Rules]:
    """Return the dimensions and rules of an overlay, from the first contact that answers."""
    reasons = []
    for contact in contacts:
        try:
            async with asyncio.timeout(CONNECT_SECONDS), _client(contact, door) as (_, _, hello):
                return named(hello.overlay)
        except (OSError, TimeoutError) as error:
            reasons.append(str(error) or f"{contact} does not answer")
    raise OverlayError("; ".join(reasons))
