"""Arrow data that is damaged: an error or rejected rows at every door, never foreign memory or a dead process."""

import io
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada.formats.bounded import Expansion
from contrada.formats.reading import read_messages
from contrada.formats.records import Rejected
from contrada.formats.subscriptions import read_subscription_table
from contrada.geometry.arrow.checks import check_column
from contrada.matching.building import TableBuilder
from generators.columnar import arrow_bytes
from verification.damage import run_cases

SQUARE = ct.Region.box(0, 0, 1, 1).to_wkb()


def test_damaged_files_never_end_the_process():
    """A sample; `make verify` reads many more."""
    assert list(run_cases("arrow", 0, 120)) == []


def array_of(kind, offsets, data):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


BROKEN = {
    "beyond the end": array_of(pa.binary(), [0, 9999, len(SQUARE)], SQUARE * 2),
    "backwards": array_of(pa.binary(), [5, 3, len(SQUARE)], SQUARE * 2),
    "below zero": array_of(pa.binary(), [0, -7, len(SQUARE)], SQUARE * 2),
    "text": array_of(pa.string(), [0, 2**30, 6], b"abcdef"),
    "a list": pa.ListArray.from_buffers(
        pa.list_(pa.int64()), 2, [None, pa.py_buffer(np.array([0, 77, 2], np.int32))], children=[pa.array([1, 2])]
    ),
    "a dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int32()), pa.array(["a"]), safe=False),
}


NOT_UTF8 = array_of(pa.string(), [0, 1, 2, 3], b"a\xffc")


@pytest.mark.parametrize("column", BROKEN.values(), ids=BROKEN.keys())
def test_a_damaged_column_is_an_error_at_every_door(column):
    table = ct.ForwardingTable()
    table.subscribe(1, "S_INTERSECTS(area, POLYGON((0 0, 9 0, 0 9, 0 0)))")
    rows = pa.table({"area": column})
    foreign = SimpleNamespace(__arrow_c_stream__=rows.__arrow_c_stream__)  # of another library
    for further in ("S_INTERSECTS(area, POINT(1 1))", "area = 'x' AND size IS NULL"):
        for messages in (rows, foreign):
            with pytest.raises(ct.FormatError, match="column 'area' is damaged"):
                table.match_many(messages, by="subscription")
        table.subscribe(further, further)
    with pytest.raises(ct.FormatError, match="column 'area' is damaged"):
        table.subscribe_many(rows, ct.parse("S_INTERSECTS(place, $area)"))
    for read in (ct.RegionArray.from_arrow, ct.PointArray.from_arrow, ct.RegionArray.from_wkb):
        with pytest.raises(ct.ContradaError, match="is damaged"):
            read(column)
    with pytest.raises(ct.FormatError, match="a chunk is damaged"):
        check_column(pa.chunked_array([column[:0], column]), "a chunk")
    unasked = table.match_many(pa.table({"other": column}), by="subscription")
    assert len(unasked.offsets) == 3


def test_a_damaged_batch_costs_its_rows_alone():
    good = pa.record_batch({"id": pa.array([1, 2]), "area": pa.array([SQUARE, SQUARE])})
    bad = pa.record_batch({"id": pa.array([3, 4]), "area": BROKEN["beyond the end"]})
    data = arrow_bytes(pa.Table.from_batches([good, bad, good]))
    read = list(read_messages(io.BytesIO(data), "arrow"))
    assert [(item.number, isinstance(item, Rejected)) for item in read] == [
        (0, False), (1, False), (2, True), (3, True), (4, False), (5, False)]  # fmt: skip
    assert "column 'area' is damaged" in read[2].reason


def test_text_that_is_not_utf8_costs_its_row_alone(tmp_path):
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), NOT_UTF8)
    views = NOT_UTF8.cast(pa.binary()).cast(pa.binary_view()).view(pa.string_view())
    struct = pa.StructArray.from_arrays([NOT_UTF8], ["inner"])
    for column in (NOT_UTF8, NOT_UTF8.dictionary_encode(), views, struct, lists):
        rows = pa.table({"name": column, "area": pa.array([SQUARE] * 3)})
        table = ct.ForwardingTable()
        table.subscribe(1, "S_INTERSECTS(area, POLYGON((0 0, 9 0, 0 9, 0 0))) AND name IS NOT NULL OR name.inner < 'z'")
        found = table.match_many(rows, by="subscription")
        assert [item.row for item in found.rejected] == [1], column.type
        assert "not UTF-8" in found.rejected[0].reason
        assert found.rejected[0].reason.startswith("attribute 'name")
        (tmp_path / "rows.arrow").write_bytes(arrow_bytes(rows, new=pa.ipc.new_file))
        read = list(read_messages(tmp_path / "rows.arrow"))
        assert [isinstance(item, Rejected) for item in read] == [False, True, False]
    with pytest.raises(ct.FilterError, match="column 'key', row 1: text is not UTF-8"):
        ct.ForwardingTable().subscribe_many(pa.table({"key": NOT_UTF8, "area": [SQUARE] * 3}), "S_EQUALS(a, $area)")


def test_texts_of_a_template_that_are_not_utf8(tmp_path):
    rows = pa.table({"key": [1, 2, 3], "name": NOT_UTF8})
    (tmp_path / "rows.arrow").write_bytes(arrow_bytes(rows, new=pa.ipc.new_file))
    found = read_subscription_table(tmp_path / "rows.arrow", ct.parse("name = $name"))
    assert found.table.column("key").to_pylist() == [1, 3]
    assert [(item.number, item.reason) for item in found.rejected] == [(1, "column 'name': text is not UTF-8")]
    assert [item.row for item in TableBuilder(ct.parse("name = $name")).add(rows)] == [1]
    builder = TableBuilder()
    assert [item.row for item in builder.add(pa.table({"key": NOT_UTF8, "filter": ["a = 1"] * 3}))] == [1]
    assert sorted(builder.table) == ["a", "c"]


def test_coordinates_are_taken_by_name_and_nulls_are_no_place():
    swapped = pa.array([{"y": 2.0, "x": 1.0}, {"y": 4.0, "x": None}])
    found = ct.read_points(swapped)
    assert found.points[0] == ct.Point(1, 2)
    assert [item.row for item in found.rejected] == [1]
    ring = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 0.0)]
    kind = pa.list_(pa.list_(pa.list_(pa.float64(), 2)))
    polygons = pa.array([[ring], [[*ring[:2], None, ring[0]]]], kind)
    assert [item.row for item in ct.read_regions(polygons).rejected] == [1]
    with pytest.raises(ct.RegionError, match="cannot have null parts"):
        ct.RegionArray.from_arrow(pa.array([[ring, None]], kind))
    with pytest.raises(ct.RegionError, match="need GeoArrow"):
        ct.PointArray.from_arrow(pa.array([{"x": "a", "y": "b"}]))


def test_a_damaged_dictionary_is_not_decoded():
    """Decoding would read foreign memory: the offsets of its texts are not within the bytes."""
    texts = array_of(pa.string(), [0, 1, 9, 3], b"abc")
    batch = pa.record_batch({"name": pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int8()), texts)})
    assert [part.schema for part in Expansion("a file", 10**8).slices(batch)] == [batch.schema]
    read = list(read_messages(io.BytesIO(arrow_bytes(pa.Table.from_batches([batch]))), "arrow"))
    assert [(item.number, type(item)) for item in read] == [(0, Rejected), (1, Rejected)]
    assert "column 'name' is damaged" in read[0].reason
