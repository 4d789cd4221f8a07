"""Links as settings ask for them."""

from __future__ import annotations

import ssl

from contrada.service.links.calling import CallPace
from contrada.service.links.links import CalledBroker, LinkPlan, Links
from contrada.service.service import Service
from contrada.service.settings import Settings, SettingsError


def make_links(settings: Settings, service: Service) -> Links:
    """Return the links of a service."""
    asked = settings.links
    plan = LinkPlan(called_brokers(settings), asked.tenant, asked.expected, asked.patience)
    pace = CallPace(asked.retry_first, asked.retry_most, asked.ping)
    return Links(service, plan, pace=pace, trusted=trusted_by(settings))


def called_brokers(settings: Settings) -> list[CalledBroker]:
    """Return the brokers to call; raise SettingsError unless there is one key, or one for each."""
    urls, keys = settings.server.link, settings.links.keys
    if urls and len(keys) not in (1, len(urls)):
        raise SettingsError(
            f"links.keys: need one key for all links, or one for each of the {len(urls)} links, got {len(keys)}"
            " (CONTRADA_LINKS_KEYS)"
        )
    return [CalledBroker(url, keys[place % len(keys)]) for place, url in enumerate(urls)]


def trusted_by(settings: Settings) -> ssl.SSLContext | None:
    """Return what certificates of called brokers are checked with; None for the authorities of the system."""
    file = settings.links.ca
    if file is None:
        return None
    try:
        return ssl.create_default_context(cafile=file)
    except OSError as error:  # also one of TLS
        raise SettingsError(f"links.ca: cannot read certificates from {file}: {error}") from error


def check_links(settings: Settings) -> None:
    """Raise SettingsError if the settings of links do not fit together, or their file cannot be read."""
    called_brokers(settings)
    trusted_by(settings)
