"""MapSettings: title, base map and coordinates of the live map, and what it shows without a key."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta

from contrada.service.setting_section import Section, SettingsError

SHOWN = ("filters", "attributes", "subscribers")  # besides geometry, keys and counts


class MapSettings(Section, frozen=True):
    """The live map at `/`."""

    enabled: Annotated[bool, Meta(description="whether there is a map; without it `/map` is not found")] = True
    title: Annotated[str, Meta(min_length=1, max_length=200, description="title of the map")] = "Contrada"
    tiles: Annotated[
        str | None,
        Meta(description="URL of a base map of your own, with `{z}`, `{x}` and `{y}`; none: the one that is built in"),
    ] = None
    attribution: Annotated[
        str, Meta(max_length=1_000, description="text on the map that credits the source of these tiles")
    ] = ""
    tiles_from: Annotated[
        int,
        Meta(
            ge=0,
            description="number of subscriptions past which the page gets vector tiles in place of their shapes",
        ),
    ] = 20_000
    coordinates: Annotated[
        Literal["auto", "degrees", "plain"],
        Meta(description="longitude and latitude, or plain numbers on a grid; auto: plain if some cannot be degrees"),
    ] = "auto"
    public: Annotated[
        str | None, Meta(description="tenant whose map anyone may watch without a key; none: a key is needed")
    ] = None
    public_shows: Annotated[
        tuple[str, ...],
        Meta(description="what is shown without a key besides geometry: `filters`, `attributes`, `subscribers`"),
    ] = ()

    def __post_init__(self) -> None:
        if self.tiles is not None:
            is_url = re.fullmatch(r"(https?://[^/\s?#@]+)?/[^\s]*", self.tiles)
            if not is_url or not all(name in self.tiles for name in ("{z}", "{x}", "{y}")):
                raise SettingsError(
                    f"map.tiles: need a URL such as https://tiles.example/{{z}}/{{x}}/{{y}}.png, got {self.tiles!r:.80}"
                )
        if self.public is not None and not (self.public.isprintable() and self.public == self.public.strip()):
            raise SettingsError(f"map.public: need the name of a tenant, got {self.public!r:.80}")
        if self.public == "":
            raise SettingsError("map.public: need the name of a tenant, got ''")
        for name in self.public_shows:
            if name not in SHOWN:
                raise SettingsError(f"map.public_shows: need some of {', '.join(SHOWN)}, got {name!r:.80}")
