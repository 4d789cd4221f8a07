"""Templates: bound to columns they ask what each row's own filter asks, also with several filters for a row."""

from datetime import UTC, datetime
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada as ct
from console import write_lines
from contrada import Column, Constraint, Filter
from contrada.cql2 import parse, to_json
from contrada.formats.subscriptions import read_subscription_table
from contrada.matching import template as template_module
from contrada.matching.building import TableBuilder
from effort import slow
from oracles.plain import predicate_holds
from oracles.subscriptions import bound, check_answers, saved_and_opened, unsubscribe

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
SHARED = SOME | {f"{name}_backwards": column[::-1] for name, column in SOME.items()}
TEXTS = (Column("text"), Column("text_backwards"), "é", Column("text"), "E")
NUMBERS = (Column("double_backwards"), Column("double"), 3, 0.5)
ORDERED = ["=", "!=", "<", "<=", ">", ">="]
VALUES = [
    *("a", "A", "ab", "", 0, 0.5, 1, -5, 2**53, 2**60, 2**60 + 1, Decimal("0.1"), True, False, float("inf")),
    *MOMENTS,
]


SCALARS = [
    *(
        ({name: COLUMNS[name]}, [Constraint("x", operator, Column(name))])
        for name, operator in product(COLUMNS, ORDERED)
        if name != "list" and (name != "flag" or operator in ("=", "!="))
    ),
    *(
        ({"text": COLUMNS["text"]}, [Constraint("x", operator, Column("text"), casei=True)])
        for operator in ("prefix", "not suffix", "contains", "like", "=")
    ),
    (SOME, [Constraint("x", "between", (Column("whole"), Column("double")))]),
    (SOME, [Constraint("x", "not between", (Column("text"), Column("large")))]),
    (SOME, [Constraint("x", "between", (Column("whole"), 3)), Constraint("x", "!=", 2)]),
    (SOME, [Constraint("x", "in", (Column("whole"), 7)), Constraint("y", "is null")]),
    *((SHARED, [Constraint("x", operator, NUMBERS)]) for operator in ("in", "not in")),
    *((SHARED, [Constraint("x", op, (Column("large"), Column("large_backwards")))]) for op in ("in", "not in")),
    *(
        (columns, [Constraint("x", operator, TEXTS, casei=casei)])
        for columns in (SHARED, {name: column[:0] for name, column in SHARED.items()})
        for operator, casei in product(("in", "not in"), (False, True))
    ),
]


@pytest.mark.parametrize(("columns", "constraints"), SCALARS)
def test_templates_of_scalars_ask_what_each_row_asks(columns, constraints):
    rows, table, template = pa.table(columns), ct.ForwardingTable(), Filter(constraints)
    table.subscribe_many(rows, template)
    model = {key: (key, bound(ct.Predicate([template]), row)) for key, row in enumerate(rows.to_pylist())}
    probes = [*VALUES, *(item for column in columns.values() for item in column.to_pylist())]
    check_answers(table, model, [{"x": value} for value in probes])


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


ROWS = 40
LONG = "%a" * 40_000
TEMPLATES = [
    "overlaps(area, $geometry) AND severity >= $least",
    "severity >= $least OR severity < $below",
    "S_INTERSECTS(area, $geometry) OR S_INTERSECTS(place, $geometry)",
    "S_INTERSECTS(area, $geometry) OR kind = $kind AND NOT severity BETWEEN $below AND $least",
    "(S_WITHIN(area, $geometry) OR meets(area, BBOX(0, 0, 2, 2))) AND (kind = $kind OR is_open)",
    "NOT (kind LIKE $kind OR S_INTERSECTS(area, $geometry)) OR place IS NOT NULL",
    "kind IN ($kind, 'fire') OR CASEI(kind) PREFIX CASEI($kind) OR severity = $big",
    "disjoint(area, $geometry) OR disjoint(area, $geometry) AND S_INTERSECTS(place, $geometry)",
    "severity >= 3 OR kind = 'storm'",
]


def rows():
    rng = np.random.default_rng(2)
    corners = rng.integers(0, 6, (ROWS, 2))
    boxes = [ct.Region.box(x, y, x + 2, y + 1) for x, y in corners.tolist()]
    return pa.table({
        "key": [f"k{k}" for k in range(ROWS)],
        "subscriber": [f"s{k % 7}" for k in range(ROWS)],
        "geometry": ct.RegionArray.from_regions(boxes).to_wkb(),
        "least": rng.integers(0, 9, ROWS),
        "below": rng.uniform(0, 4, ROWS),
        "big": pa.array([2**53 + k for k in range(ROWS)]),
        "kind": rng.choice(["storm", "flood", "Storm surge", "50%"], ROWS),
    })  # fmt: skip


def messages():
    rng = np.random.default_rng(3)
    found = []
    for _ in range(40):
        x, y = rng.integers(0, 6, 2).tolist()
        message = {"area": ct.Region.box(x, y, x + 1, y + 3), "severity": int(rng.integers(0, 10)), "is_open": True}
        message |= {"kind": str(rng.choice(["storm", "flood", "fire", "STORMY", "50%"])), "place": ct.Point(y, x)}
        for gone in rng.choice(list(message), 2):
            message.pop(gone, None)
        found.append(message)
    return [*found, {}, {"severity": 2**53 + 5}, {"area": ct.Point(1, 1), "place": ct.Region.box(1, 1, 9, 9)}]


def model_of(table, template):
    """Each row's own predicate, by its key."""
    return {row["key"]: (row["subscriber"], bound(parse(template), row)) for row in table.to_pylist()}


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    "form", [str, slow(parse), lambda text: to_json(parse(text))], ids=["text", "predicate", "json"]
)
def test_a_template_asks_what_its_rows_ask(template, form):
    given, asked, first = rows(), messages(), parse("severity = 3 AND is_open OR severity = 4")
    table, model = ct.ForwardingTable(), model_of(given, template)
    table.subscribe("first", first, key="first")
    assert table.subscribe_many(given, form(template)) == given["key"].to_pylist()
    model["first"] = "first", first
    check_answers(table, model, asked)
    unsubscribe(table, model, ("first", "k3", "k4", "k39"))
    check_answers(table, model, asked)
    explained, (subscriber, predicate) = table.explain(asked[0], "k5"), model["k5"]
    assert (explained.subscriber, explained.truth is True) == (subscriber, predicate_holds(predicate, asked[0]))
    check_answers(saved_and_opened(table), model, asked)


def test_many_templates_after_each_other():
    table, model = ct.ForwardingTable(), {}
    for number, template in enumerate(TEMPLATES):
        part = rows().set_column(0, "key", pa.array([f"{number}-{k}" for k in range(ROWS)]))
        table.subscribe_many(part, template)
        model |= model_of(part, template)
    check_answers(table, model, messages())


def test_a_region_column_is_read_once(monkeypatch):
    calls = []
    read = template_module.read_regions
    monkeypatch.setattr(
        template_module, "read_regions", lambda *given, **options: calls.append(1) or read(*given, **options)
    )
    ct.ForwardingTable().subscribe_many(rows(), "S_INTERSECTS(area, $geometry) OR S_INTERSECTS(place, $geometry)")
    assert len(calls) == 1


def test_templates_fail_with_their_reason():
    table = ct.ForwardingTable()
    for template, message in [
        ("severity >= $most", "the template needs column 'most'"),
        ("severity >= $least AND", "line 1, column 23: unexpected end of text"),
        ("kind = $kind OR severity BETWEEN $kind AND 5", "values of one kind"),
    ]:
        with pytest.raises(ct.FilterError, match=message):
            table.subscribe_many(rows(), template)
    with pytest.raises(ct.FilterError, match="is a column of a template; use subscribe_many"):
        table.subscribe("a", "severity >= $least")
    assert len(table) == 0


def test_a_long_pattern_of_a_column_names_its_row():
    table = ct.ForwardingTable()
    with pytest.raises(ct.LimitError, match=r"row 2: .*'kind'.*CONTRADA_MAX_PATTERN_BYTES"):
        table.subscribe_many(pa.table({"p": ["a%", "b", LONG]}), parse("kind LIKE $p"))
    assert len(table) == 0
    table.subscribe_many(pa.table({"p": ["a%", "b", LONG]}), parse("kind = $p"))
    assert len(table) == 3, "the limit is for patterns alone"


@pytest.mark.parametrize("asked", ["kind LIKE $p", "NOT kind LIKE $p", "CASEI(kind) CONTAINS CASEI($p)"])
def test_rows_with_long_patterns_are_rejected_and_the_rest_go_on(asked, tmp_path):
    rows = pa.table({"key": ["x", "y", "z"], "p": ["flood", LONG, "storm"]})
    builder = TableBuilder(parse(asked))
    (bad,) = builder.add(rows)
    assert (bad.row, bad.key) == (1, "y")
    assert "CONTRADA_MAX_PATTERN_BYTES" in bad.reason
    assert len(builder.table) == 2
    pq.write_table(rows, tmp_path / "s.parquet")
    lines = write_lines(tmp_path / "s.ndjson", rows.to_pylist())
    for source, number in ((tmp_path / "s.parquet", 1), (lines, 2)):  # rows from 0, lines from 1
        found = read_subscription_table(source, parse(asked))
        (bad,) = found.rejected
        assert (bad.number, "CONTRADA_MAX_PATTERN_BYTES" in bad.reason) == (number, True)
        assert found.table.column("key").to_pylist() == ["x", "z"]
