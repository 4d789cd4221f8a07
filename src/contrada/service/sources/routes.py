"""Sources over HTTP, for administrators: how far they are, and records that were not published."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from functools import partial

import msgspec

from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.http.endpoints import ApiEndpoint, Call, Reply
from contrada.service.http.hooks import LETTER_PAGING, letter_page, replay_all, replay_one
from contrada.service.http.schemas import PageLink, WebhookFailure, failure_answer, instant
from contrada.service.sources.letters import SourceLetter
from contrada.service.sources.source_run import SourceView


class SourceAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source: `state` is starting, reading or failing.

    `places` has the last offset of each partition or stream that was published. `lag` counts records after those that
    were read; it is missing if the server does not tell it.
    """

    name: str
    url: str
    tenant: str
    state: str
    places: dict[str, int]
    dead_letters: int
    lag: int | None = None
    failing: WebhookFailure | None = None


class SourceList(msgspec.Struct, frozen=True):
    """All sources by name."""

    sources: list[SourceAnswer]


class SourceLetterAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record that was not published: `place` is its topic, with its offset if it has one.

    The body is `text`, or `base64` if it is not UTF-8.
    """

    id: str
    at: datetime
    reason: str
    place: str
    text: str | None = None
    base64: str | None = None


class SourceLetterList(msgspec.Struct, frozen=True):
    """A page of records that were not published, oldest first; a link with `rel` next leads to the next page."""

    dead_letters: list[SourceLetterAnswer]
    links: list[PageLink]


def source_answer(view: SourceView) -> SourceAnswer:
    """Return a source for an administrator."""
    table = view.table
    return SourceAnswer(
        table.name,
        table.url,
        table.tenant,
        view.state,
        view.places,
        view.dead_letters,
        view.lag,
        failure_answer(view.failing),
    )


def source_letter_answer(letter: SourceLetter) -> SourceLetterAnswer:
    """Return a record that was not published, for an administrator."""
    text = base64 = None
    try:
        text = letter.body.decode()
    except UnicodeDecodeError:
        base64 = b64encode(letter.body).decode()
    return SourceLetterAnswer(
        str(letter.number), instant(letter.at), letter.reason, letter.record().place, text, base64
    )


async def list_sources(call: Call) -> Reply:
    """Return all sources."""
    return Reply(200, SourceList([source_answer(view) for view in call.context.sources.views()]))


async def list_source_letters(call: Call) -> Reply:
    """Return a page of records that a source did not publish."""
    name = call.path["name"]
    read = partial(call.context.sources.dead_letters, name)
    letters, links = await letter_page(call, f"/sources/{name}/dead-letters", read)
    return Reply(200, SourceLetterList([source_letter_answer(letter) for letter in letters], links))


async def replay_source_letter(call: Call) -> Reply:
    """Publish a record that was refused before."""
    return await replay_one(call.context.sources.replay(call.path["name"], call.path["id"]))


async def replay_source_letters(call: Call) -> Reply:
    """Publish all records that were refused before, oldest first, up to the first that is refused again."""
    return Reply(200, await replay_all(lambda: call.context.sources.replay(call.path["name"])))


LETTERS = "/sources/{name}/dead-letters"
ROUTES = (
    ApiEndpoint("GET", "/sources", "admin", "List sources and how far they are", {200: SourceList}, list_sources),
    ApiEndpoint(
        "GET",
        LETTERS,
        "admin",
        "List records that a source did not publish, oldest first",
        {200: SourceLetterList},
        list_source_letters,
        parameters=LETTER_PAGING,
    ),
    ApiEndpoint(
        "POST",
        f"{LETTERS}/replay",
        "admin",
        "Publish records that were refused before, oldest first, up to the first that is refused again",
        {200: ReplayAnswer},
        replay_source_letters,
    ),
    ApiEndpoint(
        "POST",
        f"{LETTERS}/{{id}}/replay",
        "admin",
        "Publish one record that was refused before",
        {200: ReplayAnswer},
        replay_source_letter,
    ),
)
