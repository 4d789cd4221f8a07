"""Files of every format, good and hostile: messages, subscriptions, zones and changes alike."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import contrada as ct
from generators.columnar import arrow_bytes, lying, parquet_bytes
from hostile.geometries import FORMS, SPOILT, THREE, arrow_corpus, geojson, large, spoilt, spoilt_streams, wkt
from hostile.mutation import DATES, NUMBERS, PIECES, replaced
from verification.damage import damaged

AREA = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]}
DEEP = 100_000
FEW = 6  # forms of nearly 1 MB in each format
DAMAGES = 6  # damaged files of each kind
DRIVERS = {"GPKG": (".gpkg",), "ESRI Shapefile": (".shp", ".shx", ".dbf", ".prj"), "FlatGeobuf": (".fgb",)}
# GDAL tells most formats by the suffix and the first bytes.
SUFFIXES = {b"SQLite format 3": ".gpkg", b"PK": ".shp.zip", b"fgb": ".fgb", b"\x00\x00\x27\x0a": ".shp"}
# One row that is a message, a subscription, a zone and a change at once.
ROW = {
    "key": "k1", "subscriber": "ops", "filter": "severity >= 3 AND S_INTERSECTS(area, BBOX(0, 0, 2, 2))",
    "action": "subscribe", "valueName": "UGC", "value": "CAZ041", "severity": 4, "kind": "flood", "ratio": 0.5,
    "is_open": True, "onset": "2024-05-01T12:00:00Z", "none": None, "wind": {"speed": 12}, "geometry": AREA,
}  # fmt: skip


def line(**changes: Any) -> bytes:
    """The row as JSON, with other members."""
    return json.dumps({**ROW, **changes}).encode()


def json_texts() -> dict[str, Any]:
    """Single JSON objects, good and hostile."""
    raw = line()
    return {
        "row": raw,
        "row without filter": line(filter=None, action="unsubscribe"),
        "feature": json.dumps({"type": "Feature", "geometry": AREA, "properties": ROW}).encode(),
        "cloudevent": json.dumps(
            {"specversion": "1.0", "id": "7", "source": "s", "type": "t", "data": ROW, "time": "2024-05-01T12:00:00Z"}
        ).encode(),
        "cloudevent in base64": b'{"specversion":"1.0","id":"7","source":"s","type":"t","data_base64":"e30="}',
        "key is a number": line(key=7, subscriber=None),
        "key is huge": line(key=10**400),
        "key is a list": line(key=[1]),
        "filter is json": line(filter={"op": ">", "args": [{"property": "severity"}, 3]}),
        "filter is nested json": line(filter={"op": "not", "args": [{"op": "not", "args": [{"op": "isNull"}]}]}),
        "lone surrogate in a key": raw.replace(b'"kind"', b'"\\ud800"').replace(b'"k1"', b'"\\udfff"'),
        "lone surrogate in a filter": line(filter="kind = '\ud800'"),
        "not utf-8": raw.replace(b"flood", b"\xff\xfe"),
        "not utf-8 in a name": raw.replace(b'"kind"', b'"\xff"'),
        **replaced(raw, b"flood", PIECES),
        **replaced(raw, b"2024-05-01T12:00:00Z", DATES),
        **replaced(raw, b"4,", (f"{number}," for number in NUMBERS)),
        "key twice": raw[:-1] + b', "kind": "storm", "kind": "storm"}',
        "curve": line(geometry={"type": "CurvePolygon", "coordinates": []}),
        "wkt": line(geometry="CURVEPOLYGON(CIRCULARSTRING(0 0, 1 1, 2 0, 1 -1, 0 0))"),
        "huge srid": line(geometry="SRID=99999999999999999999;POINT(1 2)"),
        "crs": line(crs={"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::25832"}}),
        "crs unknown": line(crs={"type": "name", "properties": {"name": "EPSG:" + "9" * 40}}),
        "crs is a list": line(crs=[[[]]]),
        "type is a list": line(type=[]),
        "geometry is a list": line(geometry=[1]),
        "array": b"[1, 2]",
        "null": b"null",
        "text": b'"a"',
        "rubbish": b"rubbish",
        "empty name": line(**{"": 1, ".": 2, "a.b": 1, "a": {"b": 2}}),
        "deep": lambda: b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "deep array": lambda: b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}",
        "deep crs": lambda: raw[:-1] + b', "crs": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        "deep and never closed": lambda: b'{"a":' * 150_000,
        "deep names, long": _deep_names,
        "deep names, many": lambda: b"".join(b'{"v":1,"%d":' % k for k in range(30_000)) + b"1" + b"}" * 30_000,
        "many attributes": lambda: json.dumps({f"a{k}": k for k in range(60_000)}).encode(),
        "key twice among many": lambda: b"{" + b",".join(b'"a%d":%d' % (k % 30_000, k) for k in range(40_000)) + b"}",
        "long name": lambda: json.dumps({"a" * 900_000: 1}).encode(),
        "long value": lambda: line(kind="a" * 900_000),
        "long filter": lambda: line(filter=" AND ".join(f"a{k} = {k}" for k in range(50_000))),
        "filter with many nots": _many_nots,
        "long like": lambda: line(filter="kind LIKE '" + "%a" * 100_000 + "b'", kind="a" * 300_000),
        "long digits": lambda: raw.replace(b": 4,", b": " + b"9" * 900_000 + b","),
        **large(lambda shape: line(geometry=geojson(shape)), FEW),
    }


def _deep_names() -> bytes:
    """Objects in objects whose names are long: their names with dots are longer than the file."""
    inner = json.dumps({f"b{k}": 1 for k in range(60_000)}).encode()
    return (b'{"' + b"n" * 1000 + b'":') * 60 + inner + b"}" * 60


def _many_nots() -> bytes:
    """A filter below a thousand nots."""
    of_kind, of_b = (json.dumps({"op": "in", "args": [{"property": name}, [*range(30)]]}) for name in ("kind", "b"))
    opened, closed = '{"op":"not","args":[{"op":"or","args":[', f",{of_b}]}}]}}"
    asked = opened * 1000 + of_kind + closed * 1000
    return line(filter=0).replace(b'"filter": 0', f'"filter": {asked}'.encode())


def _joined(texts: dict[str, Any], how: Callable[[bytes], bytes]) -> dict[str, Any]:
    def late(make: Callable[[], bytes]) -> bytes:
        return how(make())

    return {name: partial(late, data) if callable(data) else how(data) for name, data in texts.items()}


def ndjson_corpus() -> dict[str, Any]:
    """Newline JSON: a hostile line between two good ones."""
    texts = _joined(json_texts(), lambda data: line() + b"\n" + data.replace(b"\n", b" ") + b"\n" + line(key="k2"))
    return {
        **texts,
        "only newlines": b"\n\r\n\n",
        "many lines": lambda: b'{"a":1}\n' * 120_000,
        "many empty lines": lambda: b"\n" * 900_000,
        "many bad lines": lambda: b"x\n" * 450_000,
    }


def geojsonseq_corpus() -> dict[str, Any]:
    """GeoJSON text sequences."""
    texts = _joined(json_texts(), lambda data: b"\x1e" + line() + b"\n\x1e" + data + b"\n")
    return {**texts, "only separators": lambda: b"\x1e" * 900_000, "no separator": line()}


FEATURE = json.dumps({"type": "Feature", "geometry": AREA, "properties": {**ROW, "filter": "a = 1"}}).encode()


def collection(crs: bytes | None = None, feature: bytes = FEATURE, count: int = 2) -> bytes:
    """A GeoJSON feature collection of equal features."""
    more = b"" if crs is None else b', "crs": ' + crs
    return b'{"type": "FeatureCollection", "features": [' + b",".join([feature] * count) + b"]" + more + b"}"


def json_corpus() -> dict[str, Any]:
    """JSON arrays and feature collections."""
    texts = _joined(json_texts(), lambda data: b"[" + line() + b", " + data + b"]")
    crs = b'{"type":"name","properties":{"name":"%s"}}'
    return {
        **texts,
        "collection": collection(),
        **{f"collection with crs {other!a}": collection(other) for other in (crs % b"EPSG:4326", b"null", b"]")},
        "collection of rubbish": b'{"type": "FeatureCollection", "features": [1, null, {}, []]}',
        "collection of nothing": b'{"type": "FeatureCollection", "features": null}',
        "empty array": b"[]",
        "collection with long crs": lambda: collection(
            crs % (b"x" * 200_000), b'{"type":"Feature","geometry":null,"properties":{}}', 15_000
        ),
        "collection with crs and tiny features": lambda: collection(b'"%s"' % (b"x" * 400_000), b'{"a":1}', 55_000),
        "collection with deep crs": lambda: collection(b"[" * DEEP + b"]" * DEEP),
        "many items": lambda: b"[" + b"1," * 450_000 + b"1]",
        "many empty objects": lambda: b"[" + b"{}," * 300_000 + b"{}]",
    }


HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<alert xmlns="{}"><identifier>7</identifier><sender>s</sender>'
    "<sent>2024-05-01T12:00:00-00:00</sent><status>Actual</status><msgType>Alert</msgType><scope>Public</scope>"
)
INFO = (
    "<info><category>Met</category><event>Storm</event><urgency>Immediate</urgency><severity>Severe</severity>"
    "<certainty>Likely</certainty>{}</info>"
)
CAP = "urn:oasis:names:tc:emergency:cap:1.2"
PARAMETER = "<parameter><valueName>{}</valueName><value>1</value></parameter>"
POLYGON = "<polygon>0,0 0,1 1,1 0,0</polygon>"
# One entity, one that grows, and one from a file.
ENTITIES = (
    '[<!ENTITY b "c">]', '[<!ENTITY b "cccccccccc"><!ENTITY d "&b;&b;&b;&b;&b;&b;">]', 'SYSTEM "file:///etc/passwd"',
)  # fmt: skip
GEOCODE = "<geocode><valueName>UGC</valueName><value>CAZ041</value></geocode>"


def alert(areas: str, namespace: str = CAP, infos: int = 1) -> bytes:
    """A CAP alert with these areas."""
    return (HEAD.format(namespace) + INFO.format(areas) * infos + "</alert>").encode("utf-8", "surrogatepass")


def area(inner: str, name: str = "A") -> str:
    """A CAP area."""
    return f"<area><areaDesc>{name}</areaDesc>{inner}</area>"


def cap_corpus() -> dict[str, Any]:
    """CAP alerts."""
    good = alert(area(POLYGON + GEOCODE))
    return {
        "polygon": good,
        "circle": alert(area("<circle>32.9,-115.9 10</circle>")),
        "circle at a pole": alert(area("<circle>89.9,0 10</circle>")),
        "circle without radius": alert(area("<circle>0,0 1e-320</circle><circle>0,180 nan</circle>")),
        "circle at the antimeridian": alert(area("<circle>0,180 100</circle>")),
        "geocode": alert(area(GEOCODE)),
        "several infos": alert(area(POLYGON), infos=3),
        "another namespace": alert(area(POLYGON), "urn:x"),
        **replaced(good, b"<alert", (f"<!DOCTYPE a {entities}><alert" for entities in ENTITIES)),
        "unknown encoding": good.replace(b"UTF-8", b"UTF-7"),
        "declared utf-16": b"\xff\xfe" + good.decode().replace("UTF-8", "UTF-16").encode("utf-16-le"),
        "not utf-8": good.replace(b"Storm", b"\xff\xfe"),
        **replaced(good, b"Storm", ("&#xD800;", *PIECES)),
        **replaced(good, b"2024-05-01T12:00:00-00:00", DATES),
        **replaced(good, b"0,1", (f"{number},1" for number in NUMBERS)),
        "open polygon": alert(area("<polygon>0,0 0,1 1,1</polygon>")),
        "crossing polygon": alert(area("<polygon>0,0 1,1 1,0 0,1 0,0</polygon>")),
        "not cap": b"<a/>",
        "comments": good.replace(b"<info>", b"<!-- x --><?y z?><info>"),
        "deep": lambda: good.replace(b"Storm", b"<a>" * 100_000 + b"</a>" * 100_000),
        "deep and never closed": lambda: b"<a>" * 300_000,
        "many attributes": lambda: good.replace(
            b"<info>", b"<info " + b" ".join(b'a%d="1"' % k for k in range(60_000)) + b">"
        ),
        "long namespace": lambda: alert(area(POLYGON), "urn:" + "x" * 300_000, infos=2500),
        "long namespace on a prefix": lambda: alert("<p:a/>" * 60_000).replace(
            b"<alert", b'<alert xmlns:p="' + b"x" * 400_000 + b'"', 1
        ),
        "equal geocodes": lambda: alert(area(GEOCODE * 13_000)),
        "equal geocodes in many areas": lambda: alert(area(GEOCODE) * 7_500),
        "unknown geocodes": lambda: alert(area(GEOCODE.replace("41", "99") * 13_000)),
        "equal circles": lambda: alert(area("<circle>32.9,-115.9 10</circle>" * 28_000)),
        "equal circles in areas": lambda: alert(area("<circle>32.9,-115.9 10</circle>") * 12_000),
        "shifted circles": lambda: alert(area("".join(f"<circle>32.9,{k / 1000} 100</circle>" for k in range(25_000)))),
        "equal polygons": lambda: alert(area(POLYGON * 20_000)),
        "many infos": lambda: alert("", infos=4_500),
        "many alerts": lambda: b"<a/>" * 230_000,
        "many parameters": lambda: alert("".join(map(PARAMETER.format, range(13_000)))),
        "one parameter": lambda: alert(PARAMETER.format("a") * 13_000),
        "long polygon": lambda: alert(area("<polygon>" + "0,0 " * 200_000 + "0,1 1,1 0,0</polygon>")),
    }  # fmt: skip


def csv_corpus() -> dict[str, Any]:
    """CSV with a column of WKT."""
    names = "key,subscriber,filter,action,valueName,value,severity,kind,is_open,onset,geometry"
    row = 'k1,ops,"severity >= 3",subscribe,UGC,CAZ041,4,flood,true,2024-05-01T12:00:00Z,"POLYGON((0 0,4 0,4 4,0 0))"'
    good = f"{names}\n{row}\n"

    def other(old: str, new: str) -> bytes:
        return good.replace(old, new).encode("utf-8", "surrogatepass") + row.replace("k1", "k2").encode()

    return {
        "good": good.encode(),
        "semicolons": good.replace(",", ";").encode(),
        "quotes": other("flood", '"fl""ood, x"'),
        "open quote": other("flood", '"flood'),
        "quote in a cell": other("flood", 'fl"ood'),
        "crlf": good.replace("\n", "\r\n").encode(),
        "cr alone": good.replace("\n", "\r").encode(),
        **replaced(good.encode(), b",4,", (f",{number}," for number in ("1e999999999", *NUMBERS))),
        **replaced(good.encode(), b"flood", PIECES),
        **replaced(good.encode(), b"2024-05-01T12:00:00Z", DATES),
        "not utf-8": good.encode().replace(b"flood", b"\xff\xfe"),
        "name not utf-8": good.encode().replace(b"kind", b"\xff\xfe"),
        "name twice": good.replace("kind", "severity").encode(),
        "no names": b"\n\n" + row.encode(),
        "empty names": b",,,\n1,2,3,4\n",
        "more cells": other("flood", "flood,1,2"),
        "fewer cells": b"a,b,c\n1\n1,2\n1,2,3\n",
        "curve": other("POLYGON((0 0,4 0,4 4,0 0))", "CURVEPOLYGON(CIRCULARSTRING(0 0,1 1,2 0,1 -1,0 0))"),
        "huge srid": other("POLYGON", "SRID=99999999999999999999;POLYGON"),
        "srid": other("POLYGON", "SRID=25832;POLYGON"),
        "nested": other("POLYGON((0 0,4 0,4 4,0 0))", "GEOMETRYCOLLECTION(" * 300 + ")" * 300),
        "only names": names.encode(),
        "many names": lambda: (",".join(f"n{k}" for k in range(70_000)) + "\n" + "1," * 69_999 + "1").encode(),
        "many equal names": lambda: ("n," * 200_000 + "n\n" + "1," * 200_000 + "1").encode(),
        "long cell": lambda: f"a,b\n1,{'x' * 900_000}\n".encode(),
        "long open quote": lambda: f'a,b\n1,"{"x" * 900_000}\n'.encode(),
        "many rows": lambda: b"a,b\n" + b"1,2\n" * 220_000,
        "many rows of one cell": lambda: b"a,b\n" + b"1\n" * 400_000,
        "many quotes": lambda: b'a\n"' + b'""' * 400_000 + b'"',
        "deep wkt": lambda: b"geometry\n" + b"GEOMETRYCOLLECTION(" * 40_000,
        "long digits": lambda: b"a\n" + b"9" * 900_000,
        **large(lambda shape: f'geometry\n"{wkt(shape)}"\n'.encode(), FEW),
    }


def _columns() -> dict[str, Any]:
    """Columns of every type."""
    return {
        "key": ["k1", "k2", None],
        "subscriber": ["ops", "ops", None],
        "filter": ["severity >= 3", "rubbish (", None],
        "valueName": ["UGC"] * 3,
        "value": ["CAZ041", "b", None],
        "severity": [4, None, 1],
        "ratio": [0.5, float("nan"), None],
        "is_open": [True, None, False],
        "onset": pa.array([1_714_564_800, None, 253_402_300_800], pa.timestamp("s", "UTC")),
        "day": pa.array([0, 1 << 30, None], pa.date32()),
        "clock": pa.array([0, 1, None], pa.time64("ns")),
        "length": pa.array([0, 1, None], pa.duration("s")),
        "price": pa.array([None, None, None], pa.decimal256(70, 3)),
        "wind": [{"speed": 1.0}, None, {"speed": None}],
        "tags": [["a"], None, []],
        "data": [b"\xff", None, b""],
        "geometry": [ct.Region.box(0, 0, 4, 4).to_wkb(), b"rubbish", None],
    }


GEO = {
    "version": "1.1.0", "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": None}},
}  # fmt: skip


def _geo(text: str | bytes) -> pa.Table:
    return pa.table(_columns()).replace_schema_metadata({"geo": text})


def _tables() -> dict[str, pa.Table]:
    """Tables, good and hostile."""
    plain = pa.table(_columns())
    return {
        "every type": plain,
        "geoparquet": _geo(json.dumps(GEO)),
        "geo not json": _geo("{"),
        "geo a list": _geo("[]"),
        "geo without columns": _geo('{"columns": null}'),
        "geo of another column": _geo('{"primary_column": "x", "columns": {"x": {}}}'),
        "geo with crs": _geo(json.dumps(GEO).replace("null", '"EPSG:25832"')),
        "geo with crs of digits": _geo(json.dumps(GEO).replace("null", '{"id": {"authority": [1], "code": {}}}')),
        "geo with strange encoding": _geo(json.dumps(GEO).replace("WKB", "\\ud800")),
        "geo not utf-8": _geo(b'{"primary_column": "\xff"}'),
        "geo deep": _geo("[" * 3000),
        "no rows": plain.slice(0, 0),
        "no columns": pa.table({}),
        "names twice": pa.table([pa.array([1]), pa.array(["a"])], names=["severity", "severity"]),
        "empty name": pa.table({"": [1], ".": [2], "a.b": [3]}),
        "dictionary": pa.table({"kind": pa.array(["a", "b", "a"]).dictionary_encode()}),
        "nested": pa.table({"a": pa.array([{"b": {"c": [{"d": 1}]}}])}),
        "map": pa.table({"a": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))}),
        "dates beyond": pa.table({"onset": pa.array([1 << 50, -(1 << 50)], pa.timestamp("ms", "UTC"))}),
        "strange zone": pa.table({"onset": pa.array([1], pa.timestamp("s", "Mars/Olympus"))}),
        "huge decimals": pa.table({"a": pa.array([10**69], pa.decimal256(70, 0))}),
        "unsigned": pa.table({"key": pa.array([(1 << 64) - 1], pa.uint64()), "filter": ["a = 1"]}),
        "halves": pa.table({"a": pa.array(np.array([1, 2], np.float16))}),
        "large text": pa.table({"kind": pa.array(["a"], pa.large_string())}),
        "text view": pa.table({"kind": pa.array(["a" * 40], pa.string_view())}),
        "fixed binary": pa.table({"geometry": pa.array([b"\x01\x03"], pa.binary(2))}),
        "forms": pa.table({"geometry": [shapely.to_wkb(form(40)) for form in FORMS.values()], "key": list(FORMS)}),
        "subscriptions": plain.select(["key", "filter", "severity"]),
        "changes": pa.table({"action": ["subscribe", "unsubscribe", "x"], "key": ["a", "a", None],
                             "filter": ["size > 3", None, "a ="]}),
        "filters of binary": pa.table({"key": [b"\xff", b"a"], "filter": [b"\xff", b"a = 1"]}),
        "null columns": pa.table({"key": pa.nulls(2), "filter": pa.nulls(2), "geometry": pa.nulls(2)}),
    }  # fmt: skip


def _bomb(value: str | bytes, rows: int, columns: int = 1) -> bytes:
    """Equal values, which take nothing in a file."""
    array = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))
    names = [f"c{k}" for k in range(1, columns)]
    return parquet_bytes(pa.table(dict.fromkeys(["geometry", *names], array)), compression="zstd")


def _lying_footer() -> bytes:
    """Twelve pages of 100 MB of zeros, and a footer that says 10 bytes for each."""
    size = 100_000_000
    ends = pa.array([0, size]).buffers()[1]
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(bytes(size))])
    made = pa.table({f"data{k}": whole for k in range(12)})
    return lying(parquet_bytes(made, compression="zstd", use_dictionary=False, write_statistics=False), 10)


def parquet_corpus() -> dict[str, Any]:
    """Parquet files."""
    found: dict[str, Any] = {}
    for name, table in _tables().items():
        try:
            found[name] = parquet_bytes(table)
        except (pa.ArrowException, OSError):  # a type that Parquet has not
            continue
    plain = _tables()["every type"]
    return {
        **found,
        "zstd": parquet_bytes(plain, compression="zstd"),
        "in pages": parquet_bytes(plain, data_page_size=1, use_dictionary=False, data_page_version="2.0"),
        "encrypted magic": b"PARE" + found["every type"][4:-4] + b"PARE",
        "footer too long": found["every type"][:-8] + b"\xff\xff\xff\x7fPAR1",
        "footer negative": found["every type"][:-8] + b"\xff\xff\xff\xffPAR1",
        "magic alone": b"PAR1PAR1",
        "unfinished at 500": found["every type"][:500],
        "bomb of text": partial(_bomb, "x" * 10_000, 400_000),
        "bomb of columns": partial(_bomb, "x" * 10_000, 8_000, 200),
        "bomb of regions": lambda: _bomb(shapely.to_wkb(FORMS["star"](4_000)), 100_000),
        "footer that lies": _lying_footer,
        "bomb of prefixes": lambda: parquet_bytes(
            pa.table({"kind": ["x" * 50_000] * 8_000}), use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY",
            compression="zstd", data_page_size=1 << 30),
        "bomb of fixed length": lambda: parquet_bytes(
            pa.table({"data": pa.array([bytes(100_000)] * 5_000, pa.binary(100_000))}), compression="zstd"),
        "bomb of nulls": lambda: parquet_bytes(pa.table({"a": pa.nulls(50_000_000, pa.int64())})),
        "many columns": lambda: parquet_bytes(pa.table({f"c{k}": [1] for k in range(4_000)})),
        "deep geo": lambda: parquet_bytes(_geo("[" * 400_000)),
        "deep crs": lambda: parquet_bytes(_geo(json.dumps(GEO).replace("null", "[" * 100_000 + "]" * 100_000))),
        **large(lambda shape: parquet_bytes(pa.table({"geometry": [shapely.to_wkb(shape)]}), compression="none"), FEW),
    }  # fmt: skip


def arrow_file_corpus() -> dict[str, Any]:
    """Arrow files and streams."""
    tables = _tables()
    not_text = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32).tobytes()), pa.py_buffer(b"\xff\xfe")]
    )
    kinds = {"filter": pa.string(), "key": pa.string(), "kind": pa.string(), "geometry": pa.binary()}
    containers = {"stream": pa.ipc.new_stream, "file": pa.ipc.new_file}
    spoilt_file = pa.table({"geometry": pa.array(THREE), "filter": ["a" * 100] * 3, "key": [1, 2, 3]})
    return {
        **{f"stream of {name}": data for name, data in arrow_corpus().items()},
        **{name: arrow_bytes(table) for name, table in tables.items()},
        **{name: data for column, kind in kinds.items() for name, data in spoilt_streams(column, kind).items()},
        **{f"file, offsets {name}": spoilt(spoilt_file, [0, 100, 200, 300], others, new=pa.ipc.new_file)
           for name, others in SPOILT.items()},
        **{f"{name}, {codec}": arrow_bytes(tables["every type"], codec, new)
           for name, new in containers.items() for codec in (None, "lz4", "zstd")},
        **{f"{name} of zeros": partial(_zeros, new) for name, new in containers.items()},
        "file with geo": arrow_bytes(tables["geoparquet"], new=pa.ipc.new_file),
        "text not utf-8": arrow_bytes(pa.table({"kind": not_text, "filter": not_text})),
        "name not utf-8": arrow_bytes(pa.table({"kind": ["a"]})).replace(b"kind", b"\xff\xfe\xff\xfe"),
        "magic alone": b"ARROW1\0\0ARROW1",
        "length too large": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(100),
        "dictionary out of range": arrow_bytes(pa.table({"kind": pa.DictionaryArray.from_arrays(
            pa.array([0, 7, -3], pa.int8()), pa.array(["a"]), safe=False)})),
        "bomb of nulls": lambda: arrow_bytes(pa.table({"a": pa.nulls(100_000_000)})),
        "bomb of no columns": _rows_without_columns,
        "many columns": lambda: arrow_bytes(pa.table({f"c{k}": [1] for k in range(3_000)})),
        **large(lambda shape: arrow_bytes(pa.table({"geometry": [shapely.to_wkb(shape)]})), FEW),
    }  # fmt: skip


def _zeros(new: Callable[..., Any]) -> bytes:
    """Twelve columns that share 100 MB of zeros; written and read back, each takes its own."""
    whole = pa.array(np.zeros(12_500_000))
    return arrow_bytes(pa.table({f"a{k}": whole for k in range(12)}), "zstd", new)


def _rows_without_columns() -> bytes:
    """A batch that says that it has many rows, and has no column."""
    batch = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 1 << 30, [None]))
    return arrow_bytes(batch)


def file_name(format: str, data: bytes) -> str:
    """The name of a file of a format, with a suffix that leads readers to it."""
    if format != "gis":
        return f"x.{format}"
    return "x" + next((found for magic, found in SUFFIXES.items() if data.startswith(magic)), ".geojson")


@contextmanager
def file_of(data: bytes) -> Iterator[str]:
    """A file with these bytes and the suffix that they ask for; GDAL reads no streams."""
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        path = Path(folder) / file_name("gis", data)
        path.write_bytes(data)
        yield str(path)


def made_files() -> dict[str, dict[str, bytes]]:
    """Sound files by format, each by the suffixes of its parts; none where pyogrio is not installed."""
    try:
        import pyogrio
    except ImportError:
        return {}
    columns, names = _columns(), ("key", "subscriber", "filter", "valueName", "value", "severity")
    shapes = [ct.Region.box(k, k, k + 3, k + 2).to_wkb() for k in range(3)]
    table = pa.table({**{name: columns[name] for name in names}, "geometry": shapes})
    geometry = {"geometry_name": "geometry", "geometry_type": "Polygon", "crs": "EPSG:4326"}
    found = {}
    for driver, suffixes in DRIVERS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"x{suffixes[0]}"
            pyogrio.write_arrow(table, str(path), driver=driver, **geometry)
            found[driver] = {suffix: path.with_suffix(suffix).read_bytes() for suffix in suffixes}
    return found


def _packed(parts: dict[str, bytes]) -> bytes:
    """The one part of a file, or several parts as a zip."""
    if len(parts) == 1:
        return next(iter(parts.values()))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for suffix, data in parts.items():
            archive.writestr(zipfile.ZipInfo(f"x{suffix}"), data)
    return sink.getvalue()


def gis_corpus() -> dict[str, Any]:
    """What GDAL may open: GeoPackage, Shapefile, FlatGeobuf, GeoJSON, and beginnings of other formats.

    Sound files, files without a part, and files with changed bytes: of a zipped Shapefile the parts are changed.
    """
    found: dict[str, Any] = {
        "collection": collection(),
        "sqlite": b"SQLite format 3\0" + bytes(200),
        "zip": b"PK\x03\x04" + bytes(100),
        "shapefile": b"\x00\x00\x27\x0a" + bytes(96),
    }
    for name, parts in made_files().items():
        found[name] = data = _packed(parts)
        found[f"{name}, unfinished"] = data[: len(data) // 2]
        for k in range(DAMAGES):
            suffix = list(parts)[k % min(3, len(parts))]
            changed = damaged(parts[suffix], np.random.default_rng([k, len(name)]))
            found[f"{name}, damaged {k}"] = _packed({**parts, suffix: changed})
        for gone in parts if len(parts) > 1 else ():
            found[f"{name} without {gone}"] = _packed({suffix: parts[suffix] for suffix in parts if suffix != gone})
    return found


@cache
def corpus_of(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A corpus, and what any file may be: nothing, rubbish, the first of the corpus cut, twice or encoded otherwise."""
    found = make()
    good = next(iter(found.values()))
    return {
        **found,
        "empty": b"",
        "rubbish": b"rubbish",
        "nul bytes": bytes(1000),
        "unfinished": good[:-40],
        "twice": good + good,
        "byte order mark": b"\xef\xbb\xbf" + good,
        "utf-16": good.decode("latin-1").encode("utf-16"),
    }


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "ndjson": ndjson_corpus, "json": json_corpus, "geojsonseq": geojsonseq_corpus, "cap": cap_corpus,
    "parquet": parquet_corpus, "arrow": arrow_file_corpus, "csv": csv_corpus, "gis": gis_corpus,
}  # fmt: skip
CORPORA = {format: partial(corpus_of, make) for format, make in MAKERS.items()}
