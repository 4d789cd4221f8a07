"""Try filters without subscribing: explain one message, and match the recent past."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from contrada.formats.messages import message_of
from contrada.matching import ForwardingTable
from contrada.service.core import TRACK_FORMAT
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.publishing import post_from
from contrada.service.http.schemas import ExplainAnswer, ExplainedTrack, TrialAnswer, TrialMatch, instant
from contrada.service.http.subscriptions import check_filter_size
from contrada.service.http.wire import check_name
from contrada.service.intake import BodyReader, Part
from contrada.service.problems import UNSUPPORTED_MEDIA_TYPE
from contrada.service.reading_again import read_again
from contrada.service.store.message_store import StoredMessage
from contrada.service.tracks.trial import TrackTrial

EXPLAINED = ("application/json", "application/geo+json", "application/cloudevents+json")
PAST_SECONDS = 3_600  # that a trial looks back unless it is told otherwise
MOST_TRIED = 100_000  # messages of the log that one trial looks at
TRIED_TOGETHER = 1_000
KEY = 0

# Takes messages and the times at which they came; returns the places of those that match, with members `track`.
Trial: TypeAlias = Callable[[Sequence[Part], Sequence[int]], Sequence[tuple[int, bytes | None]]]


async def explain(call: Call) -> Reply:
    """Explain a message against a subscription."""
    key = check_name("key", call.path["key"])
    if post_from(dict(call.headers), call.body).format not in ("json", "cloudevent"):
        raise UNSUPPORTED_MEDIA_TYPE(f"need one message as {', '.join(EXPLAINED)}")
    view, wrap = await call.service.subscription(call.tenant, key), call.context.settings.server.wrapped
    answer = await asyncio.to_thread(_explain, key, view.definition.subscriber, view.filter, call.body, wrap)
    if view.definition.track is not None:
        id = message_of(call.body, wrap=wrap).get(view.definition.track.track)
        known = id if isinstance(id, str | int) and not isinstance(id, bool) else None
        since = None if known is None else await call.service.inside_since(view.definition.number, known)
        track = ExplainedTrack(known, since is not None, None if since is None else instant(since))
        answer = structs.replace(answer, track=track)
    return Reply(200, answer)


def _explain(key: str, subscriber: str, filter: Any, body: bytes, wrap: Mapping[str, str]) -> ExplainAnswer:
    table = ForwardingTable(wrap=wrap)
    table.subscribe(subscriber, filter, key=key)
    found = table.explain(message_of(body, wrap=wrap), key)
    return ExplainAnswer(found.truth is True, found.verdict, found.to_dict())


async def dry_run(call: Call) -> Reply:
    """Match a filter against the recent past of the tenant."""
    asked, service = call.body, call.service
    check_filter_size(call, asked.filter)
    tracking, wrap = asked.tracking(), call.context.settings.server.wrapped
    trial: Trial
    if tracking is None:
        trial = await asyncio.to_thread(_plain_trial, asked.filter, wrap)
    else:
        trial = (await asyncio.to_thread(TrackTrial, asked.filter, tracking, service.track_expiry, wrap)).take
    if asked.start is not None:
        wanted = max(asked.start, 1)
    else:
        since = service.now() / 1000 - PAST_SECONDS if asked.since is None else asked.since.timestamp()
        wanted = (await service.position_at(round(max(since, 0) * 1000))).sequence + 1
    last = service.newest
    first = max(wanted, service.oldest, last - MOST_TRIED + 1)
    sample: deque[tuple[StoredMessage, bytes | None]] = deque(maxlen=asked.limit)
    count = examined = 0
    earliest: int | None = None
    place = first
    while place <= last:
        page = [one for one in await service.history(place, TRIED_TOGETHER) if one.sequence <= last]
        if not page:
            break
        place = page[-1].sequence + 1
        earliest = page[0].at if earliest is None else earliest
        own = [one for one in page if one.tenant == call.tenant and one.format != TRACK_FORMAT]
        matched = await asyncio.to_thread(_tried, trial, own, BodyReader(wrap=wrap))
        examined += len(own)
        count += len(matched)
        sample.extend(matched)
    shown = [
        TrialMatch(one.sequence, instant(one.at), msgspec.Raw(one.body), None if track is None else msgspec.Raw(track))
        for one, track in sample
    ]
    is_complete = first <= wanted or wanted < 1
    since_shown = None if earliest is None else instant(earliest)
    return Reply(200, TrialAnswer(count, examined, first, last, since_shown, is_complete, shown))


def _plain_trial(filter: Any, wrap: Mapping[str, str]) -> Trial:
    """Return a function that finds the messages that a filter matches."""
    table = ForwardingTable(wrap=wrap)
    table.subscribe("trial", filter, KEY)

    def find(parts: Sequence[Part], arrivals: Sequence[int]) -> list[tuple[int, bytes | None]]:
        found: list[int] = []
        for messages, places in parts:
            answer = table.match_many(messages)
            found += [place for row, place in enumerate(places) if answer[row]]
        return [(place, None) for place in sorted(found)]

    return find


def _tried(
    trial: Trial, messages: Sequence[StoredMessage], reader: BodyReader
) -> list[tuple[StoredMessage, bytes | None]]:
    """Return what a trial finds in messages; their bodies are read again."""
    found = trial(read_again(messages, reader), [one.at for one in messages])
    return [(messages[place], track) for place, track in found]
