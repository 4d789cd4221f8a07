"""The routes of the map."""

from __future__ import annotations

from typing import Any

from contrada.service.http.endpoints import ApiEndpoint, Handler, Parameter
from contrada.service.map import handlers
from contrada.service.map.parameters import FROM, LIMIT, SEQUENCE, SIMPLIFY, TO
from contrada.service.map.schemas import (
    FilterAnswer,
    FilterRequest,
    MapCounts,
    MapExplainRequest,
    MapExplanation,
    MapMessagePage,
    MapSettingsAnswer,
    MapSubscriptionDetail,
    MapSubscriptionPage,
    MapToken,
    MatchedKeys,
    ObjectsInside,
)


def _get(path: str, summary: str, answer: Any, handler: Handler, *parameters: Parameter) -> ApiEndpoint:
    return ApiEndpoint(
        "GET", f"/map/{path}", "subscribe", summary, {200: answer}, handler, parameters=parameters, is_map=True
    )


ROUTES = (
    ApiEndpoint(
        "GET",
        "/map/settings",
        None,
        "Return what the map has to know about this server and this caller",
        {200: MapSettingsAnswer},
        handlers.get_settings,
    ),
    _get(
        "subscriptions",
        "List subscriptions with their shapes by rising key",
        MapSubscriptionPage,
        handlers.list_map_subscriptions,
        Parameter("after", "return what comes after this key"),
        Parameter("limit", "the most that one page has", LIMIT),
        SIMPLIFY,
    ),
    _get(
        "subscriptions/{key}",
        "Return a subscription with its shapes, its lag and the latest messages that matched it",
        MapSubscriptionDetail,
        handlers.get_map_subscription,
        Parameter("matches", "how many messages at most", LIMIT | {"minimum": 0}),
        SIMPLIFY,
    ),
    _get(
        "messages",
        "List messages with their shapes and matches by rising sequence; the latest without from and after",
        MapMessagePage,
        handlers.list_map_messages,
        FROM,
        TO,
        Parameter("after", "return messages after this sequence number", SEQUENCE),
        Parameter("before", "return messages before this sequence number", SEQUENCE),
        Parameter("limit", "the most that one page has", LIMIT),
        SIMPLIFY,
    ),
    _get(
        "messages/{sequence}/matched",
        "List the keys of all subscriptions that a message matched",
        MatchedKeys,
        handlers.list_matched,
        Parameter("after", "how many were listed before", SEQUENCE),
        Parameter("limit", "the most that one page has", LIMIT),
    ),
    _get(
        "counts",
        "Count messages and matches per step",
        MapCounts,
        handlers.get_counts,
        FROM,
        TO,
        Parameter("step", "seconds", {"type": "number", "minimum": 0.001}),
    ),
    _get(
        "tracks",
        "List tracked objects that are inside of subscriptions now",
        ObjectsInside,
        handlers.list_inside,
        Parameter("limit", "the most that are listed", LIMIT),
    ),
    ApiEndpoint(
        "GET",
        "/map/tiles/subscriptions/{z}/{x}/{y}",
        "subscribe",
        "Return a vector tile of the shapes of subscriptions",
        {200: None},
        handlers.get_tile,
        parameters=(Parameter("plane", "middle and span of plain coordinates, as x,y,span; none: degrees"),),
        kinds=(handlers.TILE_KIND.decode(),),
        is_map=True,
    ),
    ApiEndpoint(
        "GET",
        "/map/events",
        "subscribe",
        "Receive everything that happens on the map as Server-Sent Events",
        {200: None},
        parameters=(
            Parameter("Last-Event-ID", "go on after the message with this sequence number", place="header"),
            Parameter("after", "go on after the message with this sequence number", SEQUENCE),
            Parameter("token", "a token of the map in place of the header Authorization"),
            SIMPLIFY,
        ),
        kinds=("text/event-stream",),
        is_map=True,
    ),
    ApiEndpoint(
        "POST",
        "/map/token",
        "subscribe",
        "Make a token that opens the stream of the map",
        {201: MapToken},
        handlers.make_map_token,
    ),
    ApiEndpoint(
        "POST",
        "/map/explain",
        "subscribe",
        "Explain why a message matches a subscription or a filter, or why not",
        {200: MapExplanation},
        handlers.explain_pair,
        MapExplainRequest,
        is_map=True,
    ),
    ApiEndpoint(
        "POST",
        "/map/filter",
        "subscribe",
        "Return a filter as text, as JSON, as rows of a form and as shapes, or what is wrong with it",
        {200: FilterAnswer},
        handlers.read_filter,
        FilterRequest,
        is_map=True,
    ),
)
