"""Batches in Arrow columns of every type, with nulls, slices and bad rows, against plain evaluation in Python."""

import datetime as dt
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada as ct
from effort import examples
from generators.scalars import predicates
from oracles.subscriptions import matching_keys, subscribed

REGIONS = [ct.Region.box(0, 0, 2, 2), ct.Region.box(1, 1, 3, 2), ct.Region.box(0, 0, 4, 1), ct.Region.box(5, 5, 6, 6)]
PLACES = [*REGIONS, ct.Point(1, 1), ct.Point(0.5, 2), ct.Point(9, 9)]
DAYS = [dt.date(2000, 1, 1), dt.date(1999, 12, 31), dt.date(1970, 1, 1), dt.date(2262, 4, 11)]
TICKS = [0, 1, -1, 946_684_800, 946_684_799, 2**40]  # and up to the instants that 64 bits of microseconds hold
LAST_TICKS = {"s": 2**43, "ms": 2**53, "us": 2**63 - 1, "ns": 2**63 - 1}
WORDS = ["", "a", "A", "ab", "é", "E\u0301", "Straße", "STRASSE", "%", "a\x00", "😀"]


def kind(arrow, *values):
    """A column type, and the values to draw for it."""
    return arrow, values


COLUMNS = {
    "size": [
        kind(pa.int64(), -1, 0, 1, 2, 2**53, 2**53 + 1, -(2**63), 2**63 - 1),
        kind(pa.uint64(), 0, 1, 2, 2**53 + 1, 2**64 - 1),
        kind(pa.int8(), -1, 0, 1, 2),
        kind(pa.float64(), -0.0, 0.5, 1.0, 0.1, float("inf"), float("nan"), 2.0**53),
        kind(pa.float32(), 0.5, 0.1, -1.0, float("nan")),
        kind(pa.decimal128(20, 2), Decimal("0.10"), Decimal("0.50"), Decimal(2**53 + 1), Decimal(-1)),
        kind(pa.string(), "1", "a"),
        kind(pa.bool_(), True, False),
        kind(pa.null(), None),
    ],
    "name": [
        *(kind(arrow, *WORDS) for arrow in (pa.string(), pa.large_string(), pa.string_view())),
        kind(pa.dictionary(pa.int32(), pa.string()), *WORDS),
        kind(pa.int32(), 1, 2),
    ],
    "at": [
        *(kind(pa.timestamp(u, zone), *TICKS, last, -last) for u, last in LAST_TICKS.items() for zone in (None, "UTC")),
        kind(pa.date32(), *DAYS),
        kind(pa.date64(), *DAYS),
        kind(pa.duration("s"), 5),
    ],
    "area": [kind(pa.binary(), *(place.to_wkb() for place in PLACES)), kind(pa.large_binary(), PLACES[0].to_wkb())],
    "flag": [kind(pa.bool_(), True, False), kind(pa.list_(pa.int64()), [1], [])],
}


def plain(arrow, value):
    """The value of a message for the oracle: as Arrow has it, exactly."""
    if value is not None and pa.types.is_duration(arrow):
        return timedelta(seconds=value)  # present, and unknown to every operator
    if value is None or not pa.types.is_timestamp(arrow):
        wkb = {place.to_wkb(): place for place in PLACES}
        exact = pa.scalar(value, arrow).as_py() if pa.types.is_floating(arrow) and value is not None else value
        return wkb.get(exact, exact) if isinstance(exact, bytes) else exact
    return np.datetime64(value, arrow.unit)


@st.composite
def batches(draw):
    """An Arrow table of a few rows, some of its columns sliced or in chunks, and its messages for the oracle."""
    count = draw(st.integers(1, 12))
    columns, messages = {}, [{} for _ in range(count)]
    for name in draw(st.lists(st.sampled_from([*COLUMNS]), unique=True, min_size=1)):
        arrow, drawn = draw(st.sampled_from(COLUMNS[name]))
        values = draw(st.lists(st.sampled_from([*drawn, None]), min_size=count, max_size=count))
        if draw(st.booleans()):
            array = pa.chunked_array([pa.array([values[0], *values], arrow).slice(1)])
        else:
            cut = draw(st.integers(0, count))
            array = pa.chunked_array([pa.array(values[:cut], arrow), pa.array(values[cut:], arrow)])
        columns[name] = array
        for message, value in zip(messages, values, strict=True):
            message[name] = plain(arrow, value)
    return pa.table(columns), messages


@settings(deadline=None, max_examples=examples(150))
@given(
    given_predicates=st.lists(predicates(), min_size=1, max_size=20),
    later=st.lists(predicates(), max_size=4),
    batch=batches(),
    threads=st.sampled_from([1, 2, None]),
)
def test_answers_are_those_of_plain_evaluation(given_predicates, later, batch, threads):
    rows, messages = batch
    table = ct.ForwardingTable()
    model = subscribed(table, given_predicates)
    table.pack()
    model |= subscribed(table, later, 100)  # these are scanned
    found = table.match_many(rows, by="subscription", threads=threads)
    assert not found.rejected
    assert [set(found.keys(k)) for k in range(len(messages))] == [matching_keys(model, each) for each in messages]


NOT_UTF8 = pa.array([b"a", b"\xff", b"b"]).view(pa.string())


@pytest.mark.parametrize(
    ("columns", "row", "reason"),
    [
        ({"name": NOT_UTF8}, 1, "attribute 'name': text is not UTF-8"),
        ({"area": pa.array([None, b"\x01\x03", None])}, 1, "attribute 'area': "),
        ({"name": NOT_UTF8, "area": pa.array([b"no", b"\x01\x03", None])}, 0, "attribute 'area': "),
    ],
)
def test_a_bad_row_is_rejected_and_the_others_are_matched(columns, row, reason):
    table = ct.ForwardingTable()
    table.subscribe("all", "size >= 1 AND (name LIKE '%' OR name IS NULL) OR S_INTERSECTS(area, BBOX(0, 0, 1, 1))")
    found = table.match_many(pa.table({"size": [1, 2, 3], **columns}))
    assert (found.rejected[0].row, found.rejected[0].reason[: len(reason)]) == (row, reason)
    bad = {item.row for item in found.rejected}
    assert [bool(found[k]) for k in range(3)] == [k not in bad for k in range(3)]


def test_a_column_that_nobody_asks_about_is_not_read():
    table = ct.ForwardingTable()
    table.subscribe("all", "size >= 1")
    found = table.match_many(pa.table({"size": [1, 0], "name": NOT_UTF8[:2]}))
    assert (found.rejected, [set(found[0]), set(found[1])]) == ((), [{"all"}, set()])


def test_regions_and_points_in_one_column_with_scalars_and_residual_regions():
    table = ct.ForwardingTable()
    box = "BBOX(0, 0, 2, 2)"
    table.subscribe("both", f"size > 0 AND S_INTERSECTS(area, {box}) AND S_WITHIN(zone, BBOX(0, 0, 9, 9))", key="a")
    table.subscribe("one", f"S_INTERSECTS(area, {box})", key="b")
    table.pack()
    area = [place.to_wkb() for place in (ct.Point(1, 1), ct.Region.box(1, 1, 5, 5), ct.Point(7, 7), ct.Point(2, 2))]
    zone = [place.to_wkb() for place in (ct.Region.box(1, 1, 2, 2), ct.Region.box(1, 1, 2, 2))]
    rows = pa.table({"size": [1, 1, 1, 1], "area": area, "zone": [*zone, None, None]})
    found = table.match_many(rows, by="subscription")
    assert [set(found.keys(k)) for k in range(4)] == [{"a", "b"}, {"a", "b"}, set(), {"b"}]


def test_a_null_geoarrow_point_is_an_absent_attribute():
    table = ct.ForwardingTable()
    table.subscribe("a", "severity > 1")
    table.subscribe("b", "S_INTERSECTS(at, POINT(1 2))")
    points = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 0.0, 0.0]), 2).take(pa.array([0, None]))
    answer = table.match_many(pa.table({"at": points, "severity": [1, 2]}))
    assert answer.rejected == ()
    assert [set(found) for found in answer] == [{"b"}, {"a"}]
