"""Metrics of links, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from contrada.service.links.links import Links
from contrada.service.service import Service


def link_metrics(service: Service, links: Links) -> Iterator[Metric]:
    """Yield what is counted of links."""
    state = service.link_state
    waiting = state.backlogs.total()
    yield GaugeMetricFamily("contrada_link_connections", "Connections to neighbours.", value=len(links))
    yield GaugeMetricFamily("contrada_link_backlog_commands", "Commands not acknowledged.", value=waiting.commands)
    yield GaugeMetricFamily("contrada_link_backlog_bytes", "Bytes of these commands.", value=waiting.bytes)
    yield CounterMetricFamily("contrada_link_failed_calls", "Calls that failed or ended.", value=links.failed_calls)
    yield CounterMetricFamily(
        "contrada_link_messages", "Messages of neighbours that were logged.", value=state.received
    )
    yield CounterMetricFamily(
        "contrada_link_rejected", "Messages of neighbours that were rejected.", value=state.rejected
    )
    yield CounterMetricFamily("contrada_link_dropped", "Messages dropped for neighbours.", value=state.dropped)
