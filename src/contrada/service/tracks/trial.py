"""TrackTrial: what a tracked subscription would have told of the past."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contrada.cql2.queries import bound_predicate
from contrada.formats.wrapping import wrapped_predicate
from contrada.geometry.globe import globes_of
from contrada.matching import ForwardingTable
from contrada.service.intake import Part
from contrada.service.tracks.asking import TrackAsked
from contrada.service.tracks.groups import GroupKey, MatchedPart, TrackGroup
from contrada.tracking import Tracks
from contrada.tracking.watch import check_no_cross

NUMBER = 0  # of the only subscription


class TrackTrial:
    """A tracked subscription with objects of its own, which starts without any.

    Events that no message makes, such as a dwell of an object that sends nothing more, are left out.
    """

    def __init__(
        self, filter: Any, asked: TrackAsked, expiry: int | None, wrap: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        predicate = wrapped_predicate(bound_predicate(filter), globes_of(wrap))
        watch = asked.watch(predicate)
        check_no_cross(watch, wrap)
        self._table = ForwardingTable(wrap=wrap)
        self._table.subscribe("trial", predicate, NUMBER)
        key = GroupKey("", asked.track, asked.time, watch.attribute, asked.late)
        self._group = TrackGroup(key, Tracks(late=asked.late, expire_after=expiry))
        self._group.tracks.watch(NUMBER, watch, 0)

    def take(self, parts: Sequence[Part], arrivals: Sequence[int]) -> list[tuple[int, bytes]]:
        """Take messages that came at times `arrivals`, by place; return places and members `track` of events."""
        matched = []
        for table, places in parts:
            answer = self._table.match_many(table)
            numbers = [[NUMBER] if answer[row] else [] for row in range(len(places))]
            matched.append(MatchedPart(table, places, numbers, [item.row for item in answer.rejected]))
        found = self._group.apply(matched, max(arrivals, default=0), arrivals)
        return [(place, member) for place in sorted(found) for _, member in found[place]]
