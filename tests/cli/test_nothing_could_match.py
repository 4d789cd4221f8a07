"""The summary names attributes that no message has, or has with another type; the README's example matches."""

import json
import re
import shlex
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Transformer

from console import collection, contrada, read_lines, write_lines
from contrada import ForwardingTable, Region
from contrada.matching.census import Census
from effort import examples

ROOT = Path(__file__).parents[2]
SUBSCRIPTIONS = [
    {"key": 1, "subscriber": "ops", "filter": "level >= 3 AND severity >= 3"},
    {"key": 2, "subscriber": "ops", "filter": "S_INTERSECTS(area, BBOX(0, 0, 4, 4)) OR wind.speed > 2 OR kind = 'x'"},
]
MESSAGES = [
    {"id": "a", "severity": "4", "kind": "y", "wind": {"speed": 1}, "area": "POLYGON ((0 0, 1 0, 1 1, 0 0))"},
    {"id": "b", "severity": 4, "kind": None},
]
LINES = [
    "missing:       level, which subscriptions ask for, is in no message",
    "other type:    area is text in 1 message; subscriptions ask for a region or point",
]


run = partial(contrada, "match")


def subscriptions(folder, rows=SUBSCRIPTIONS):
    return write_lines(folder / "s.ndjson", rows)


def notes(result):
    """The lines of a summary on what could not match."""
    return [line for line in result.stderr.splitlines() if line.startswith(("missing", "other type"))]


def test_json(tmp_path):
    told = notes(run(write_lines(tmp_path / "m.ndjson", MESSAGES), subscriptions(tmp_path), code=0))
    assert told == [*LINES, "other type:    severity is text in 1 message; subscriptions ask for a number"]


def test_columns(tmp_path):
    rows = [{**message, "severity": 4} for message in MESSAGES]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "m.parquet")
    assert notes(run(tmp_path / "m.parquet", subscriptions(tmp_path), code=0)) == LINES


def test_nothing_is_said_where_everything_came(tmp_path):
    asked = subscriptions(tmp_path, [{"key": 1, "filter": "severity >= 3 OR kind IS NULL"}])
    assert notes(run(write_lines(tmp_path / "m.ndjson", [{"severity": 1}, {"kind": 5}]), asked)) == []


def test_no_subscriptions_and_no_rows_of_a_template_are_errors(tmp_path):
    messages = write_lines(tmp_path / "m.ndjson", MESSAGES)
    for text in ("", "\n\n"):
        (tmp_path / "s.ndjson").write_text(text)
        assert ": no subscriptions" in run(messages, tmp_path / "s.ndjson", code=2).stderr
    (tmp_path / "s.geojson").write_text(collection([]))
    run(messages, tmp_path / "s.geojson", "--template", "severity >= $least", code=2)


def readme_command():
    """The command of the README that matches CAP alerts, as a shell would pass it on."""
    text = (ROOT / "README.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^contrada match examples/data/alerts .*$", text, re.MULTILINE)
    return [word.replace("\\$", "$") for word in shlex.split(line, comments=True)]


def test_the_example_of_the_readme_matches(monkeypatch):
    monkeypatch.chdir(ROOT)
    program, *arguments = readme_command()
    assert program == "contrada"
    result = contrada(*arguments, code=0)
    assert notes(result) == []
    assert {tuple(row.values())[:2] for row in read_lines(result.stdout)} == expected_pairs()


def expected_pairs():
    """The same by Shapely and the polygons of the files, read as plain XML and JSON."""
    move = Transformer.from_crs("OGC:CRS84", "EPSG:32632", always_xy=True).transform
    pairs = set()
    features = json.loads((ROOT / "examples/data/facilities.geojson").read_text())["features"]
    places = {feature["id"]: shapely.Point(move(*feature["geometry"]["coordinates"])) for feature in features}
    for path in (ROOT / "examples/data/alerts").glob("*.xml"):
        root = ElementTree.parse(path).getroot()
        space = {"cap": root.tag[1:].partition("}")[0]}
        severe = {node.text for node in root.findall(".//cap:severity", space)} & {"Severe", "Extreme"}
        for node in [*root.findall(".//cap:polygon", space), *root.findall(".//cap:circle", space)] if severe else ():
            if node.tag.endswith("polygon"):
                ring = [tuple(map(float, pair.split(",")))[::-1] for pair in node.text.split()]
                region = shapely.Polygon([move(*pair) for pair in ring])
            else:
                centre, radius = node.text.split()
                region = shapely.Point(*move(*map(float, centre.split(",")[::-1]))).buffer(1000 * float(radius))
            name = root.find("cap:identifier", space).text
            pairs |= {(name, key) for key, place in places.items() if region.intersects(place.buffer(500))}
    assert pairs, "an example that matches nothing shows nothing"
    return pairs


VALUES = st.sampled_from([None, 1, 2.5, True, "x", Region.box(0, 0, 1, 1), [1]])


@settings(deadline=None, max_examples=examples(100))
@given(
    messages=st.lists(st.dictionaries(st.sampled_from("abcdefgh"), VALUES, max_size=8), max_size=20), wide=st.booleans()
)
def test_the_census_counts_what_is_there(messages, wide):
    names = "abc" if not wide else "abcdefghijklmnop"
    table = ForwardingTable()
    for name in names:
        table.subscribe(name, f"{name} >= 1")
    census = Census(table.asked_kinds())
    half = len(messages) // 2
    census.add(messages[:half])
    other = Census(table.asked_kinds())
    other.add(messages[half:])
    census.merge(other.to_json())
    values = {name: [message[name] for message in messages if message.get(name) is not None] for name in names}
    assert census.missing == ([name for name in names if not values[name]] if messages else [])
    odd = {name: sum(type(value) not in (int, float) for value in values[name]) for name in names}
    assert {name: sum(kinds.values()) for name, kinds in census.mistyped.items()} == {k: n for k, n in odd.items() if n}
