"""What strangers may ask of a peer is limited, and nothing that they say stops it."""

import asyncio
import contextlib
import logging
import struct

import pytest

from contrada import limits
from contrada.errors import ContradaError, OverlayError
from contrada.overlay import serving
from contrada.overlay.connecting import Dials, Door, address_of, connect, peer_address
from contrada.overlay.protocol import Ack, Beat, ChildEntry, Down, Join, Place, Publication, Report, Take, Up
from contrada.overlay.rules import Rules
from contrada.overlay.serving import discover, offer
from contrada.overlay.wire import Offer, check_note, decode, encode, peers_in, shake_hands
from servers import ENTRY, RecordingServer, eventually, joined

RULES = Rules(2, 4, period=0.1, patience=0.5)
CLOSED = "127.0.0.1:1"  # nobody listens there


@pytest.fixture
def dialled(monkeypatch):
    """The addresses that connections are opened to."""
    found = []

    async def counted(to, door):
        found.append(to)
        return await connect(to, door)

    monkeypatch.setattr(serving, "connect", counted)
    return found


def running(**options):
    return RecordingServer(rules=RULES, **options)


@contextlib.asynccontextmanager
async def stranger(server, name=CLOSED):
    """A connection of somebody who greets as a peer."""
    reader, writer = await asyncio.open_connection(*address_of(server.id))
    try:
        await shake_hands(reader, writer, name, server.overlay, Door(), is_server=False)
        yield reader, writer
    finally:
        writer.close()


async def still_works(server):
    before = len(server.got)
    assert (await offer(server.id, ['{"price": 5, "size": 1}'], Door()))[0].reason is None
    await eventually(lambda: len(server.got) == before + 1)


def addresses(count, first=20_000):
    return [f"127.0.0.1:{first + k}" for k in range(count)]


@pytest.mark.slow
async def test_connections_in_a_minute_are_limited(dialled, limited):
    limited(peer_dials=40)

    async with running() as server, stranger(server) as (_, writer):
        for address in addresses(400):
            writer.write(encode(Join(address, 0, ENTRY, False)))
        await writer.drain()
        await eventually(lambda: any("CONTRADA_MAX_PEER_DIALS" in text for text in server.complaints))
        await still_works(server)
        assert 0 < len([to for to in dialled if to != server.id]) <= 40


def test_open_connections_are_limited(limited):
    limited(peer_links=3)
    dials = Dials()
    assert [dials.refusal(0.0, links) is None for links in (0, 2, 3, 4)] == [True, True, False, False]
    limited(peer_links=100, peer_dials=4)
    dials = Dials()
    assert [dials.refusal(float(k), 0) is None for k in range(6)] == [True] * 4 + [False] * 2
    assert dials.refusal(60.5, 0) is None, "the first is a minute ago"
    assert dials.refusal(60.6, 0) is not None


@pytest.mark.parametrize("name", ["host_guests", "guests"])
async def test_accepted_connections_are_limited(name, limited):
    limited(**{name: 5})

    async with running() as server:
        open_ones = [await asyncio.open_connection(*address_of(server.id)) for _ in range(8)]
        for reader, _ in open_ones[5:]:
            assert await reader.read() == b""
        assert limits.variable(name) in server.complaints[0]
        for _, writer in open_ones:
            writer.close()
        await eventually(lambda: not server.guests)
        await still_works(server)


async def test_silent_connections_are_closed():
    async with running(door=Door(handshake_seconds=0.5, silent_seconds=0.5)) as server:
        reader, writer = await asyncio.open_connection(*address_of(server.id))
        while await reader.read(1000):
            pass  # its greeting, and then it is closed
        writer.close()

        async def begin(data):
            async with stranger(server) as (reader, writer):
                writer.write(data)
                assert await reader.read() == b""

        await asyncio.gather(*map(begin, (b"", b"\x00\x00", b"\x00\x00\x10\x00begun and never ended")))
        await still_works(server)


BAD_ADDRESSES = [
    "a..b:1", f"{'x' * 64}:1", f"{'x.' * 200}y:1", "a b:1", "a\0b:1", "a\nb:1", "h:\u00b2", "h:99999999999", "h:-1",
    "h", ":1", "", "h:", "h:x", "h:1.5", "h:70000", "\ud800:1", "h:\u0661",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD_ADDRESSES)
async def test_bad_addresses_are_one_clear_error(text):
    with pytest.raises(OverlayError, match="HOST:PORT"):
        address_of(text)

    for attempt in (offer(text, ["{}"], Door()), discover([text], Door())):
        with pytest.raises(OverlayError, match="HOST:PORT"):
            await attempt
    async with running() as server:
        with pytest.raises(OverlayError):
            server.join(text)
    for listen, advertise in ((text, None), ("127.0.0.1:0", text)):
        with pytest.raises(OverlayError):
            await running(listen=listen, advertise=advertise).__aenter__()


async def test_names_that_nobody_has():
    nobody = "no-such-host.invalid:7000"

    with pytest.raises(ConnectionError, match=r"no-such-host\.invalid:7000 cannot be reached"):
        await offer(nobody, ["{}"], Door())
    with pytest.raises(OverlayError, match="cannot be reached"):
        await discover([nobody, CLOSED], Door())
    with pytest.raises(OverlayError, match="cannot listen on"):
        await running(listen=nobody).__aenter__()
    for wrong in (5, "127.0.0.1:0"):
        with pytest.raises(OverlayError):
            peer_address(wrong)


def test_names_in_notes_stop_nothing(caplog):
    async def say(server, name):
        with contextlib.suppress(UnicodeEncodeError):
            async with stranger(server) as (_, writer):
                writer.write(encode(Join(name, 0, ENTRY, False)) + encode(Ack(0, (name,))))
                await writer.drain()
                await asyncio.sleep(0.3)

    async def check():
        names = ["no-such-host.invalid:7000", CLOSED, *BAD_ADDRESSES[:6], "h:\u00b2"]
        async with running() as server, running() as other:
            await asyncio.gather(*(say(server, name) for name in names))
            await still_works(server)
            for name in names[:2]:  # alone as well: what others say first might hide it
                await say(other, name)
            await still_works(other)

    with caplog.at_level(logging.WARNING):
        asyncio.run(check())
    assert caplog.text == "", "asyncio tells of nothing that was not handled"


def boxes(*sides):
    return ChildEntry(sides, ENTRY.own)


# Notes that no schema refuses, but `check_note`.
NONSENSE = [
    Beat(0, boxes(0.0, 1.0)), Beat(-1, ENTRY), Beat(10**6, ENTRY), Beat(0, boxes(1.0, 0.0, 0.0, 1.0)),
    Beat(0, boxes(*[float("nan")] * 4)), Report(0, "a", "b", ENTRY, {"c": boxes(0.0)}),
    Join("x", 0, ENTRY, True, hops=-5), Down(Publication(1, ENTRY.box, {"not": "text"}), 0),
    Down(Publication(1, (0.0,), "{}"), 0), Offer("{}"),
]  # fmt: skip
BODIES = ["{", "[1]", "5", "", "[" * 20_000, '{"a":' * 20_000, '{"price": 1e999}', '{"price": "\\ud800"']
NOTES = [
    *(Down(Publication("k", ENTRY.box, body), 0) for body in BODIES),
    Down(Publication("k", (0.0, 0.0, 1.0, 1.0), '{"price": 7, "size": 7}'), 0),  # it does not lie there
    Up(Publication("k", (7.0, 7.0, 8.0, 8.0), '{"price": 7, "size": 7}')),
    Place(Join("x:1", -1, ENTRY, True), 0),
    Place(Join("x:1", 0, ENTRY, True, hops=10**9), 0),
    Place(Join("x:1", 0, boxes(*[float("nan")] * 4), True), 0),
    Take(60, "x:1", [{}] * 10, None, "x:1", True),
    Join(5, 0, ENTRY, False),
]


@pytest.mark.parametrize("note", NONSENSE, ids=repr)
def test_notes_that_make_no_sense_are_refused(note):
    with pytest.raises(OverlayError):
        check_note(decode(encode(note)[4:]), 2)


TOO_MANY_ADDRESSES = [
    Take(1, "127.0.0.1:5", [dict.fromkeys(addresses(3000), ENTRY)], None, CLOSED, True),
    Report(1, CLOSED, CLOSED, ENTRY, dict.fromkeys(addresses(300), ENTRY)),
    Ack(1, tuple(addresses(300))),
]
REFUSED = [(note, "") for note in [*NONSENSE, *NOTES]]
REFUSED += [(note, "CONTRADA_MAX_NOTE_PEERS") for note in TOO_MANY_ADDRESSES]


@pytest.mark.parametrize(("note", "complaint"), REFUSED, ids=range(len(REFUSED)))
async def test_notes_are_checked_before_anything_is_done(note, complaint, dialled):
    async with running() as server, stranger(server) as (reader, writer):
        writer.write(encode(note))
        assert await reader.read() == b"", "the connection is closed"
        await eventually(lambda: server.complaints)
        assert complaint in server.complaints[0]
        assert server.got == []
        await still_works(server)
        assert set(dialled) == {server.id}, "the message that was offered"


@pytest.mark.parametrize(
    "rubbish",
    [
        b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", limits.limit("frame_bytes") + 1), struct.pack(">I", 0),
        struct.pack(">I", 3) + b"\xff\xff\xff", encode(Offer("{}")), b"", b"\x00",
    ],
)  # fmt: skip
async def test_rubbish_gets_a_peer_dropped(rubbish):
    async with running() as server:
        reader, writer = await asyncio.open_connection(*address_of(server.id))
        writer.write(rubbish)
        writer.write_eof()
        while await reader.read(1000):
            pass
        writer.close()
        await still_works(server)


def test_all_peers_of_notes_are_found():
    table = {"c:1": ENTRY}
    assert sorted(peers_in(Take(1, "a:1", [table, {"d:1": ENTRY}], "b:1", "e:1", True))) == [
        "a:1", "b:1", "c:1", "d:1", "e:1",
    ]  # fmt: skip
    assert sorted(peers_in(Place(Join("a:1", 0, ENTRY, True, "b:1"), 1))) == ["a:1", "b:1"]
    assert sorted(peers_in(Report(0, "a:1", "b:1", ENTRY, table))) == ["a:1", "b:1", "c:1"]
    with pytest.raises(ContradaError):
        check_note(Ack(0, tuple(addresses(257))), 2)
    check_note(Ack(0, tuple(addresses(256))), 2)


async def test_large_nodes_need_a_higher_limit(limited):
    large = Rules(40, 80, period=0.1, patience=0.5)
    with pytest.raises(OverlayError, match="CONTRADA_MAX_NOTE_PEERS"):
        await RecordingServer(rules=large).__aenter__()
    limited(note_peers=400)
    async with RecordingServer(rules=large):
        pass


async def test_a_delivery_that_fails_keeps_nothing_from_others():
    calm = Rules(2, 4, period=1.0, patience=60.0)  # on a busy machine nobody is taken for dead

    def fails(publication):
        raise BrokenPipeError

    # The first is asked by all, and likely holds nodes.
    each = (RecordingServer(deliver=fails if k == 0 else None, rules=calm) for k in range(6))
    async with joined(*each) as servers:
        for k in range(5):
            servers[1].publish(f'{{"price": {k + 1}}}')
        await eventually(lambda: all(len(each.got) == 5 for each in servers[1:]))
        await asyncio.wait_for(servers[0].undelivered(), 20)
        assert isinstance(servers[0].fault, BrokenPipeError)
