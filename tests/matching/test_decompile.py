"""Recall: a table gives back the predicates it was given, wherever they stand."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from contrada import Constraint, Filter, Predicate, Region, Relation
from oracles.subscriptions import recalled

BOX = Region.box(0, 0, 4, 4)


def test_batches_are_recalled():
    parcels = ct.RegionArray.from_regions([Region.box(x, 0, x + 2, 2) for x in range(0, 10, 2)])
    rows = pa.table({"key": list("abcde"), "geometry": parcels.to_wkb()})
    table = ct.ForwardingTable()
    further = Constraint("area", Relation.DISJOINT, BOX), Constraint("at", Relation.INSIDE, ct.Point(1, 1))
    table.subscribe_many(rows, Filter([Constraint("area", Relation.OVERLAPS, ct.Column("geometry")), *further]))
    for key, parcel in zip("abcde", parcels, strict=True):
        asked = Filter([Constraint("area", Relation.OVERLAPS, parcel), *further])
        assert recalled(table, key) == Predicate([asked])


def test_replaced_subscriptions_are_recalled_as_they_are_now():
    table = ct.ForwardingTable()
    table.subscribe("a", Constraint("size", "=", 1), key="k")
    table.subscribe("a", Constraint("size", "=", 2), key="k", replace=True)
    assert str(recalled(table, "k")) == "size = 2"


def test_the_crs_is_recalled():
    table = ct.ForwardingTable()
    asked = Constraint("area", Relation.INSIDE, Region.box(0, 0, 1, 1, crs="EPSG:4326"))
    table.subscribe("a", Filter([asked, Constraint("at", Relation.INSIDE, ct.Point(0, 0, crs="EPSG:4326"))]), key="k")
    assert [constraint.value.crs for constraint in recalled(table, "k").filters[0]] == ["EPSG:4326"] * 2


@pytest.mark.parametrize(
    ("given_constraint", "text"),
    [
        (Constraint("x", "=", 3.0), "x = 3"),
        (Constraint("x", "<>", 2.5), "x <> 2.5"),
        (Constraint("x", ">=", Decimal("0.10")), "x >= DECIMAL('0.1')"),
        (Constraint("x", "<", 2**53 + 1), "x < 9007199254740993"),
        (Constraint("x", ">", Decimal("1E+400")), "x > DECIMAL('1E+400')"),
        (Constraint("x", "=", float("inf")), "x = 1e999"),
        (Constraint("x", "between", (1, 2)), "x BETWEEN 1 AND 2"),
        (Constraint("x", "not in", [3, 1, 2]), "x NOT IN (1, 2, 3)"),
        (Constraint("x", "=", True), "x = TRUE"),
        (Constraint("x", "<=", datetime(2020, 1, 2, tzinfo=UTC)), "x <= TIMESTAMP('2020-01-02T00:00:00Z')"),
        (Constraint("x", "<=", np.datetime64(1, "ns")), "x <= TIMESTAMP('1970-01-01T00:00:00.000000001Z')"),
        (Constraint("x", "<=", np.datetime64("30000")), "x <= TIMESTAMP('30000-01-01T00:00:00Z')"),
        (Constraint("x", "prefix", "50%"), r"x LIKE '50\%%'"),
        (Constraint("x", "not suffix", "é"), "x NOT LIKE '%é'"),
        (Constraint("x", "contains", "Ab", casei=True), "CASEI(x) LIKE CASEI('%ab%')"),
        (Constraint("x", "like", "a_%é"), "x LIKE 'a_%é'"),
        (Constraint("x", "prefix", ""), "x LIKE '%'"),
        (Constraint("x", "=", "É", accenti=True), "ACCENTI(x) = ACCENTI('E')"),
        (Constraint("x", "is null"), "x IS NULL"),
        (Constraint("x", "is not null"), "x IS NOT NULL"),
    ],
)
def test_what_is_recalled_reads_well(given_constraint, text):
    table = ct.ForwardingTable()
    table.subscribe("a", given_constraint, key="k")
    assert str(recalled(table, "k")) == text
    table.pack()
    assert str(recalled(table, "k")) == text
