"""Subscriptions in text, read by shape: the answers of texts parsed one by one, and their errors."""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import contrada as ct
from contrada.cql2.shapes import TextShapes
from contrada.matching.building import MIN_ALIKE, TableBuilder
from effort import examples
from generators.scalars import messages
from oracles.plain import predicate_holds

NUMBERS = ["0", "1", "2", "-1", "+2", "0.5", "1e3", "9007199254740993", "-0", "1e999", "12345678901234567890123"]
TEXTS = ["'a'", "'it''s'", "''", "'5'", "'\"q\" 7'", "'a%'"]
REGIONS = [
    "POLYGON((0 0, 2 0, 2 2, 0 0))", "polygon ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))", "POINT(1 1)",
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))", "BBOX(0, 0, 2, 2)", "POLYGON((0 0, 1 1, 0 0))",
]  # fmt: skip
SHAPES = [
    "size >= {n} AND name = {t}", "size BETWEEN {n} AND {n} OR name LIKE {t}", "name IN ({t}, {t}) AND size <> {n}",
    "S_INTERSECTS(area, {g}) AND size>{n}", '"a 7" = {n} OR size = {n}', "NOT size = {n}", "size > {n} OR size > {n}",
    "CASEI(name) = CASEI({t})", "size = -{n}", "inside({g}, area)", "size > {n} AND", "at > DATE('2000-01-01')",
]  # fmt: skip


@st.composite
def texts(draw):
    """Texts of a few shapes, enough of each that they are bound by columns; some bad."""
    made = []
    for shape in draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)):
        for _ in range(draw(st.sampled_from([1, MIN_ALIKE + 4]))):
            text = shape
            for mark, drawn in (("{n}", NUMBERS), ("{t}", TEXTS), ("{g}", REGIONS)):
                while mark in text:
                    text = text.replace(mark, draw(st.sampled_from(drawn)), 1)
            made.append(text)
    return draw(st.permutations(made))


def reason_of(text):
    """Why a text alone is no subscription, or None."""
    try:
        ct.ForwardingTable().subscribe("one", text)
    except ct.ContradaError as error:
        return str(error)
    return None


@settings(deadline=None, max_examples=examples(60))
@given(texts(), st.lists(messages(), min_size=1, max_size=5), st.booleans())
@example(["size > -1"] * MIN_ALIKE + ["size > 1e999"] * MIN_ALIKE, [{"size": 0}], True)
def test_answers_and_errors_are_those_of_single_texts(given_texts, asked, has_keys):
    columns = {"filter": given_texts}
    if has_keys:
        columns |= {
            "key": [f"k{k}" for k in range(len(given_texts))],
            "subscriber": [f"s{k % 3}" for k in range(len(given_texts))],
        }
    builder = TableBuilder()
    rejected = {item.row: item.reason for item in builder.add(pa.table(columns))}
    reasons = {row: reason for row, text in enumerate(given_texts) if (reason := reason_of(text)) is not None}
    assert rejected == reasons
    predicates = {row: ct.parse(text) for row, text in enumerate(given_texts) if row not in reasons}
    for message in asked:
        expected = {row for row, predicate in predicates.items() if predicate_holds(predicate, message)}
        found = builder.table.match_keys(message)
        assert {int(str(key).removeprefix("k")) for key in found} == expected


def test_equal_keys_count_in_the_order_of_rows():
    rows = pa.table({"key": ["a", "b"] * MIN_ALIKE, "filter": [f"size > {k}" for k in range(2 * MIN_ALIKE)]})
    builder = TableBuilder()
    assert len(builder.add(rows)) == 2 * MIN_ALIKE - 2
    assert set(builder.table.match_keys({"size": 1})) == {"a"}


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("a = 1 AND b7 = 'x'", ["1", "'x'"]),
        ('"a 1" = 2', ["2"]),
        ("a > -5 AND b BETWEEN -1 AND +2", ["-5", "-1", "+2"]),
        ("S_INTERSECTS(a, POINT (1 2))", ["POINT (1 2)"]),
        ("a - 5 > 3", None),
        ("a = $b", None),
        ("a IS NULL", None),
        ("at > DATE('2000-01-01')", None),
    ],
)
def test_literals_of_a_text(text, literals):
    found = TextShapes().find(text)
    assert (None if found is None else found[1]) == literals
