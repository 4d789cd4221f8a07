"""Doors that read geometry: WKB, WKT, GeoJSON, Shapely and Arrow columns."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from hostile.geometries import FORMS, geojson_corpus, wkb, wkb_corpus, wkt_corpus
from hostile.registry import Door
from hostile.use import use


def geometry_doors() -> Iterator[Door]:
    """The doors of single geometries and of columns."""
    yield from _wkb_doors()
    yield from _wkt_doors()
    yield from _geojson_doors()
    yield Door("shapely", ("Region.from_shapely", "RegionArray.from_shapely", "Point.from_shapely",
                           "PointArray.from_shapely"), _shapely, _shapely_corpus, 1)  # fmt: skip
    yield Door("arrow columns", ("RegionArray.from_arrow", "PointArray.from_arrow"), _arrow, arrow_corpus, 4)


def _wkb_doors() -> Iterator[Door]:
    def rejected(kind: Any, repair: bool, data: bytes) -> object:
        options = {"repair": True} if repair else {}
        read: Any = ct.read_points if kind is ct.PointArray else ct.read_regions
        return use(read([data, None, data], **options))

    for kind in (ct.Region, ct.Point):
        name = f"{kind.__name__}.from_wkb"
        yield Door(name, (name,), lambda data, kind=kind: use(kind.from_wkb(data)), wkb_corpus, 3)
    yield Door("Region.from_wkb, hex", ("Region.from_wkb",), lambda data: use(ct.Region.from_wkb(data.hex())),
               _small_wkb, 0.3)  # fmt: skip
    yield Door("Region.from_wkb, repair", ("Region.from_wkb",), lambda data: use(ct.Region.from_wkb(data, repair=True)),
               wkb_corpus, 2)  # fmt: skip
    for kind, repair in ((ct.RegionArray, False), (ct.RegionArray, True), (ct.PointArray, False)):
        name = f"{kind.__name__}.from_wkb"
        label = f"{name}, repair" if repair else name
        yield Door(label, (name,), partial(rejected, kind, repair), wkb_corpus, 2)


@cache
def _small_wkb() -> dict[str, Any]:
    return {name: data for name, data in wkb_corpus().items() if not callable(data)}


def _wkt_doors() -> Iterator[Door]:
    yield Door("Region.from_wkt", ("Region.from_wkt",), lambda text: use(ct.Region.from_wkt(text)), wkt_corpus, 3)
    yield Door("Point.from_wkt", ("Point.from_wkt",), lambda text: use(ct.Point.from_wkt(text)), wkt_corpus, 2)
    yield Door("RegionArray.from_wkt", ("RegionArray.from_wkt",),
               lambda text: use(ct.read_regions([text, None])), wkt_corpus, 2)  # fmt: skip
    yield Door("Region.from_wkt, repair", ("Region.from_wkt",), lambda text: use(ct.Region.from_wkt(text, repair=True)),
               wkt_corpus, 1)  # fmt: skip


def _geojson_doors() -> Iterator[Door]:
    def read(call: Any, text: str) -> object:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        return use(call(value))

    single = {"Region.from_geojson": ct.Region.from_geojson, "Point.from_geojson": ct.Point.from_geojson}
    for name, call in single.items():
        yield Door(name, (name,), partial(read, call), geojson_corpus, 2)
    yield Door("Region.from_geojson, text", ("Region.from_geojson",), lambda text: use(ct.Region.from_geojson(text)),
               geojson_corpus, 2)  # fmt: skip
    yield Door("RegionArray.from_geojson", ("RegionArray.from_geojson",),
               lambda text: use(ct.read_regions([text, None])),
               geojson_corpus, 2)  # fmt: skip


def _shapely(text: str) -> object:
    """Read by Shapely first: a text that it does not read never becomes one of its geometries."""
    if text.count("(") > 50_000 or "\0" in text:
        return None
    try:
        geometry = shapely.from_wkt(text.encode("utf-8", "replace").decode(), on_invalid="ignore")
    except (shapely.errors.ShapelyError, NotImplementedError):
        return None
    found: list[object] = []
    for call in (ct.Region.from_shapely, ct.Point.from_shapely):
        try:
            found.append(use(call(geometry)))
        except ct.ContradaError as error:
            found.append(error)
    found.append(use(ct.read_points([geometry, None])))
    return found, use(ct.read_regions([geometry, None]))


@cache
def _shapely_corpus() -> dict[str, Any]:
    return {name: text for name, text in wkt_corpus().items() if "nested" not in name and "opening" not in name}


def ipc(table: pa.Table | pa.RecordBatch) -> bytes:
    """A table as a stream of Arrow."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue()


def _arrow(data: bytes) -> object:
    """Columns as other programs hand them over: Arrow checks nothing then."""
    try:
        table = pa.ipc.open_stream(data).read_all()
        columns = table.columns
    except (pa.ArrowException, OSError, ValueError):
        return None
    found: list[object] = []
    for column in columns:
        for call in (ct.read_regions, ct.read_points, ct.RegionArray.from_arrow, ct.RegionArray.from_wkb):
            try:
                found.append(use(call(column)))
            except ct.ContradaError as error:
                found.append(str(error))
    return found


def column_table(values: Any, name: str = "geometry", metadata: dict[str, str] | None = None) -> pa.Table:
    """A table of one column, with metadata on its field."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.table([array], schema=pa.schema([pa.field(name, array.type, metadata=metadata)]))


def spoilt(table: pa.Table, offsets: list[int], others: list[int], width: type = np.int32) -> bytes:
    """The stream of a table with other offsets than it has."""
    data, wanted = ipc(table), np.array(offsets, width).tobytes()
    assert data.count(wanted) >= 1, offsets
    return data.replace(wanted, np.array(others, width).tobytes())


SPOILT = {"beyond": [0, 100_000, 200, 300], "negative": [0, -5, 200, 300], "falling": [300, 200, 100, 0],
          "huge": [0, 100, 200, 0x7FFFFFFF]}  # fmt: skip
THREE = [b"\x01\x03\x00\x00\x00" * 20] * 3  # values of 100 bytes


def spoilt_streams(column: str, kind: Any) -> dict[str, bytes]:
    """Streams with one column of three values whose offsets are wrong."""
    values = [value.decode() for value in THREE] if kind == pa.string() else THREE
    table = column_table(pa.array(values, kind), column)
    width = np.int64 if kind == pa.large_binary() else np.int32
    return {
        f"offsets {name} in {kind} {column}": spoilt(table, [0, 100, 200, 300], others, width)
        for name, others in SPOILT.items()
    }


def spoilt_rings() -> dict[str, bytes]:
    """Streams of GeoArrow whose rings have wrong offsets."""
    column = ct.RegionArray.from_regions([ct.Region.box(0, 0, k, k) for k in (1, 2, 3)]).to_arrow()
    table = column_table(column)
    return {f"rings {name}": spoilt(table, [0, 5, 10, 15], [other // 20 if abs(other) < 1000 else other
                                                            for other in others])
            for name, others in SPOILT.items()}  # fmt: skip


@cache
def arrow_corpus() -> dict[str, Any]:
    """Streams of Arrow with one column, good and damaged."""
    regions = ct.RegionArray.from_regions([ct.Region.box(0, 0, k, k) for k in (1, 2, 3)])
    points = ct.PointArray([[0, 0], [1, 1]])
    crs = {"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": '{"crs": "EPSG:4326"}'}
    polygon = {"ARROW:extension:name": "geoarrow.polygon", "ARROW:extension:metadata": "{}"}
    forms = [wkb(form(40)) for form in FORMS]
    good = {
        "wkb": column_table(pa.array(regions.to_wkb())),
        "wkb with crs": column_table(pa.array(regions.to_wkb()), metadata=crs),
        "geoarrow": column_table(regions.to_arrow()),
        "geoarrow points": column_table(points.to_arrow()),
        "point wkb": column_table(points.to_wkb()),
        "forms": column_table([*forms, None, b""]),
        "large binary": column_table(pa.array(forms, pa.large_binary())),
        "binary view": column_table(pa.array(forms, pa.binary_view())),
        "text": column_table(["POLYGON((0 0, 1 0, 0 1, 0 0))", None]),
        "dictionary": column_table(pa.array([forms[0], forms[0]]).dictionary_encode()),
        "nulls": column_table(pa.nulls(5)),
        "null wkb": column_table(pa.array([None, None], pa.binary())),
        "crs not json": column_table(pa.array(forms), metadata={**crs, "ARROW:extension:metadata": "{"}),
        "crs a list": column_table(pa.array(forms), metadata={**crs, "ARROW:extension:metadata": "[1]"}),
        "crs of nothing": column_table(pa.array(forms), metadata={**crs, "ARROW:extension:metadata": '{"crs": {}}'}),
        "crs not utf-8": column_table(pa.array(forms), metadata={**crs, "ARROW:extension:metadata": b"\xff"}),
        "crs deep": column_table(pa.array(forms), metadata={**crs, "ARROW:extension:metadata": "[" * 5000}),
        "text as polygon": column_table(pa.array(["a"]), metadata=polygon),
        "lists of null": column_table(pa.array([[[None]], None], pa.list_(pa.list_(pa.list_(pa.float64(), 2))))),
    }
    found: dict[str, Any] = {name: ipc(table) for name, table in good.items()}
    for kind in (pa.binary(), pa.large_binary(), pa.string()):
        found.update(spoilt_streams("geometry", kind))
    found.update(spoilt_rings())
    found["deep crs"] = partial(
        lambda: ipc(column_table(pa.array(forms), metadata={**crs, "ARROW:extension:metadata": "[" * 400_000}))
    )
    return found
