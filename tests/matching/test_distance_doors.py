"""Distance constraints through files, the command line, the plans that route by boxes, the overlay and links."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada as ct
from console import contrada, read_lines
from contrada.broker.frames import Subscribe
from contrada.broker.wire import decode, digest_of, encode
from contrada.formats.tables.subscription_rows import RowBlock
from contrada.index.near import grown_boxes
from contrada.matching.building import TableBuilder
from contrada.matching.near_rows import can_prune
from contrada.matching.routing_boxes import bound_heads, heads_of
from contrada.matching.row_scan import RowScan
from contrada.overlay import Space

TEMPLATE = "within_distance(area, $geometry, $metres) AND severity >= 2"


def rows_of(count: int = 40) -> pa.Table:
    """Return rows for the template: points on a line, with distances."""
    points = ct.PointArray([(float(x), 0.0) for x in range(count)])
    return pa.table(
        {"key": list(range(count)), "geometry": points.to_wkb(), "metres": [x % 7 / 2 for x in range(count)]}
    )


def messages_of(count: int = 30) -> list[dict[str, object]]:
    """Return points and boxes near the line."""
    rng = np.random.default_rng(2)
    made: list[dict[str, object]] = []
    for k in range(count):
        x, y = rng.integers(0, 40), rng.integers(-4, 5)
        area: object = ct.Point(x, y) if k % 2 else ct.Region.box(x, y, x + 1.5, y + 0.5)
        made.append({"area": area, "severity": k % 4})
    return made


def expected_of(messages: list[dict[str, object]]) -> list[set[int]]:
    """Return the keys that match each message, pair by pair."""
    rows = rows_of().to_pylist()
    return [
        {
            row["key"] for row in rows
            if message["severity"] >= 2 and ct.within_distance(message["area"], ct.Point(row["key"], 0), row["metres"])
        }
        for message in messages
    ]  # fmt: skip


def test_a_scan_of_rows_finds_what_a_table_finds():
    messages = messages_of()
    assert can_prune(ct.parse(TEMPLATE))
    assert not can_prune(ct.parse("beyond_distance(area, $geometry, $metres)"))
    scan = RowScan(ct.parse(TEMPLATE), [messages])
    scan.run([RowBlock(rows_of().slice(start, 10), rows_of().slice(start, 10)) for start in range(0, 40, 10)])
    (found,) = scan.matches("subscription")
    keys = np.split(found.rows, np.cumsum(found.counts)[:-1])
    assert [set(each.tolist()) for each in keys] == expected_of(messages)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), None])
def test_rows_with_bad_distances_are_rejected_one_by_one(bad):
    rows = rows_of()
    distances = rows["metres"].to_pylist()
    distances[5] = bad
    rows = rows.set_column(2, "metres", pa.array(distances))
    builder = TableBuilder(ct.parse(TEMPLATE))
    (rejected,) = builder.add(rows)
    assert (rejected.row, rejected.key) == (5, "5")
    assert "metres" in rejected.reason
    assert len(builder.table) == 39
    scan = RowScan(ct.parse(TEMPLATE), [messages_of()])
    scan.run([RowBlock(rows, rows)])
    assert [item.row for item in scan.bad] == [5]


def test_texts_of_one_shape_are_read_by_columns():
    texts = [f"within_distance(area, POINT({k} 0), {k % 7 / 2}) AND severity >= 2" for k in range(40)]
    builder = TableBuilder()
    assert builder.add(pa.table({"key": list(range(40)), "filter": texts})) == []
    messages = messages_of()
    assert [set(builder.table.match_keys(message)) for message in messages] == expected_of(messages)


def test_routing_boxes_are_grown():
    heads = heads_of([ct.parse("within_distance(area, BBOX(0, 0, 1, 1), 2) OR beyond_distance(area, POINT(0 0), 2)")])
    assert heads.attributes.tolist() == [0, -1]
    low, high = heads.boxes[0, :2], heads.boxes[0, 2:]
    assert (low <= -2).all()
    assert (low > -2.001).all()
    assert (high >= 3).all()
    bound, _ = bound_heads(rows_of(), ct.parse(TEMPLATE))
    points = np.array([[x, 0.0, x, 0.0] for x in range(40)])
    assert np.array_equal(bound.boxes, grown_boxes(points, np.array([x % 7 / 2 for x in range(40)])))
    assert Space.of([ct.parse(TEMPLATE.replace("$geometry", "POINT(0 0)").replace("$metres", "5"))]).dimensions == 3


def test_constraints_travel_between_brokers_with_their_crs():
    for text in ("within_distance(area, POINT(1 2), 5)", "NOT S_WITHIN(area, CIRCLE(POINT(1 2), 5))"):
        constraint = ct.parse(text).filters[0].constraints[0]
        moved = ct.Constraint("area", constraint.operator, ct.Point(1, 2, crs="EPSG:25832"))
        predicate = ct.Predicate([ct.Filter([moved])])
        back = decode(encode(Subscribe(1, 2, predicate, digest_of(predicate)))).predicate.filters[0].constraints[0]
        assert back == moved
        assert back.value.crs == moved.value.crs


def test_the_command_line(tmp_path):
    messages = messages_of()
    lines = [
        json.dumps({"id": str(k), "severity": each["severity"], "area": each["area"].to_geojson()})
        for k, each in enumerate(messages)
    ]
    given, asked = tmp_path / "messages.ndjson", tmp_path / "rows.parquet"
    given.write_text("\n".join(lines) + "\n")
    pq.write_table(rows_of(), asked)
    outputs = []
    for plan in ("scan", "table"):
        output = tmp_path / f"{plan}.ndjson"
        contrada("match", given, asked, "--template", TEMPLATE, "--plan", plan, "--output", output)
        found: dict[str, set[int]] = {str(k): set() for k in range(len(messages))}
        for line in read_lines(output):
            found[str(line["message"])].add(line["key"])
        outputs.append(list(found.values()))
    assert outputs == [expected_of(messages)] * 2
