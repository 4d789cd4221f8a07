"""Metrics of one server in the text format of Prometheus; memory does not grow with use."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from itertools import accumulate
from time import perf_counter
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from contrada.service.core import Published
from contrada.service.engine import DURATIONS, Durations
from contrada.service.links.links import Links
from contrada.service.links.metrics import link_metrics
from contrada.service.service import Service
from contrada.service.shared_log.metrics import log_metrics
from contrada.service.sinks import TopicSinks
from contrada.service.sources import TopicSources
from contrada.service.views import SubscriberView
from contrada.service.webhooks import Webhooks

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHOWN_SUBSCRIBERS = SHOWN_WEBHOOKS = 100  # with labels of their own: those with the largest lag


class LabelledSubscriber(NamedTuple):
    """A subscriber that has labels of its own."""

    tenant: str
    view: SubscriberView


class Metrics:
    """Counts what passes over the network; the service counts the rest."""

    def __init__(self) -> None:
        self.messages = self.duplicates = self.rejected = self.failures = 0
        self._waiting: dict[int, float] = {}  # starts of publish requests without an answer, oldest first
        self._next = 0
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "contrada_publish_seconds",
            "Time from a request that publishes to its durable answer.",
            registry=self._registry,
            buckets=SECONDS,
        )

    def begin(self) -> int:
        """Note that a post waits; return its ticket."""
        self._next += 1
        self._waiting[self._next] = perf_counter()
        return self._next

    def end(self, ticket: int) -> None:
        """Note that a post was answered or failed."""
        self._seconds.observe(perf_counter() - self._waiting.pop(ticket))

    def published(self, found: Published) -> None:
        """Count the messages of a post."""
        self.messages += found.taken
        self.duplicates += len(found.duplicates)
        if found.rejected:
            self.rejected += sum(not item.is_part for item in found.rejected)

    def age(self) -> float:
        """Return how long the oldest post waits, in seconds."""
        oldest = next(iter(self._waiting.values()), None)
        return 0.0 if oldest is None else perf_counter() - oldest

    def text(
        self,
        service: Service | None,
        webhooks: Webhooks | None,
        sinks: TopicSinks | None,
        sources: TopicSources | None,
        connections: int,
        subscribers: Iterable[LabelledSubscriber],
        now: float,
        names_webhooks: bool,
        links: Links | None = None,
    ) -> bytes:
        """Return all metrics; `now` in seconds since 1970. Single webhooks are among them with `names_webhooks`."""
        registry = CollectorRegistry()
        delivered = [] if webhooks is None else [*_delivered(webhooks), *_webhook_lags(webhooks, names_webhooks)]
        linked = [] if service is None or links is None else list(link_metrics(service, links))
        found = [*self._counted(connections), *_served(service), *delivered, *linked, *_lags(subscribers, now)]
        found += [*_sunk(sinks), *_sourced(sources)]
        found += [] if service is None else list(log_metrics(service.following))
        registry.register(_Snapshot(found))
        return generate_latest(self._registry) + generate_latest(registry)

    def _counted(self, connections: int) -> Iterator[Metric]:
        yield _counter("messages", "Messages that were taken.", self.messages)
        yield _counter("duplicates", "Messages that had been published before.", self.duplicates)
        yield _counter("rejected", "Messages that were rejected.", self.rejected)
        yield _counter("failures", "Requests that a fault of the server failed.", self.failures)
        yield _gauge("publishing", "Posts that wait for their answer.", len(self._waiting))
        yield _gauge("publishing_age_seconds", "How long the oldest post waits.", self.age())
        yield _gauge("consumers", "Open streams, sockets and long polls.", connections)


class _Snapshot(Collector):
    """Metrics as they are now."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _counter(name: str, meaning: str, value: float) -> Metric:
    return CounterMetricFamily(f"contrada_{name}", meaning, value=value)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"contrada_{name}", meaning, value=value)


def _histogram(name: str, meaning: str, durations: Durations) -> Metric:
    bounds = [*map(floatToGoString, (*DURATIONS, math.inf))]
    buckets = list(zip(bounds, accumulate(durations.counts), strict=True))
    return HistogramMetricFamily(f"contrada_{name}", meaning, buckets=buckets, sum_value=durations.total)


def _served(service: Service | None) -> Iterator[Metric]:
    if service is None:
        return
    yield _counter("matches", "Pairs of a message and a subscription that it satisfies.", service.matched)
    yield _counter("events", "Events that were handed to consumers.", service.delivered)
    yield _counter("dropped", "Events that retention removed before they were delivered.", service.dropped)
    yield _gauge("subscriptions", "Subscriptions of all tenants.", len(service))
    tracks = service.tracks
    yield _gauge("tracked_objects", "Objects that are tracked.", tracks.objects)
    yield _gauge("tracked_pairs", "Pairs of an object and a subscription that it is inside.", tracks.pairs)
    yield _counter("late_fixes", "Fixes that were ignored because a newer one had come.", tracks.late)
    yield _counter("unread_fixes", "Fixes whose id or time could not be read.", tracks.unread)
    yield _gauge("engine_waiting", "Commands that wait for the engine.", service.waiting)
    yield _gauge("store_fault", "1 if the store takes no changes.", service.fault is not None)
    yield _gauge("oldest_sequence", "Sequence number of the oldest message that is kept.", service.oldest)
    yield _gauge("newest_sequence", "Sequence number of the last message.", service.newest)
    work = service.work
    yield _histogram("match_seconds", "Time to read and match the messages of a group.", work.match)
    yield _histogram("commit_seconds", "Time to write a group durably.", work.commit)


def _delivered(webhooks: Webhooks) -> Iterator[Metric]:
    counts = webhooks.counts
    yield _counter("webhook_sent", "Events that webhooks took.", counts.sent)
    yield _counter("webhook_failed", "Attempts to deliver that failed.", counts.failed)
    yield _counter("webhook_retried", "Attempts to deliver again what had failed.", counts.retried)
    yield _counter("webhook_dead", "Events that became dead letters.", counts.dead)
    yield _counter("webhook_discarded", "Dead letters that made room for later ones.", counts.discarded)
    yield _gauge("webhook_in_flight", "Requests to webhooks that run.", counts.in_flight)


def _webhook_lags(webhooks: Webhooks, names_them: bool) -> Iterator[Metric]:
    lags = webhooks.lags()
    yield _gauge("webhooks", "Webhooks of all tenants.", len(lags))
    yield _gauge(
        "webhook_most_lag_messages", "Messages after the place of the slowest one.", max(lags.values(), default=0)
    )
    if names_them:
        names = ["tenant", "subscriber", "webhook"]
        lag = GaugeMetricFamily("contrada_webhook_lag_messages", "Messages after the place of each.", labels=names)
        for key in heapq.nlargest(SHOWN_WEBHOOKS, lags, key=lags.__getitem__):
            lag.add_metric(list(key), lags[key])
        yield lag


def _sunk(sinks: TopicSinks | None) -> Iterator[Metric]:
    """Yield the metrics of sinks; their names are those of the settings, not of tenants."""
    if sinks is None or not (views := sinks.views()):
        return
    counts = sinks.counts
    yield _counter("sink_sent", "Events that sinks took.", counts.sent)
    yield _counter("sink_failed", "Attempts to send that failed.", counts.failed)
    yield _counter("sink_retried", "Attempts to send again what had failed.", counts.retried)
    yield _counter("sink_dead", "Events that became dead letters.", counts.dead)
    yield _counter("sink_discarded", "Dead letters that made room for later ones.", counts.discarded)
    lag = GaugeMetricFamily("contrada_sink_lag_messages", "Messages after the place of each.", labels=["sink"])
    failing = GaugeMetricFamily("contrada_sink_failing", "1 if the last attempt failed.", labels=["sink"])
    for view in views:
        lag.add_metric([view.table.name], view.lag)
        failing.add_metric([view.table.name], view.failing is not None)
    yield from (lag, failing)


def _sourced(sources: TopicSources | None) -> Iterator[Metric]:
    """Yield the metrics of sources."""
    if sources is None or not (views := sources.views()):
        return
    counts = sources.counts
    yield _counter("source_records", "Records that sources read.", counts.records)
    yield _counter("source_messages", "Messages that sources published.", counts.messages)
    yield _counter("source_repeated", "Records that had been published before.", counts.repeated)
    yield _counter("source_dead", "Records that became dead letters.", counts.dead)
    yield _counter("source_discarded", "Dead letters that made room for later ones.", counts.discarded)
    yield _counter("source_failed", "Connections and writes that failed.", counts.failed)
    lag = GaugeMetricFamily("contrada_source_lag_records", "Records that are not read yet.", labels=["source"])
    failing = GaugeMetricFamily("contrada_source_failing", "1 if the source has no connection.", labels=["source"])
    for view in views:
        if view.lag is not None:
            lag.add_metric([view.table.name], view.lag)
        failing.add_metric([view.table.name], view.failing is not None)
    yield from (lag, failing)


def _lags(subscribers: Iterable[LabelledSubscriber], now: float) -> Iterator[Metric]:
    names = ["tenant", "subscriber"]
    lag = GaugeMetricFamily("contrada_subscriber_lag_messages", "Messages after the last delivery.", labels=names)
    age = GaugeMetricFamily("contrada_subscriber_oldest_undelivered_seconds", "Age of that event.", labels=names)
    dropped = CounterMetricFamily("contrada_subscriber_dropped", "Events that retention removed.", labels=names)
    oldest = GaugeMetricFamily("contrada_subscriber_oldest_sequence", "Oldest message that is kept.", labels=names)
    for tenant, view in subscribers:
        labels = [tenant, view.name]
        lag.add_metric(labels, view.lag)
        age.add_metric(labels, 0.0 if view.waits_since is None else max(0.0, now - view.waits_since / 1000))
        dropped.add_metric(labels, view.cursor.dropped)
        oldest.add_metric(labels, view.oldest_kept)
    yield from (lag, age, dropped, oldest)
