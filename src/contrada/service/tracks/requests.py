"""Members of requests and answers that concern tracked objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from contrada.errors import ContradaError
from contrada.service.problems import BAD_PARAMETER
from contrada.service.tracks.asking import Attribute, Duration, DwellAsked, FirstFix, LateFix, PlainKind, TrackAsked
from contrada.tracking import duration_ms

AskedKinds = Annotated[list[PlainKind | DwellAsked], Meta(min_length=1, max_length=5)]
OPTIONS = ("exit_buffer", "exit_after", "time", "first", "late")


class TrackMembers(msgspec.Struct, frozen=True, kw_only=True):
    """What a subscription asks for: every message (`on` is "match"), or events of tracked objects.

    Messages with the same value of the attribute `track` are states of one object.
    """

    on: Literal["match"] | AskedKinds | UnsetType = UNSET
    track: Attribute | None = None
    exit_buffer: Annotated[float, Meta(ge=0)] | None = None
    exit_after: Duration | None = None
    time: Attribute | None = None
    first: FirstFix | None = None
    late: LateFix | None = None

    def tracking(self) -> TrackAsked | None:
        """Return what is asked of tracked objects, None for every message; raise a Problem if members do not fit."""
        given: dict[str, Any] = {name: value for name in OPTIONS if (value := getattr(self, name)) is not None}
        if self.track is None:
            alone = next(iter(["on"] if isinstance(self.on, list) else given), None)
            if alone is not None:
                raise BAD_PARAMETER(f"{alone}: needs track, the attribute that names the objects", attribute=alone)
            return None
        if self.on == "match":
            raise BAD_PARAMETER('track: on "match" sends every message; need kinds of events in on', attribute="track")
        for name, value in [("exit_after", self.exit_after), *(("on", one.dwell) for one in self._dwells())]:
            if value is not None:
                _check_duration(name, value)
        if isinstance(self.on, list):
            given["on"] = tuple(self.on)
        return TrackAsked(self.track, **given)

    def _dwells(self) -> list[DwellAsked]:
        found = [one for one in self.on if isinstance(one, DwellAsked)] if isinstance(self.on, list) else []
        if len(found) > 1:
            raise BAD_PARAMETER("on: at most one dwell; add another subscription for another length", attribute="on")
        return found


def _check_duration(name: str, value: str | float) -> None:
    try:
        duration_ms(value, name)
    except ContradaError as error:
        raise BAD_PARAMETER(str(error), attribute=name) from error


def members_of_query(query: Mapping[str, Any]) -> TrackMembers:
    """Return the members that a query or a row of a file has; raise a Problem for bad ones.

    They are those of the body of a request, or all text, such as `track=id&on=enter,dwell(5m)`.
    """
    found: dict[str, Any] = {name: query[name] for name in ("track", "on", *OPTIONS) if name in query}
    if isinstance(found.get("on"), str):
        kinds = [kind.strip() for kind in found["on"].split(",")]
        found["on"] = [
            {"dwell": kind[6:-1]} if kind.startswith("dwell(") and kind.endswith(")") else kind for kind in kinds
        ]
        if kinds == ["match"]:
            found["on"] = "match"
    try:
        return msgspec.convert(found, TrackMembers, strict=False)
    except msgspec.ValidationError as error:
        raise BAD_PARAMETER(str(error)) from error


class TrackMember(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an event says of a tracked object.

    `before` and `after` are its relations to the region of the filter, null if it had no fix with a geometry. `reason`
    is there if the event was not made by a fix: `time`, `expired`, `ended`, `unsubscribed`, `replaced` or
    `expired-subscription`.
    """

    id: str | int
    kind: Literal["enter", "exit", "change", "cross", "dwell"]
    before: str | None
    after: str | None
    time: str
    reason: str | None = None
