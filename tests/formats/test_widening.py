"""Types of several files as one: what holds the values of both, and columns brought to it."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from contrada.formats.tables.schema_merge import conformed, plain_type, settled_type, united_schema, united_type

INSTANT = datetime(2024, 5, 1, 12, tzinfo=UTC)
UTC_TIME, MAP = pa.timestamp("us", "UTC"), pa.map_(pa.string(), pa.int32())
KINDS = [
    (pa.array([1, None], pa.int8()), pa.array([2**40], pa.int64()), pa.int64(), [1, None, 2**40]),
    (pa.array([200], pa.uint8()), pa.array([-1], pa.int8()), pa.int16(), [200, -1]),
    (pa.array([2**64 - 1], pa.uint64()), pa.array([1], pa.uint64()), pa.decimal128(20, 0), [Decimal(2**64 - 1), 1]),
    (pa.array([1]), pa.array([0.5], pa.float32()), pa.float64(), [1.0, 0.5]),
    (pa.array([1]), pa.array(["a"]), pa.string(), ["1", "a"]),
    (pa.array([True]), pa.array([1]), pa.string(), ["true", "1"]),
    (pa.array([b"\x01"]), pa.array(["a"]), pa.string(), ["01", "a"]),
    (pa.array([None]), pa.array([[1]]), pa.list_(pa.int64()), [None, [1]]),
    (pa.array([[1, None]]), pa.array([[0.5]]), pa.list_(pa.float64()), [[1.0, None], [0.5]]),
    (pa.array([[1]]), pa.array([1]), pa.string(), ["[1]", "1"]),
    (pa.array(["a"]).dictionary_encode(), pa.array(["b"], pa.large_string()), pa.string(), ["a", "b"]),
    (pa.array([date(2024, 5, 1)]), pa.array([INSTANT]), UTC_TIME, [datetime(2024, 5, 1, tzinfo=UTC), INSTANT]),
    (pa.array([INSTANT.replace(tzinfo=None)]), pa.array([INSTANT]), UTC_TIME, [INSTANT, INSTANT]),
    (pa.array([Decimal("1.5")]), pa.array([Decimal("100")]), pa.decimal128(4, 1), [Decimal("1.5"), Decimal(100)]),
    (pa.array([[("k", 1)]], MAP), pa.array([None]), MAP, [[("k", 1)], None]),
    (pa.array([[None]]), pa.array([[1]]), pa.list_(pa.int64()), [[None], [1]]),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "kind", "values"), KINDS)
def test_two_columns_become_one(a, b, kind, values):
    found = [kind if kind == pa.null() else plain_type(kind) for kind in (a.type, b.type)]
    assert united_type(*found) == kind
    assert conformed(a, kind).to_pylist() + conformed(b, kind).to_pylist() == values
    assert {conformed(a, kind).type, conformed(b, kind).type} == {kind}


def test_structs_have_the_fields_of_both():
    a, b = pa.array([{"x": 1}, None]), pa.array([{"y": "z", "x": 0.5}])
    kind = united_type(a.type, b.type)
    assert conformed(a, kind).to_pylist() == [{"x": 1.0, "y": None}, None]
    assert conformed(b, kind).to_pylist() == [{"x": 0.5, "y": "z"}]
    assert conformed(a, pa.string()).to_pylist() == ['{"x":1}', None]


def test_uniting_is_symmetric():
    kinds = [plain_type(column.type) for pair in KINDS for column in pair[:2]]
    for a in kinds:
        for b in kinds:
            assert united_type(a, b) == united_type(b, a)


def test_columns_come_in_the_order_of_their_first_appearance():
    one, two = pa.schema([("b", pa.int8()), ("a", pa.string())]), pa.schema([("c", pa.bool_()), ("b", pa.int64())])
    assert united_schema([one, two]) == pa.schema([("b", pa.int64()), ("a", pa.string()), ("c", pa.bool_())])


@pytest.mark.parametrize("kind", [pa.null(), pa.time64("us"), pa.duration("s"), pa.struct([]), pa.string_view()])
def test_what_has_no_place_of_its_own_is_text(kind):
    assert settled_type(plain_type(kind)) == pa.string()
    assert conformed(pa.nulls(2, kind), pa.string()).to_pylist() == [None, None]
