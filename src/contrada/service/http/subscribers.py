"""Subscribers over HTTP: how far each is, acknowledgements, and tokens for browsers."""

from __future__ import annotations

from urllib.parse import quote

from contrada.errors import FormatError, UnknownKeyError
from contrada.service.cursors import Position
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.events import number_of, reach
from contrada.service.http.schemas import StreamToken, SubscriberList, subscriber_answer
from contrada.service.http.subscriptions import MOST_PAGE, PAGE, page_link
from contrada.service.http.wire import check_name
from contrada.service.problems import BAD_PARAMETER, NOT_FOUND
from contrada.service.service import Service
from contrada.service.subscriber_retention import KeptFor


async def list_subscribers(call: Call) -> Reply:
    """Return a page of subscribers."""
    limit = int(number_of(call.query, "limit", PAGE, 1, MOST_PAGE))
    after = call.query.get("after", "")
    names = [name for _, name in call.service.subscribers(call.tenant) if name > after][: limit + 1]
    links = [page_link("/subscribers", {"after": names[limit - 1], "limit": str(limit)})] if len(names) > limit else []
    return Reply(200, SubscriberList(names[:limit], links))


async def get_subscriber(call: Call) -> Reply:
    """Return how far a subscriber is."""
    name = check_name("subscriber", call.path["name"])
    try:
        view = await call.service.subscriber(call.tenant, name)
    except UnknownKeyError as error:
        raise NOT_FOUND(str(error)) from error
    return Reply(200, subscriber_answer(view, call.service.now() / 1000))


async def put_subscriber(call: Call) -> Reply:
    """Give a subscriber a retention of its own, or that of the log."""
    name, asked = check_name("subscriber", call.path["name"]), call.body.retention
    kept = KeptFor()
    if asked is not None:
        kept = KeptFor(None if asked.age is None else max(1, round(asked.age * 1000)), asked.bytes, asked.messages)
    await call.service.set_retention(call.tenant, name, kept)
    return await get_subscriber(call)


async def position_of(id: str, service: Service) -> Position:
    """Return the place of an acknowledgement; raise a Problem (400) for one that was never sent."""
    try:
        position = Position.of_id(id)
    except FormatError as error:
        raise BAD_PARAMETER(f"id: {error}", attribute="id") from error
    await reach(service, position.sequence)
    if position.sequence > service.newest:
        raise BAD_PARAMETER(f"id: no message has the sequence number {position.sequence}", attribute="id")
    return position


async def acknowledge(call: Call) -> Reply:
    """Acknowledge events up to an id, durably."""
    name = check_name("subscriber", call.path["name"])
    await call.service.acknowledge(call.tenant, name, await position_of(call.body.id, call.service))
    return Reply(204)


async def make_token(call: Call) -> Reply:
    """Return a stream token."""
    name = check_name("subscriber", call.path["name"])
    gate, holder = call.context.gate, call.principal
    token = gate.tokens.issue(call.tenant, name, gate.steady(), holder.name, holder.expires)
    url = f"/subscribers/{quote(name, safe='')}/events?token={token}"
    return Reply(201, StreamToken(token, call.context.settings.access.stream_token_seconds, url))
