"""Lines through the other doors: Arrow and GeoArrow tables, templates, JSON and GeoJSON, files, CSV, links."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada as ct
from contrada.broker import wire
from contrada.broker.messages import MessageRows
from contrada.formats.reading import read_messages
from effort import COMPILED, examples
from generators.line_filters import coarse_shape, drawn, holds, of, text_of
from oracles.ogc import WORDS, word_holds


def table_of(asked: list[tuple[str, bool, object]]) -> ct.ForwardingTable:
    table = ct.ForwardingTable()
    for k, one in enumerate(asked):
        table.subscribe("s", text_of(*one), key=k)
    return table


@pytest.mark.parametrize("seed", range(examples(4) if COMPILED else 1))
def test_columns_of_mixed_geometry_answer_as_the_rationals(seed):
    rng = np.random.default_rng(300 + seed)
    given = [coarse_shape(rng) for _ in range(40)]
    asked = drawn(rng, 40)
    table = table_of(asked)
    wkb = [None if k % 9 == 8 else one.wkb for k, one in enumerate(given)]
    expected = [
        set() if data is None else {k for k, one in enumerate(asked) if holds(one, message)}
        for data, message in zip(wkb, given, strict=True)
    ]
    wkb[3] = b"rubbish"
    wkb[4] = shapely.MultiPoint([(0, 0), (1, 1)]).wkb
    expected[3], expected[4] = set(), set()
    rows = pa.table({"area": pa.array(wkb, pa.binary()), "level": np.arange(40)})
    answer = table.match_many(rows, by="subscription")
    assert [bad.row for bad in answer.rejected] == [3, 4]
    assert [set(answer.keys(k)) for k in range(40)] == expected
    for threads in (1, 2):
        assert (table.match_many(rows, by="subscription", threads=threads).rows == answer.rows).all()


def test_geoarrow_lines_are_values():
    table = ct.ForwardingTable()
    table.subscribe("s", "S_CROSSES(area, LINESTRING (0 0, 4 4))", key="k")
    lines = ct.LineArray.from_wkt(
        ["LINESTRING (0 4, 4 0)", "LINESTRING (9 9, 8 9)", "MULTILINESTRING ((0 1, 1 0), (5 5, 6 6))"]
    )
    plain = pa.array([[(0.0, 4.0), (4.0, 0.0)], [(9.0, 9.0), (8.0, 9.0)], None], pa.list_(pa.list_(pa.float64(), 2)))
    for column, expected in (
        (lines.to_arrow(), [True, False, True]),
        (lines.to_wkb(), [True, False, True]),
        (plain, [True, False, False]),
    ):
        answer = table.match_many(pa.table({"area": column}), by="subscription")
        assert not answer.rejected
        assert [set(answer.keys(k)) == {"k"} for k in range(3)] == expected


@pytest.mark.parametrize("word", WORDS)
def test_templates_take_columns_of_lines(word):
    rng = np.random.default_rng(WORDS.index(word))
    asked = [one for one in (coarse_shape(rng) for _ in range(60)) if "Line" in one.geom_type]
    rows = pa.table(
        {
            "key": np.arange(len(asked)),
            "geometry": pa.array([one.wkb for one in asked]),
            "least": np.arange(len(asked)) % 3,
        }
    )
    table = ct.ForwardingTable()
    table.subscribe_many(rows, f"{word}(area, $geometry) AND level >= $least")
    given = [coarse_shape(rng) for _ in range(20)]
    for message in given:
        expected = {k for k, one in enumerate(asked) if k % 3 <= 1 and word_holds(word, message, one)}
        assert set(table.match_keys({"area": of(message), "level": 1})) == expected
    with pytest.raises(ct.FilterError, match="relates regions"):
        table.subscribe_many(rows, "inside(area, $geometry)")
    with pytest.raises(ct.FilterError, match="distances in metres are between regions and points"):
        table.subscribe_many(rows, "within_distance(area, $geometry, 5, 'm')")


def test_messages_in_json_and_geojson_hold_lines(tmp_path):
    table = ct.ForwardingTable()
    table.subscribe("s", "S_INTERSECTS(area, POLYGON ((2 0, 6 0, 6 8, 2 8, 2 0)))", key="town")
    table.subscribe("s", "S_TOUCHES(geometry, LINESTRING (0 0, 4 4))", key="ends")
    line = {"type": "LineString", "coordinates": [[0, 0], [4, 4]]}
    assert table.match_keys(ct.message_of(json.dumps({"area": line}))) == {"town"}
    feature = {
        "type": "Feature",
        "geometry": {"type": "MultiLineString", "coordinates": [[[4, 4], [9, 9]]]},
        "properties": {},
    }
    assert isinstance(ct.message_of(feature)["geometry"], ct.Line)
    path = tmp_path / "messages.ndjson"
    path.write_text(
        "\n".join(json.dumps({"area": one}) for one in (line, {"type": "LineString", "coordinates": [[0, 0]]}))
    )
    assert len(list(read_messages(path))) == 2
    with pytest.raises(ct.RegionError, match="fewer than two distinct"):
        ct.message_of({"area": {"type": "LineString", "coordinates": [[0, 0], [0, 0]]}})
    other = ct.ForwardingTable()
    here, there = (ct.Line([(0, 0), (1, 1)], crs=crs) for crs in ("EPSG:25832", "EPSG:3035"))
    other.subscribe("s", ct.Constraint("area", ct.LineRelation.CROSSES, here))
    with pytest.raises(ct.CrsError, match="attribute 'area'"):
        other.match({"area": there})


def test_lines_travel_over_links():
    sent = [{"area": ct.Line([(0, 0), (1, 1)], crs="EPSG:25832"), "level": 3}]
    assert wire.travels(sent)
    decoder = wire.decoder_of(MessageRows)
    read = decoder.decode(wire.encode(MessageRows(sent)))
    assert read.batch == sent
    assert read.batch[0]["area"].crs == "EPSG:25832"
