"""Generate messages about a synthetic district: moving storms and plumes, closed streets, lightning and sensors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import shapely

from contrada.demo.ground import Blocks, FloatArray, Geometries, IntArray, make_closures

FIRST_INSTANT = np.datetime64("2026-05-01T00:00:00", "us")
ONE_MINUTE = np.timedelta64(60_000_000, "us")
STORM_STEPS, PLUME_STEPS = 24, 16
CERTAINTIES = np.array(["observed", "likely", "possible"])
EVENT_SHARES = {"storm": 0.40, "plume": 0.16, "closure": 0.10, "lightning": 0.16}  # the rest are sensor readings
READINGS_PER_SENSOR = 20


class Draft(NamedTuple):
    """Messages of one kind, before all kinds are merged; `onset` and `lasts` in minutes."""

    event: str
    series: IntArray
    areas: Geometries
    intensity: FloatArray  # 0 to 1
    onset: FloatArray
    lasts: FloatArray
    source: str

    def first(self, count: int) -> Draft:
        """Return the first `count` messages; the last series may end early."""
        arrays = ("series", "areas", "intensity", "onset", "lasts")
        return self._replace(**{name: getattr(self, name)[:count] for name in arrays})


def make_messages(
    rng: np.random.Generator, blocks: Blocks, count: int, readings: int = 0
) -> tuple[pa.Table, Geometries]:
    """Generate `count` messages of one day and further `readings` of sensors, and their geometries.

    Messages are ordered by onset; geometries are regions and points.

    The table has message_id, id (of the storm, plume, ... that the message is about), event, severity (1 to 5), wind
    (m/s), certainty, source, onset and expires; the geometries are the areas of the messages.
    """
    numbers = {event: int(count * share) for event, share in EVENT_SHARES.items()}
    drafts = [
        _storms(rng, blocks, numbers["storm"]),
        _plumes(rng, blocks, numbers["plume"]),
        _closures(rng, blocks, numbers["closure"]),
        _points(rng, blocks, numbers["lightning"], "lightning"),
        _points(rng, blocks, count - sum(numbers.values()) + readings, "reading"),
    ]
    return _together(rng, drafts)


def _storms(rng: np.random.Generator, blocks: Blocks, count: int) -> Draft:
    """Generate round cells that cross the district with the wind, grow, intensify and decay."""
    low, high = blocks.bounds
    size, tracks = float((high - low).max()), -(-count // STORM_STEPS)
    age = np.tile(np.linspace(0.0, 1.0, STORM_STEPS), (tracks, 1))
    heading = rng.normal(0.5, 0.35, tracks)[:, None]
    travelled = (age - 0.5) * rng.uniform(0.5, 1.3, tracks)[:, None] * size
    middle = rng.uniform(low, high, (tracks, 2))[:, None, :]
    centre = middle + travelled[..., None] * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    life = np.sin(np.pi * np.clip(age * 0.92 + 0.06, 0, 1))
    radius = life * rng.uniform(0.03, 0.16, tracks)[:, None] * size + 60
    intensity = life * rng.beta(2.0, 1.6, tracks)[:, None]
    rings = _blobs(rng, centre.reshape(-1, 2), radius.ravel(), 32)
    onset = rng.uniform(0, 1100, tracks)[:, None] + age * STORM_STEPS * 10
    series = np.repeat(np.arange(tracks), STORM_STEPS)
    areas, lasts = shapely.polygons(rings), np.full(age.size, 30.0)
    return Draft("storm", series, areas, intensity.ravel(), onset.ravel(), lasts, "radar").first(count)


def _blobs(rng: np.random.Generator, centres: FloatArray, radii: FloatArray, vertices: int) -> FloatArray:
    """Return star-shaped rings (n, vertices, 2) around centres, to the centimetre."""
    angle = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    shape = np.ones((len(centres), vertices))
    for waves in (2, 3, 5):
        shift = rng.uniform(0, 2 * np.pi, (len(centres), 1))
        shape += rng.uniform(0, 0.28 / waves, (len(centres), 1)) * np.cos(waves * angle + shift)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    rings: FloatArray = np.round(centres[:, None, :] + (radii[:, None] * shape)[..., None] * around, 2)
    return rings


def _plumes(rng: np.random.Generator, blocks: Blocks, count: int) -> Draft:
    """Generate fans of smoke from one place, longer and wider with every step while they thin out."""
    low, high = blocks.bounds
    size, sources = float((high - low).max()), -(-count // PLUME_STEPS)
    age = np.tile(np.linspace(0.0, 1.0, PLUME_STEPS), (sources, 1))
    reach = (0.02 + rng.uniform(0.05, 0.25, sources)[:, None] * age) * size
    width = 0.12 + 0.25 * age
    heading = rng.uniform(0, 2 * np.pi, sources)[:, None] + 0.4 * age
    across = np.linspace(-1, 1, 13)
    angle = heading[..., None] + width[..., None] * across
    far = reach[..., None] * (1 - 0.25 * across**2)
    apex = rng.uniform(low, high, (sources, 2))[:, None, None, :]
    fan = apex + far[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    rings = np.concatenate([fan, np.broadcast_to(apex, (*fan.shape[:2], 1, 2))], axis=2)
    areas = shapely.polygons(np.round(rings.reshape(-1, 14, 2), 2))
    intensity = rng.uniform(0.4, 1.0, sources)[:, None] * (1 - 0.7 * age)
    onset = rng.uniform(0, 1300, sources)[:, None] + age * PLUME_STEPS * 5
    series = np.repeat(np.arange(sources), PLUME_STEPS)
    lasts = np.full(age.size, 20.0)
    return Draft("plume", series, areas, intensity.ravel(), onset.ravel(), lasts, "model").first(count)


def _closures(rng: np.random.Generator, blocks: Blocks, count: int) -> Draft:
    areas = shapely.polygons(make_closures(rng, blocks, count))
    onset, lasts = rng.uniform(300, 1200, count), rng.choice([60.0, 120.0, 480.0], count)
    return Draft("closure", np.arange(count), areas, rng.uniform(0, 0.5, count), onset, lasts, "police")


def _points(rng: np.random.Generator, blocks: Blocks, count: int, event: str) -> Draft:
    low, high = blocks.bounds
    if event == "lightning":
        spots, source, series = rng.uniform(low, high, (count, 2)), "antenna", np.arange(count)
        intensity = rng.beta(3.0, 1.5, count)
    else:  # sensors that report repeatedly, each from the corner of a parcel
        posts = blocks.lattices[rng.integers(0, len(blocks.places), 1 + count // READINGS_PER_SENSOR), 0, 3]
        series = rng.integers(0, len(posts), count)
        spots, source = posts[series], "sensor"
        intensity = rng.beta(1.2, 4.0, count)
    onset = rng.uniform(0, 1440, count)
    return Draft(event, series, shapely.points(np.round(spots, 2)), intensity, onset, np.full(count, 5.0), source)


def _together(rng: np.random.Generator, drafts: list[Draft]) -> tuple[pa.Table, Geometries]:
    sizes = [len(draft.series) for draft in drafts]
    onset = np.concatenate([draft.onset for draft in drafts])
    order = np.argsort(onset, kind="stable")
    intensity = np.concatenate([draft.intensity for draft in drafts])[order]
    begins = FIRST_INSTANT + np.round(onset[order] * 60).astype(np.int64) * (ONE_MINUTE // 60)
    lasts = np.concatenate([draft.lasts for draft in drafts])[order].astype(np.int64) * ONE_MINUTE
    names = np.concatenate([[f"{draft.event}-{number:05d}" for number in draft.series] for draft in drafts])
    gusts = rng.normal(0, 1.5, len(order))
    instant = pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "message_id": pa.array(np.arange(len(order))),
            "id": pa.array(names[order]),
            "event": pa.array(np.repeat([draft.event for draft in drafts], sizes)[order]),
            "severity": pa.array(np.clip(1 + np.floor(5 * intensity), 1, 5).astype(np.int64)),
            "wind": pa.array(np.round(np.abs(4 + 36 * intensity + gusts), 1)),
            "certainty": pa.array(CERTAINTIES[rng.integers(0, 3, len(order))]),
            "source": pa.array(np.repeat([draft.source for draft in drafts], sizes)[order]),
            "onset": pa.array(begins, type=instant),
            "expires": pa.array(begins + lasts, type=instant),
        }
    )
    areas: Geometries = np.concatenate([draft.areas for draft in drafts])[order]
    return table, areas
