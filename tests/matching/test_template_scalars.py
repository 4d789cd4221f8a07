"""subscribe_many with scalar columns: each row asks what its own filter asks."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

import contrada as ct
from contrada import Column, Constraint, Filter
from oracles.subscriptions import bound, check_answers

MOMENTS = [datetime(2020, 1, 1, tzinfo=UTC), datetime(2021, 6, 1, tzinfo=UTC), datetime(1969, 1, 1, tzinfo=UTC)]
COLUMNS = {
    "text": pa.array(["a", "Ab", ""]),
    "large": pa.array(["a", "Ab", ""], pa.large_string()),
    "whole": pa.array([1, -5, 2**53]),
    "long": pa.array([2**60, 2**60 + 1, -(2**62)]),
    "double": pa.array([0.5, -0.0, float("inf")]),
    "half": pa.array([0.5, 0.25, -1.0], pa.float32()),
    "decimal": pa.array([Decimal("0.10"), Decimal("2.00"), Decimal("-3.25")]),
    "flag": pa.array([True, False, True]),
    "moment": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "fine": pa.array([1, -1, 10**18], pa.timestamp("ns")),
    "day": pa.array([moment.date() for moment in MOMENTS]),
    "list": pa.array([[1, 2], [3], [4, 4]]),
}
SOME = {name: COLUMNS[name] for name in ("whole", "double", "text", "large")}
ORDERED = ["=", "!=", "<", "<=", ">", ">="]
VALUES = [
    *("a", "A", "ab", "", 0, 0.5, 1, -5, 2**53, 2**60, 2**60 + 1, Decimal("0.1"), True, False, float("inf")),
    *MOMENTS,
]


def agree(columns, template):
    """Bound to columns, a template has the answers that plain evaluation gives for each row's own filter."""
    rows = pa.table(columns)
    table = ct.ForwardingTable()
    table.subscribe_many(rows, template)
    model = {key: (key, bound(ct.Predicate([template]), row)) for key, row in enumerate(rows.to_pylist())}
    probes = [*VALUES, *(item for column in columns.values() for item in column.to_pylist())]
    check_answers(table, model, [{"x": value} for value in probes])


@pytest.mark.parametrize(
    ("name", "operator"),
    [*product([name for name in COLUMNS if name not in ("list", "flag")], ORDERED), ("flag", "="), ("flag", "!=")],
)
def test_comparisons(name, operator):
    agree({name: COLUMNS[name]}, Filter([Constraint("x", operator, Column(name))]))


@pytest.mark.parametrize("operator", ["prefix", "not suffix", "contains", "like", "="])
def test_text_is_folded(operator):
    agree({"text": COLUMNS["text"]}, Filter([Constraint("x", operator, Column("text"), casei=True)]))


def test_ends_of_intervals_and_constants():
    agree(SOME, Filter([Constraint("x", "between", (Column("whole"), Column("double")))]))
    agree(SOME, Filter([Constraint("x", "not between", (Column("text"), Column("large")))]))
    agree(SOME, Filter([Constraint("x", "between", (Column("whole"), 3)), Constraint("x", "!=", 2)]))
    agree(SOME, Filter([Constraint("x", "in", (Column("whole"), 7)), Constraint("y", "is null")]))


@pytest.mark.parametrize("operator", ["in", "not in"])
@pytest.mark.parametrize("casei", [False, True])
def test_sets_of_columns_that_share_values(operator, casei):
    columns = SOME | {f"{name}_backwards": column[::-1] for name, column in SOME.items()}
    texts = (Column("text"), Column("text_backwards"), "é", Column("text"), "E")
    agree(columns, Filter([Constraint("x", operator, texts, casei=casei)]))
    if not casei:
        agree(columns, Filter([Constraint("x", operator, (Column("double_backwards"), Column("double"), 3, 0.5))]))
        agree(columns, Filter([Constraint("x", operator, (Column("large"), Column("large_backwards")))]))
    empty = {name: column[:0] for name, column in columns.items()}
    agree(empty, Filter([Constraint("x", operator, texts, casei=casei)]))


def test_bad_rows_are_named_and_nothing_is_added():
    table = ct.ForwardingTable()
    for column, template, message in (
        (pa.array([1, None]), Constraint("x", "<", Column("c")), "column 'c', row 1: no value for `x < \\$c`"),
        (pa.array([1.0, float("nan")]), Constraint("x", "<", Column("c")), "row 1: constraint on 'x': .*is never true"),
        (pa.array([True]), Constraint("x", "<", Column("c")), "row 0: .*does not apply to booleans"),
        (pa.array(["50\\"]), Constraint("x", "like", Column("c")), "row 0: .*nothing follows the escape"),
        (pa.array([1]), Constraint("x", "<", Column("d")), "needs column 'd'; columns: c"),
    ):
        with pytest.raises(ct.FilterError, match=message):
            table.subscribe_many(pa.table({"c": column}), template)
    assert len(table) == 0
