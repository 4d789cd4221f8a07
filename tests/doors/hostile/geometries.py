"""Doors that read geometry: WKB, WKT, GeoJSON, Shapely and Arrow columns.

Their corpora have good geometries, damaged ones, and large ones whose form makes quadratic time show.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from shapely import MultiPolygon, Polygon

import contrada as ct
from generators.columnar import arrow_bytes
from generators.families.shapes import HOSTILE, circle
from hostile.mutation import NUMBERS, PIECES, replaced
from hostile.registry import MOST_BYTES, Door
from hostile.use import use

Ring = Sequence[tuple[float, float]]


def wkb_head(*numbers: int) -> bytes:
    """What little-endian WKB begins with: its type, and counts or an SRID."""
    return struct.pack(f"<B{len(numbers)}I", 1, *numbers)


def wkb_ring(ring: Ring) -> bytes:
    """A ring with its count."""
    return struct.pack("<I", len(ring)) + b"".join(struct.pack("<dd", x, y) for x, y in ring)


def wkb_polygon(*rings: Ring, kind: int = 3) -> bytes:
    """WKB of a polygon, also of one that Shapely does not make."""
    return wkb_head(kind, len(rings)) + b"".join(map(wkb_ring, rings))


def wkt(shape: Any) -> str:
    """WKT that keeps every bit of the coordinates."""
    return str(shapely.to_wkt(shape, rounding_precision=-1))


def geojson(shape: Any) -> dict[str, Any]:
    """A GeoJSON geometry."""
    return dict(shapely.geometry.mapping(shape))


def square(low: float, high: float) -> Ring:
    """A closed ring."""
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]


# Forms by their number of vertices, about. Those of ODD are invalid but for the first two.
ODD: dict[str, Callable[[int], Any]] = {
    "bars": lambda n: Polygon([(0, 0), (10, 0), (10, n), (0, n)],
                              [[(1, k), (1, k + 2), (9, k + 2), (9, k)] for k in range(1, n - 4, 5)]),
    "flat": lambda n: Polygon([*((k, 0) for k in range(n)), (0, 1)]),
    "tangle": lambda n: Polygon(np.random.default_rng(1).random((n, 2))),
    "zigzag": lambda n: Polygon([(k % 2, k / n if k % 2 else 1 - k / n) for k in range(n)]),
    "same parts": lambda n: MultiPolygon([shapely.box(0, 0, 1, 1)] * (n // 5)),
    "same holes": lambda n: Polygon(square(0, 4), [square(1, 2)] * (n // 5)),
    "same points": lambda n: Polygon([(0, 0)] * (n - 3) + [(1, 0), (0, 1)]),
    "spikes": lambda n: Polygon([place for end in circle(n // 2) for place in ((0, 0), end)]),
}  # fmt: skip


def within_degrees(make: Callable[[int], Any], vertices: int) -> Any:
    """A form scaled by a power of two, which changes no relation of its edges, so that it has a place on the Earth."""
    shape = make(vertices)
    largest = np.abs(shapely.get_coordinates(shape)).max()
    return shapely.transform(shape, lambda xy: xy * 2.0 ** -math.ceil(math.log2(largest / 64)))


FORMS = {name: partial(within_degrees, make) for name, make in {**HOSTILE, **ODD}.items()}


def below_limit(form: Callable[[int], Any], write: Callable[[Any], Any]) -> Any:
    """The largest geometry of a form that is written in less than 1 MB, about."""
    vertices = int(0.95 * MOST_BYTES / (len(write(form(2000))) / 2000))
    while len(made := write(form(vertices))) >= MOST_BYTES:
        vertices = int(vertices * 0.9)
    return made


def large(write: Callable[[Any], Any], count: int = len(FORMS)) -> dict[str, Callable[[], Any]]:
    """So many forms just below 1 MB, made when they are needed."""
    return {f"{name} of 1 MB": partial(below_limit, form, write) for name, form in islice(FORMS.items(), count)}


def small_and_large(write: Callable[[Any], Any]) -> dict[str, Any]:
    """Every form with about 40 vertices, and just below 1 MB."""
    return {**{name: write(form(40)) for name, form in FORMS.items()}, **large(write)}


def nested_wkb(depth: int, kind: int = 7) -> bytes:
    """A collection in itself."""
    return wkb_head(kind, 1) * depth + wkb_head(kind, 0)


@cache
def wkb_corpus() -> dict[str, Any]:
    """WKB, good and hostile."""
    polygon = ct.Region([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2), (1, 2)]]).to_wkb()
    unit = square(0, 1)
    return {
        "polygon": polygon,
        "multipolygon": shapely.to_wkb(MultiPolygon([Polygon(unit), Polygon(square(2, 3))])),
        "circle": ct.Circle((1, 2), 3).to_wkb(),
        "circle of NaN": ct.Circle((1, 2), 3).to_wkb()[:-8] + b"\0\0\0\0\0\0\xf8\x7f",
        "point": ct.Point(1, 2).to_wkb(),
        "big endian": struct.pack(">BIII", 0, 3, 1, 5) + b"".join(struct.pack(">dd", *at) for at in unit),
        **{f"with srid {srid}": wkb_head(0x20000003, srid) + polygon[5:] for srid in (0, 25832, 0xFFFFFFFF)},
        "point with huge srid": struct.pack("<BIIdd", 1, 0x20000001, 0x80000000, 1, 2),
        "with z": wkb_head(1003, 1, 4) + struct.pack("<12d", *range(12)),
        "with ewkb z and m": wkb_head(0xC0000003, 1, 4) + struct.pack("<16d", *range(16)),
        "line": struct.pack("<BIIdddd", 1, 2, 2, 0, 0, 1, 1),
        "collection": wkb_head(7, 1) + polygon,
        "collection in itself, 100 deep": nested_wkb(100),
        "collection in itself, 20,000 deep": partial(nested_wkb, 20_000),
        # Multipoint, multipolygon, collection, compound curve.
        **{f"type {kind} in itself, 100,000 deep": partial(nested_wkb, 100_000, kind) for kind in (4, 6, 7, 9)},
        "curve polygon": wkb_head(10, 1) + wkb_head(8, 5) + wkb_ring(unit)[4:],
        "circular string": wkb_head(8, 3) + struct.pack("<6d", 0, 0, 1, 1, 2, 0),
        "multisurface": wkb_head(12, 1) + wkb_polygon(unit),
        "polyhedral surface": wkb_head(15, 1) + wkb_polygon(unit),
        **{f"polygon of type {kind}": wkb_polygon(unit, kind=kind) for kind in (17, 99)},
        "no rings": wkb_head(3, 0),
        "no parts": wkb_head(6, 0),
        "empty ring": wkb_head(3, 1, 0),
        "empty point": struct.pack("<BIdd", 1, 1, math.nan, math.nan),
        "nothing": b"",
        "one byte": b"\x01",
        "count of rings too large": wkb_head(3, 0xFFFFFFFF),
        "count of vertices too large": wkb_head(3, 1, 0xFFFFFFFF) + bytes(64),
        "count of parts too large": wkb_head(6, 0x7FFFFFFF) + wkb_polygon(unit),
        "many empty rings": lambda: wkb_head(3, 200_000) + bytes(800_000),
        **{f"corner at {x}": wkb_polygon([(0, 0), (x, 0), (0, x), (0, 0)]) for x in (math.nan, math.inf, 5e-324)},
        "largest numbers": wkb_polygon([(-1.7e308, -1.7e308), (1.7e308, 0), (0, 1.7e308), (-1.7e308, -1.7e308)]),
        **small_and_large(shapely.to_wkb),
    }


@cache
def wkt_corpus() -> dict[str, Any]:
    """WKT, good and hostile."""
    square = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))"
    return {
        "polygon": square,
        "multipolygon": "MULTIPOLYGON(((0 0, 1 0, 0 1, 0 0)), ((5 5, 6 5, 5 6, 5 5)))",
        "point": "POINT(1 2)",
        "with srid": f"SRID=4326;{square}",
        "with huge srid": f"SRID={'9' * 5000};{square}",
        "with strange digits as srid": f"SRID=\u00b2\u0663;{square}",
        "with z": "POLYGON Z((0 0 1, 4 0 1, 4 4 1, 0 0 1))",
        "empty": "POLYGON EMPTY",
        "nothing": "",
        **replaced(square, "4", NUMBERS),
        "100,000 digits": lambda: f"POLYGON((0 0, {'9' * 100_000} 0, 0 1, 0 0))",
        "lone surrogate": "POLYGON((0 0, 1 0, 0 1, 0 0))\ud800",
        "lone surrogate in a type": "POLY\udc80GON((0 0, 1 0, 0 1, 0 0))",
        "nul": "POLYGON((0 0, 1 0, 0 1, 0 0))\0",
        "curve polygon": "CURVEPOLYGON(CIRCULARSTRING(0 0, 1 1, 2 0, 1 -1, 0 0))",
        "circular string": "CIRCULARSTRING(0 0, 1 1, 2 0)",
        "compound curve": "COMPOUNDCURVE((0 0, 1 1), CIRCULARSTRING(1 1, 2 2, 3 1))",
        "multisurface": "MULTISURFACE(((0 0, 1 0, 0 1, 0 0)))",
        "tin": "TIN(((0 0, 1 0, 0 1, 0 0)))",
        "nested, 100 deep": "GEOMETRYCOLLECTION(" * 100 + ")" * 100,
        "nested, 10,000 deep": lambda: "GEOMETRYCOLLECTION(" * 10_000 + "POINT(1 2)" + ")" * 10_000,
        "nested, 45,000 deep": lambda: "GEOMETRYCOLLECTION(" * 45_000 + ")" * 45_000,
        "opening brackets": lambda: "POLYGON" + "(" * 900_000,
        "nested compound curves": lambda: "COMPOUNDCURVE(" * 60_000,
        "many empty parts": lambda: "MULTIPOLYGON(" + "EMPTY," * 150_000 + "EMPTY)",
        "long word": lambda: "P" * 900_000,
        **small_and_large(wkt),
    }  # fmt: skip


@cache
def geojson_corpus() -> dict[str, Any]:
    """GeoJSON as text, good and hostile."""
    good = '{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]}'
    return {
        "polygon": good,
        "multipolygon": json.dumps(geojson(MultiPolygon([Polygon(square(0, 1)), Polygon(square(2, 3))]))),
        "circle": '{"type": "Circle", "coordinates": [1, 2], "radius": 3}',
        "bad circle": '{"type": "Circle", "coordinates": [1, 2], "radius": [3]}',
        "point": '{"type": "Point", "coordinates": [1, 2]}',
        "feature": f'{{"type": "Feature", "geometry": {good}, "properties": {{"a": 1}}}}',
        "feature of a feature": f'{{"type": "Feature", "geometry": {{"type": "Feature", "geometry": {good}}}}}',
        "no geometry": '{"type": "Feature", "geometry": null}',
        "with crs": good[:-1] + ', "crs": {"type": "name", "properties": {"name": "EPSG:25832"}}}',
        "with deep crs": lambda: good[:-1] + ', "crs": ' + "[" * 100_000 + "]" * 100_000 + "}",
        **replaced(good, "4", ("{}", *NUMBERS)),
        **replaced(good, "Polygon", PIECES),
        "type is a list": '{"type": ["Polygon"], "coordinates": []}',
        "type is an object": '{"type": {}, "coordinates": []}',
        "no type": '{"coordinates": []}',
        "no coordinates": '{"type": "Polygon"}',
        "coordinates are text": '{"type": "Polygon", "coordinates": "abc"}',
        "coordinates are an object": '{"type": "Polygon", "coordinates": {"0": [[0, 0]]}}',
        "ragged": '{"type": "Polygon", "coordinates": [[[0, 0], [1], [1, 2, 3, 4, 5], 7]]}',
        "one number": '{"type": "Polygon", "coordinates": [[[0], [1], [2], [0]]]}',
        "collection": f'{{"type": "GeometryCollection", "geometries": [{good}]}}',
        "curve": '{"type": "CurvePolygon", "coordinates": []}',
        "key twice": good[:-1] + ', "type": "Point"}',
        "list": "[]",
        "number": "7",
        "null": "null",
        "nothing": "",
        "not utf-8": '{"type": "\udcff"}',
        "nested arrays": lambda: '{"type": "Polygon", "coordinates": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "nested arrays, never closed": lambda: '{"type": "Polygon", "coordinates": ' + "[" * 900_000,
        "nested collections": lambda: '{"type": "GeometryCollection", "geometries": [' * 15_000 + "]}" * 15_000,
        "nested features": lambda: '{"type": "Feature", "geometry": ' * 20_000 + "null" + "}" * 20_000,
        "many empty rings": lambda: '{"type": "Polygon", "coordinates": [' + "[]," * 300_000 + "[]]}",
        **small_and_large(lambda shape: json.dumps(geojson(shape))),
    }


def geometry_doors() -> Iterator[Door]:
    """The doors of single geometries and of columns."""
    regions, points, region, point = ct.read_regions, ct.read_points, ct.Region, ct.Point
    lines, line = ct.read_lines, ct.Line
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
        ("Circle.from_wkb", ct.Circle.from_wkb, wkb_corpus, 1),
        ("Circle.from_text", ct.Circle.from_text, wkt_corpus, 1),
        ("Circle.from_geojson", lambda text: ct.Circle.from_geojson(_decoded(text)), geojson_corpus, 1),
        ("Line.from_wkb", lambda data: line.from_wkb(as_line(data)), wkb_corpus, 2),
        ("Line.from_wkt", lambda text: line.from_wkt(LINE_WORDS.sub("MULTILINESTRING", text)), wkt_corpus, 2),
        ("Line.from_geojson", lambda text: line.from_geojson(_decoded(as_line_json(text))), geojson_corpus, 2),
        ("LineArray.from_wkb", lambda data: lines([as_line(data), None, data]), wkb_corpus, 2),
        ("LineArray.from_wkt", lambda text: lines([LINE_WORDS.sub("MULTILINESTRING", text), None]), wkt_corpus, 2),
        ("LineArray.from_geojson", lambda text: lines([as_line_json(text), None]), geojson_corpus, 2),
    )
    for name, read, corpus, weight in readers:
        yield Door(name, (name.partition(",")[0],), lambda data, read=read: use(read(data)), corpus, weight)
    kinds = ("Region", "RegionArray", "Point", "PointArray", "Line", "LineArray")
    yield Door("shapely", tuple(f"{kind}.from_shapely" for kind in kinds), _shapely, _shapely_corpus, 1)
    columns = ("RegionArray.from_arrow", "PointArray.from_arrow", "LineArray.from_arrow")
    yield Door("arrow columns", columns, _arrow, arrow_corpus, 4)


LINE_WORDS = re.compile("MULTIPOLYGON|POLYGON", re.IGNORECASE)


def as_line(data: bytes) -> bytes:
    """WKB of a polygon as that of a multilinestring of its rings, and of other types unchanged."""
    if len(data) < 9 or data[:5] != wkb_head(3):
        return data
    pieces, at = [wkb_head(5), data[5:9]], 9
    while at + 4 <= len(data):
        size = 4 + 16 * int.from_bytes(data[at : at + 4], "little")
        pieces += [wkb_head(2), data[at : at + size]]
        at += size
    return b"".join(pieces)


def as_line_json(text: str) -> str:
    """GeoJSON of a polygon as that of a multilinestring."""
    return text.replace('"Polygon"', '"MultiLineString"')


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
    found = _used((ct.Region.from_shapely, ct.Point.from_shapely, ct.Line.from_shapely), geometry)
    readers = (ct.read_points, ct.read_regions, ct.read_lines)
    return found, [use(read([geometry, None])) for read in readers]


def _used(calls: Iterable[Callable[[Any], Any]], value: Any) -> list[object]:
    """Use what each call makes of a value, or print the error that it raises."""
    found: list[object] = []
    for call in calls:
        try:
            found.append(use(call(value)))
        except ct.ContradaError as error:
            found.append(str(error))
    return found


def _shapely_corpus() -> dict[str, Any]:
    return {name: text for name, text in wkt_corpus().items() if "nested" not in name and "opening" not in name}


def _arrow(data: bytes) -> object:
    """Columns as other programs hand them over: Arrow checks nothing then."""
    try:
        columns = pa.ipc.open_stream(data).read_all().columns
    except (pa.ArrowException, OSError, ValueError):
        return None
    calls = (
        ct.read_regions, ct.read_points, ct.read_lines, ct.RegionArray.from_arrow, ct.RegionArray.from_wkb,
        ct.LineArray.from_arrow,
    )  # fmt: skip
    return [_used(calls, column) for column in columns]


def column_table(values: Any, name: str = "geometry", metadata: dict[str, Any] | None = None) -> pa.Table:
    """A table of one column, with metadata on its field."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.table([array], schema=pa.schema([pa.field(name, array.type, metadata=metadata)]))


def spoilt(
    table: pa.Table, offsets: list[int], others: list[int], width: type = np.int32, new: Any = pa.ipc.new_stream
) -> bytes:
    """The stream or file of a table with other offsets than it has."""
    data, wanted = arrow_bytes(table, new=new), np.array(offsets, width).tobytes()
    assert data.count(wanted) >= 1, offsets
    return data.replace(wanted, np.array(others, width).tobytes())


SPOILT = {"beyond": [0, 100_000, 200, 300], "negative": [0, -5, 200, 300], "falling": [300, 200, 100, 0],
          "huge": [0, 100, 200, 0x7FFFFFFF]}  # fmt: skip
BOXES = ct.RegionArray.from_regions([ct.Region.box(0, 0, k, k) for k in (1, 2, 3)])
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


@cache
def arrow_corpus() -> dict[str, Any]:
    """Streams of Arrow with one column, good and damaged."""
    points = ct.PointArray([[0, 0], [1, 1]])

    def named(about: Any, name: str = "wkb") -> dict[str, Any]:
        return {"ARROW:extension:name": f"geoarrow.{name}", "ARROW:extension:metadata": about}

    forms = [shapely.to_wkb(form(40)) for form in FORMS.values()]
    good = {
        "wkb": column_table(pa.array(BOXES.to_wkb())),
        "wkb with crs": column_table(pa.array(BOXES.to_wkb()), metadata=named('{"crs": "EPSG:4326"}')),
        "geoarrow": column_table(BOXES.to_arrow()),
        "geoarrow points": column_table(points.to_arrow()),
        "geoarrow lines": column_table(ct.LineArray.from_wkt(["LINESTRING(0 0, 1 1)"] * 3).to_arrow()),
        "point wkb": column_table(points.to_wkb()),
        "forms": column_table([*forms, None, b""]),
        "large binary": column_table(pa.array(forms, pa.large_binary())),
        "binary view": column_table(pa.array(forms, pa.binary_view())),
        "text": column_table(["POLYGON((0 0, 1 0, 0 1, 0 0))", None]),
        "dictionary": column_table(pa.array([forms[0], forms[0]]).dictionary_encode()),
        "nulls": column_table(pa.nulls(5)),
        "null wkb": column_table(pa.array([None, None], pa.binary())),
        **{f"crs {about[:9]!a}": column_table(forms, metadata=named(about))
           for about in ("{", "[1]", '{"crs": {}}', b"\xff", "[" * 5000)},
        "text as polygon": column_table(pa.array(["a"]), metadata=named("{}", "polygon")),
        "lists of null": column_table(pa.array([[[None]], None], pa.list_(pa.list_(pa.list_(pa.float64(), 2))))),
    }  # fmt: skip
    found: dict[str, Any] = {name: arrow_bytes(table) for name, table in good.items()}
    for kind in (pa.binary(), pa.large_binary(), pa.string()):
        found.update(spoilt_streams("geometry", kind))
    rings = {name: [other // 20 if abs(other) < 1000 else other for other in others] for name, others in SPOILT.items()}
    for name, others in rings.items():
        found[f"rings {name}"] = spoilt(column_table(BOXES.to_arrow()), [0, 5, 10, 15], others)
    found["deep crs"] = lambda: arrow_bytes(column_table(forms, metadata=named("[" * 400_000)))
    return found
