"""Viewer: the tenant whose map is shown, and the parts that a caller may see."""

from __future__ import annotations

from typing import NamedTuple

from contrada.service.access.keys import Principal
from contrada.service.map.map_settings import SHOWN, MapSettings


class Viewer(NamedTuple):
    """The map of a tenant with the parts that a caller may see.

    Outlines with many vertices are simplified: none moves by more than `simplify`.
    """

    tenant: str
    shows: frozenset[str]
    simplify: float = 0.0

    @property
    def shows_filters(self) -> bool:
        """Whether the texts of filters are shown."""
        return "filters" in self.shows

    @property
    def shows_attributes(self) -> bool:
        """Whether attributes of messages besides geometry, and the names of objects, are shown."""
        return "attributes" in self.shows

    @property
    def shows_subscribers(self) -> bool:
        """Whether the names of subscribers, and how far they are, are shown."""
        return "subscribers" in self.shows


def viewer_of(principal: Principal, settings: MapSettings, simplify: float = 0.0) -> Viewer:
    """Return the viewer of a caller: with a key it sees everything, without one what `map.public_shows` names.

    >>> viewer_of(Principal("acme", frozenset({"subscribe"}), "ann"), MapSettings()).shows_filters
    True
    """
    shows = settings.public_shows if principal.is_public else SHOWN
    return Viewer(principal.tenant, frozenset(shows), simplify)
