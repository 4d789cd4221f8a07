"""The table of routes: method, path, scope, types and summary of everything that the server answers."""

from __future__ import annotations

from contrada.service.deliveries.outcomes import ReplayAnswer
from contrada.service.http import hooks, keys, operations, subscribers, subscriptions, trials
from contrada.service.http.bulk import BULK_TYPES
from contrada.service.http.endpoints import ApiEndpoint, Parameter
from contrada.service.http.publishing import PublishedBatch, PublishedMessage
from contrada.service.http.schemas import (
    Acknowledgement,
    BulkAnswer,
    DeadLetterList,
    Deleted,
    ExplainAnswer,
    KeyAnswer,
    KeyList,
    KeyRequest,
    ProblemMeaning,
    Status,
    StreamToken,
    SubscriberAnswer,
    SubscriberList,
    SubscriberSettings,
    SubscriptionAnswer,
    SubscriptionChange,
    SubscriptionList,
    SubscriptionRequest,
    TrialAnswer,
    TrialRequest,
    WebhookAnswer,
    WebhookList,
)
from contrada.service.http.streams import BATCH_JSON
from contrada.service.intake.posts import MEDIA_TYPES
from contrada.service.links import handlers as links
from contrada.service.links.views import NetworkView
from contrada.service.map.page import PAGE_ROUTES
from contrada.service.map.routes import ROUTES as MAP_ROUTES
from contrada.service.sinks.routes import ROUTES as SINK_ROUTES
from contrada.service.sources.routes import ROUTES as SOURCE_ROUTES
from contrada.service.webhooks import EndpointRequest
from contrada.service.webhooks.webhooks import AttemptAnswer

NUMBER = {"type": "number"}
COUNT = {"type": "integer", "minimum": 1, "maximum": 1000}
PAGING = (
    Parameter("after", "return what comes after this name"),
    Parameter("limit", "the most that one page has", COUNT),
)
PLACES = (
    Parameter("Last-Event-ID", "start after the event with this id", place="header"),
    Parameter("after", "start after the event with this id"),
    Parameter("from", "start at a sequence number, at `now` or at `oldest`"),
    Parameter("since", "start at a time, such as 2026-05-01T12:00:00Z, or at seconds since 1970"),
    Parameter("token", "a stream token in place of the header Authorization"),
    Parameter("format", "`events` or `cloudevents`", {"enum": ["events", "cloudevents"]}),
    Parameter("wait", "seconds that a long poll waits for events", {**NUMBER, "minimum": 0, "maximum": 60}),
    Parameter("limit", "the most events that a long poll returns", COUNT),
)

WEBHOOK = "/subscribers/{name}/webhooks/{endpoint}"

TABLE: tuple[ApiEndpoint, ...] = (
    ApiEndpoint(
        "POST",
        "/messages",
        "publish",
        "Publish one message or a batch; answered after it is durable",
        {201: PublishedMessage | PublishedBatch, 200: PublishedMessage | PublishedBatch},
        media=tuple(MEDIA_TYPES),
        parameters=(
            Parameter("Message-Id", "the id of the only message of the body", place="header"),
            Parameter("Idempotency-Key", "the same for all attempts of one request", place="header"),
        ),
    ),
    ApiEndpoint(
        "GET",
        "/subscribers/{name}/events",
        "subscribe",
        "Receive events as Server-Sent Events, or by long poll if JSON is accepted",
        {200: None},
        parameters=PLACES,
        kinds=("text/event-stream", "application/json", BATCH_JSON),
    ),
    ApiEndpoint(
        "PUT",
        "/subscriptions/{key}",
        "subscribe",
        "Add or replace a subscription",
        {201: SubscriptionAnswer, 200: SubscriptionAnswer},
        subscriptions.put_subscription,
        SubscriptionRequest,
        parameters=(Parameter("If-None-Match", "`*`: only if the key is new", place="header"),),
    ),
    ApiEndpoint(
        "GET",
        "/subscriptions/{key}",
        "subscribe",
        "Return a subscription",
        {200: SubscriptionAnswer},
        subscriptions.get_subscription,
    ),
    ApiEndpoint(
        "DELETE",
        "/subscriptions/{key}",
        "subscribe",
        "Remove a subscription; its events so far stay deliverable",
        {200: Deleted},
        subscriptions.delete_subscription,
    ),
    ApiEndpoint(
        "PATCH",
        "/subscriptions/{key}",
        "subscribe",
        "Pause or resume a subscription",
        {200: SubscriptionAnswer},
        subscriptions.patch_subscription,
        SubscriptionChange,
    ),
    ApiEndpoint(
        "POST",
        "/subscriptions/{key}/pause",
        "subscribe",
        "Pause a subscription",
        {200: SubscriptionAnswer},
        subscriptions.pause_subscription,
    ),
    ApiEndpoint(
        "POST",
        "/subscriptions/{key}/resume",
        "subscribe",
        "Resume a subscription from the next message on",
        {200: SubscriptionAnswer},
        subscriptions.resume_subscription,
    ),
    ApiEndpoint(
        "POST",
        "/subscriptions/{key}/explain",
        "subscribe",
        "Explain why a message satisfies a subscription, or why not",
        {200: ExplainAnswer},
        trials.explain,
        media=trials.EXPLAINED,
    ),
    ApiEndpoint(
        "GET",
        "/subscriptions",
        "subscribe",
        "List subscriptions by rising key",
        {200: SubscriptionList},
        subscriptions.list_subscriptions,
        parameters=(
            Parameter("subscriber", "only those of a subscriber"),
            Parameter("prefix", "only keys that begin with this"),
            *PAGING,
        ),
    ),
    ApiEndpoint(
        "POST",
        "/subscriptions",
        "subscribe",
        "Add or replace many subscriptions; bad rows are reported, good ones kept",
        {200: BulkAnswer, 422: BulkAnswer},
        subscriptions.post_subscriptions,
        media=tuple(BULK_TYPES),
        parameters=(
            Parameter("template", "CQL2 text with $column in place of values"),
            Parameter("track", "attribute that names the objects, for all rows; see a single subscription"),
            Parameter("on", "kinds of events, such as enter,exit,dwell(5m); with track"),
            Parameter("exit_buffer", "distance outside from which an object has left; with track"),
            Parameter("exit_after", "time outside after which an object has left, such as 30s; with track"),
            Parameter("time", "attribute of the time of a fix; with track"),
            Parameter("first", "what a first fix inside is: enter or silent; with track"),
            Parameter("late", "what becomes of a late fix: ignore or arrival; with track"),
        ),
    ),
    ApiEndpoint(
        "POST",
        "/dry-run",
        "subscribe",
        "Match a filter against the recent past",
        {200: TrialAnswer},
        trials.dry_run,
        TrialRequest,
    ),
    ApiEndpoint(
        "GET",
        "/subscribers",
        "subscribe",
        "List subscribers",
        {200: SubscriberList},
        subscribers.list_subscribers,
        parameters=PAGING,
    ),
    ApiEndpoint(
        "GET",
        "/subscribers/{name}",
        "subscribe",
        "Return how far a subscriber is",
        {200: SubscriberAnswer},
        subscribers.get_subscriber,
    ),
    ApiEndpoint(
        "PUT",
        "/subscribers/{name}",
        "subscribe",
        "Give a subscriber a retention of its own, within that of the log",
        {200: SubscriberAnswer},
        subscribers.put_subscriber,
        SubscriberSettings,
    ),
    ApiEndpoint(
        "POST",
        "/subscribers/{name}/ack",
        "subscribe",
        "Acknowledge events up to an id, durably",
        {204: None},
        subscribers.acknowledge,
        Acknowledgement,
    ),
    ApiEndpoint(
        "POST",
        "/subscribers/{name}/token",
        "subscribe",
        "Make a token that opens the stream of a subscriber",
        {201: StreamToken},
        subscribers.make_token,
    ),
    ApiEndpoint(
        "GET",
        "/subscribers/{name}/webhooks",
        "subscribe",
        "List the webhooks of a subscriber",
        {200: WebhookList},
        hooks.list_webhooks,
        parameters=PAGING,
    ),
    ApiEndpoint(
        "PUT",
        WEBHOOK,
        "subscribe",
        "Add or replace a webhook; a secret that the server makes is in this answer only",
        {201: WebhookAnswer, 200: WebhookAnswer},
        hooks.put_webhook,
        EndpointRequest,
    ),
    ApiEndpoint(
        "GET",
        WEBHOOK,
        "subscribe",
        "Return a webhook and how far it is",
        {200: WebhookAnswer},
        hooks.get_webhook,
    ),
    ApiEndpoint(
        "DELETE",
        WEBHOOK,
        "subscribe",
        "Remove a webhook with its dead letters",
        {204: None},
        hooks.delete_webhook,
    ),
    ApiEndpoint(
        "POST",
        f"{WEBHOOK}/pause",
        "subscribe",
        "Pause a webhook; its events wait",
        {200: WebhookAnswer},
        hooks.pause_webhook,
    ),
    ApiEndpoint(
        "POST",
        f"{WEBHOOK}/resume",
        "subscribe",
        "Go on with deliveries to a webhook, at once",
        {200: WebhookAnswer},
        hooks.resume_webhook,
    ),
    ApiEndpoint(
        "POST",
        f"{WEBHOOK}/test",
        "subscribe",
        "Send a signed test to a webhook, once",
        {200: AttemptAnswer},
        hooks.send_test,
    ),
    ApiEndpoint(
        "GET",
        f"{WEBHOOK}/dead-letters",
        "subscribe",
        "List events that were given up, oldest first",
        {200: DeadLetterList},
        hooks.list_dead_letters,
        parameters=hooks.LETTER_PAGING,
    ),
    ApiEndpoint(
        "POST",
        f"{WEBHOOK}/dead-letters/replay",
        "subscribe",
        "Send dead letters again, oldest first, up to the first that is not taken",
        {200: ReplayAnswer},
        hooks.replay_dead_letters,
    ),
    ApiEndpoint(
        "POST",
        f"{WEBHOOK}/dead-letters/{{id}}/replay",
        "subscribe",
        "Send one dead letter again",
        {200: ReplayAnswer},
        hooks.replay_dead_letter,
    ),
    ApiEndpoint("GET", "/keys", "admin", "List keys without their secrets", {200: KeyList}, keys.list_keys),
    ApiEndpoint("POST", "/keys", "admin", "Make a key", {201: KeyAnswer}, keys.create_key, KeyRequest),
    ApiEndpoint("DELETE", "/keys/{tenant}/{name}", "admin", "Revoke a key", {204: None}, keys.revoke_key),
    ApiEndpoint("GET", "/network", "admin", "Return the links to other brokers", {200: NetworkView}, links.get_network),
    ApiEndpoint(
        "DELETE", "/network/{tenant}/{name}", "admin", "Give up a neighbour for good", {204: None}, links.delete_link
    ),
    *MAP_ROUTES,
    *PAGE_ROUTES,
    *SINK_ROUTES,
    *SOURCE_ROUTES,
    ApiEndpoint("GET", "/health", None, "Answer if the process lives", {200: Status}, operations.health),
    ApiEndpoint("GET", "/ready", None, "Answer 200 if the server takes messages", {200: Status}, operations.ready),
    ApiEndpoint(
        "GET", "/metrics", None, "Metrics for Prometheus", {200: None}, operations.metrics, kinds=("text/plain",)
    ),
    ApiEndpoint("GET", "/openapi.json", None, "This document", {200: None}, operations.openapi),
    ApiEndpoint("GET", "/asyncapi.json", None, "The frames of `GET /ws`", {200: None}, operations.asyncapi),
    ApiEndpoint(
        "GET", "/docs", None, "A page that lists all routes", {200: None}, operations.docs, kinds=("text/html",)
    ),
    ApiEndpoint(
        "GET",
        "/problems/{name}",
        None,
        "Return what a type of problems means",
        {200: ProblemMeaning},
        operations.problem_meaning,
    ),
)
