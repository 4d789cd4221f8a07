"""Webhooks over HTTP: endpoints of subscribers, tests, and events that were given up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic
from typing import TypeVar
from urllib.parse import quote

from contrada.errors import FormatError, UnknownKeyError
from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.http.endpoints import Call, Parameter, Reply
from contrada.service.http.events import number_of
from contrada.service.http.schemas import DeadLetterList, PageLink, WebhookList, dead_letter_answer, webhook_answer
from contrada.service.http.subscriptions import MOST_PAGE, PAGE, page_link
from contrada.service.http.wire import check_name
from contrada.service.problems import BAD_PARAMETER

L = TypeVar("L")
REPLAY_SECONDS = 20.0  # after which a replay of all dead letters sends no more; `left` tells how many wait
LETTER_PAGING = (
    Parameter("after", "return what comes after the dead letter with this id"),
    Parameter("limit", "the most that one page has", {"type": "integer", "minimum": 1, "maximum": MOST_PAGE}),
)


def _names(call: Call) -> tuple[str, str, str]:
    """Return tenant, subscriber and name of the webhook that a path names."""
    return call.tenant, check_name("subscriber", call.path["name"]), check_name("endpoint", call.path["endpoint"])


def _path(subscriber: str, *more: str) -> str:
    return "/".join(["/subscribers", *(quote(part, safe="") for part in (subscriber, "webhooks", *more))])


async def put_webhook(call: Call) -> Reply:
    """Add or replace a webhook."""
    names = _names(call)
    try:
        call.webhooks.get(*names)
        status = 200
    except UnknownKeyError:
        status = 201
    return Reply(status, webhook_answer(await call.webhooks.put(*names, call.body)))


async def get_webhook(call: Call) -> Reply:
    """Return a webhook."""
    return Reply(200, webhook_answer(call.webhooks.get(*_names(call))))


async def delete_webhook(call: Call) -> Reply:
    """Remove a webhook with its dead letters."""
    await call.webhooks.remove(*_names(call))
    return Reply(204)


async def list_webhooks(call: Call) -> Reply:
    """Return a page of the webhooks of a subscriber."""
    subscriber = check_name("subscriber", call.path["name"])
    limit = int(number_of(call.query, "limit", PAGE, 1, MOST_PAGE))
    found = call.webhooks.list(call.tenant, subscriber, call.query.get("after", ""), limit + 1)
    shown = [webhook_answer(view) for view in found[:limit]]
    more = {"after": shown[-1].name, "limit": str(limit)} if len(found) > limit else None
    return Reply(200, WebhookList(shown, [page_link(_path(subscriber), more)] if more else []))


async def pause_webhook(call: Call) -> Reply:
    """Stop deliveries to a webhook; its events wait."""
    return Reply(200, webhook_answer(await call.webhooks.pause(*_names(call))))


async def resume_webhook(call: Call) -> Reply:
    """Go on with deliveries to a webhook."""
    return Reply(200, webhook_answer(await call.webhooks.resume(*_names(call))))


async def send_test(call: Call) -> Reply:
    """Send a test to a webhook."""
    return Reply(200, await call.webhooks.test(*_names(call)))


async def list_dead_letters(call: Call) -> Reply:
    """Return a page of dead letters."""
    _, subscriber, name = names = _names(call)
    path = _path(subscriber, name, "dead-letters")
    letters, links = await letter_page(call, path, partial(call.webhooks.dead_letters, *names))
    return Reply(200, DeadLetterList([dead_letter_answer(letter) for letter in letters], links))


async def replay_dead_letter(call: Call) -> Reply:
    """Send a dead letter again."""
    return await replay_one(call.webhooks.replay(*_names(call), call.path["id"]))


async def replay_dead_letters(call: Call) -> Reply:
    """Send all dead letters again, oldest first, up to the first that is not taken."""
    names = _names(call)
    return Reply(200, await replay_all(lambda: call.webhooks.replay(*names)))


async def letter_page(
    call: Call, path: str, read: Callable[[str | None, int], Awaitable[tuple[list[L], str | None]]]
) -> tuple[list[L], list[PageLink]]:
    """Return the dead letters that a call asks for, and a link to those after them; a bad `after` is a Problem (400).

    `read` takes the id to begin after and the most letters to return, and returns letters and the id to go on after.
    """
    limit = int(number_of(call.query, "limit", PAGE, 1, MOST_PAGE))
    try:
        letters, after = await read(call.query.get("after"), limit)
    except FormatError as error:
        raise BAD_PARAMETER(f"after: {error}", attribute="after") from error
    return letters, [] if after is None else [page_link(path, {"after": after, "limit": str(limit)})]


async def replay_one(replay: Awaitable[ReplayAnswer]) -> Reply:
    """Return what became of a dead letter that is sent again; a bad id is a Problem (400)."""
    try:
        return Reply(200, await replay)
    except FormatError as error:
        raise BAD_PARAMETER(f"id: {error}", attribute="id") from error


async def replay_all(replay: Callable[[], Awaitable[ReplayAnswer]], seconds: float = REPLAY_SECONDS) -> ReplayAnswer:
    """Replay page after page, until one is not taken as a whole or the time is over."""
    end, sent = monotonic() + seconds, 0
    while True:
        part = await replay()
        sent += part.sent
        if not part.sent or not part.left or part.failed is not None or monotonic() > end:
            return ReplayAnswer(sent, part.left, part.failed)
