"""Doors that read geometry: WKB, WKT, GeoJSON, Shapely and Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from generators.columnar import arrow_bytes
from hostile.geometries import FORMS, geojson_corpus, wkb_corpus, wkt_corpus
from hostile.registry import Door
from hostile.use import use


def geometry_doors() -> Iterator[Door]:
    """The doors of single geometries and of columns."""
    regions, points, region, point = ct.read_regions, ct.read_points, ct.Region, ct.Point
    readers: tuple[tuple[str, Callable[[Any], Any], Callable[[], dict[str, Any]], float], ...] = (
        ("Region.from_wkb", region.from_wkb, wkb_corpus, 3),
        ("Region.from_wkb, hex", lambda data: region.from_wkb(data.hex()), _small_wkb, 0.3),
        ("Region.from_wkb, repair", lambda data: region.from_wkb(data, repair=True), wkb_corpus, 2),
        ("Point.from_wkb", point.from_wkb, wkb_corpus, 3),
        ("RegionArray.from_wkb", lambda data: regions([data, None, data]), wkb_corpus, 2),
        ("RegionArray.from_wkb, repair", lambda data: regions([data, None, data], repair=True), wkb_corpus, 2),
        ("PointArray.from_wkb", lambda data: points([data, None, data]), wkb_corpus, 2),
        ("Region.from_wkt", region.from_wkt, wkt_corpus, 3),
        ("Region.from_wkt, repair", lambda text: region.from_wkt(text, repair=True), wkt_corpus, 1),
        ("Point.from_wkt", point.from_wkt, wkt_corpus, 2),
        ("RegionArray.from_wkt", lambda text: regions([text, None]), wkt_corpus, 2),
        ("Region.from_geojson", lambda text: region.from_geojson(_decoded(text)), geojson_corpus, 2),
        ("Region.from_geojson, text", region.from_geojson, geojson_corpus, 2),
        ("Point.from_geojson", lambda text: point.from_geojson(_decoded(text)), geojson_corpus, 2),
        ("RegionArray.from_geojson", lambda text: regions([text, None]), geojson_corpus, 2),
    )
    for name, read, corpus, weight in readers:
        yield Door(name, (name.partition(",")[0],), lambda data, read=read: use(read(data)), corpus, weight)
    kinds = ("Region", "RegionArray", "Point", "PointArray")
    yield Door("shapely", tuple(f"{kind}.from_shapely" for kind in kinds), _shapely, _shapely_corpus, 1)
    yield Door("arrow columns", ("RegionArray.from_arrow", "PointArray.from_arrow"), _arrow, arrow_corpus, 4)


@cache
def _small_wkb() -> dict[str, Any]:
    return {name: data for name, data in wkb_corpus().items() if not callable(data)}


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


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


def column_table(values: Any, name: str = "geometry", metadata: dict[str, Any] | None = None) -> pa.Table:
    """A table of one column, with metadata on its field."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.table([array], schema=pa.schema([pa.field(name, array.type, metadata=metadata)]))


def spoilt(table: pa.Table, offsets: list[int], others: list[int], width: type = np.int32) -> bytes:
    """The stream of a table with other offsets than it has."""
    data, wanted = arrow_bytes(table), np.array(offsets, width).tobytes()
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

    def named(about: Any, name: str = "wkb") -> dict[str, Any]:
        return {"ARROW:extension:name": f"geoarrow.{name}", "ARROW:extension:metadata": about}

    forms = [shapely.to_wkb(form(40)) for form in FORMS.values()]
    good = {
        "wkb": column_table(pa.array(regions.to_wkb())),
        "wkb with crs": column_table(pa.array(regions.to_wkb()), metadata=named('{"crs": "EPSG:4326"}')),
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
        "crs not json": column_table(forms, metadata=named("{")),
        "crs a list": column_table(forms, metadata=named("[1]")),
        "crs of nothing": column_table(forms, metadata=named('{"crs": {}}')),
        "crs not utf-8": column_table(forms, metadata=named(b"\xff")),
        "crs deep": column_table(forms, metadata=named("[" * 5000)),
        "text as polygon": column_table(pa.array(["a"]), metadata=named("{}", "polygon")),
        "lists of null": column_table(pa.array([[[None]], None], pa.list_(pa.list_(pa.list_(pa.float64(), 2))))),
    }
    found: dict[str, Any] = {name: arrow_bytes(table) for name, table in good.items()}
    for kind in (pa.binary(), pa.large_binary(), pa.string()):
        found.update(spoilt_streams("geometry", kind))
    found.update(spoilt_rings())
    found["deep crs"] = lambda: arrow_bytes(column_table(forms, metadata=named("[" * 400_000)))
    return found
