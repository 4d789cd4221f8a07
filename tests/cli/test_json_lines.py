"""Newline JSON by columns: matches and rejections are those of the lines read and matched one by one."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import contrada as ct
from console import contrada, read_lines, write_lines
from contrada.formats.json_columns import JsonLines
from contrada.formats.reading import Read, read_messages
from effort import examples

SUBSCRIPTIONS = [
    {"key": "severe", "subscriber": "ops", "filter": "severity >= 2"},
    {"key": "named", "subscriber": "ops", "filter": "kind = 'a' OR kind LIKE 'In%' OR wind.speed > 1"},
    {"key": "there", "subscriber": "sea", "filter": "S_INTERSECTS(area, POLYGON((0 0, 2 0, 2 2, 0 2, 0 0)))"},
    {"key": "here", "subscriber": "sea", "filter": "S_WITHIN(geometry, POLYGON((0 0, 3 0, 3 3, 0 3, 0 0)))"},
    {"key": "long", "subscriber": "sea", "filter": "severity = 9007199254740993 OR flag = true"},
    {"key": "any", "subscriber": "all", "filter": "tags IS NOT NULL OR at.x IS NOT NULL"},
]
POINT = {"type": "Point", "coordinates": [1, 1.5]}
RING = [[[0, 0], [3, 0], [3, 3], [0, 0]]]
BOW = [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]
SHAPES = [
    None, POINT, POINT, {"type": "Point", "coordinates": [9, 9, 1]}, {"type": "Polygon", "coordinates": RING},
    {"type": "MultiPolygon", "coordinates": [RING]}, {"type": "Polygon", "coordinates": BOW}, {"type": "Point"},
    {"type": "Point", "coordinates": []}, {"type": "Point", "coordinates": [1, None]},
    {"type": "Polygon", "coordinates": []}, {"type": "Point", "coordinates": [1, 1], "bbox": [1, 1, 1, 1]},
    {"coordinates": [1, 1], "type": "Points"}, {"type": "GeometryCollection", "geometries": [POINT]},
    {"type": "Point", "coordinates": [200, 1]},
    {"type": "Polygon", "coordinates": [[[0, 0], [181, 0], [3, 3], [0, 0]]]},
]  # fmt: skip
VALUES = {
    "severity": [1, 2, 2.5, 3.0, None, "2", 2**53 + 1, 2**64, 1e300, True, -0.0, [3]],
    "kind": ["a", "b", "", None, "Information: -Inf", "x: NaN", "é\u0000", "2024-05-01", 5],
    "wind": [{"speed": 2}, {"speed": 0.5}, {}, None, {"speed": "2"}, {"speed": {"speed": 3}}, 4, POINT],
    "wind.speed": [5],
    "area": SHAPES,
    "at": [{"x": 1.0, "y": 2.0}, [[{"x": 1.0, "y": 2.0}]], None],
    "tags": [["a", "b"], [], [1, "a"], None, [[1.5, 2.5]]],
    "flag": [True, False, None],
    "id": [7, "m7", None, 2.5],
    "type": ["Feature", "wave", None, 3],
    "specversion": ["1.0"],
    "other": [{"deep": [{"er": 1}]}, {"type": "Point", "coordinates": "x"}, None],
}
BROKEN = [
    b"", b"   ", b"5", b"[1]", b'{"severity": 3', b'{"severity": 3}{"severity": 4}', b'{"severity": NaN}', b"\xff",
    b'{"severity": 3}\r', b' {"severity": 3}', b'{"severity": 1, "severity": 3}', b'{"kind": "\xff"}',
    b'{"area": -Inf}', b'{"kind": "\\ud800"}', b'\x1e{"severity": 3}', b'{"severity"', b': 3}',
    b'{"other": Infinity}', b"{}",
]  # fmt: skip


@st.composite
def objects(draw):
    """An object with some of the names; the usual ones more often."""
    names = draw(st.lists(st.sampled_from([*VALUES, "severity", "kind", "area"]), unique=True, max_size=5))
    return {name: draw(st.sampled_from(VALUES[name])) for name in names}


@st.composite
def features(draw):
    """A GeoJSON feature."""
    shape, properties = draw(st.sampled_from(SHAPES)), draw(st.one_of(st.none(), objects()))
    feature = {"type": "Feature", "geometry": shape, "properties": properties}
    return feature | draw(st.sampled_from([{}, {}, {"id": 5}, {"id": [5]}, {"bbox": [0, 0, 1, 1]}, {"crs": {}}]))


@st.composite
def files(draw):
    """Lines, many of them alike."""
    shape = draw(st.sampled_from([objects, features]))
    usual = draw(st.lists(shape(), min_size=1, max_size=3))
    line = st.one_of(
        st.sampled_from(usual).map(lambda value: json.dumps(value).encode()),
        st.sampled_from(usual).map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
        shape().map(lambda value: json.dumps(value).encode()),
        st.sampled_from(BROKEN),
    )
    is_usual = draw(st.booleans())
    some = st.sampled_from(usual).map(lambda value: json.dumps(value).encode()) if is_usual else line
    return b"\n".join(draw(st.lists(some, max_size=12))) + draw(st.sampled_from([b"", b"\n", b"\n\n"]))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    write_lines(folder / "s.ndjson", SUBSCRIPTIONS)
    return folder


def one_by_one(path):
    """Matches and rejections of a file whose lines are read and matched one by one."""
    table = ct.ForwardingTable()
    for row in SUBSCRIPTIONS:
        table.subscribe(row["subscriber"], row["filter"], row["key"])
    order = [row["key"] for row in SUBSCRIPTIONS]
    matches, bad = [], []
    for item in read_messages(path, "ndjson"):
        if not isinstance(item, Read):
            bad.append((item.number, item.reason, item.raw))
            continue
        names = [item.message.get(name) for name in ("id", "identifier", "message_id", "ce.id")]
        own = next((n for n in names if isinstance(n, str | int) and not isinstance(n, bool)), item.number)
        try:
            matches += [(own, key) for key in sorted(table.match_keys(item.message), key=order.index)]
        except ct.ContradaError as error:
            bad.append((item.number, str(error), None))
    return matches, sorted(bad, key=lambda row: row[0])


@settings(max_examples=examples(240), deadline=None)
@given(files(), st.sampled_from([1, 2]))
@example(data=b'{"severity": 2.5, "kind": "a"}\n{"severity": 9007199254740993}', threads=1)
def test_columns_change_nothing(place, data, threads):
    messages, rejected = place / "m.ndjson", place / "bad.ndjson"
    messages.write_bytes(data)
    rejected.unlink(missing_ok=True)
    result = contrada("match", messages, place / "s.ndjson", "--reject", rejected, "--threads", threads)
    assert result.exit_code in (0, 1), result.output
    assert isinstance(result.exception, SystemExit | None), result.exception
    expected, bad = one_by_one(messages)
    assert [(row["message"], row["key"]) for row in read_lines(result.stdout)] == expected
    kept = read_lines(rejected.read_text()) if rejected.exists() else []
    found = sorted((row["line"], row["reason"], row["raw"]) for row in kept)
    assert [row[:2] for row in found] == [row[:2] for row in bad]
    assert all(b[2] is None or a[2] == b[2] for a, b in zip(found, bad, strict=True))


def test_lines_of_one_kind_are_read_as_columns():
    """Otherwise the property above could hold because nothing is ever read by columns."""
    lines = JsonLines()
    alike = [{"severity": 3, "kind": "a", "area": POINT, "tags": ["a"]}, {"severity": 2.5, "area": None}]
    lines.learn(alike)
    table = lines.table_of("".join(json.dumps(value) + "\n" for value in alike).encode())
    assert table.column_names == ["severity", "kind", "area", "tags"]
    assert all(lines.table_of(line + b"\n") is None for line in BROKEN if line != b"{}")
    feature = {
        "type": "Feature",
        "id": 5,
        "properties": {"kind": "a"},
        "geometry": {"type": "Polygon", "coordinates": RING},
    }
    lines = JsonLines()
    lines.learn([feature])
    assert lines.table_of(json.dumps(feature).encode() + b"\n").column_names == ["kind", "id", "geometry"]


@pytest.mark.parametrize("place", [[200, 1], [1, -91]])
def test_points_off_the_globe_are_read_one_by_one(place):
    lines, feature = JsonLines(), {"type": "Feature", "properties": {"kind": "a"}, "geometry": POINT}
    lines.learn([feature])
    block = [
        json.dumps(feature | {"geometry": shape}) + "\n" for shape in (POINT, None, POINT | {"coordinates": place})
    ]
    assert lines.table_of("".join(block[:2]).encode()) is not None
    assert lines.table_of("".join(block).encode()) is None
