"""Geometries as WKB, WKT and GeoJSON: good ones, damaged ones, and large ones whose form makes quadratic time show."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from random import Random
from typing import Any

import contrada as ct
from hostile.registry import MOST_BYTES

Ring = Sequence[tuple[float, float]]
Polygons = Sequence[Sequence[Ring]]  # of each polygon its shell, then its holes


def wkb_ring(ring: Ring) -> bytes:
    """A ring with its count."""
    return struct.pack("<I", len(ring)) + b"".join(struct.pack("<dd", x, y) for x, y in ring)


def wkb_polygon(rings: Sequence[Ring], kind: int = 3) -> bytes:
    """WKB of a polygon."""
    return struct.pack("<BII", 1, kind, len(rings)) + b"".join(map(wkb_ring, rings))


def wkb(polygons: Polygons) -> bytes:
    """WKB of one polygon or several."""
    parts = [wkb_polygon(rings) for rings in polygons]
    return parts[0] if len(parts) == 1 else struct.pack("<BII", 1, 6, len(parts)) + b"".join(parts)


def _text(ring: Ring) -> str:
    return "(" + ",".join(f"{x!r} {y!r}" for x, y in ring) + ")"


def wkt(polygons: Polygons) -> str:
    """WKT of one polygon or several."""
    parts = ["(" + ",".join(map(_text, rings)) + ")" for rings in polygons]
    return f"POLYGON{parts[0]}" if len(parts) == 1 else f"MULTIPOLYGON({','.join(parts)})"


def geojson(polygons: Polygons) -> dict[str, Any]:
    """A GeoJSON geometry."""
    parts = [[[list(vertex) for vertex in ring] for ring in rings] for rings in polygons]
    if len(parts) == 1:
        return {"type": "Polygon", "coordinates": parts[0]}
    return {"type": "MultiPolygon", "coordinates": parts}


def closed(ring: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A ring whose last vertex is its first."""
    return [*ring, ring[0]]


def box(low: float, high: float) -> Ring:
    """A square."""
    return closed([(low, low), (high, low), (high, high), (low, high)])


def _turn(k: float, n: int, radius: float = 1.0) -> tuple[float, float]:
    return radius * math.cos(2 * math.pi * k / n), radius * math.sin(2 * math.pi * k / n)


# Forms by their number of vertices, about. All but the last few are valid.


def fan_of_holes(vertices: int) -> Polygons:
    """Holes that all meet in one point."""
    n = vertices // 4
    return [[box(-2, 2), *(closed([(0.0, 0.0), _turn(k + 0.6, n), _turn(k, n)]) for k in range(n))]]


def fan_of_parts(vertices: int) -> Polygons:
    """Parts that all meet in one point."""
    n = vertices // 4
    return [[closed([(0.0, 0.0), _turn(k, n), _turn(k + 0.6, n)])] for k in range(n)]


def star(vertices: int) -> Polygons:
    """A ring that goes in and out."""
    return [[closed([_turn(k, vertices, 1.0 if k % 2 else 0.5) for k in range(vertices // 2 * 2)])]]


def spiral(vertices: int) -> Polygons:
    """A narrow band that winds around a centre, thirty vertices to a turn."""
    n = vertices // 2
    out = [_turn(k, 30, 1 + k / 30) for k in range(n)]
    back = [_turn(k, 30, 1.4 + k / 30) for k in reversed(range(n))]
    return [[closed(out + back)]]


def slivers(vertices: int) -> Polygons:
    """Long thin holes side by side."""
    n = vertices // 5
    holes = [closed([(1.0, k + 0.2), (1.0, k + 0.6), (9.0, k + 0.6), (9.0, k + 0.2)]) for k in range(n)]
    return [[closed([(0.0, 0.0), (10.0, 0.0), (10.0, float(n)), (0.0, float(n))]), *holes]]


def slanted(vertices: int) -> Polygons:
    """Long thin holes side by side, slanted: all their boxes overlap."""
    n = vertices // 5
    holes = [closed([(k, k + 1.0), (k + n, k + n + 1.0), (k + n + 0.2, k + n + 0.6), (k + 0.2, k + 0.6)])
             for k in ((2.0 * k, 0)[0] for k in range(n))]  # fmt: skip
    moved = [[(x - 2 * y * 0, y - 2 * k) for x, y in hole] for k, hole in enumerate(holes)]
    return [[box(-4.0 * n - 10, 4.0 * n + 10), *moved]]


def comb(vertices: int) -> Polygons:
    """Long thin teeth on one side."""
    n = vertices // 4
    teeth = [place for k in range(n) for place in ((k, 1.0), (k, 1e6), (k + 0.5, 1e6), (k + 0.5, 1.0))]
    return [[closed([(float(n), 0.0), (0.0, 0.0), *teeth, (float(n), 1.0)][1:])]]


def squares(vertices: int) -> Polygons:
    """Parts in a grid, each of which touches its neighbours at corners."""
    n = math.isqrt(vertices // 5 * 2)
    return [
        [closed([(i, j), (i + 1.0, j), (i + 1.0, j + 1.0), (i, j + 1.0)])]
        for i in range(n) for j in range(n) if (i + j) % 2 == 0
    ]  # fmt: skip


def nested(vertices: int) -> Polygons:
    """Rings within rings, each a part with a hole."""
    n = vertices // 10
    return [[box(-2.0 * k - 2, 2.0 * k + 2), box(-2.0 * k - 1, 2.0 * k + 1)] for k in range(n)]


def flat(vertices: int) -> Polygons:
    """Vertices on one line, but for one."""
    return [[closed([*((float(k), 0.0) for k in range(vertices)), (0.0, 1.0)])]]


def tangle(vertices: int) -> Polygons:
    """A ring that crosses itself everywhere: it is no region."""
    rng = Random(1)
    return [[closed([(rng.random(), rng.random()) for _ in range(vertices)])]]


def zigzag(vertices: int) -> Polygons:
    """A ring that crosses itself in the square of its vertices: it is no region."""
    return [[closed([(float(k % 2), k / vertices if k % 2 else 1 - k / vertices) for k in range(vertices)])]]


def same_parts(vertices: int) -> Polygons:
    """One part many times: it is no region."""
    return [[box(0, 1)]] * (vertices // 5)


def same_holes(vertices: int) -> Polygons:
    """One hole many times: it is no region."""
    return [[box(0, 4), *[box(1, 2)] * (vertices // 5)]]


def same_points(vertices: int) -> Polygons:
    """One vertex many times."""
    return [[closed([(0.0, 0.0)] * (vertices - 3) + [(1.0, 0.0), (0.0, 1.0)])]]


def spikes(vertices: int) -> Polygons:
    """A ring that goes out and back on the same way: it is no region."""
    return [[closed([place for k in range(vertices // 2) for place in ((0.0, 0.0), _turn(k, vertices // 2))])]]


FORMS: tuple[Callable[[int], Polygons], ...] = (
    fan_of_holes, fan_of_parts, star, spiral, slivers, slanted, comb, squares, nested, flat, tangle, zigzag, same_parts,
    same_holes, same_points, spikes,
)  # fmt: skip


def below_limit(form: Callable[[int], Polygons], write: Callable[[Polygons], Any], sized: Callable[[Any], int]) -> Any:
    """The largest geometry of a form that is written in less than 1 MB, about."""
    vertices = int(0.95 * MOST_BYTES / (sized(write(form(2000))) / 2000))
    while sized(made := write(form(vertices))) >= MOST_BYTES:
        vertices = int(vertices * 0.9)
    return made


def large(write: Callable[[Polygons], Any], sized: Callable[[Any], int] = len) -> dict[str, Callable[[], Any]]:
    """All forms just below 1 MB, made when they are needed."""
    return {f"{form.__name__} of 1 MB": partial(below_limit, form, write, sized) for form in FORMS}


def nested_wkb(depth: int, kind: int = 7) -> bytes:
    """A collection in itself."""
    return struct.pack("<BII", 1, kind, 1) * depth + struct.pack("<BII", 1, kind, 0)


@cache
def wkb_corpus() -> dict[str, Any]:
    """WKB, good and hostile."""
    region = ct.Region([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])
    square = region.to_wkb()
    small = {form.__name__: wkb(form(40)) for form in FORMS}
    rings = [box(0, 1)]
    return {
        "polygon": square,
        "multipolygon": wkb([[box(0, 1)], [box(2, 3)]]),
        "point": ct.Point(1, 2).to_wkb(),
        "big endian": struct.pack(">BIII", 0, 3, 1, 5) + b"".join(struct.pack(">dd", *at) for at in box(0, 1)),
        "with srid": struct.pack("<BII", 1, 0x20000003, 25832) + square[5:],
        "with huge srid": struct.pack("<BII", 1, 0x20000003, 0xFFFFFFFF) + square[5:],
        "with srid 0": struct.pack("<BII", 1, 0x20000003, 0) + square[5:],
        "point with huge srid": struct.pack("<BIIdd", 1, 0x20000001, 0x80000000, 1, 2),
        "with z": struct.pack("<BIII", 1, 1003, 1, 4) + struct.pack("<12d", *range(12)),
        "with ewkb z and m": struct.pack("<BIII", 1, 0xC0000003, 1, 4) + struct.pack("<16d", *range(16)),
        "line": struct.pack("<BIIdddd", 1, 2, 2, 0, 0, 1, 1),
        "collection": struct.pack("<BII", 1, 7, 1) + square,
        "collection in itself, 100 deep": nested_wkb(100),
        "collection in itself, 20,000 deep": partial(nested_wkb, 20_000),
        "collection in itself, 100,000 deep": partial(nested_wkb, 100_000),
        "multipolygon in itself": partial(nested_wkb, 100_000, 6),
        "multipoint in itself": partial(nested_wkb, 100_000, 4),
        "compound curve in itself": partial(nested_wkb, 100_000, 9),
        "curve polygon": struct.pack("<BII", 1, 10, 1) + struct.pack("<BII", 1, 8, 5) + wkb_ring(box(0, 1))[4:],
        "circular string": struct.pack("<BII", 1, 8, 3) + struct.pack("<6d", 0, 0, 1, 1, 2, 0),
        "multisurface": struct.pack("<BII", 1, 12, 1) + wkb_polygon(rings),
        "polyhedral surface": struct.pack("<BII", 1, 15, 1) + wkb_polygon(rings),
        "triangle": wkb_polygon(rings, 17),
        "unknown type": wkb_polygon(rings, 99),
        "no rings": struct.pack("<BII", 1, 3, 0),
        "no parts": struct.pack("<BII", 1, 6, 0),
        "empty ring": struct.pack("<BIII", 1, 3, 1, 0),
        "empty point": struct.pack("<BIdd", 1, 1, math.nan, math.nan),
        "nothing": b"",
        "one byte": b"\x01",
        "count of rings too large": struct.pack("<BII", 1, 3, 0xFFFFFFFF),
        "count of vertices too large": struct.pack("<BIII", 1, 3, 1, 0xFFFFFFFF) + bytes(64),
        "count of parts too large": struct.pack("<BII", 1, 6, 0x7FFFFFFF) + wkb_polygon(rings),
        "many empty rings": partial(lambda: struct.pack("<BII", 1, 3, 200_000) + bytes(800_000)),
        "nan": wkb([[[(0, 0), (1, 0), (math.nan, 1), (0, 0)]]]),
        "infinity": wkb([[[(0, 0), (math.inf, 0), (0, 1), (0, 0)]]]),
        "largest numbers": wkb([[[(-1.7e308, -1.7e308), (1.7e308, 0), (0, 1.7e308), (-1.7e308, -1.7e308)]]]),
        "smallest numbers": wkb([[[(0, 0), (5e-324, 0), (0, 5e-324), (0, 0)]]]),
        **small,
        **large(wkb),
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
        "100,000 digits": partial(lambda: f"POLYGON((0 0, {'9' * 100_000} 0, 0 1, 0 0))"),
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
        "nested, 10,000 deep": partial(lambda: "GEOMETRYCOLLECTION(" * 10_000 + "POINT(1 2)" + ")" * 10_000),
        "nested, 45,000 deep": partial(lambda: "GEOMETRYCOLLECTION(" * 45_000 + ")" * 45_000),
        "opening brackets": partial(lambda: "POLYGON" + "(" * 900_000),
        "nested compound curves": partial(lambda: "COMPOUNDCURVE(" * 60_000),
        "many empty parts": partial(lambda: "MULTIPOLYGON(" + "EMPTY," * 150_000 + "EMPTY)"),
        "long word": partial(lambda: "P" * 900_000),
        **{form.__name__: wkt(form(40)) for form in FORMS},
        **large(wkt),
    }  # fmt: skip


@cache
def geojson_corpus() -> dict[str, Any]:
    """GeoJSON as text, good and hostile."""
    good = '{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]}'
    return {
        "polygon": good,
        "multipolygon": json.dumps(geojson([[box(0, 1)], [box(2, 3)]])),
        "point": '{"type": "Point", "coordinates": [1, 2]}',
        "feature": f'{{"type": "Feature", "geometry": {good}, "properties": {{"a": 1}}}}',
        "feature of a feature": f'{{"type": "Feature", "geometry": {{"type": "Feature", "geometry": {good}}}}}',
        "no geometry": '{"type": "Feature", "geometry": null}',
        "with crs": good[:-1] + ', "crs": {"type": "name", "properties": {"name": "EPSG:25832"}}}',
        "with deep crs": partial(lambda: good[:-1] + ', "crs": ' + "[" * 100_000 + "]" * 100_000 + "}"),
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
        "nested arrays": partial(lambda: '{"type": "Polygon", "coordinates": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "nested arrays, never closed": partial(lambda: '{"type": "Polygon", "coordinates": ' + "[" * 900_000),
        "nested collections": partial(
            lambda: '{"type": "GeometryCollection", "geometries": [' * 15_000 + "]}" * 15_000
        ),
        "nested features": partial(lambda: '{"type": "Feature", "geometry": ' * 20_000 + "null" + "}" * 20_000),
        "many empty rings": partial(lambda: '{"type": "Polygon", "coordinates": [' + "[]," * 300_000 + "[]]}"),
        **{form.__name__: json.dumps(geojson(form(40))) for form in FORMS},
        **large(lambda polygons: json.dumps(geojson(polygons))),
    }
