"""Try filters without subscribing: explain one message, and match the recent past."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from contrada.errors import FormatError
from contrada.formats.cap.alerts import TIMES
from contrada.formats.messages import message_of
from contrada.matching import ForwardingTable
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.publishing import post_from
from contrada.service.http.schemas import ExplainAnswer, TrialAnswer, TrialMatch, instant
from contrada.service.http.subscriptions import check_filter_size
from contrada.service.http.wire import check_name
from contrada.service.intake import BodyReader, Post
from contrada.service.problems import UNSUPPORTED_MEDIA_TYPE
from contrada.service.store.message_store import StoredMessage

EXPLAINED = ("application/json", "application/geo+json", "application/cloudevents+json")
PAST_SECONDS = 3_600  # that a trial looks back unless it is told otherwise
MOST_TRIED = 100_000  # messages of the log that one trial looks at
TRIED_TOGETHER = 1_000
KEY = 0


async def explain(call: Call) -> Reply:
    """Explain a message against a subscription."""
    key = check_name("key", call.path["key"])
    if post_from(dict(call.headers), call.body).format not in ("json", "cloudevent"):
        raise UNSUPPORTED_MEDIA_TYPE(f"need one message as {', '.join(EXPLAINED)}")
    view = await call.service.subscription(call.tenant, key)
    return Reply(200, await asyncio.to_thread(_explain, key, view.definition.subscriber, view.filter, call.body))


def _explain(key: str, subscriber: str, filter: Any, body: bytes) -> ExplainAnswer:
    table = ForwardingTable()
    table.subscribe(subscriber, filter, key=key)
    found = table.explain(message_of(body), key)
    return ExplainAnswer(found.truth is True, found.verdict, found.to_dict())


async def dry_run(call: Call) -> Reply:
    """Match a filter against the recent past of the tenant."""
    asked, service = call.body, call.service
    check_filter_size(call, asked.filter)
    table = ForwardingTable()
    await asyncio.to_thread(table.subscribe, "trial", asked.filter, KEY)
    if asked.first is not None:
        wanted = max(asked.first, 1)
    else:
        since = service.now() / 1000 - PAST_SECONDS if asked.since is None else asked.since.timestamp()
        wanted = (await service.position_at(round(max(since, 0) * 1000))).sequence + 1
    last = service.newest
    first = max(wanted, service.oldest, last - MOST_TRIED + 1)
    sample: deque[StoredMessage] = deque(maxlen=asked.limit)
    count = examined = 0
    earliest: int | None = None
    place = first
    while place <= last:
        page = [one for one in await service.history(place, TRIED_TOGETHER) if one.sequence <= last]
        if not page:
            break
        place = page[-1].sequence + 1
        earliest = page[0].at if earliest is None else earliest
        own = [one for one in page if one.tenant == call.tenant]
        matched = await asyncio.to_thread(matching, table, own)
        examined += len(own)
        count += len(matched)
        sample.extend(matched)
    shown = [TrialMatch(one.sequence, instant(one.at), msgspec.Raw(one.body)) for one in sample]
    is_complete = first <= wanted or wanted < 1
    since_shown = None if earliest is None else instant(earliest)
    return Reply(200, TrialAnswer(count, examined, first, last, since_shown, is_complete, shown))


def matching(table: ForwardingTable, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the messages that match a table, by rising sequence; their bodies are read again."""
    alerts = [one for one in messages if one.format == "cap"]
    others = [one for one in messages if one.format != "cap"]
    found = [*_matching_alerts(table, alerts), *_matching_posts(table, others)]
    return sorted(found, key=lambda one: one.sequence)


def _matching_posts(table: ForwardingTable, messages: Sequence[StoredMessage]) -> Iterable[StoredMessage]:
    taken = BodyReader().read(
        [Post("cloudevent" if one.format == "cloudevent" else "json", one.body) for one in messages]
    )
    for part in taken.parts:
        answer = table.match_many(part.table)
        yield from (messages[taken.posts[place]] for row, place in enumerate(part.rows) if answer[row])


def _matching_alerts(table: ForwardingTable, messages: Sequence[StoredMessage]) -> Iterable[StoredMessage]:
    if messages:
        answer = table.match_many([message_of(_alert(one.body), times=TIMES) for one in messages])
        yield from (one for row, one in enumerate(messages) if answer[row])


def _alert(body: bytes) -> dict[str, Any]:
    """Return the attributes of an alert from the Feature as which it was kept."""
    value = msgspec.json.decode(body)
    if "specversion" in value:
        return {**value, "data": _attributes(value["data"])}
    return _attributes(value)


def _attributes(feature: Any) -> dict[str, Any]:
    if not isinstance(feature, dict) or not isinstance(feature.get("properties"), dict):
        raise FormatError("an alert of the log is not a Feature")
    return {**feature["properties"], "area": feature.get("geometry")}
