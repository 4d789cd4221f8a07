"""`contrada serve --demo`: the settings of the demonstration, and what publishes in it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs

from contrada.demo.live import LiveDistrict, LiveSubscription
from contrada.errors import ContradaError
from contrada.service.core import NewSubscription
from contrada.service.http.logs import configure_logs
from contrada.service.http.server import run
from contrada.service.intake import Post
from contrada.service.map.map_settings import SHOWN
from contrada.service.service import Service
from contrada.service.settings import Settings, load_settings
from contrada.service.tracks.asking import DwellAsked, TrackAsked

TENANT = "default"
SEED = 7
SECOND = 1.0  # between ticks of the district
DEFAULTS = {
    "map_title": "A made-up district",
    "map_public_shows": ",".join(SHOWN),
    "retention_age": "7200",
}


def serve_demo(config: Path | None, flags: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Run a server whose map shows a district that lives, until it is stopped."""
    with ExitStack() as stack:
        given = demo_flags(flags)
        if given.get("state") is None:
            given["state"] = stack.enter_context(
                TemporaryDirectory(prefix="contrada-demo-", ignore_cleanup_errors=True)
            )
        settings = demo_settings(config, given, os.environ)
        configure_logs(settings.telemetry)
        run(settings, say, companion=LivingDistrict(say, settings.map.public == TENANT))
    logging.shutdown()


def demo_settings(config: Path | None, flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Return the settings of a demonstration: whoever is on this machine may look, others only if settings say so."""
    settings = load_settings(config, environment, flags)
    if settings.map.public is None and is_loopback(settings):
        return structs.replace(settings, map=structs.replace(settings.map, public=TENANT))
    return settings


def demo_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags of a demonstration: those that were given, and what goes without saying."""
    return DEFAULTS | {name: value for name, value in flags.items() if value is not None}


def is_loopback(settings: Settings) -> bool:
    """Return True if the server is reached from this machine alone."""
    host = settings.server.host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def asked_of(one: LiveSubscription) -> NewSubscription:
    """Return a subscription of the district as the service takes it."""
    track = None
    if one.track is not None:
        on = tuple(kind if isinstance(kind, str) else DwellAsked(kind["dwell"]) for kind in one.on)
        track = TrackAsked(one.track, on)  # type: ignore[arg-type]
    return NewSubscription(one.subscriber, one.filter, track=track)


class LivingDistrict:
    """Subscribes the facilities of a district and publishes what happens in it, until it is cancelled."""

    def __init__(
        self, say: Callable[[str], None], is_public: bool = False, seed: int = SEED, second: float = SECOND
    ) -> None:
        self._say, self._is_public, self._seed, self._second = say, is_public, seed, second

    async def __call__(self, service: Service) -> None:
        """Let the district live on a service that is ready."""
        district = await asyncio.to_thread(LiveDistrict, self._seed)
        known = [one for one in district.subscriptions if service.definition(TENANT, one.key) is None]
        await service.put_many(TENANT, [(one.key, asked_of(one)) for one in known])
        self._say(f"the district has {len(district.subscriptions)} subscriptions; look at the map at this address")
        if self._is_public:
            self._say("no key is needed to look; sign in with the admin key to change something")
        for messages in district.ticks():
            try:
                await service.publish(TENANT, Post("json", json.dumps(messages).encode()))
            except ContradaError as error:  # such as a full disk: the next second tries again
                self._say(f"the demonstration waits: {error}")
            await asyncio.sleep(self._second)
