"""Traces of publishing for OpenTelemetry, if settings name a collector; nothing of it is imported otherwise."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from contrada import __version__
from contrada.installation import missing
from contrada.service.core import Published
from contrada.service.engine import GroupTimes
from contrada.service.intake import Post
from contrada.service.service import Service
from contrada.service.settings import SettingsError, TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

TRACES = "/v1/traces"  # where collectors take traces over HTTP
EXPORT_SECONDS = 5.0  # that a batch of spans may take to be sent, and all that are left when the server stops


class PublishTracer:
    """Spans of each post: `publish`, from the request to the answer, and in it `match` and `commit` of its transaction.

    A transaction holds the posts that came together; its spans have its number of commands and messages. The SDK's
    variables (`OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`) apply.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource = Resource.create({"service.name": "contrada", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("contrada", __version__)
        self._parents, self._trace = TraceContextTextMapPropagator(), trace

    async def publish(self, service: Service, tenant: str, post: Post, headers: Mapping[str, str]) -> Published:
        """Publish a post in a span; its parent is the span that the header `traceparent` names."""
        trace = self._trace
        attributes: dict[str, str | int] = {"contrada.tenant": tenant, "contrada.format": post.format}
        attributes["contrada.bytes"] = len(post.body)
        parent = self._parents.extract(headers) if "traceparent" in headers else None
        span = self._tracer.start_span("publish", parent, trace.SpanKind.SERVER, attributes)
        try:
            found = await service.publish(tenant, post, lambda times: self._show(span, times))
            span.set_attribute("contrada.messages", found.taken)
            span.set_attribute("contrada.duplicates", len(found.duplicates))
            span.set_attribute("contrada.rejected", len(found.rejected))
            return found
        except Exception as error:
            span.set_status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}")
            raise
        finally:
            span.end()

    def _show(self, post: Span, times: GroupTimes) -> None:
        """Make the spans of a transaction, as parts of the span of a post."""
        parent = self._trace.set_span_in_context(post)
        attributes = {"contrada.batch.commands": times.commands, "contrada.batch.messages": times.messages}
        for name, start, end in (("match", times.began, times.matched), ("commit", times.matched, times.durable)):
            self._tracer.start_span(name, parent, attributes=attributes, start_time=start).end(end)

    def close(self) -> None:
        """Send what is left, within some seconds; blocks. A collector that is away does not hold up the stop."""
        last = threading.Thread(target=self._provider.shutdown, name="contrada-traces", daemon=True)
        last.start()
        last.join(EXPORT_SECONDS)


def open_tracer(settings: TelemetrySettings) -> PublishTracer | None:
    """Return a tracer that sends to the collector of settings; None if they name none."""
    if settings.otlp_endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise SettingsError(missing("telemetry.otlp_endpoint needs OpenTelemetry", "otel")) from error
    parts = urlsplit(settings.otlp_endpoint)
    url = parts._replace(path=TRACES).geturl() if parts.path in ("", "/") else settings.otlp_endpoint
    return PublishTracer(OTLPSpanExporter(url, timeout=EXPORT_SECONDS))
