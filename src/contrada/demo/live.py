"""A district that lives: storms that drift and grow, lightning, closed streets, and vehicles that drive and stop.

For `contrada serve --demo`. Facilities of several kinds subscribe, with different relations and conditions; some track
vehicles or storms. Everything follows from the seed: the same messages come in the same order, without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import shapely
from pyproj import Transformer

from contrada.demo import ground
from contrada.demo.facilities import make_facilities
from contrada.demo.ground import Blocks, FloatArray

METRES, DEGREES = "EPSG:25832", "OGC:CRS84"
BLOCKS, FACILITIES, VEHICLES, STORMS = 150, 90, 16, 3
DIGITS = 7  # of degrees: a centimetre
STORM_VERTICES = 24
WEAK, STRONG = 0.35, 1.0
# Kind of a facility: what it wants to hear of. {area} is its region, {wider} a wider one around it.
ASKED: dict[str, str] = {
    "school": "S_INTERSECTS(area, {area}) AND event IN ('storm', 'closure') AND severity >= 2",
    "kindergarten": "S_INTERSECTS(area, {wider}) AND severity >= 1 AND certainty <> 'possible'",
    "hospital": "S_INTERSECTS(area, {wider}) AND (severity >= 3 OR wind > 20)",
    "clinic": "S_TOUCHES(area, {area}) AND event = 'closure' OR overlaps(area, {wider}) AND event = 'storm'",
    "depot": "NOT S_DISJOINT(area, {area}) AND wind >= 12",
    "pump station": "relation(area, {area}, 'covers', 'contains', 'equals') AND event LIKE 'st%'",
    "substation": "S_WITHIN(area, {wider}) AND event = 'lightning'",
    "stadium": "S_TOUCHES(area, {wider}) OR S_OVERLAPS(area, {wider}) AND wind BETWEEN 5 AND 40",
    "reservoir": "S_INTERSECTS(area, {area}) AND source = 'radar' AND NOT certainty = 'possible'",
    "fire station": "S_INTERSECTS(area, {area}) AND severity >= 2",
}
# Kind of a facility: the attribute that names what it tracks, the filter, and what it is told.
TRACKED: dict[str, tuple[str, str, tuple[str | dict[str, str], ...]]] = {
    "depot": ("vehicle", "S_WITHIN(position, {wider}) AND kind = 'bus'", ("enter", "exit", {"dwell": "5s"})),
    "hospital": ("vehicle", "S_WITHIN(position, {wider}) AND kind = 'ambulance'", ("enter", "exit", {"dwell": "5s"})),
    "school": ("vehicle", "S_INTERSECTS(position, {wider}) AND kind = 'truck'", ("enter", "exit")),
    "pump station": ("storm", "S_INTERSECTS(area, {wider})", ("enter", "change", "exit")),
    "stadium": ("storm", "S_INTERSECTS(area, {area})", ("enter", "change", "exit")),
    "fire station": ("storm", "S_INTERSECTS(area, {area})", ("enter", "exit")),
}
KINDS = ("bus", "ambulance", "truck", "van")
WIDER_METRES = 40.0


class LiveSubscription(NamedTuple):
    """A subscription of a facility; `track` and `on` are there if it tracks objects."""

    key: str
    subscriber: str
    filter: str
    track: str | None = None
    on: tuple[str | dict[str, str], ...] = ()


class LiveDistrict:
    """A made-up district near Siena, in longitude and latitude; equal seeds give equal subscriptions and messages.

    >>> district = LiveDistrict(7)
    >>> len(district.subscriptions) > 100, sorted({one.track or "" for one in district.subscriptions})
    (True, ['', 'storm', 'vehicle'])
    >>> first = next(district.ticks())
    >>> sorted({message.get("event", "vehicle") for message in first})
    ['storm', 'vehicle']
    """

    def __init__(self, seed: int = 7) -> None:
        self._seed = seed
        rng = np.random.default_rng(seed)
        self._degrees = Transformer.from_crs(METRES, DEGREES, always_xy=True)
        self._blocks = ground.make_blocks(rng, BLOCKS)
        parcels = ground.make_parcels(rng, self._blocks)
        self._facilities, self._regions = make_facilities(rng, self._blocks, parcels, FACILITIES)
        self.subscriptions = tuple(self._subscriptions())

    def _subscriptions(self) -> Iterator[LiveSubscription]:
        wider = shapely.buffer(shapely.convex_hull(self._regions), WIDER_METRES, quad_segs=2)
        for row, facility in enumerate(self._facilities.to_pylist()):
            kind, name, subscriber = facility["kind"], facility["name"], facility["subscriber"]
            texts = {"area": self._wkt(self._regions[row]), "wider": self._wkt(wider[row])}
            yield LiveSubscription(name, subscriber, ASKED[kind].format(**texts))
            if kind in TRACKED:
                track, filter, on = TRACKED[kind]
                yield LiveSubscription(f"{name}: {track}s", subscriber, filter.format(**texts), track, on)

    def _wkt(self, region: shapely.Geometry) -> str:
        text: str = shapely.to_wkt(shapely.transform(region, self._placed), rounding_precision=DIGITS)
        return text

    def _placed(self, metres: FloatArray) -> FloatArray:
        """Return places in degrees."""
        east, north = self._degrees.transform(metres[:, 0], metres[:, 1])
        return np.round(np.stack([east, north], axis=1), DIGITS)

    def ticks(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the messages of one second after the other, without end."""
        rng = np.random.default_rng([self._seed, 1])
        storms = [Storm(rng, self._blocks, number, started=True) for number in range(1, STORMS + 1)]
        streets = Streets(self._blocks, self._regions)
        vehicles = [Vehicle(rng, streets, number) for number in range(VEHICLES)]
        tick, known = 0, STORMS
        while True:
            messages: list[dict[str, Any]] = []
            for place, storm in enumerate(storms):
                storm.move()
                if storm.is_over:
                    known += 1
                    storms[place] = storm = Storm(rng, self._blocks, known)
                if (tick + place) % 2 == 0:
                    messages.append(self._storm(storm, tick))
                if storm.strength > 0.6 and rng.random() < 0.25:
                    messages.append(self._lightning(rng, storm, tick))
            if tick % 20 == 10:
                messages.append(self._closure(rng, tick))
            for vehicle in vehicles:
                vehicle.move()
                messages += [self._vehicle(vehicle, tick)] * ((tick + vehicle.number) % 2 == 0)
            yield messages
            tick += 1

    # --- messages ---

    def _storm(self, storm: Storm, tick: int) -> dict[str, Any]:
        intensity = storm.strength
        certainty = ("possible", "likely", "observed")[min(int(3 * intensity), 2)]
        return {
            "event": "storm",
            "storm": f"storm {storm.number}",
            "severity": 1 + int(4.99 * intensity),
            "wind": round(6 + 32 * intensity, 1),
            "certainty": certainty,
            "source": "radar",
            "tick": tick,
            "area": self._polygon(storm.outline()),
        }

    def _lightning(self, rng: np.random.Generator, storm: Storm, tick: int) -> dict[str, Any]:
        spot = storm.centre + rng.normal(0, storm.radius / 2, 2)
        return {
            "event": "lightning",
            "severity": int(rng.integers(2, 6)),
            "certainty": "observed",
            "source": "antenna",
            "tick": tick,
            "area": self._point(spot),
        }

    def _closure(self, rng: np.random.Generator, tick: int) -> dict[str, Any]:
        street = ground.make_closures(rng, self._blocks, 1)[0]
        return {
            "event": "closure",
            "severity": int(rng.integers(1, 4)),
            "certainty": "observed",
            "source": "police",
            "tick": tick,
            "area": self._polygon(street),
        }

    def _vehicle(self, vehicle: Vehicle, tick: int) -> dict[str, Any]:
        return {
            "vehicle": vehicle.name,
            "kind": vehicle.kind,
            "speed": round(vehicle.speed * 3.6),
            "tick": tick,
            "position": self._point(vehicle.place),
        }

    def _point(self, metres: FloatArray) -> dict[str, Any]:
        return {"type": "Point", "coordinates": self._placed(metres[None, :])[0].tolist()}

    def _polygon(self, metres: FloatArray) -> dict[str, Any]:
        ring = self._placed(metres).tolist()
        return {"type": "Polygon", "coordinates": [ring if ring[0] == ring[-1] else [*ring, ring[0]]]}


class Storm:
    """A round cell that crosses the district, grows, and decays; `strength` is from 0 to 1."""

    def __init__(self, rng: np.random.Generator, blocks: Blocks, number: int, started: bool = False) -> None:
        low, high = blocks.bounds
        self.number = number
        self._size = float((high - low).max())
        self._life = int(rng.integers(80, 160))  # ticks
        self._age = int(rng.integers(self._life // 4, self._life // 2)) if started else 0
        heading = rng.normal(0.4, 0.5)
        self._step = np.array([np.cos(heading), np.sin(heading)]) * rng.uniform(0.8, 1.3) * self._size / self._life
        middle = rng.uniform(low + 0.25 * (high - low), high - 0.25 * (high - low))
        self.centre: FloatArray = middle + (self._age - self._life / 2) * self._step
        self._reach, self._top = rng.uniform(0.06, 0.16) * self._size, rng.uniform(WEAK, STRONG)
        self._waves = [(waves, rng.uniform(0, 0.28 / waves), rng.uniform(0, 2 * np.pi)) for waves in (2, 3, 5)]

    @property
    def is_over(self) -> bool:
        """Whether it has decayed."""
        return self._age >= self._life

    @property
    def strength(self) -> float:
        """How strong it is, from 0 to 1."""
        return float(self._top * np.sin(np.pi * (self._age + 1) / (self._life + 2)))

    @property
    def radius(self) -> float:
        """Metres from the middle to the edge, about."""
        return float(40 + self._reach * np.sin(np.pi * (self._age + 1) / (self._life + 2)))

    def move(self) -> None:
        """Go on by a second."""
        self._age += 1
        self.centre = self.centre + self._step

    def outline(self) -> FloatArray:
        """Return the vertices of its edge, whose shape changes slowly."""
        angle = np.linspace(0, 2 * np.pi, STORM_VERTICES, endpoint=False)
        shape = np.ones(STORM_VERTICES)
        for waves, height, shift in self._waves:
            shape += height * np.cos(waves * angle + shift + 0.02 * waves * self._age)
        around = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        edge: FloatArray = self.centre + self.radius * shape[:, None] * around
        return edge


class Streets:
    """Corners of blocks, between which vehicles drive, and the gates of facilities, at which they stop."""

    def __init__(self, blocks: Blocks, regions: Any) -> None:
        self._corners = {
            tuple(place): corner for place, corner in zip(blocks.places.tolist(), blocks.lattices[:, 0, 0], strict=True)
        }
        self._places = list(self._corners)
        self.gates: FloatArray = shapely.get_coordinates(shapely.centroid(regions))
        found = np.array(list(self._corners.values()))
        self._nearest = [int(np.argmin(np.hypot(*(found - gate).T))) for gate in self.gates]

    def route(self, start: int, end: int) -> list[FloatArray]:
        """Return the way from one gate to another: along streets, first in one direction, then in the other."""
        (a, b), (c, d) = self._places[self._nearest[start]], self._places[self._nearest[end]]
        across = [(x, b) for x in range(a, c, 1 if c > a else -1)]
        along = [(c, y) for y in range(b, d + (1 if d >= b else -1), 1 if d >= b else -1)]
        return [self._corners[place] for place in (*across, *along) if place in self._corners] + [self.gates[end]]


class Vehicle:
    """Drives from facility to facility, and stops at each for a while."""

    def __init__(self, rng: np.random.Generator, streets: Streets, number: int) -> None:
        self._rng, self._streets, self.number = rng, streets, number
        self.kind = KINDS[number % len(KINDS)]
        self.name = f"{self.kind} {number // len(KINDS) + 1}"
        self._at = int(rng.integers(len(streets.gates)))
        self.place: FloatArray = streets.gates[self._at]
        self._way: list[FloatArray] = []
        self._rest = int(rng.integers(0, 12))  # ticks until it drives on
        self.speed = 0.0  # metres a second

    def move(self) -> None:
        """Go on by a second."""
        if self._rest > 0:
            self._rest -= 1
            self.speed = 0.0
            return
        if not self._way:
            goal = int(self._rng.integers(len(self._streets.gates)))
            self._way, self._at = self._streets.route(self._at, goal), goal
        self.speed = float(self._rng.uniform(14, 22))
        left = self.speed
        while left > 0 and self._way:
            step = self._way[0] - self.place
            length = float(np.hypot(*step))
            if length > left:
                self.place = self.place + step * (left / length)
                return
            self.place = self._way.pop(0)
            left -= length
        if not self._way:
            self._rest = int(self._rng.integers(6, 18))
