"""Whole files and streams: nothing is lost, nothing is counted twice."""

import csv
import io
import json
import os
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import contrada as ct
from console import feature
from contrada.errors import FormatError
from contrada.formats.reading import read_messages
from contrada.formats.records import Read, Rejected, guess_format, lines
from generators.columnar import arrow_bytes, parquet_bytes

SQUARE = ct.Region.box(0, 0, 4, 4)
FEATURES = [feature({"type": "Point", "coordinates": [n, n]}, n=n) for n in range(3)]
COLLECTION = {"type": "FeatureCollection", "features": FEATURES}
LINES = b"".join(json.dumps(one).encode() + b"\n" for one in FEATURES)
SEQUENCE = b"".join(b"\x1e" + json.dumps(one, indent=1).encode() + b"\n" for one in FEATURES)
EVENT = {"specversion": "1.0", "id": "7", "source": "/buoy", "type": "wave", "data": {"n": 4}}


def read(data, **options):
    return list(read_messages(io.BytesIO(data), **options))


def numbers(found):
    return [item.message["n"] for item in found]


def kinds(found):
    return [type(item) for item in found]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        *((data, [0, 1, 2]) for data in (LINES, b"\xef\xbb\xbf" + LINES, LINES.rstrip())),
        (LINES.replace(b"\n", b"\r\n"), [0, 1, 2]),
        (b"\n\n" + LINES.replace(b"\n", b"\n  \n"), [0, 1, 2]),
        (SEQUENCE, [0, 1, 2]),
        (SEQUENCE.replace(b"\n\x1e", b"\x1e"), [0, 1, 2]),
        (LINES.replace(b'{"type": "Feature"', b'\x1e{"type": "Feature"'), [0, 1, 2]),
        (json.dumps(FEATURES).encode(), [0, 1, 2]),
        (json.dumps(COLLECTION).encode(), [0, 1, 2]),
        (json.dumps(COLLECTION, indent=2).encode(), [0, 1, 2]),
        (b"\xef\xbb\xbf  " + json.dumps(COLLECTION, indent=2).encode(), [0, 1, 2]),
        (b'{\n "n": 1\n}', [1]),
        (json.dumps([EVENT, EVENT]).encode(), [4, 4]),
        *((data, []) for data in (b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf")),
        (json.dumps({"n": 1, "text": "x" * 200_000}).encode() + b"\n" + LINES, [1, 0, 1, 2]),  # a long first line
    ],
)
def test_the_same_messages_in_many_forms(data, expected):
    assert numbers(read(data)) == expected


LINE = st.one_of(
    st.integers().map(lambda n: b'{"n": %d}' % n),
    st.sampled_from([b"{", b"[1]", b'{"n": NaN}', b"\xff", b"null", b'{"n": 1}}', b"\x00", b'"', b'{"a": 1e999}']),
    st.binary(max_size=20).map(lambda data: data.translate(None, b"\n\x1e\xef")),  # no marks that are passed over
)


@given(st.lists(LINE, max_size=20))
def test_a_bad_line_loses_no_other(lines):
    found = read(b"\n".join(lines), format="ndjson")
    assert [item.number for item in found] == [n for n, line in enumerate(lines, start=1) if line.strip(b" \t\r")]
    good = {n: int(line[6:-1]) for n, line in enumerate(lines, start=1) if re.fullmatch(rb'\{"n": -?\d+\}', line)}
    assert {item.number: item.message["n"] for item in found if item.number in good} == good


def test_a_bad_feature_loses_no_other():
    text = json.dumps(COLLECTION).replace('"n": 1', '"n": 1e999')
    found = read(text.encode())
    assert [item.number for item in found] == [0, 1, 2]
    assert kinds(found) == [Read, Rejected, Read]
    assert found[1].reason.startswith("Number out of range")
    assert json.loads(found[1].raw.replace("1e999", "1")) == FEATURES[1]


@pytest.mark.parametrize("item", [{}, {"properties": {"n": 1}, "geometry": None}, 7, {"type": "Feature"}, COLLECTION])
def test_a_collection_holds_features(item):
    found = read(json.dumps({**COLLECTION, "features": [FEATURES[0], item, FEATURES[2]]}).encode())
    assert kinds(found) == [Read, Rejected, Read]


def test_the_crs_of_a_collection_is_that_of_its_features():
    named = {"type": "name", "properties": {"name": "EPSG:3857"}}
    found = read(json.dumps({**COLLECTION, "crs": named}).encode())
    assert len(found) == 3
    assert all("EPSG:3857" in item.reason for item in found)
    assert numbers(read(json.dumps({**COLLECTION, "crs": named}).encode(), crs="EPSG:3857")) == [0, 1, 2]


@pytest.mark.parametrize(
    ("data", "format", "reason"),
    [
        *((data, "json", "") for data in (b'{"type": "FeatureCollection", "features": [', b'[{"n": 1}', b"[1] [2]")),
        (b"[" * 10**5, "json", ""),
        (json.dumps(COLLECTION).encode(), "ndjson", "FeatureCollection"),
        *((header + b"\n1,2", "csv", "") for header in (b"a,a", b"a,,b", b'"a', b"wkt,geom")),
    ],
)
def test_a_broken_document_is_rejected_whole(data, format, reason):
    (found,) = read(data, format=format)
    assert isinstance(found, Rejected)
    assert found.raw
    assert reason in found.reason


def test_a_line_without_end():
    found = list(lines(io.BytesIO(b'{"n": 1}\n{"n": "' + b"x" * 1000 + b'"}\n{"n": 2}'), longest=100))
    assert [(item.number, str(item.error)) for item in found] == [
        (1, "None"), (2, "line is longer than 100 bytes"), (3, "None"),
    ]  # fmt: skip


def test_a_truncated_text_of_a_sequence_loses_no_other():
    found = read(SEQUENCE.replace(b'"n": 1', b'"n": '))
    assert kinds(found) == [Read, Rejected, Read]
    assert [item.number for item in found] == [1, 14, 27]


# Files


def test_suffixes(tmp_path):
    for name, data in {
        "a.ndjson": LINES, "b.geojson": json.dumps(COLLECTION).encode(), "c.json": LINES, "d.geojsonl": SEQUENCE,
        "e.json": json.dumps(FEATURES).encode(), "f.geojsons": SEQUENCE, "g": LINES, "h.geojson": LINES,
    }.items():  # fmt: skip
        path = tmp_path / name
        path.write_bytes(data)
        if name != "d.geojsonl":  # over several lines, which a text sequence may do and lines may not
            assert numbers(read_messages(path)) == [0, 1, 2], name
            assert numbers(read_messages(str(path))) == [0, 1, 2], name
    assert numbers(read_messages(tmp_path / "d.geojsonl", format="geojsonseq")) == [0, 1, 2]


def test_a_format_that_is_named_wins(tmp_path):
    path = tmp_path / "lines.xml"
    path.write_bytes(LINES)
    assert numbers(read_messages(path, format="GeoJSONL")) == [0, 1, 2]
    with pytest.raises(FormatError, match="unknown format 'word'"):
        list(read_messages(path, format="word"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_messages(tmp_path / "nothing.ndjson"))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES)))
    found = list(read_messages("-"))
    assert numbers(found) == [0, 1, 2]
    assert found[0].source == "standard input"


def test_a_live_stream_is_not_waited_for():
    reading, writing = os.pipe()
    with open(writing, "wb", buffering=0) as sender, open(reading, "rb") as receiver:
        sender.write(b'{"n": 1}\n')
        found = read_messages(receiver)
        assert next(found).message == {"n": 1}
        sender.write(b'{"n": 2}\n')
        assert next(found).message == {"n": 2}


def test_a_long_collection_is_recognised():
    assert guess_format(json.dumps(COLLECTION).encode() + b" " * 10**6) == "json"


# Rows


@pytest.fixture
def table():
    wkb = pa.array([SQUARE.to_wkb(), b"\x01bad", None, ct.Point(1, 2).to_wkb()])
    return pa.table({"n": [0, 1, 2, 3], "geometry": wkb, "wind": [{"speed": n} for n in range(4)]})


@pytest.mark.parametrize("name", ["a.parquet", "a.geoparquet", "a.arrow", "a.feather", "a.arrows", "a"])
def test_files_of_rows(tmp_path, table, name):
    new = {"a.arrow": pa.ipc.new_file, "a.feather": pa.ipc.new_file, "a.arrows": pa.ipc.new_stream}.get(name)
    path = tmp_path / name
    path.write_bytes(arrow_bytes(table, new=new) if new else parquet_bytes(table))
    found = list(read_messages(path))
    assert [item.number for item in found] == [0, 1, 2, 3]
    assert found[0].message == {"n": 0, "geometry": SQUARE, "wind.speed": 0}
    assert isinstance(found[1], Rejected)
    assert found[1].reason == "attribute 'geometry': malformed or truncated geometry"
    assert json.loads(found[1].raw)["n"] == 1
    assert found[2].message == {"n": 2, "wind.speed": 2}
    assert found[3].message["geometry"] == ct.Point(1, 2)
    streamed = read(path.read_bytes())  # from a stream that is not told what it is
    assert [item[2:] for item in streamed] == [item[2:] for item in found]


@pytest.mark.parametrize("cut", [0, 3, 20, -1, -8, -100])
def test_truncated_parquet_is_rejected(tmp_path, table, cut):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    path.write_bytes(path.read_bytes()[:cut])
    (found,) = read_messages(path)
    assert isinstance(found, Rejected)
    assert "cannot be read" in found.reason


def test_rows_are_reprojected_and_buffered(tmp_path):
    line = shapely.LineString([(0, 0), (10, 0)]).wkb
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"geometry": [SQUARE.to_wkb(), ct.Point(5, 5).to_wkb(), line, None, b"\x01"]}), path)
    found = list(read_messages(path, crs="EPSG:4326", to_crs="EPSG:3857", buffer=500))
    assert kinds(found) == [Read] * 4 + [Rejected]
    assert all(item.message["geometry"].crs == "EPSG:3857" for item in found[:3])
    assert found[1].message["geometry"].area == pytest.approx(3.14159 * 500**2, rel=0.01)
    assert found[3].message == {}
    plain = list(read_messages(path))
    assert [type(item) for item in plain] == [Read, Read, Read, Read, Rejected]
    lost = list(read_messages(path, to_crs="EPSG:3857"))
    assert "the input names no CRS" in lost[0].reason


def test_text_of_rows_is_a_timestamp_if_asked(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": ["2024-05-01", "soon", None]}), path)
    assert [type(item) for item in read_messages(path)] == [Read] * 3
    found = list(read_messages(path, times=["at"]))
    assert kinds(found) == [Read, Rejected, Read]
    assert found[0].message["at"].year == 2024


DATA = Path(os.environ.get("CONTRADA_DATA", "absent"))


@pytest.mark.skipif(not (DATA / "events_nws.parquet").exists(), reason="no sample data")
def test_weather_warnings():
    found = list(read_messages(DATA / "events_nws.parquet"))
    valid = pq.read_table(DATA / "events_nws.parquet", columns=["valid"]).column("valid").to_pylist()
    assert [item.number for item in found] == list(range(len(valid)))
    assert [isinstance(item, Read) for item in found] == valid
    assert all(item.message["geometry"].crs == "EPSG:4326" for item in found if isinstance(item, Read))


# CSV


def test_csv():
    polygon = b'"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"'
    text = b'id,name,WKT,zip,flag,at\r\n1,"a, b",' + polygon + b",00501,true,2024-05-01\r\n2.5,,,-7,,\n"
    found = read(text, format="csv", times=["at"])
    assert found[0].message.pop("at").year == 2024
    assert found[0].message == {"id": 1, "name": "a, b", "geometry": SQUARE, "zip": "00501", "flag": True}
    assert found[1].message == {"id": 2.5, "zip": -7}


def test_bad_lines_of_csv():
    lines = [b"id,geometry", b"1,POINT (1 2)", b"2", b'3,"POINT', b"4,POINT (x)", b"5,\xff", b"6,LINESTRING (0 0 1)",
             b"7,POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))", b"8,SRID=3857;POINT (3 4)", b"9,POINT (5 6),"]  # fmt: skip
    found = read(b"\n".join(lines), format="csv")
    assert [item.number for item in found] == list(range(2, 11))
    assert [item.message["id"] for item in found if isinstance(item, Read)] == [1, 8]
    assert found[7].message["geometry"].crs == "EPSG:3857"


texts = st.text(st.sampled_from("ab1,,\"' \t;\\\r\u00e9\u2028\0"), min_size=1, max_size=30)


@given(texts)
def test_cells_are_those_of_a_reader(text):
    line = text.strip(" \t\r\n")
    try:
        cells = next(csv.reader([line], strict=True), [])
        expected = {f"c{k}": cell for k, cell in enumerate(cells) if cell}
    except csv.Error:
        cells, expected = [""], None
    header = ",".join(f"c{k}" for k in range(max(1, len(cells))))
    found = read(f"{header}\n{line}".encode(), format="csv")
    told = [{name: str(cell) for name, cell in item.message.items()} if type(item) is Read else None for item in found]
    assert told == [expected] * bool(line)
