"""Sinks over HTTP, for administrators: how far they are, and events that were given up."""

from __future__ import annotations

from functools import partial

import msgspec

from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.http.endpoints import ApiEndpoint, Call, Reply
from contrada.service.http.hooks import LETTER_PAGING, letter_page, replay_all, replay_one
from contrada.service.http.schemas import DeadLetterList, WebhookFailure, dead_letter_answer, failure_answer
from contrada.service.sinks.sinks import SinkView


class SinkAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sink: `state` is idle, sending or failing.

    `acknowledged` is its place: the id of the last event that was taken or given up. `lag` counts messages of the log
    after it, `dropped` events that retention removed before they were taken.
    """

    name: str
    url: str
    tenant: str
    subscriber: str
    state: str
    acknowledged: str | None
    lag: int
    dropped: int
    dead_letters: int
    failing: WebhookFailure | None = None


class SinkList(msgspec.Struct, frozen=True):
    """All sinks by name."""

    sinks: list[SinkAnswer]


def sink_answer(view: SinkView) -> SinkAnswer:
    """Return a sink for an administrator."""
    table = view.table
    return SinkAnswer(
        table.name,
        table.url,
        table.tenant,
        table.subscriber,
        view.state,
        None if view.acknowledged.startswith("0.") else view.acknowledged,
        view.lag,
        view.dropped,
        view.dead_letters,
        failure_answer(view.failing),
    )


async def list_sinks(call: Call) -> Reply:
    """Return all sinks."""
    return Reply(200, SinkList([sink_answer(view) for view in call.context.sinks.views()]))


async def list_sink_letters(call: Call) -> Reply:
    """Return a page of events that a sink has given up."""
    name = call.path["name"]
    read = partial(call.context.sinks.dead_letters, name)
    letters, links = await letter_page(call, f"/sinks/{name}/dead-letters", read)
    return Reply(200, DeadLetterList([dead_letter_answer(letter) for letter in letters], links))


async def replay_sink_letter(call: Call) -> Reply:
    """Send an event again that a sink has given up."""
    return await replay_one(call.context.sinks.replay(call.path["name"], call.path["id"]))


async def replay_sink_letters(call: Call) -> Reply:
    """Send all events again that a sink has given up, oldest first, up to the first that is not taken."""
    return Reply(200, await replay_all(lambda: call.context.sinks.replay(call.path["name"])))


LETTERS = "/sinks/{name}/dead-letters"
ROUTES = (
    ApiEndpoint("GET", "/sinks", "admin", "List sinks and how far they are", {200: SinkList}, list_sinks),
    ApiEndpoint(
        "GET",
        LETTERS,
        "admin",
        "List events that a sink has given up, oldest first",
        {200: DeadLetterList},
        list_sink_letters,
        parameters=LETTER_PAGING,
    ),
    ApiEndpoint(
        "POST",
        f"{LETTERS}/replay",
        "admin",
        "Send events again that a sink has given up, oldest first, up to the first that is not taken",
        {200: ReplayAnswer},
        replay_sink_letters,
    ),
    ApiEndpoint(
        "POST",
        f"{LETTERS}/{{id}}/replay",
        "admin",
        "Send one event again that a sink has given up",
        {200: ReplayAnswer},
        replay_sink_letter,
    ),
)
