"""Handlers of the map's routes."""

from __future__ import annotations

import asyncio
from itertools import islice

from contrada import __version__
from contrada.errors import UnknownKeyError
from contrada.formats.messages import message_of
from contrada.service.catalog import Definition
from contrada.service.core import Core
from contrada.service.http.endpoints import Call, Reply
from contrada.service.http.events import SEQUENCE_DIGITS, number_of, reach, time_of
from contrada.service.http.schemas import instant
from contrada.service.http.subscriptions import check_filter_size
from contrada.service.http.wire import check_name
from contrada.service.map import explaining, filter_forms, past
from contrada.service.map.extents import Extent
from contrada.service.map.message_views import message_view, plain_matches
from contrada.service.map.parameters import limit_of, plane_of_query, sequence_of, simplify_of, tile_of_path
from contrada.service.map.past import SequenceRange
from contrada.service.map.schemas import (
    MapExplanation,
    MapMessagePage,
    MapSettingsAnswer,
    MapSubscriptionDetail,
    MapSubscriptionPage,
    MapTiles,
    MapToken,
    MatchedKeys,
    ObjectInside,
    ObjectNow,
    ObjectsInside,
)
from contrada.service.map.stream import TOKEN_OF_MAP
from contrada.service.map.subscription_views import subscription_view
from contrada.service.map.viewers import Viewer, viewer_of
from contrada.service.matches import NUMBER_MASK, unpack_matches
from contrada.service.problems import BAD_BODY, BAD_PARAMETER, FORBIDDEN, NOT_FOUND, Problem
from contrada.service.reading_again import attributes_of
from contrada.service.store.message_store import StoreChange, StoredMessage
from contrada.service.views import SubscriptionView

PAGE, LAST, HOUR = 200, 20, 3_600_000
TILE_KIND = b"application/vnd.mapbox-vector-tile"
MOST_PAIRS = 20_000  # of objects and subscriptions in a group that is listed: the engine does nothing else meanwhile
LAG_PAGES = 8  # of the log, in which the oldest event of a subscriber is looked for


def viewer_of_call(call: Call) -> Viewer:
    """Return the viewer that a call is answered for."""
    return viewer_of(call.principal, call.context.settings.map, simplify_of(call.query))


async def get_settings(call: Call) -> Reply:
    """Return the settings of the map, and what this caller may see and do."""
    context = call.context
    context.require_map()
    asked = context.settings.map
    try:
        principal = await context.gate.watcher(call.headers)
    except Problem:
        principal = None
    viewer = None if principal is None else viewer_of(principal, asked)
    service = context.started if viewer is None else context.service
    extent, count, tracks = Extent(None, None), 0, list[str]()
    if viewer is not None and service is not None:
        extent = await asyncio.to_thread(context.map.extent, viewer.tenant)
        count, tracks = service.count(viewer.tenant), service.tracking_attributes(viewer.tenant)
    scopes = sorted(() if principal is None else principal.scopes)
    return Reply(
        200,
        MapSettingsAnswer(
            asked.title,
            None if asked.tiles is None else MapTiles(asked.tiles, asked.attribution),
            extent.plane is not None or asked.coordinates == "plain",
            extent.plane,
            extent.bounds,
            "subscribe" not in scopes,
            context.is_demo,
            __version__,
            viewer is None,
            None if viewer is None else viewer.tenant,
            scopes,
            sorted(() if viewer is None else viewer.shows),
            count,
            asked.tiles_from,
            tracks,
            1 if service is None or viewer is None else service.oldest,
            0 if service is None or viewer is None else service.newest,
            instant(context.gate.steady() * 1_000),
        ),
    )


# --- subscriptions ---


async def list_map_subscriptions(call: Call) -> Reply:
    """Return a page of subscriptions with their shapes."""
    limit, viewer = limit_of(call.query, PAGE), viewer_of_call(call)
    after = check_name("after", call.query["after"]) if call.query.get("after") else ""
    found = await call.service.subscriptions(call.tenant, after=after, limit=limit)
    reader = call.context.map.reader
    shown = await asyncio.to_thread(lambda: [subscription_view(view, reader, viewer) for view in found])
    return Reply(200, MapSubscriptionPage(shown, found[-1].key if len(found) == limit else None))


async def get_map_subscription(call: Call) -> Reply:
    """Return a subscription, how far its subscriber is, and the latest messages that matched it."""
    key, viewer = check_name("key", call.path["key"]), viewer_of_call(call)
    limit = limit_of(call.query, LAST, "matches", 0)
    view = await call.service.subscription(call.tenant, key)
    kept, definition = call.service.kept, view.definition
    lag: int | None = None
    if viewer.shows_subscribers:
        try:
            behind = (await call.service.subscriber(call.tenant, definition.subscriber, LAG_PAGES)).lag
            # The subscriber may be behind since before there was this subscription.
            lag = min(behind, max(call.service.newest + 1 - definition.applies_from, 0))
        except UnknownKeyError:  # it has gone since
            lag = None

    def made() -> MapSubscriptionDetail:
        shown = subscription_view(view, call.context.map.reader, viewer)
        last = past.latest_matches(kept, call.tenant, definition.number, limit)
        messages = [message_view(one, kept.keys, viewer) for one in last.messages]
        members = {name: getattr(shown, name) for name in shown.__struct_fields__}
        return MapSubscriptionDetail(
            **members, lag=lag, last=messages, examined=last.examined, complete=last.is_complete
        )

    return Reply(200, await asyncio.to_thread(made))


async def get_tile(call: Call) -> Reply:
    """Return a vector tile of subscriptions."""
    place, plane = tile_of_path(call.path), plane_of_query(call.query)
    index = call.context.map.index(call.tenant)
    tile = await asyncio.to_thread(index.tile, *place, plane)
    return Reply(200, tile, ((b"cache-control", b"no-cache"),), TILE_KIND)


# --- messages ---


async def list_map_messages(call: Call) -> Reply:
    """Return a page of messages."""
    query, viewer, limit = call.query, viewer_of_call(call), limit_of(call.query, PAGE)
    after, before = sequence_of(query, "after"), sequence_of(query, "before")
    if after is not None:
        await reach(call.service, after)
    start, end = (None if name not in query else time_of(name, query[name]) for name in ("from", "to"))
    kept = call.service.kept

    def found() -> MapMessagePage:
        oldest, newest = kept.span()
        wanted = max(1 if start is None else kept.first_at(start), 1 if after is None else after + 1)
        stop = min(newest + 1, newest + 1 if end is None else kept.first_at(end))
        stop = stop if before is None else min(stop, before)
        asked = SequenceRange(max(wanted, oldest), stop)
        is_forward = start is not None or after is not None
        page = (past.forward if is_forward else past.backward)(kept, call.tenant, asked, limit)
        shown = [message_view(one, kept.keys, viewer) for one in page.messages]
        is_more, is_earlier = page.seen.stop < asked.stop, page.seen.first > oldest
        is_complete = not is_forward or oldest <= 1 or wanted >= oldest
        return MapMessagePage(
            shown, page.seen.stop - 1 if is_more else None, page.seen.first if is_earlier else None, is_complete
        )

    return Reply(200, await asyncio.to_thread(found))


async def list_matched(call: Call) -> Reply:
    """Return a page of the keys of subscriptions that a message matched, without those that track objects."""
    text = call.path["sequence"]
    if not (text.isascii() and text.isdigit() and len(text) <= SEQUENCE_DIGITS):
        raise BAD_PARAMETER(f"sequence: need a sequence number, got {text!r:.60}", attribute="sequence")
    message = await _stored(call, int(text))
    start, limit = sequence_of(call.query, "after") or 0, limit_of(call.query, PAGE)
    numbers = plain_matches(message)
    keys = call.service.kept.keys(numbers[start : start + limit])
    is_more = start + limit < len(numbers)
    found = [key for key in keys if key is not None]
    return Reply(200, MatchedKeys(found, start + limit if is_more else None, len(numbers)))


async def get_counts(call: Call) -> Reply:
    """Return the numbers of messages and matches per step."""
    query, now = call.query, call.service.now()
    end = now if "to" not in query else time_of("to", query["to"])
    start = end - HOUR if "from" not in query else time_of("from", query["from"])
    step = round(number_of(query, "step", 60.0, 0.001, 1e9) * 1_000)
    if start >= end or (end - start) / step > past.MOST_STEPS:
        raise BAD_PARAMETER(f"need from before to, at most {past.MOST_STEPS:,} steps apart", attribute="step")
    return Reply(200, await asyncio.to_thread(past.counts, call.service.kept, call.tenant, start, end, step))


async def list_inside(call: Call) -> Reply:
    """Return the objects that are inside of subscriptions now."""
    limit, viewer = limit_of(call.query, PAGE), viewer_of_call(call)
    tenant, kept = call.tenant, call.service.kept

    def work(core: Core, change: StoreChange) -> tuple[list[tuple[str, str | int, int, int]], int]:
        groups = core.trackers.groups(tenant)
        few = [group for group in groups if group.tracks.pairs <= MOST_PAIRS]
        pairs = ((group.key.track, *one) for group in few for one in islice(group.tracks.inside(), limit))
        return list(islice(pairs, limit)), sum(group.tracks.pairs for group in groups)

    found, count = await call.service.do(work)
    keys = kept.keys([number for _, _, number, _ in found])
    inside = [
        ObjectInside(attribute, id if viewer.shows_attributes else None, key, instant(since))
        for (attribute, id, _, since), key in zip(found, keys, strict=True)
        if key is not None
    ]
    return Reply(200, ObjectsInside(inside, count))


async def make_map_token(call: Call) -> Reply:
    """Return a token that opens the stream of the map."""
    call.context.require_map()
    gate, holder = call.context.gate, call.principal
    token = gate.tokens.issue(call.tenant, TOKEN_OF_MAP, gate.steady(), holder.name, holder.expires)
    return Reply(201, MapToken(token, call.context.settings.access.stream_token_seconds, f"/map/events?token={token}"))


# --- questions ---


async def explain_pair(call: Call) -> Reply:
    """Explain why a message matches a subscription or a filter, or why not."""
    asked, viewer = call.body, viewer_of_call(call)
    if (asked.key is None) == (asked.filter is None) or (asked.sequence is None) == (asked.message is None):
        raise BAD_BODY("need either key or filter, and either sequence or message")
    if not (viewer.shows_filters and viewer.shows_attributes):
        raise FORBIDDEN("explanations need a key, unless map.public_shows has filters and attributes")
    view: SubscriptionView | None = None
    filter = asked.filter
    if asked.key is not None:
        view = await call.service.subscription(call.tenant, check_name("key", asked.key))
        filter = view.filter
    check_filter_size(call, filter)
    stored = None if asked.sequence is None else await _stored(call, asked.sequence)

    def made() -> tuple[MapExplanation, dict[str, object]]:
        wrap = call.context.settings.server.wrapped
        message = message_of(asked.message, wrap=wrap) if stored is None else attributes_of(stored, wrap)
        subscriber = view.definition.subscriber if view is not None and viewer.shows_subscribers else None
        return explaining.explained(filter, message, asked.key, subscriber, wrap), message

    found, message = await asyncio.to_thread(made)
    if view is None:
        return Reply(200, found)
    note = None if stored is None else _note(found, view.definition, stored)
    return Reply(200, _with(found, track=await _object_now(call, view.definition, message), note=note))


def _with(found: MapExplanation, **members: object) -> MapExplanation:
    kept = {name: getattr(found, name) for name in found.__struct_fields__}
    return MapExplanation(**kept | members)


async def _stored(call: Call, sequence: int) -> StoredMessage:
    """Return a message of the tenant; raise a Problem (404) if there is none."""
    await reach(call.service, sequence)
    page = await asyncio.to_thread(call.service.kept.messages, sequence, 1)
    if not page or page[0].sequence != sequence or page[0].tenant != call.tenant:
        raise NOT_FOUND(f"there is no message {sequence}, or retention has removed it")
    return page[0]


def _note(found: MapExplanation, definition: Definition, stored: StoredMessage) -> str | None:
    """Return why the log and the filter have different answers; None for a subscription that tracks objects."""
    if definition.track is not None:
        return None
    numbers = unpack_matches(stored.matches) & NUMBER_MASK if stored.matches else ()
    is_in_log = definition.number in numbers
    return explaining.note_of(found.matches, is_in_log, definition.applies_from, stored.sequence, definition.is_paused)


async def _object_now(call: Call, definition: Definition, message: dict[str, object]) -> ObjectNow | None:
    if definition.track is None:
        return None
    id = message.get(definition.track.track)
    known = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    since = None if known is None else await call.service.inside_since(definition.number, known)
    return ObjectNow(known, since is not None, None if since is None else instant(since))


async def read_filter(call: Call) -> Reply:
    """Return a filter in all its forms, or what is wrong with it."""
    asked = call.body
    if (asked.text is None) == (asked.json is None):
        raise BAD_BODY("need text or json")
    filter = asked.json if asked.text is None else asked.text
    check_filter_size(call, filter)
    return Reply(200, await asyncio.to_thread(filter_forms.filter_answer, filter))
