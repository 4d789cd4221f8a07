"""Generate the subscribers of a synthetic district: facilities with thresholds, and CQL2 subscriptions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import shapely

from contrada.demo.ground import Blocks, Geometries, Parcels

# Kind: share, radius of the service area in metres (0: its parcel only), minimum severity of its messages.
KINDS: dict[str, tuple[float, float, int]] = {
    "school": (0.22, 0.0, 2),
    "kindergarten": (0.14, 0.0, 1),
    "hospital": (0.04, 120.0, 1),
    "clinic": (0.12, 0.0, 2),
    "depot": (0.12, 60.0, 3),
    "pump station": (0.10, 110.0, 2),
    "substation": (0.10, 40.0, 3),
    "stadium": (0.03, 90.0, 2),
    "reservoir": (0.03, 200.0, 3),
    "fire station": (0.03, 260.0, 3),
}
# The seventeen contrade of Siena.
QUARTERS = (
    "Aquila", "Bruco", "Chiocciola", "Civetta", "Drago", "Giraffa", "Istrice", "Leocorno", "Lupa", "Nicchio", "Oca",
    "Onda", "Pantera", "Selva", "Tartuca", "Torre", "Valdimontone",
)  # fmt: skip
# Weight and filter. {area} is the facility's region, {wider} a box around it.
FILTERS: tuple[tuple[int, str], ...] = (
    (8, "S_INTERSECTS(area, {area}) AND severity >= {severity}"),
    (4, "S_INTERSECTS(area, {area}) AND (severity >= {severity} OR wind > {wind})"),
    (3, "NOT disjoint(area, {wider}) AND event IN ('storm', 'plume') AND severity >= {severity}"),
    (3, "event = 'lightning' AND inside(area, {wider}) OR event = 'storm' AND overlaps(area, {area})"),
    (2, "relation(area, {area}, 'covers', 'contains', 'equals') AND certainty <> 'possible'"),
    (2, "meets(area, {area}) AND event = 'closure'"),
    (2, "S_WITHIN(area, {wider}) AND source IN ('sensor', 'antenna') AND wind BETWEEN 5 AND {wind}"),
    (1, "event LIKE 'st%' AND wind >= {wind} AND overlaps(area, {wider})"),
    (1, "S_INTERSECTS(area, {area}) AND onset >= TIMESTAMP('2026-05-01T{hour:02d}:00:00Z')"),
    (1, "id LIKE 'plume-%' AND S_INTERSECTS(area, {wider}) AND NOT certainty = 'possible'"),
)


def quarters_of(polygons: Geometries, blocks: Blocks) -> list[str]:
    """Return the quarter of each polygon: the town is divided into seventeen sectors."""
    low, high = blocks.bounds
    middle = shapely.get_coordinates(shapely.centroid(polygons)) - (low + high) / 2
    turn = (np.arctan2(middle[:, 1], middle[:, 0]) / (2 * np.pi)) % 1.0
    return [QUARTERS[number] for number in np.minimum((turn * len(QUARTERS)).astype(int), len(QUARTERS) - 1)]


def make_facilities(
    rng: np.random.Generator, blocks: Blocks, parcels: Parcels, count: int
) -> tuple[pa.Table, Geometries]:
    """Generate `count` facilities (key, subscriber, name, kind, quarter, min_severity, max_wind) and their regions.

    A facility without a service area has the exact region of its parcel; a service area is a ring of 16 vertices.
    """
    shares = np.array([share for share, _, _ in KINDS.values()])
    kinds = rng.choice(len(KINDS), count, p=shares / shares.sum())
    on = rng.integers(0, len(parcels.polygons), count)
    regions = parcels.polygons[on].copy()
    radius = np.array([radius for _, radius, _ in KINDS.values()])[kinds] * rng.uniform(0.7, 1.4, count)
    served = np.flatnonzero(radius > 0)
    centres = shapely.get_coordinates(shapely.centroid(regions[served]))
    angle = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    regions[served] = shapely.polygons(np.round(centres[:, None] + radius[served, None, None] * ring, 2))
    names = [list(KINDS)[kind] for kind in kinds]
    quarters = quarters_of(regions, blocks)
    least = np.array([severity for _, _, severity in KINDS.values()])[kinds] + rng.integers(0, 3, count)
    table = pa.table(
        {
            "key": [f"F{number:06d}" for number in range(count)],
            "subscriber": [f"{name}s of {quarter}" for name, quarter in zip(names, quarters, strict=True)],
            "name": [f"{names[k].capitalize()} {quarter} {k}" for k, quarter in enumerate(quarters)],
            "kind": names,
            "quarter": quarters,
            "min_severity": pa.array(np.minimum(least, 5)),
            "max_wind": pa.array(np.round(rng.uniform(12, 36, count), 1)),
        }
    )
    return table, regions


def make_subscriptions(rng: np.random.Generator, facilities: pa.Table, regions: Geometries, count: int) -> pa.Table:
    """Generate `count` subscriptions of facilities: key, subscriber, filter (CQL2 text) and the facility's region."""
    weights = np.array([weight for weight, _ in FILTERS])
    asked = rng.choice(len(FILTERS), count, p=weights / weights.sum())
    rows = rng.integers(0, len(regions), count)
    areas = shapely.to_wkt(regions[rows], rounding_precision=2)
    around = shapely.to_wkt(shapely.envelope(shapely.buffer(regions[rows], 120.0)), rounding_precision=2)
    severity = facilities["min_severity"].to_numpy()[rows]
    wind = facilities["max_wind"].to_numpy()[rows]
    hours = rng.integers(0, 24, count)
    filters = [
        FILTERS[question][1].format(area=area, wider=wider, severity=least, wind=most, hour=hour)
        for question, area, wider, least, most, hour in zip(asked, areas, around, severity, wind, hours, strict=True)
    ]
    return pa.table(
        {
            "key": [f"S{number:06d}" for number in range(count)],
            "subscriber": facilities["subscriber"].take(pa.array(rows)).combine_chunks(),
            "filter": filters,
            "geometry": pa.array(shapely.to_wkb(regions[rows]), type=pa.binary()),
        }
    )
