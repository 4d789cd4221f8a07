"""Subscriptions over HTTP: one by one, lists, and bulk uploads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Any
from urllib.parse import urlencode

import msgspec

from contrada.errors import ContradaError, KeyInUseError
from contrada.service.catalog import Definition
from contrada.service.core import NewSubscription
from contrada.service.http.bulk import BULK_TYPES, ROWS_TOGETHER, BulkRow, read_rows
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.events import number_of
from contrada.service.http.faults import problem_from
from contrada.service.http.schemas import (
    BulkAnswer,
    Deleted,
    Filter,
    PageLink,
    RefusedSubscription,
    SubscriptionAnswer,
    SubscriptionLine,
    SubscriptionList,
    SubscriptionRequest,
    subscription_answer,
)
from contrada.service.http.wire import check_name
from contrada.service.memory import release_free_memory
from contrada.service.problems import BAD_PARAMETER, PRECONDITION_FAILED, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE
from contrada.service.tracks.requests import members_of_query
from contrada.service.views import SubscriptionView

PAGE, MOST_PAGE = 100, 1_000


def asking_of(call: Call, asked: SubscriptionRequest | SubscriptionLine, subscriber: str) -> NewSubscription:
    """Return a subscription for the service; raise a Problem if its names, times or size are not allowed."""
    check_name("subscriber", subscriber)
    check_filter_size(call, asked.filter)
    now = call.service.now() / 1000
    if asked.expires is not None and asked.ttl is not None:
        raise BAD_PARAMETER("need expires or ttl, got both", attribute="ttl")
    seconds = asked.expires.timestamp() if asked.expires is not None else None if asked.ttl is None else now + asked.ttl
    if seconds is not None and seconds <= now:
        raise BAD_PARAMETER("expires: need a time after now", attribute="expires")
    expires = None if seconds is None else round(seconds * 1000)
    return NewSubscription(subscriber, asked.filter, "match", expires, asked.paused, None, asked.tracking())


def check_filter_size(call: Call, filter: Filter) -> None:
    """Raise a Problem (413) if a filter has too many bytes."""
    most = call.context.settings.limits.filter_bytes
    size = len(filter.encode("utf-8", "replace")) if isinstance(filter, str) else len(msgspec.json.encode(filter))
    if size > most:
        raise TOO_LARGE(
            f"the filter has {size:,} bytes; the limit is {most:,} (limits.filter_bytes)", attribute="filter"
        )


async def put_subscription(call: Call) -> Reply:
    """Add or replace a subscription."""
    key = check_name("key", call.path["key"])
    asked = asking_of(call, call.body, call.body.subscriber)
    condition = call.headers.get("if-none-match")
    if condition not in (None, "*"):
        raise BAD_PARAMETER("If-None-Match: only * is supported", attribute="If-None-Match")
    is_known = call.service.definition(call.tenant, key) is not None
    try:
        definition = await call.service.put(call.tenant, key, asked, condition is not None)
    except KeyInUseError as error:
        raise PRECONDITION_FAILED(str(error)) from error
    return Reply(200 if is_known else 201, _answer(key, definition, asked.filter))


def _answer(key: str, definition: Definition, filter: Any) -> SubscriptionAnswer:
    return subscription_answer(SubscriptionView(key, definition, filter))


async def get_subscription(call: Call) -> Reply:
    """Return a subscription."""
    key = check_name("key", call.path["key"])
    return Reply(200, subscription_answer(await call.service.subscription(call.tenant, key)))


async def delete_subscription(call: Call) -> Reply:
    """Remove a subscription."""
    key = check_name("key", call.path["key"])
    return Reply(200, Deleted(await call.service.delete(call.tenant, key)))


async def patch_subscription(call: Call) -> Reply:
    """Pause or resume a subscription."""
    return await _set_paused(call, call.body.paused)


async def pause_subscription(call: Call) -> Reply:
    """Pause a subscription."""
    return await _set_paused(call, True)


async def resume_subscription(call: Call) -> Reply:
    """Resume a subscription."""
    return await _set_paused(call, False)


async def _set_paused(call: Call, is_paused: bool) -> Reply:
    key = check_name("key", call.path["key"])
    await call.service.set_paused(call.tenant, key, is_paused)
    return await get_subscription(call)


async def list_subscriptions(call: Call) -> Reply:
    """Return a page of subscriptions."""
    limit = int(number_of(call.query, "limit", PAGE, 1, MOST_PAGE))
    query = {
        name: check_name(name, call.query[name]) for name in ("subscriber", "prefix", "after") if name in call.query
    }
    found = await call.service.subscriptions(call.tenant, **query, limit=limit)
    links = []
    if len(found) == limit:
        links = [page_link("/subscriptions", query | {"after": found[-1].key, "limit": str(limit)})]
    return Reply(200, SubscriptionList([subscription_answer(view) for view in found], links))


def page_link(path: str, query: Mapping[str, str]) -> PageLink:
    """Return a link to the next page."""
    return PageLink("next", f"{path}?{urlencode(query)}")


async def post_subscriptions(call: Call) -> Reply:
    """Add or replace many subscriptions; bad rows are reported, good ones kept."""
    kind = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = BULK_TYPES.get(kind)
    if form is None:
        raise UNSUPPORTED_MEDIA_TYPE(f"need one of {', '.join(BULK_TYPES)}, got {kind[:80]!r}")
    members = members_of_query(call.query)
    members.tracking()  # raises a Problem if they do not fit together
    rows = read_rows(call.body, form, call.query.get("template"), members)
    refused: list[RefusedSubscription] = []
    count = applies = 0
    while part := await asyncio.to_thread(lambda: list(islice(rows, ROWS_TOGETHER))):
        count += len(part)
        applies = max(applies, await _put_rows(call, part, refused))
    if count > ROWS_TOGETHER:
        await asyncio.to_thread(release_free_memory)
    refused.sort(key=lambda one: one.row)
    count -= len(refused)
    return Reply(200 if count or not refused else 422, BulkAnswer(count, applies or None, refused))


async def _put_rows(call: Call, rows: list[BulkRow], refused: list[RefusedSubscription]) -> int:
    """Add or replace subscriptions in one transaction; return from which message on they apply, 0 if all are bad."""
    good: list[tuple[int, str, NewSubscription]] = []
    for row in rows:
        try:
            good.append((row.row, *_checked_row(call, row)))
        except ContradaError as error:
            refused.append(RefusedSubscription(row.row, problem_from(error).detail, row.key))
    applies = 0
    found = await call.service.put_many(call.tenant, [(key, asked) for _, key, asked in good]) if good else []
    for (number, key, _), outcome in zip(good, found, strict=True):
        if isinstance(outcome, Definition):
            applies = max(applies, outcome.applies_from)
        else:
            refused.append(RefusedSubscription(number, problem_from(outcome).detail, key))
    return applies


def _checked_row(call: Call, row: BulkRow) -> tuple[str, NewSubscription]:
    if isinstance(row.found, ContradaError):
        raise row.found
    key = check_name("key", str(row.found.key))
    subscriber = key if row.found.subscriber is None else str(row.found.subscriber)
    return key, asking_of(call, row.found, subscriber)._replace(predicate=row.predicate)
