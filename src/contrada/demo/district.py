"""Generate a synthetic district: parcels, buildings, facilities, subscriptions and a day of messages.

Seeded, without network access, in metres of EPSG:25832 (ETRS89 / UTM zone 32N) around Siena. A few rows in a thousand
are bad on purpose, so that a run shows how they are handled; `District.bad` lists them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyproj import Transformer

from contrada.demo import ground
from contrada.demo.facilities import make_facilities, make_subscriptions, quarters_of
from contrada.demo.ground import Blocks, Buildings, FloatArray, Geometries, IntArray, Parcels
from contrada.demo.messages import make_messages
from contrada.errors import ContradaError
from contrada.geometry import Crs
from contrada.pipeline.ingestion.geoparquet import geo_metadata, wkb_types

CRS = "EPSG:25832"
# At scale 1; buildings follow the parcels. Readings are further messages, of sensors: with fewer, a run measures the
# start of workers in place of matching.
PARCELS, FACILITIES, SUBSCRIPTIONS, MESSAGES, READINGS = 20_000, 2_000, 3_000, 5_000, 195_000
BAD_SHARE = 0.002
GROUP_ROWS = 10_000  # rows in a row group of Parquet files: Spark's tasks divide a file by row groups
FAULTS = ("bow-tie", "missing", "nan")
COLLECTION = '{"type": "FeatureCollection", "features": [\n', ",\n", "\n]}\n"  # text before, between and after features
UNFINISHED_FILTER = "severity >= "  # filter of a subscription that is bad on purpose


class District(NamedTuple):
    """Five tables in metres of EPSG:25832, geometry as WKB, and the rows of each that are bad on purpose.

    | table | columns besides geometry |
    |---|---|
    | parcels | key, subscriber, quarter, use, min_severity |
    | buildings | id, parcel, use, floors |
    | facilities | key, subscriber, name, kind, quarter, min_severity, max_wind |
    | subscriptions | key, subscriber, filter |
    | messages | message_id, id, event, severity, wind, certainty, source, onset, expires; the geometry is `area` |
    """

    parcels: pa.Table
    buildings: pa.Table
    facilities: pa.Table
    subscriptions: pa.Table
    messages: pa.Table
    bad: dict[str, IntArray]

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each table."""
        return {name: len(getattr(self, name)) for name in self.bad}


def make_district(seed: int = 7, scale: float = 1.0, readings: int | None = None) -> District:
    """Generate some 20,000 parcels, 31,000 buildings, 2,000 facilities and 200,000 messages, times `scale`.

    `readings` of the messages, by default 195,000 times `scale`, are of sensors; the others are about storms, plumes,
    closed streets and lightning, and a few are of sensors too. Equal arguments give equal rows.

    >>> make_district(seed=7, scale=0.01).counts()
    {'parcels': 199, 'buildings': 319, 'facilities': 20, 'subscriptions': 30, 'messages': 2000}
    """
    if not 0.001 <= scale <= 1000:
        raise ContradaError(f"scale: need a number from 0.001 to 1000, got {scale}")
    rng = np.random.default_rng(seed)
    blocks = ground.make_blocks(rng, max(4, round(PARCELS * scale / ground.PARCELS_PER_BLOCK)))
    parcels = ground.make_parcels(rng, blocks)
    buildings = ground.make_buildings(rng, blocks, parcels)
    facilities, regions = make_facilities(rng, blocks, parcels, max(3, round(FACILITIES * scale)))
    subscriptions = make_subscriptions(rng, facilities, regions, max(3, round(SUBSCRIPTIONS * scale)))
    further = round(READINGS * scale) if readings is None else readings
    messages, areas = make_messages(rng, blocks, max(20, round(MESSAGES * scale)), further)
    of_parcels, of_buildings = _parcel_attributes(rng, blocks, parcels), _building_attributes(rng, buildings)
    bad = {
        "parcels": spoil(rng, parcels.polygons),
        "buildings": spoil(rng, buildings.polygons),
        "facilities": spoil(rng, regions),
        "subscriptions": np.sort(rng.choice(len(subscriptions), _bad_count(len(subscriptions)), replace=False)),
        "messages": spoil(rng, areas),
    }
    return District(
        _with_wkb(of_parcels, "geometry", parcels.polygons),
        _with_wkb(of_buildings, "geometry", buildings.polygons),
        _with_wkb(facilities, "geometry", regions),
        _with_unfinished(subscriptions, bad["subscriptions"]),
        _with_wkb(messages, "area", areas),
        bad,
    )


def write_district(directory: str | os.PathLike[str], seed: int = 7, scale: float = 1.0) -> District:
    """Generate a district and write it in several formats to a directory, which is created if needed.

    parcels.parquet, messages.parquet and subscriptions.parquet are GeoParquet in EPSG:25832; buildings.geojsonl
    (newline GeoJSON) and facilities.geojson (a FeatureCollection) are in longitude and latitude, as RFC 7946 requires;
    equal vertices stay equal, so shared edges stay shared.
    """
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    district = make_district(seed, scale)
    _write_geoparquet(target / "parcels.parquet", district.parcels, "geometry")
    _write_geoparquet(target / "messages.parquet", district.messages, "area")
    _write_geoparquet(target / "subscriptions.parquet", district.subscriptions, "geometry")
    _write_features(target / "buildings.geojsonl", district.buildings, lines=True)
    _write_features(target / "facilities.geojson", district.facilities, lines=False)
    return district


def _write_geoparquet(path: Path, table: pa.Table, geometry: str) -> None:
    """Write GeoParquet 1.1: the table, with its WKB column described in the file's metadata."""
    described = geo_metadata(geometry, Crs.of(CRS), wkb_types(table[geometry]))
    pq.write_table(
        table.replace_schema_metadata({"geo": json.dumps(described)}),
        path,
        compression="zstd",
        row_group_size=GROUP_ROWS,
    )


def _write_features(path: Path, table: pa.Table, *, lines: bool) -> None:
    """Write GeoJSON in longitude and latitude: one Feature per line, or (`lines=False`) one FeatureCollection."""
    head, between, tail = ("", "\n", "\n") if lines else COLLECTION
    path.write_text(head + between.join(_features(table)) + tail, encoding="utf-8")


def _features(table: pa.Table) -> Iterator[str]:
    with np.errstate(invalid="ignore"):  # Shapely raises NumPy's warning for NaN
        geometries = shapely.from_wkb(table["geometry"].to_numpy(zero_copy_only=False))
    texts = shapely.to_geojson(shapely.transform(geometries, _to_degrees))
    for properties, text in zip(table.drop_columns(["geometry"]).to_pylist(), texts, strict=True):
        # Shapely writes null for a NaN coordinate, which JSON cannot express.
        yield f'{{"type": "Feature", "properties": {json.dumps(properties)}, "geometry": {text or "null"}}}'


def _to_degrees(metres: FloatArray) -> FloatArray:
    east, north = Transformer.from_crs(CRS, "OGC:CRS84", always_xy=True).transform(metres[:, 0], metres[:, 1])
    degrees = np.stack([east, north], axis=1)
    return np.where(np.isfinite(degrees), degrees, np.nan)


def _with_wkb(attributes: pa.Table, name: str, geometries: Geometries) -> pa.Table:
    """Append the geometries as a column of WKB, null where there is none."""
    return attributes.append_column(name, pa.array(shapely.to_wkb(geometries), type=pa.binary()))


def _bad_count(rows: int) -> int:
    return min(rows, max(len(FAULTS), round(rows * BAD_SHARE)))


def spoil(rng: np.random.Generator, geometries: Geometries) -> IntArray:
    """Make a few regions bad, in place: bow-ties, missing ones, a NaN among the coordinates. Return their rows."""
    regions = np.flatnonzero(shapely.get_dimensions(geometries) == 2)
    rows = np.sort(rng.choice(regions, _bad_count(len(regions)), replace=False))
    for number, row in enumerate(rows):
        geometries[row] = _spoilt(geometries[row], FAULTS[number % len(FAULTS)])
    return rows


def _spoilt(region: shapely.Geometry, fault: str) -> shapely.Geometry | None:
    if fault == "missing":
        return None
    xmin, ymin, xmax, ymax = region.bounds
    second = (xmax, ymax) if fault == "bow-tie" else (xmax, np.nan)
    with np.errstate(invalid="ignore"):  # Shapely raises NumPy's warning for NaN
        return shapely.Polygon([(xmin, ymin), second, (xmax, ymin), (xmin, ymax), (xmin, ymin)])


def _with_unfinished(subscriptions: pa.Table, rows: IntArray) -> pa.Table:
    filters = np.array(subscriptions["filter"].to_pylist(), object)
    filters[rows] = UNFINISHED_FILTER
    return subscriptions.set_column(subscriptions.schema.get_field_index("filter"), "filter", pa.array(filters))


def _parcel_attributes(rng: np.random.Generator, blocks: Blocks, parcels: Parcels) -> pa.Table:
    count = len(parcels.polygons)
    uses = np.array(["residential", "residential", "residential", "mixed", "commercial", "garden"])
    owners = rng.zipf(1.7, count) % max(2, count // 3)
    return pa.table(
        {
            "key": [f"P{number:07d}" for number in range(count)],
            "subscriber": [f"owner-{owner:05d}" for owner in owners],
            "quarter": quarters_of(parcels.polygons, blocks),
            "use": pa.array(uses[rng.integers(0, len(uses), count)]),
            "min_severity": pa.array(rng.integers(1, 6, count)),
        }
    )


def _building_attributes(rng: np.random.Generator, buildings: Buildings) -> pa.Table:
    count = len(buildings.polygons)
    uses = np.array(["house", "shop"])[rng.integers(0, 2, count)]
    return pa.table(
        {
            "id": [f"B{number:07d}" for number in range(count)],
            "parcel": [f"P{number:07d}" for number in buildings.parcels],
            "use": pa.array(np.where(buildings.is_shed, "shed", uses)),
            "floors": pa.array(np.where(buildings.is_shed, 1, rng.integers(1, 6, count))),
        }
    )
