"""A scan of rows past messages finds what a table of all rows finds, whatever the blocks are."""

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.formats.tables.subscription_rows import RowBlock, row_faults, rows_without
from contrada.formats.templates import pattern_columns
from contrada.matching.row_scan import NeedsTableError, RowScan, in_threads
from contrada.matching.template import asked_columns
from effort import examples
from oracles.plain import predicate_holds

BOXES = [(0, 0, 2), (2, 0, 1), (2, 2, 2), (7, 7, 1), (0, 0, 9), (5, 5, 2)]
SHAPES = [
    *(shapely.box(x, y, x + w, y + w) for x, y, w in BOXES),
    shapely.box(0, 0, 6, 6) - shapely.box(1, 1, 4, 4),
    shapely.MultiPolygon([shapely.box(0, 8, 1, 9), shapely.box(8, 0, 9, 1)]),
]
BOW = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
POINTS = [shapely.Point(2, 2), shapely.Point(3, 3), shapely.Point(9, 9)]
TEMPLATES = [
    "S_INTERSECTS(area, $geometry)",
    "S_WITHIN(area, $geometry) AND size >= $least",
    "S_CONTAINS(area, $geometry) OR (S_OVERLAPS(area, $geometry) AND name LIKE $name)",
    "S_DISJOINT(area, $geometry)",
    "NOT S_INTERSECTS(area, $geometry) AND size >= $least",
    "size >= $least",
    "S_INTERSECTS(area, POLYGON((0 0, 3 0, 3 3, 0 3, 0 0))) AND name LIKE $name",
]
GEOMETRY = st.sampled_from([*map(shapely.to_wkb, SHAPES)] * 2 + [None, b"odd", shapely.to_wkb(BOW)])
ROWS = st.fixed_dictionaries(
    {
        "geometry": GEOMETRY,
        "least": st.sampled_from([0.0, 1.0, 2.0, float("nan"), None]),
        "name": st.sampled_from(["a%", "b", "%", None]),
        "subscriber": st.sampled_from(["x", "y", "z", None]),
    }
)
VALUES = st.sampled_from([*map(shapely.to_wkb, [*SHAPES, *POINTS]), None, b"no geometry"])
MESSAGE = st.fixed_dictionaries(
    {}, optional={"area": VALUES, "size": st.sampled_from([0.0, 1.0, 5.0]), "name": st.sampled_from(["ab", "b"])}
)
KINDS = {"geometry": pa.binary(), "least": pa.float64(), "name": pa.string(), "area": pa.binary(), "size": pa.float64()}


def table_of(rows, names):
    columns = {name: pa.array([row.get(name) for row in rows], KINDS.get(name, pa.string())) for name in names}
    return pa.table(columns)


@settings(max_examples=examples(400), deadline=None)
@given(
    rows=st.lists(ROWS, min_size=1, max_size=24),
    messages=st.lists(MESSAGE, max_size=8),
    text=st.sampled_from(TEMPLATES),
    size=st.integers(1, 9),
    has_keys=st.booleans(),
    has_subscribers=st.booleans(),
    is_list=st.booleans(),
    threads=st.sampled_from([1, 2]),
    least=st.sampled_from([1, 4, None]),
)
def test_a_scan_finds_what_a_table_finds(
    rows, messages, text, size, has_keys, has_subscribers, is_list, threads, least
):
    template = ct.parse(text)
    whole = table_of(rows, ["geometry", "least", "name", *["subscriber"] * has_subscribers])
    if has_keys:
        whole = whole.append_column("key", pa.array([f"k{k}" for k in range(len(rows))]))
    whole = asked_columns(whole, template)
    given_messages = messages if is_list else table_of(messages, ["area", "size", "name"])
    batches = [given_messages[:3], given_messages[3:]]
    scan = RowScan(template, batches, threads, least)
    blocks = [whole.slice(start, size) for start in range(0, len(rows), size)]
    scan.run([RowBlock(block, block) for block in blocks])

    reasons = row_faults(whole, {}, pattern_columns(template))
    good = rows_without(len(rows), reasons)
    assert [(bad.row, bad.reason) for bad in scan.bad] == sorted(reasons.items())
    assert scan.good == len(scan.names) == len(good)
    if not len(good):
        return
    table = ct.ForwardingTable()
    table.subscribe_many(whole.take(good), template)
    assert scan.asked == table.asked_kinds()
    everyone = np.arange(len(good))
    assert scan.names.keys_of(everyone) == table.keys_of(everyone)
    for by in ("subscription", "subscriber"):
        for batch, found in zip(batches, scan.matches(by), strict=True):
            answer = table.match_many(batch, by)
            assert found.rejected == {item.row: item.reason for item in answer.rejected}
            assert found.counts.tolist() == np.diff(answer.offsets).tolist()
            assert found.rows.tolist() == answer.rows.tolist()
            assert scan.names.subscribers_of(found.rows, by) == table.subscribers_of(answer.rows, by)
    check_plainly(scan, template, whole.take(good), batches)


def check_plainly(scan, template, rows, batches):
    """Compare matches with filters that are evaluated one by one."""
    filters = [filter_of(template, row) for row in rows.to_pylist()]
    asked = {constraint.attribute for part in template for constraint in part}  # the others may hold anything
    for batch, found in zip(batches, scan.matches("subscription"), strict=True):
        plain = batch if isinstance(batch, list) else batch.to_pylist()
        for number, (message, own) in enumerate(
            zip(plain, np.split(found.rows, np.cumsum(found.counts)[:-1]) if len(plain) else [], strict=True)
        ):
            if number not in found.rejected:
                known = {name: value for name, value in message.items() if name in asked and value is not None}
                values = {name: value_of(name, value) for name, value in known.items()}
                assert own.tolist() == [k for k, one in enumerate(filters) if predicate_holds(one, values)]


def filter_of(template, row):
    table = ct.ForwardingTable()
    one = pa.table({name: pa.array([value], KINDS.get(name, pa.string())) for name, value in row.items()})
    table.subscribe_many(one, template)
    return next(iter(dict(table.predicates()).values()))


def value_of(name, value):
    if name != "area":
        return value
    shape = shapely.from_wkb(value)
    return ct.Point(shape.x, shape.y) if shape.geom_type == "Point" else ct.Region.from_wkb(value)


def blocks_of(*geometries):
    for k, geometry in enumerate(geometries):
        rows = pa.table({"geometry": [geometry], "key": [k]})
        yield RowBlock(rows, rows)


@pytest.mark.parametrize(
    "blocks",
    [
        blocks_of(shapely.to_wkb(SHAPES[0]), shapely.to_wkb(POINTS[0])),
        blocks_of(*(shapely.to_wkb(shapely.set_srid(SHAPES[0], srid), include_srid=True) for srid in (4326, 25832))),
    ],
    ids=["regions and points", "two systems"],
)
def test_rows_that_decide_together_need_a_table(blocks):
    scan = RowScan(ct.parse(TEMPLATES[0]), [[{"area": SHAPES[0]}]], 1)
    with pytest.raises(NeedsTableError):
        scan.run(blocks)


def test_a_key_that_is_repeated_in_another_block_needs_a_table():
    for keys in ([3, 1, 3], ["b", "a", "b"]):
        scan = RowScan(ct.parse("size > $least"), [[{"size": 3}]], 1)
        tables = [pa.table({"least": [1], "key": [key]}) for key in keys]
        scan.run([RowBlock(table, table) for table in tables])
        with pytest.raises(NeedsTableError, match="repeated"):
            assert scan.names


def test_more_matches_than_fit_need_a_table():
    rows = pa.table({"least": [1] * 6})
    blocks = [RowBlock(rows, rows)] * 2
    RowScan(ct.parse("size > $least"), [[{"size": 3}]], max_matches=12).run(blocks)
    with pytest.raises(NeedsTableError, match="fit"):
        RowScan(ct.parse("size > $least"), [[{"size": 3}]], max_matches=11).run(blocks)


def test_a_column_without_regions_is_an_error():
    with pytest.raises(ct.FilterError, match="no regions"):
        RowScan(ct.parse(TEMPLATES[0]), [[{"area": SHAPES[0]}]]).run(blocks_of(1))


def test_an_error_in_a_thread_is_raised_and_results_are_in_order():
    assert list(in_threads(lambda k: k * k, range(50), 3)) == [k * k for k in range(50)]
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda k: 1 // k, [1, 0, 1], 2))
