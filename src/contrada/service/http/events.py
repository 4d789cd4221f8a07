"""Events as the texts that consumers get, and the places that consumers ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

from contrada.errors import FormatError
from contrada.service.cursors import Position
from contrada.service.feeds import Event, EventReader
from contrada.service.problems import BAD_PARAMETER, Problem
from contrada.service.service import Service

CLOUDEVENT_TYPE, CLOUDEVENT_TRACK = "org.contrada.match", "org.contrada.track"
SEQUENCE_DIGITS = 18

_encode = msgspec.json.Encoder().encode
Writer = Callable[[Event], bytes]


class Start(NamedTuple):
    """Where a consumer starts.

    `position` is None for the place after what was acknowledged. `is_proof` says that the consumer has what comes
    before the place, `is_ahead` that no message has reached it.
    """

    position: Position | None
    is_proof: bool = False
    is_ahead: bool = False


def event_json(event: Event) -> bytes:
    """Return an event as a JSON object with id, sequence, key and message, and track for tracked objects.

    >>> event_json(Event(12, 3, "flood", b'{"depth": 2}'))
    b'{"id":"12.3","sequence":12,"key":"flood","message":{"depth": 2}}'
    """
    sequence, number, key, body, track = event
    if track:
        head = b'{"id":"%b","sequence":%d' % (event.position.id.encode(), sequence)
        return b'%b,"key":%b,"track":%b,"message":%b}' % (head, _encode(key), track, body)
    return b'{"id":"%d.%d","sequence":%d,"key":%b,"message":%b}' % (sequence, number, sequence, _encode(key), body)


def event_sse(event: Event) -> bytes:
    r"""Return an event as a Server-Sent Event whose data is that of `event_json`.

    >>> event_sse(Event(12, 3, "flood", b"{}"))
    b'id: 12.3\ndata: {"id":"12.3","sequence":12,"key":"flood","message":{}}\n\n'
    """
    sequence, number, key, body, track = event
    if track:
        return b"id: %b\ndata: %b\n\n" % (event.position.id.encode(), event_json(event))
    before, between, after = _shared_parts(sequence)
    digits = b"%d" % number
    return b"".join((before, digits, between, digits, after, _encode(key), b',"message":', body, b"}\n\n"))


@lru_cache(maxsize=64)
def _shared_parts(sequence: int) -> tuple[bytes, bytes, bytes]:
    """Return what all events of a message have in common, as a message may go to thousands."""
    return b"id: %d." % sequence, b'\ndata: {"id":"%d.' % sequence, b'","sequence":%d,"key":' % sequence


def cloudevent_json(subscriber: str) -> Writer:
    """Return the writer of a subscriber's events as CloudEvents in structured mode.

    The data of an event is its message; that of an event of a tracked object has the members track and message.
    """
    source = _encode(f"/subscribers/{subscriber}")
    plain, tracked = [
        b'"specversion":"1.0","type":"%b","source":%b,"datacontenttype":"application/json"' % (kind.encode(), source)
        for kind in (CLOUDEVENT_TYPE, CLOUDEVENT_TRACK)
    ]

    def write(event: Event) -> bytes:
        id, key, body = event.position.id.encode(), _encode(event.key), event.body
        head = tracked if event.track else plain
        data = b'{"track":%b,"message":%b}' % (event.track, body) if event.track else body
        return b'{"id":"%b",%b,"subject":%b,"sequence":"%d","data":%b}' % (id, head, key, event.sequence, data)

    return write


def sse_writer(writer: Writer) -> Writer:
    """Return the writer of Server-Sent Events whose data another one writes."""
    if writer is event_json:
        return event_sse
    return lambda event: b"id: %b\ndata: %b\n\n" % (event.position.id.encode(), writer(event))


async def start_of(query: Mapping[str, str], last_id: str | None, service: Service, oldest: int) -> Start:
    """Return where a consumer starts: `Last-Event-ID` weighs more than the query, which a browser repeats.

    `oldest` is the oldest message that the subscriber is given.
    """
    given = [name for name in ("from", "after", "since") if name in query]
    if last_id:
        return await _after(last_id, "Last-Event-ID", service)
    if len(given) > 1:
        raise BAD_PARAMETER(f"need one of from, after and since, got {' and '.join(given)}")
    if not given:
        return Start(None)
    text = query[given[0]]
    if given[0] == "after":
        return await _after(text, "after", service)
    if given[0] == "since":
        return Start(await service.position_at(time_of("since", text)))
    return await _from(text, service, oldest)


async def reader_at(start: Start, tenant: str, subscriber: str, service: Service) -> EventReader:
    """Return a reader at a start: what the consumer proves to have is acknowledged; one ahead begins at the oldest."""
    if start.is_proof and start.position is not None:
        service.note_acknowledged(tenant, subscriber, start.position)
    oldest = Position.after_message(service.oldest_of(tenant, subscriber) - 1)
    position = oldest if start.is_ahead else start.position
    return await service.reader(tenant, subscriber, position)


async def reach(service: Service, sequence: int) -> None:
    """Apply what other servers of a shared log have taken, if a client names a message that is not here yet."""
    if sequence > service.newest and service.following is not None:
        await service.following.catch_up()


async def _after(id: str, name: str, service: Service) -> Start:
    try:
        position = Position.of_id(id)
    except FormatError as error:
        raise BAD_PARAMETER(f"{name}: {error}", attribute=name) from error
    await reach(service, position.sequence)
    is_ahead = position.sequence > service.newest
    return Start(position, not is_ahead, is_ahead)


async def _from(text: str, service: Service, oldest: int) -> Start:
    if text == "now":
        return Start(Position.after_message(service.newest))
    if text == "oldest":
        return Start(Position.after_message(oldest - 1))
    if not (text.isascii() and text.isdigit() and len(text) <= SEQUENCE_DIGITS):
        raise BAD_PARAMETER(f"from: need a sequence number, now or oldest, got {text!r:.60}", attribute="from")
    sequence = int(text)
    await reach(service, sequence - 1)
    return Start(Position.after_message(max(sequence, 1) - 1), is_ahead=sequence > service.newest + 1)


def time_of(name: str, text: str) -> int:
    """Return milliseconds since 1970 of a time in RFC 3339 with a zone, or of seconds since 1970.

    >>> time_of("since", "1970-01-01T00:00:01Z"), time_of("since", "1.5")
    (1000, 1500)
    """
    try:
        seconds = float(text) if text[:1].isdigit() and "-" not in text else _instant(text).timestamp()
    except (ValueError, OverflowError) as error:
        raise _bad_time(name, text) from error
    if not (math.isfinite(seconds) and 0 <= seconds < 1e11):
        raise _bad_time(name, text)
    return round(seconds * 1000)


def _instant(text: str) -> datetime:
    # A plus sign in a query that was not encoded arrives as a space.
    found = datetime.fromisoformat(text.replace(" ", "+"))
    if found.tzinfo is None:
        raise ValueError("no zone")
    return found


def _bad_time(name: str, text: str) -> Problem:
    return BAD_PARAMETER(f"{name}: need a time such as 2026-05-01T12:00:00Z, got {text!r:.60}", attribute=name)


def number_of(query: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    """Return a number of the query between two bounds."""
    text = query.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise BAD_PARAMETER(f"{name}: need a number from {least:g} to {most:g}, got {text!r:.60}", attribute=name)
    return value
