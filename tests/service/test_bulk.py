"""Bulk uploads for a template: the filter that is kept as text says what the predicate says, row by row."""

import io
import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.cql2 import parse
from contrada.errors import ContradaError
from contrada.formats.subscriptions import read_subscription_table
from contrada.service.http.bulk import BulkRow, read_rows

HOLED = shapely.Polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(1, 1), (2, 1), (2, 2), (1, 1)]])
SHAPES = [shapely.box(0.1, 0, 1e-7, 5), HOLED, shapely.MultiPolygon([HOLED, shapely.box(20, 20, 21.5, 21)])]
VALUES = {
    "whole": [1, -2, 1 << 53],
    "real": [0.5, -1e300, 3.0],
    "decimal": [Decimal("1.10"), Decimal("2.25"), Decimal("-3.00")],
    "text": ["it's", "%_\\", "é"],
    "time": [datetime(2024, 2, 29, 12, 0, k, 5, tzinfo=UTC) for k in range(3)],
    "flag": [True, False, True],
}


def upload(columns: dict[str, object], crs: object = None, keys: list[object] | None = None) -> bytes:
    about = {"encoding": "WKB"} | ({} if crs is None else {"crs": crs})
    geo = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": about}}
    size = len(next(iter(columns.values())))  # type: ignore[arg-type]
    table = pa.table({"key": keys or [f"k{row}" for row in range(size)], **columns})
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)} if "geometry" in columns else {}), sink)
    return sink.getvalue()


def rows_of(data: bytes, template: str) -> list[BulkRow]:
    return list(read_rows(data, "parquet", template))


@pytest.mark.parametrize("name", VALUES)
def test_text_and_predicate_of_a_row_are_one_filter(name):
    operator = "=" if name == "flag" else ">="
    data = upload({"geometry": shapely.to_wkb(SHAPES), name: VALUES[name]})
    found = rows_of(data, f"S_WITHIN(geometry, $geometry) AND a {operator} $" + name)
    assert [(row.row, row.key) for row in found] == [(0, "k0"), (1, "k1"), (2, "k2")]
    for row, shape in zip(found, SHAPES, strict=True):
        assert not isinstance(row.found, ContradaError)
        assert row.predicate == parse(row.found.filter)
        (area,) = [one.value for one in row.predicate.filters[0] if one.attribute == "geometry"]
        assert (shapely.equals(area.to_shapely(), shape), area.crs) == (True, None)


def test_columns_and_rows_read_alike_whatever_the_system(epsg_4326):
    wkb = shapely.to_wkb(SHAPES)
    plain = upload({"geometry": wkb})
    template = "S_WITHIN(geometry, $geometry)"
    texts = [row.found.filter for row in rows_of(plain, template)]
    assert texts == [row.found.filter for row in rows_of(upload({"geometry": wkb}, epsg_4326), template)]
    # Web Mercator of the same shapes is read row by row, and rounds.
    mercator = shapely.transform(SHAPES, lambda xy: 6378137 * np.radians(xy))
    moved = rows_of(upload({"geometry": shapely.to_wkb(mercator)}, "EPSG:3857"), template)
    assert [row.predicate.filters[0].constraints[0].value.bounds[0] for row in moved] == pytest.approx([1e-7, 0, 0])


def test_bad_rows_are_refused_and_the_others_read(epsg_4326):
    shapes = [*SHAPES, shapely.Point(500, 0), shapely.box(170, 0, 190, 5), None, SHAPES[0]]
    keys = ["a", "b", "c", "d", "e", "f", "a"]
    for crs in (None, epsg_4326):
        found = rows_of(upload({"geometry": shapely.to_wkb(shapes)}, crs, keys), "S_WITHIN(geometry, $geometry)")
        assert sorted(row.row for row in found) == list(range(7))
        assert sorted(row.row for row in found if isinstance(row.found, ContradaError)) == [3, 4, 5, 6]


def test_a_stream_is_read_from_its_place_when_columns_do_not_do():
    data = io.BytesIO(upload({"geometry": shapely.to_wkb(shapely.points([(1, 1), (2, 2)]))}))
    found = read_subscription_table(data, parse("S_INTERSECTS(geometry, $geometry)"), "parquet", to_crs="OGC:CRS84")
    assert (found.table.num_rows, found.rejected) == (2, [])


@pytest.fixture
def epsg_4326() -> dict[str, object]:
    from pyproj import CRS

    return CRS("EPSG:4326").to_json_dict()


def test_a_server_imports_no_pandas_and_uses_the_allocator_of_the_system():
    work = """
import sys
from contrada.service.memory import release_free_memory, save_memory
save_memory()
import pyarrow as pa
assert pa.array([1, None]).to_pylist() == [1, None] and pa.array(["a"]).to_numpy(zero_copy_only=False).tolist() == ["a"]
release_free_memory()
assert pa.default_memory_pool().backend_name == "system", pa.default_memory_pool().backend_name
assert "pandas" not in sys.modules
save_memory()
"""
    subprocess.run([sys.executable, "-c", work], check=True, timeout=120)
