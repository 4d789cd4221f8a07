"""The types GEOMETRY and GEOGRAPHY of Parquet, with the coordinate reference systems that they name."""

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pyproj
import pytest

import contrada as ct
from contrada.formats.reading import read_messages
from contrada.formats.tables.rows import geometry_columns, parquet_schema

UTM = pyproj.CRS(25832).to_json().replace("'", "''")


def written(path, crs, version):
    """A file as DuckDB writes it, with GeoParquet metadata or without."""
    column = f"'POINT (1 2)'::GEOMETRY{crs and chr(40) + chr(39) + crs + chr(39) + chr(41)} AS geometry"
    duckdb.sql(f"COPY (SELECT 1 AS id, {column}) TO '{path}' (FORMAT parquet, GEOPARQUET_VERSION '{version}')")
    return path


@pytest.mark.parametrize("version", ["NONE", "V1", "V2"])
@pytest.mark.parametrize(("crs", "expected"), [(UTM, "EPSG:25832"), ("OGC:CRS84", "OGC:CRS84")])
def test_geometry_of_parquet_names_its_crs(tmp_path, crs, expected, version):
    path = written(tmp_path / "a.parquet", crs, version)
    assert geometry_columns(parquet_schema(pq.ParquetFile(path))).crs == {"geometry": expected}
    (read,) = read_messages(path)
    assert read.message["geometry"].crs == expected
    table = ct.ForwardingTable()
    box = ct.Region.box(0, 0, 4, 4, crs="EPSG:25832")
    table.subscribe("x", ct.Constraint("geometry", ct.RelationSet.S_INTERSECTS, box))
    found = table.match_many([read.message], by="subscription")
    is_same = expected == "EPSG:25832"
    assert (np.diff(found.offsets).tolist(), len(found.rejected)) == ([int(is_same)], int(not is_same))


def test_forms_of_names():
    from contrada.formats.tables.rows import _system

    assert _system("g", None, {}) == "OGC:CRS84"
    assert _system("g", "SRID:0", {}) is None
    assert _system("g", "srid:25832", {}) == "EPSG:25832"
    assert _system("g", "projjson:own", {b"own": pyproj.CRS(3035).to_json().encode()}) == "EPSG:3035"
    for text in ("srid:x", "srid:-4", "projjson:absent", "bananas", "srid:" + "9" * 30):
        with pytest.raises(ct.CrsError, match="column 'g'"):
            _system("g", text, {})
