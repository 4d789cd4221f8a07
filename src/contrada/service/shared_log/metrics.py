"""Metrics of a shared log, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from contrada.service.shared_log.duties import DELIVERIES
from contrada.service.shared_log.following import Following


def log_metrics(following: Following | None) -> Iterator[Metric]:
    """Yield what is counted of a shared log; nothing if there is none."""
    if following is None:
        return
    holder = following.holder(DELIVERIES)
    is_ours = holder is not None and holder.origin == following.origin
    yield GaugeMetricFamily("contrada_log_position", "Position up to which it is applied.", value=following.position)
    yield GaugeMetricFamily("contrada_log_delivers", "Whether this server serves webhooks and topics.", value=is_ours)
    yield CounterMetricFamily(
        "contrada_log_rematched_messages", "Messages matched again, as a table had changed.", value=following.rematched
    )
    yield CounterMetricFamily("contrada_log_foreign_records", "Records that no server wrote.", value=following.foreign)
