"""Health, readiness, metrics and the documents about the service."""

from __future__ import annotations

import asyncio
import html
from contextlib import suppress

from contrada import __version__
from contrada.errors import UnknownKeyError
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.metrics import CONTENT_TYPE, SHOWN_SUBSCRIBERS, LabelledSubscriber
from contrada.service.http.schemas import ProblemMeaning, Status
from contrada.service.problems import CATALOGUE, NOT_FOUND, STORAGE_FAILED, Problem

LAG_PAGES = 8  # of the log, in which the oldest event of a subscriber is looked for


async def health(call: Call) -> Reply:
    """Answer if the process lives."""
    return Reply(200, Status("ok"))


async def ready(call: Call) -> Reply:
    """Answer 200 if kernels are loaded and the store can be written, 503 otherwise."""
    if call.service.fault is not None:
        raise STORAGE_FAILED("the store takes no changes at the moment", retry_after=5)
    return Reply(200, Status("ready"))


async def metrics(call: Call) -> Reply:
    """Return metrics; those of single subscribers and webhooks for an admin key only: names belong to tenants."""
    context = call.context
    try:
        is_admin = "admin" in (await context.gate.principal(call.headers)).scopes
    except Problem:
        is_admin = False
    shown: list[LabelledSubscriber] = []
    if context.started is not None and is_admin:
        for tenant, name in await asyncio.to_thread(context.started.latest_lags, SHOWN_SUBSCRIBERS):
            with suppress(UnknownKeyError):  # it has gone since
                shown.append(LabelledSubscriber(tenant, await context.started.subscriber(tenant, name, LAG_PAGES)))
    connections, now = context.gate.connections.total, context.gate.steady()
    parts = (context.started, context.started_webhooks, context.started_sinks, context.started_sources)
    text = context.metrics.text(*parts, connections, shown, now, is_admin, context.started_links)
    return Reply(200, text, kind=CONTENT_TYPE.encode())


async def problem_meaning(call: Call) -> Reply:
    """Return what a type of problems means."""
    found = next((kind for kind in CATALOGUE if kind.name == call.path["name"]), None)
    if found is None:
        raise NOT_FOUND("there is no such type of problems")
    return Reply(200, ProblemMeaning(found.uri, found.status, found.title, found.meaning))


async def openapi(call: Call) -> Reply:
    """Return the OpenAPI document."""
    from contrada.service.http.openapi import openapi_document
    from contrada.service.http.routes import TABLE

    return Reply(200, openapi_document(TABLE, __version__))


async def asyncapi(call: Call) -> Reply:
    """Return the AsyncAPI document."""
    from contrada.service.http.asyncapi import asyncapi_document

    return Reply(200, asyncapi_document(__version__))


async def docs(call: Call) -> Reply:
    """Return a page that lists all routes."""
    from contrada.service.http.routes import TABLE

    rows = "".join(
        f"<tr><td><code>{one.method} {html.escape(one.path)}</code><td>{one.scope or ''}<td>{html.escape(one.summary)}"
        for one in TABLE
    )
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Contrada</title>"
        "<style>body{font:16px sans-serif;margin:2em;max-width:60em}td{padding:.3em .8em .3em 0}</style>"
        f"<h1>Contrada {__version__}</h1><p>Every request but the last ones below needs the header"
        " <code>Authorization: Bearer KEY</code>; the second column is the scope that the key needs. Schemas:"
        ' <a href="openapi.json">OpenAPI</a>, <a href="asyncapi.json">AsyncAPI</a> (<code>GET /ws</code>).'
        f"<table>{rows}</table></html>"
    )
    return Reply(200, page.encode(), kind=b"text/html; charset=utf-8")
