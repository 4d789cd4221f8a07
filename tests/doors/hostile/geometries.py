"""Geometries as WKB, WKT and GeoJSON: good ones, damaged ones, and large ones whose form makes quadratic time show."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
import shapely
from shapely import MultiPolygon, Polygon

import contrada as ct
from generators.families.shapes import HOSTILE, circle
from hostile.registry import MOST_BYTES

Ring = Sequence[tuple[float, float]]


def wkb_ring(ring: Ring) -> bytes:
    """A ring with its count."""
    return struct.pack("<I", len(ring)) + b"".join(struct.pack("<dd", x, y) for x, y in ring)


def wkb_polygon(*rings: Ring, kind: int = 3) -> bytes:
    """WKB of a polygon, also of one that Shapely does not make."""
    return struct.pack("<BII", 1, kind, len(rings)) + b"".join(map(wkb_ring, rings))


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


def nested_wkb(depth: int, kind: int = 7) -> bytes:
    """A collection in itself."""
    return struct.pack("<BII", 1, kind, 1) * depth + struct.pack("<BII", 1, kind, 0)


@cache
def wkb_corpus() -> dict[str, Any]:
    """WKB, good and hostile."""
    region = ct.Region([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])
    polygon = region.to_wkb()
    unit = square(0, 1)
    return {
        "polygon": polygon,
        "multipolygon": shapely.to_wkb(MultiPolygon([Polygon(unit), Polygon(square(2, 3))])),
        "point": ct.Point(1, 2).to_wkb(),
        "big endian": struct.pack(">BIII", 0, 3, 1, 5) + b"".join(struct.pack(">dd", *at) for at in unit),
        "with srid": struct.pack("<BII", 1, 0x20000003, 25832) + polygon[5:],
        "with huge srid": struct.pack("<BII", 1, 0x20000003, 0xFFFFFFFF) + polygon[5:],
        "with srid 0": struct.pack("<BII", 1, 0x20000003, 0) + polygon[5:],
        "point with huge srid": struct.pack("<BIIdd", 1, 0x20000001, 0x80000000, 1, 2),
        "with z": struct.pack("<BIII", 1, 1003, 1, 4) + struct.pack("<12d", *range(12)),
        "with ewkb z and m": struct.pack("<BIII", 1, 0xC0000003, 1, 4) + struct.pack("<16d", *range(16)),
        "line": struct.pack("<BIIdddd", 1, 2, 2, 0, 0, 1, 1),
        "collection": struct.pack("<BII", 1, 7, 1) + polygon,
        "collection in itself, 100 deep": nested_wkb(100),
        "collection in itself, 20,000 deep": partial(nested_wkb, 20_000),
        "collection in itself, 100,000 deep": partial(nested_wkb, 100_000),
        "multipolygon in itself": partial(nested_wkb, 100_000, 6),
        "multipoint in itself": partial(nested_wkb, 100_000, 4),
        "compound curve in itself": partial(nested_wkb, 100_000, 9),
        "curve polygon": struct.pack("<BII", 1, 10, 1) + struct.pack("<BII", 1, 8, 5) + wkb_ring(unit)[4:],
        "circular string": struct.pack("<BII", 1, 8, 3) + struct.pack("<6d", 0, 0, 1, 1, 2, 0),
        "multisurface": struct.pack("<BII", 1, 12, 1) + wkb_polygon(unit),
        "polyhedral surface": struct.pack("<BII", 1, 15, 1) + wkb_polygon(unit),
        "triangle": wkb_polygon(unit, kind=17),
        "unknown type": wkb_polygon(unit, kind=99),
        "no rings": struct.pack("<BII", 1, 3, 0),
        "no parts": struct.pack("<BII", 1, 6, 0),
        "empty ring": struct.pack("<BIII", 1, 3, 1, 0),
        "empty point": struct.pack("<BIdd", 1, 1, math.nan, math.nan),
        "nothing": b"",
        "one byte": b"\x01",
        "count of rings too large": struct.pack("<BII", 1, 3, 0xFFFFFFFF),
        "count of vertices too large": struct.pack("<BIII", 1, 3, 1, 0xFFFFFFFF) + bytes(64),
        "count of parts too large": struct.pack("<BII", 1, 6, 0x7FFFFFFF) + wkb_polygon(unit),
        "many empty rings": lambda: struct.pack("<BII", 1, 3, 200_000) + bytes(800_000),
        "nan": wkb_polygon([(0, 0), (1, 0), (math.nan, 1), (0, 0)]),
        "infinity": wkb_polygon([(0, 0), (math.inf, 0), (0, 1), (0, 0)]),
        "largest numbers": wkb_polygon([(-1.7e308, -1.7e308), (1.7e308, 0), (0, 1.7e308), (-1.7e308, -1.7e308)]),
        "smallest numbers": wkb_polygon([(0, 0), (5e-324, 0), (0, 5e-324), (0, 0)]),
        **{name: shapely.to_wkb(form(40)) for name, form in FORMS.items()},
        **large(shapely.to_wkb),
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
        "400 digits": f"POLYGON((0 0, {'9' * 400} 0, 0 1, 0 0))",
        "100,000 digits": lambda: f"POLYGON((0 0, {'9' * 100_000} 0, 0 1, 0 0))",
        "lone surrogate": "POLYGON((0 0, 1 0, 0 1, 0 0))\ud800",
        "lone surrogate in a type": "POLY\udc80GON((0 0, 1 0, 0 1, 0 0))",
        "nul": "POLYGON((0 0, 1 0, 0 1, 0 0))\0",
        "nan": "POLYGON((0 0, nan 0, 0 inf, 0 0))",
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
        **{name: wkt(form(40)) for name, form in FORMS.items()},
        **large(wkt),
    }  # fmt: skip


@cache
def geojson_corpus() -> dict[str, Any]:
    """GeoJSON as text, good and hostile."""
    good = '{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]}'
    return {
        "polygon": good,
        "multipolygon": json.dumps(geojson(MultiPolygon([Polygon(square(0, 1)), Polygon(square(2, 3))]))),
        "point": '{"type": "Point", "coordinates": [1, 2]}',
        "feature": f'{{"type": "Feature", "geometry": {good}, "properties": {{"a": 1}}}}',
        "feature of a feature": f'{{"type": "Feature", "geometry": {{"type": "Feature", "geometry": {good}}}}}',
        "no geometry": '{"type": "Feature", "geometry": null}',
        "with crs": good[:-1] + ', "crs": {"type": "name", "properties": {"name": "EPSG:25832"}}}',
        "with deep crs": lambda: good[:-1] + ', "crs": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "400 digits": good.replace("4", "9" * 400),
        "5000 digits": good.replace("4", "9" * 5000),
        "exponent": good.replace("4", "1e400"),
        "nan": good.replace("4", "NaN"),
        "text as number": good.replace("4", '"4"'),
        "null as number": good.replace("4", "null"),
        "boolean as number": good.replace("4", "true"),
        "object as number": good.replace("4", "{}"),
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
        "lone surrogate": good.replace("Polygon", "\\ud800"),
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
        **{name: json.dumps(geojson(form(40))) for name, form in FORMS.items()},
        **large(lambda shape: json.dumps(geojson(shape))),
    }
