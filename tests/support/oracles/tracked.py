"""The judge of tracked objects: plain dictionaries, one fix at a time, relations by rational arithmetic.

It shares no code with `contrada.tracking`. Events are tuples: kind, number of the subscription, object, relation before
and after (codes, None for none), time, row, reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import shapely

from generators.rings import polygons
from oracles.rational import boundary, common_scale, cuts, make_edge, point_rational, relate_rational

Event = tuple[str, int, Any, int | None, int | None, int, int | None, str]
DISJOINT, MEETS, INSIDE = 0, 1, 4


@dataclass
class Asked:
    """A subscription: a region, the relations that match, what else must hold, and the kinds of events."""

    region: Any
    relations: set[int]
    holds: Callable[[Mapping[str, Any]], bool]
    kinds: set[str]
    dwell: int | None = None
    exit_after: int | None = None
    exit_buffer: float = 0.0
    is_silent: bool = False


@dataclass
class Visit:
    """An object inside of a subscription."""

    entered: int
    relation: int | None
    left: int | None = None
    has_dwelt: bool = False


@dataclass
class Followed:
    """An object: its last fix, its visits, and the subscriptions that have seen a fix of it."""

    time: int
    geometry: Any
    visits: dict[int, Visit] = field(default_factory=dict)
    known: set[int] = field(default_factory=set)


class TrackModel:
    """What tracked objects tell, said as plainly as possible."""

    def __init__(self, late: str = "ignore", expire_after: int | None = None) -> None:
        self.late_policy, self.expire_after = late, expire_after
        self.late = 0
        self.asked: dict[int, Asked] = {}
        self.objects: dict[Any, Followed] = {}

    def subscribe(self, number: int, asked: Asked, time: int) -> list[Event]:
        """Add or replace a subscription."""
        told = self.unsubscribe(number, time, "replaced") if number in self.asked else []
        self.asked[number] = asked
        return told

    def unsubscribe(self, number: int, time: int, reason: str = "unsubscribed") -> list[Event]:
        """Remove a subscription; objects leave it, by id."""
        told: list[Event] = []
        for name in sorted(self.objects, key=_id_order):
            one = self.objects[name]
            one.known.discard(number)
            if one.visits.pop(number, None) is not None:
                told += self._exit(number, name, one, None, time, None, reason)
        del self.asked[number]
        return told

    def publish(self, fixes: list[tuple[Any, int, Any, Mapping[str, Any]]]) -> list[Event]:
        """Take a batch: id or None, time, geometry or None, and attributes of each."""
        rows = [row for row, fix in enumerate(fixes) if fix[0] is not None and not self._is_late(*fix[:2])]
        order = dict(enumerate(rows))
        if self.late_policy == "ignore":
            for name in {fixes[row][0] for row in rows}:
                own = [place for place in order if fixes[order[place]][0] == name]
                by_time = sorted((order[place] for place in own), key=lambda row: (fixes[row][1], row))
                order.update(zip(own, by_time, strict=True))
        return [event for place in sorted(order) for event in self.fix(*fixes[order[place]], order[place])]

    def fix(self, name: Any, time: int, geometry: Any, attributes: Mapping[str, Any], row: int) -> list[Event]:
        """Take one fix."""
        one = self.objects.get(name)
        told: list[Event] = []
        if one is not None and time < one.time:
            time = one.time
        if one is not None:
            told += self._pass(name, one, time, row)
            one = self.objects.get(name)
        if one is None:
            one = self.objects[name] = Followed(time, None)
        last = one.geometry
        for number in sorted(self.asked):
            if self._crosses(number, one, geometry, attributes):
                codes = relation(last, self.asked[number].region), relation(geometry, self.asked[number].region)
                told.append(("cross", number, name, *codes, time, row, "fix"))
        for number in sorted(self.asked):
            told += self._visit(number, name, one, time, geometry, attributes, row)
        one.known |= set(self.asked)
        one.time, one.geometry = time, geometry
        return told

    def end(self, name: Any, time: int, row: int) -> list[Event]:
        """Take a fix that ends the track."""
        one = self.objects.get(name)
        if one is None:
            return []
        time = max(time, one.time)
        told = self._pass(name, one, time, row)
        if name in self.objects:
            told += self._forget(name, one, time, row, "ended")
        return told

    def advance(self, now: int) -> list[Event]:
        """Let time pass; events by time, subscription and id."""
        told = [event for name in list(self.objects) for event in self._pass(name, self.objects[name], now, None)]
        return sorted(told, key=lambda event: (event[5], event[1], _id_order(event[2])))

    def inside(self) -> list[tuple[Any, int, int]]:
        """Return objects, subscriptions and times of entering, by subscription and id."""
        found = [(name, number, v.entered) for name, one in self.objects.items() for number, v in one.visits.items()]
        return sorted(found, key=lambda pair: (pair[1], _id_order(pair[0])))

    def _is_late(self, name: Any, time: int) -> bool:
        """Return True, and count it, if a fix is older than the newest one of its object before the batch."""
        is_late = self.late_policy == "ignore" and name in self.objects and time < self.objects[name].time
        self.late += is_late
        return is_late

    def _matches(self, number: int, geometry: Any, attributes: Mapping[str, Any]) -> bool:
        asked = self.asked[number]
        return relation(geometry, asked.region) in asked.relations and asked.holds(attributes)

    def _crosses(self, number: int, one: Followed, geometry: Any, attributes: Mapping[str, Any]) -> bool:
        asked, last = self.asked[number], one.geometry
        if "cross" not in asked.kinds or number in one.visits or number not in one.known:
            return False
        if not (is_point(last) and is_point(geometry)) or not asked.holds(attributes):
            return False
        if {relation(last, asked.region), relation(geometry, asked.region)} & asked.relations:
            return False
        return bool(relations_along(last, geometry, asked.region) & asked.relations)

    def _visit(
        self, number: int, name: Any, one: Followed, time: int, geometry: Any, attributes: Mapping[str, Any], row: int
    ) -> list[Event]:
        """Return what a fix tells one subscription."""
        asked, visit = self.asked[number], one.visits.get(number)
        now = relation(geometry, asked.region)
        if self._matches(number, geometry, attributes):
            if visit is None:
                one.visits[number] = Visit(time, now)
                before = relation(one.geometry, asked.region) if number in one.known else None
                if asked.is_silent and number not in one.known:
                    return []
                return self._say(number, name, ("enter", "change"), before, now, time, row, "fix")
            visit.left = None
            before, visit.relation = visit.relation, now
            if before != now and "change" in asked.kinds:
                return [("change", number, name, before, now, time, row, "fix")]
            return []
        if visit is None:
            return []
        is_beside = now is not None and now not in asked.relations and asked.exit_buffer > 0
        if is_beside and shapely.distance(geometry, asked.region) <= asked.exit_buffer:
            visit.left = None
            return []
        if asked.exit_after:
            visit.left = time if visit.left is None else visit.left
            return []
        del one.visits[number]
        return self._exit(number, name, one, now, time, row, "fix")

    def _pass(self, name: Any, one: Followed, now: int, row: int | None) -> list[Event]:
        """Do what is due for one object up to `now`."""
        told: list[Event] = []
        expiry = None if self.expire_after is None else one.time + self.expire_after
        until = now if expiry is None else min(now, expiry)
        for number in sorted(one.visits):
            asked, visit = self.asked[number], one.visits[number]
            gone = None if visit.left is None or asked.exit_after is None else visit.left + asked.exit_after
            last = relation(one.geometry, asked.region)
            due = None if asked.dwell is None or visit.has_dwelt else visit.entered + asked.dwell
            if due is not None and due <= until and (gone is None or due <= gone):
                visit.has_dwelt = True
                told.append(("dwell", number, name, last, last, due, row, "time"))
            if gone is not None and gone <= until:
                del one.visits[number]
                told += self._say(number, name, ("exit", "change"), last, last, gone, row, "time")
        if expiry is not None and expiry <= now:
            told += self._forget(name, one, expiry, row, "expired")
        return told

    def _forget(self, name: Any, one: Followed, time: int, row: int | None, reason: str) -> list[Event]:
        told = [e for number in sorted(one.visits) for e in self._exit(number, name, one, None, time, row, reason)]
        del self.objects[name]
        return told

    def _exit(
        self, number: int, name: Any, one: Followed, after: int | None, time: int, row: int | None, reason: str
    ) -> list[Event]:
        before = relation(one.geometry, self.asked[number].region)
        return self._say(number, name, ("exit", "change"), before, after, time, row, reason)

    def _say(
        self, number: int, name: Any, kinds: tuple[str, str], before: Any, after: Any, time: int, row: Any, reason: str
    ) -> list[Event]:
        """Return an event of the first of two kinds that the subscription asks for."""
        asked = [kind for kind in kinds if kind in self.asked[number].kinds]
        return [(asked[0], number, name, before, after, time, row, reason)] if asked else []


def is_point(geometry: Any) -> bool:
    """Return True for a Shapely point."""
    return geometry is not None and geometry.geom_type == "Point"


@cache
def relation(geometry: Any, region: Any) -> int | None:
    """Return the code of the relation of a point or region to a region; None without a geometry."""
    if geometry is None:
        return None
    if is_point(geometry):
        return point_rational((geometry.x, geometry.y), polygons(region))
    return relate_rational(polygons(geometry), polygons(region))


@cache
def relations_along(first: Any, second: Any, region: Any) -> set[int]:
    """Return the relations that places of a segment have to a region: at every cut, and between neighbouring cuts."""
    shape = polygons(region)
    ends = [(Fraction(point.x), Fraction(point.y)) for point in (first, second)]
    scale = common_scale(shape, [([*ends, ends[0]], [])])
    edge = make_edge(*((int(x * scale), int(y * scale)) for x, y in ends))
    places = {Fraction(0), Fraction(1)}
    if ends[0] != ends[1]:
        for other in boundary(shape, scale):
            places |= set(cuts(edge, other))
    ordered = sorted(places)
    places |= {(one + other) / 2 for one, other in itertools.pairwise(ordered)}
    (ax, ay), (bx, by) = ends
    return {point_rational((ax + t * (bx - ax), ay + t * (by - ay)), shape) for t in places}


def _id_order(name: Any) -> tuple[bool, Any]:
    return isinstance(name, str), name
