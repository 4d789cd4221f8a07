"""CQL2 JSON: what each form means, and how it fails."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

import contrada as ct
from contrada import Column, Constraint, Filter, Point, Predicate, Region, Relation, RelationSet
from contrada.cql2 import LanguageError, parse, parse_json, to_json
from contrada.model.filter import as_predicate

X = {"property": "x"}
BOX = Region.box(0, 0, 4, 4)
GEOJSON = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}


def op(name, *arguments):
    return {"op": name, "args": list(arguments)}


MEANINGS = [
    # From the examples of OGC 21-065 that are in scope (examples/json of the standard's repository).
    (op("and", op("=", {"property": "landsat:scene_id"}, "LC82030282019133LGN00"), op(">=", {"property": "w"}, 15)),
     Filter([Constraint("landsat:scene_id", "=", "LC82030282019133LGN00"), Constraint("w", ">=", 15)])),
    (op("between", {"property": "eo:cloud_cover"}, 0.1, 0.2), Constraint("eo:cloud_cover", "between", (0.1, 0.2))),
    (op("like", {"property": "eo:instrument"}, "OLI%"), Constraint("eo:instrument", "like", "OLI%")),
    (op("in", {"property": "p"}, ["153", "154", "15X"]), Constraint("p", "in", ["153", "154", "15X"])),
    (op("not", op("in", {"property": "category"}, [1, 2, 3, 4])), Constraint("category", "not in", [1, 2, 3, 4])),
    (op("isNull", {"property": "n"}), Constraint("n", "is null")),
    (op("not", op("isNull", {"property": "n"})), Constraint("n", "is not null")),
    (op("in", op("casei", {"property": "road"}), [op("casei", "Οδος"), op("casei", "Straße")]),
     Constraint("road", "in", ["Οδος", "Straße"], casei=True)),
    (op("=", op("accenti", {"property": "e"}), op("accenti", "débárquér")),
     Constraint("e", "=", "débárquér", accenti=True)),
    (op("s_intersects", {"property": "geometry"}, GEOJSON), Constraint("geometry", RelationSet.S_INTERSECTS, BOX)),
    (op("s_within", {"property": "location"}, {"bbox": [-118, 33.8, -117.9, 34]}),
     Constraint("location", RelationSet.S_WITHIN, Region.box(-118, 33.8, -117.9, 34))),
    (op(">=", {"property": "updated"}, {"date": "2012-06-05"}), Constraint("updated", ">=", date(2012, 6, 5))),
    (op(">=", {"property": "updated"}, {"timestamp": "2012-08-10T05:30:00Z"}),
     Constraint("updated", ">=", datetime(2012, 8, 10, 5, 30, tzinfo=UTC))),
    (op("or", op("<>", X, 5), op("<", 5, X)),
     Predicate([Filter([Constraint("x", "!=", 5)]), Filter([Constraint("x", ">", 5)])])),
    (op("not", X), Constraint("x", "=", False)),
    (X, Constraint("x", "=", True)),
    # Our own.
    (op("overlaps", X, GEOJSON), Constraint("x", Relation.OVERLAPS, BOX)),
    (op("covers", GEOJSON, X), Constraint("x", Relation.COVERED_BY, BOX)),
    (op("relation", X, {"type": "Point", "coordinates": [1, 2]}, "meets", "covered-by"),
     Constraint("x", Relation.MEETS | Relation.COVERED_BY, Point(1, 2))),
    (op("=", X, {"decimal": "0.1"}), Constraint("x", "=", Decimal("0.1"))),
    (op("=", X, {"column": "c"}), Constraint("x", "=", Column("c"))),
    (op("prefix", X, {"column": "c"}), Constraint("x", "prefix", Column("c"))),
    (op("textContains", X, "a%"), Constraint("x", "contains", "a%")),
    (op("=", X, 2**53 + 1), Constraint("x", "=", 2**53 + 1)),
]  # fmt: skip

FAULTS = [  # JSON, its path, part of the message
    ({}, "", "one of the keys op, property"),
    ({"op": "="}, "", "op '=' needs `args`"),
    ({"op": 5, "args": []}, "/op", "op: need text, got int"),
    ({"op": "=", "args": [X, 1], "more": 1}, "", "unknown key 'more'"),
    (op("=", X), "", "= needs 2 arguments, got 1"),
    (op("=", {"property": 5}, 1), "/args/0/property", "need non-empty text"),
    (op("=", {"property": ""}, 1), "/args/0/property", "need non-empty text"),
    (op("and"), "", "AND needs at least one condition"),
    (op("not", X, X), "", "NOT needs one condition, got 2"),
    (op("and", X, op("s_covers", X, X)), "/args/1/op", "write S_CONTAINS"),
    (op("=", X, op("+", 1, 2)), "/args/1/op", "arithmetic (`+`) is not supported"),
    (op("t_during", X, {"interval": ["..", ".."]}), "/op", "T_DURING is not supported"),
    (op("=", X, {"interval": ["..", ".."]}), "/args/1/interval", "BETWEEN"),
    (op("in", X, 5), "/args/1", "IN needs a list"),
    (op("in", X, []), "", "values of one kind, got none"),
    (op("=", X, [1, 2]), "/args/1", "arrays are not supported"),
    (op("=", X, None), "/args/1", "write `x IS NULL`"),
    (op("=", X, {"date": 5}), "/args/1/date", "DATE needs text"),
    (op("=", X, {"date": "5"}), "/args/1/date", "is not a date"),
    (op("=", X, {"date": "2020-01-01", "x": 1}), "/args/1", "unknown key 'x'"),
    (op("meets", X, {"type": "MultiPoint", "coordinates": [[0, 0], [1, 1]]}), "/args/1", "MultiPoint is not supported"),
    (op("inside", X, {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}), "", "`inside` relates regions"),
    (op("meets", X, {"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}), "/args/1", "three distinct"),
    (op("meets", X, {"type": "Polygon", "coordinates": 7}), "/args/1", "malformed"),
    (op("meets", X, {"type": "Polygon"}), "/args/1", "empty"),
    (op("meets", X, {"type": "Point", "coordinates": ["a", None]}), "/args/1", "two numbers"),
    (op("meets", X, {"type": "Point"}), "/args/1", "need coordinates [x, y]"),
    (op("meets", X, {"type": "Point", "coordinates": [1, 2], "crs": "x"}), "/args/1", "unknown key 'crs'"),
    (op("meets", X, {"type": ["Point"]}), "/args/1", "malformed"),
    (op("meets", X, {"bbox": 5}), "/args/1/bbox", "bbox: need a list of four numbers"),
    (op("meets", X, {"bbox": [0, 0, 0, 1, 1, 1]}), "/args/1/bbox", "got six; heights are not supported"),
    (op("meets", X, {"bbox": [0, 0, True, 1]}), "/args/1/bbox/2", "BBOX needs numbers"),
    (op("=", X, float("nan")), "/args/1", "is never true"),
    (op("=", X, b"bytes"), "/args/1", "need a JSON value, got bytes"),
    (op("=", X, {"column": 5}), "/args/1/column", "column: need text, got int"),
]


@pytest.mark.parametrize(("value", "meaning"), MEANINGS, ids=lambda case: str(case)[:60])
def test_json_means_what_it_says(value, meaning):
    assert parse_json(value) == as_predicate(meaning)
    assert parse(json.dumps(value)) == parse("\n " + json.dumps(value, indent=1)) == as_predicate(meaning)
    assert parse_json(to_json(meaning)) == as_predicate(meaning)


@pytest.mark.parametrize(("value", "path", "message"), FAULTS, ids=lambda case: str(case)[:60])
def test_faults_have_a_path(value, path, message):
    with pytest.raises(LanguageError) as caught:
        parse_json(value)
    assert message in str(caught.value)
    assert caught.value.path == path
    assert caught.value.line is None


def test_deep_json_is_refused():
    deep = X
    for _ in range(150):
        deep = op("and", op("not", deep), X)
    with pytest.raises(LanguageError, match="nested more than 200 deep"):
        parse(deep)
    with pytest.raises(LanguageError, match="nested too deeply"):
        parse('{"op": "not", "args": [' * 100_000)
    taken = X
    for _ in range(200):
        taken = op("not", taken)
    assert parse(taken) == parse("x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"op": "=", "op": "<", "args": []}', "duplicate key 'op'"),
        ('{"op": "=", "args": [{"property": "x"}, NaN]}', "NaN is not a JSON number"),
        ('{"op": "=",\n "args": }', "line 2, column 10: Expecting value"),
        ('{"op": "=", "args": [{"property": "x"}, ' + "9" * 5000 + "]}", "cannot be read"),
        ('{"op"', "line 1, column 6"),
    ],
)
def test_bad_json_text(text, message):
    with pytest.raises(LanguageError, match=message):
        parse(text)


@pytest.mark.parametrize("value", [5, None, [X], b"x = 1"])
def test_neither_text_nor_json(value):
    with pytest.raises(ct.FilterError, match="CQL2 JSON: need an object, got"):
        parse(value)


def test_subscriptions_take_json():
    table = ct.ForwardingTable()
    table.subscribe("a", op("s_intersects", {"property": "area"}, GEOJSON))
    table.subscribe("b", json.dumps(op(">", {"property": "n"}, 3)))
    assert set(table.match({"area": Point(1, 1), "n": 4})) == {"a", "b"}


def test_types_of_ones_own_have_no_json(own_types):
    class Parity(ct.ValueType):
        name, operators = "parity", ("has parity",)

        def takes(self, operator, operand):
            return operand in ("odd", "even")

    ct.register_type(Parity())
    with pytest.raises(ct.FilterError, match="cannot be written as CQL2 JSON"):
        to_json(Constraint("x", "has parity", "odd"))
