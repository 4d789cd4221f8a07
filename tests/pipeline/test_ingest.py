"""Ingest: every format gives the same rows, bad rows are set aside with file and row, nothing is lost."""

import json
import math
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada as ct
from contrada import pipeline

pyogrio = pytest.importorskip("pyogrio")
pytestmark = pytest.mark.filterwarnings("ignore:.*driver only supports.*:RuntimeWarning")

SHAPES = [
    shapely.box(0, 0, 4, 4),
    shapely.Polygon([(10, 10), (20, 10), (20, 20), (10, 20)], [[(12, 12), (14, 12), (14, 14), (12, 14)]]),
    shapely.MultiPolygon([shapely.box(30, 0, 31, 1), shapely.box(33, 0, 34, 1)]),
    shapely.box(-5, -5, -4, -4),
]
ROWS = [{"id": k, "name": f"place {k}", "height": k + 0.5, "geometry": shape} for k, shape in enumerate(SHAPES)]
BOW_TIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
GEO = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": []}},
}


def table_of(rows, geometry="geometry"):
    columns = {name: [row[name] for row in rows] for name in rows[0] if name != "geometry"}
    return pa.table({**columns, geometry: pa.array([_wkb(row["geometry"]) for row in rows], pa.binary())})


def _wkb(value):
    return value if value is None or isinstance(value, bytes) else shapely.to_wkb(value)


def feature(row):
    geometry = row["geometry"]
    return {
        "type": "Feature",
        "properties": {name: value for name, value in row.items() if name != "geometry"},
        "geometry": None if geometry is None else json.loads(shapely.to_geojson(geometry)),
    }


def write_geoparquet(rows, path, crs="unset"):
    about = json.loads(json.dumps(GEO))
    if crs != "unset":
        about["columns"]["geometry"]["crs"] = None if crs is None else {"id": crs}
    pq.write_table(table_of(rows).replace_schema_metadata({"geo": json.dumps(about)}), path)
    return path


def write_gis(rows, path, crs="OGC:CRS84", kind="MultiPolygon", **options):
    multi = [
        {
            **row,
            "geometry": shapely.multipolygons([row["geometry"]])
            if row["geometry"].geom_type == "Polygon"
            else row["geometry"],
        }
        for row in rows
    ]
    pyogrio.write_arrow(table_of(multi), path, geometry_name="geometry", geometry_type=kind, crs=crs, **options)
    return path


def write_collection(rows, path, **members):
    path.write_text(json.dumps({"type": "FeatureCollection", **members, "features": list(map(feature, rows))}))
    return path


def write_lines(rows, path):
    path.write_text("".join(json.dumps(feature(row)) + "\n" for row in rows))
    return path


WRITERS = {
    "a.parquet": write_geoparquet,
    "b.parquet": lambda rows, path: (pq.write_table(table_of(rows, "wkb"), path), path)[1],
    "c.geojson": write_collection,
    "d.geojsonl": write_lines,
    "e.json": write_lines,
    "f.gpkg": write_gis,
    "g.fgb": lambda rows, path: write_gis(rows, path, SPATIAL_INDEX="NO"),
    "h.shp": lambda rows, path: write_gis(rows, path, kind="Polygon"),
    "i.shp.zip": lambda rows, path: write_gis(rows, path, kind="Polygon"),
}


def seen(frame):
    """The rows of a DataFrame, with regions, in the order of their ids."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        data = bytes(row["geometry"])
        row["geometry"] = ct.Point.from_wkb(data) if data[1] == 1 else ct.Region.from_wkb(data)
    return sorted(rows, key=lambda row: (str(row.get("id")), str(row)))


def expected(rows=ROWS):
    return [{**row, "geometry": ct.Region.from_shapely(row["geometry"])} for row in rows]


def bad(ingested):
    return sorted(
        ((os.path.basename(row.file), row.row, row.reason) for row in ingested.quarantine.collect()),
        key=lambda item: (item[0], -1 if item[1] is None else item[1], item[2]),
    )


def summed(ingested):
    counts = ingested.counts()
    assert counts.read == counts.kept + counts.quarantined
    assert counts.kept == ingested.rows.count()
    return counts


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_rows(spark, tmp_path, name):
    found = pipeline.ingest(spark, WRITERS[name](ROWS, tmp_path / name))
    assert seen(found.rows) == expected()
    assert summed(found) == (4, 4, 0, 0)
    if name != "b.parquet":
        assert ct.geometry.crs.is_same_crs(found.crs, "OGC:CRS84")
    found.unpersist()


def test_a_directory_of_mixed_formats(spark, tmp_path):
    (tmp_path / "deeper" / "k=1").mkdir(parents=True)
    for k, (name, write) in enumerate(WRITERS.items()):
        write(ROWS, (tmp_path / "deeper" / "k=1" if k % 2 else tmp_path) / name)
    (tmp_path / "LICENSE.txt").write_text("ODbL")
    found = pipeline.ingest(spark, tmp_path)
    assert summed(found) == (4 * len(WRITERS), 4 * len(WRITERS), 0, 0)
    assert seen(found.rows) == sorted(expected() * len(WRITERS), key=lambda row: row["id"])
    assert len(found.about.files) == len(WRITERS)
    assert list(found.about.attribution.values()) == ["ODbL"]
    found.unpersist()
