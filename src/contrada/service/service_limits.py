"""How long the service keeps messages, and the sizes of what it keeps and of what may wait."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from contrada.service.links.link_state import BACKLOG_BYTES
from contrada.service.tracks.journal import SNAPSHOT_AFTER

DAY = 86_400_000  # milliseconds


class Retention(NamedTuple):
    """How long messages are kept, in milliseconds and bytes of bodies; whatever is reached first removes them."""

    age: int = 7 * DAY
    bytes: int = 1 << 30


class ServiceLimits(NamedTuple):
    """Sizes of what is kept and of what may wait."""

    window: int = 100_000  # ids within which a message that is published again is recognised
    subscriptions: int = 1_000_000  # of one tenant
    waiting: int = 100_000  # commands
    vertices: int = 100_000  # of one geometry
    track_expiry: int | None = DAY  # milliseconds without a fix after which a tracked object is forgotten
    track_log: int = SNAPSHOT_AFTER  # bytes of changes of tracked objects, at least, before a snapshot replaces them
    backlog_bytes: int = BACKLOG_BYTES  # that wait for one neighbour
    snapshot_bytes: int = 64 << 20  # of records in a shared log, at least, before a snapshot replaces them
    wrap: Mapping[str, str] = MappingProxyType({})  # attributes that are wrapped at the date line


DEFAULT_RETENTION, DEFAULT_LIMITS = Retention(), ServiceLimits()
