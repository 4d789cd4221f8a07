"""Context: everything that the handlers of one server share."""

from __future__ import annotations

import time
from collections.abc import Callable

from contrada.service.access.open_streams import LOOK_SECONDS, OpenStreams
from contrada.service.http.gate import Gate
from contrada.service.http.metrics import Metrics
from contrada.service.http.tracing import open_tracer
from contrada.service.links.links import Links
from contrada.service.map.live_map import LiveMap
from contrada.service.problems import NOT_FOUND, NOT_READY
from contrada.service.service import Service
from contrada.service.settings import Settings
from contrada.service.shared_log.keeping import DutyKeeper
from contrada.service.sinks import TopicSinks
from contrada.service.sources import TopicSources
from contrada.service.webhooks import Webhooks

KEEP_ALIVE_SECONDS = 15.0

Clock = Callable[[], float]  # seconds since 1970


class Context:
    """The service, webhooks, settings, the gate, metrics and traces; a service is there once it has started."""

    def __init__(
        self,
        settings: Settings,
        *,
        keep_alive: float = KEEP_ALIVE_SECONDS,
        look: float = LOOK_SECONDS,
        clock: Clock = time.time,
    ) -> None:
        self.settings, self.keep_alive = settings, keep_alive
        self.tracer = open_tracer(settings.telemetry)
        self.gate = Gate(settings, clock)
        self.metrics = Metrics()
        self.is_ready = False
        self.is_stopping = False
        self.stage = "starting"
        self._service: Service | None = None
        self.started_webhooks: Webhooks | None = None
        self.started_links: Links | None = None
        self.started_sinks: TopicSinks | None = None
        self.started_sources: TopicSources | None = None
        self.started_duty: DutyKeeper | None = None
        self.streams = OpenStreams(clock, look)
        self.map = LiveMap(settings.map)
        self.is_demo = False

    @property
    def service(self) -> Service:
        """The running service; raises a Problem (503) before it is ready and when it stops."""
        if self._service is None or not self.is_ready or self.is_stopping:
            stage = "stopping" if self.is_stopping else self.stage
            raise NOT_READY(f"the server is not ready: {stage}", retry_after=1)
        return self._service

    @property
    def webhooks(self) -> Webhooks:
        """The webhooks of the running service; raises a Problem (503) before it is ready and when it stops."""
        self.require_ready()
        assert self.started_webhooks is not None
        return self.started_webhooks

    @property
    def links(self) -> Links:
        """The links of the running service; raises a Problem (503) before it is ready and when it stops."""
        self.require_ready()
        assert self.started_links is not None
        return self.started_links

    @property
    def sinks(self) -> TopicSinks:
        """The sinks of the running service; raises a Problem (503) before it is ready and when it stops."""
        self.require_ready()
        assert self.started_sinks is not None
        return self.started_sinks

    @property
    def sources(self) -> TopicSources:
        """The sources of the running service; raises a Problem (503) before it is ready and when it stops."""
        self.require_ready()
        assert self.started_sources is not None
        return self.started_sources

    def require_map(self) -> None:
        """Raise a Problem (404) if settings say that there is no map."""
        if not self.settings.map.enabled:
            raise NOT_FOUND("this server has no map (map.enabled)")

    def require_ready(self) -> None:
        """Raise a Problem (503) unless the service is ready."""
        assert self.service is not None

    @property
    def started(self) -> Service | None:
        """The service if it has started; for those who look at it before it is ready."""
        return self._service

    def start(self, service: Service, webhooks: Webhooks) -> None:
        """Take a service that has started, and its webhooks."""
        self._service, self.started_webhooks = service, webhooks
        self.map.start(service)

    async def end_streams(self) -> None:
        """End all streams and refuse new ones."""
        self.is_stopping = True
        await self.streams.end_all()
