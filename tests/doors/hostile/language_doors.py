"""Doors that read filters: CQL2 text and JSON, constraints with every operator, and messages against them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import contrada as ct
from hostile.awkward import LYING, deep
from hostile.files import AREA, ROW
from hostile.geometries import large, wkt
from hostile.mutation import DATES, NUMBERS, PIECES, replaced
from hostile.registry import Door
from hostile.use import use_asked

DEEP = 100_000


def language_doors() -> Iterator[Door]:
    """The doors of filters."""
    yield Door("parse", ("parse", "simplify"), _parse, text_corpus, 6)
    yield Door("parse, JSON", ("parse",), _parse, json_corpus, 3)
    yield Door("Constraint, every operator", ("Constraint", "Filter", "Predicate"), _constraint, constraint_corpus, 1)
    yield Door("filter and message", ("ForwardingTable.subscribe", "ForwardingTable.match", "ForwardingTable.explain",
                                      "ForwardingTable.match_many"), _match, match_corpus, 4)  # fmt: skip
    yield Door("CoveringIndex", ("CoveringIndex.subscribe", "CoveringIndex.unsubscribe"), _cover, text_corpus, 1)


# Conditions by number, how they are joined, and how many: 9,990 are taken, more are too many.
MANY = {
    "attributes": (" AND ", "a{0} = {0}", (9_990, 60_000)),
    "attributes in alternatives": (" OR ", "a{0} = {0}", (60_000,)),
    "not equal": (" AND ", "a <> {0}", (9_990, 60_000)),
    "alternatives of one": (" OR ", "a = {0}", (9_990, 60_000)),
    "products": (" AND ", "(a{0} = 1 OR b{0} = 2)", (20_000,)),
    "likes": (" AND ", "a LIKE '%{0}%'", (9_990, 40_000)),
    "regions apart": (" OR ", "overlaps(a, BBOX({0}, 0, {0}.5, 1))", (20_000,)),
    "regions": (" AND ", "overlaps(a, BBOX({0}, 0, 1{0:04}, 1))", (9_990,)),
}


def joined(joiner: str, condition: str, count: int) -> str:
    """So many conditions as one filter."""
    return joiner.join(map(condition.format, range(count)))


def _parse(asked: Any) -> object:
    return use_asked(ct.parse(asked))


@cache
def text_corpus() -> dict[str, Any]:
    """CQL2 text."""
    return {
        "relation": "overlaps(cloud, POLYGON((10 5, 7 12, 1 1, 10 5))) AND pressure < 1000",
        "nots": "NOT (a = 1 OR b <> 'it''s') AND c NOT IN (1, 2.5, -3e4) OR \"d e.f\" BETWEEN 1 AND 2",
        "text": "CASEI(ACCENTI(n)) LIKE CASEI(ACCENTI('a\\%_%')) AND t > TIMESTAMP('2020-01-02T03:04:05.678Z')",
        "union": "relation(a, MULTIPOLYGON(((0 0, 1 0, 0 1, 0 0)), ((5 5, 6 5, 5 6, 5 5))), 'meets') OR is_open",
        "ogc": "S_WITHIN(POINT(1 2), a) AND S_INTERSECTS(b, BBOX(-1, -2, 3.5, 4)) AND (5 < x AND TRUE)",
        "date": "d > DATE('2020-01-01') OR t IS NOT NULL",
        **replaced("d > DATE('2020-01-01') OR t = TIMESTAMP('2020-01-01')", "2020-01-01", DATES),
        "contradiction": "a = 1 AND a = 2 AND a <> a",
        "template": "overlaps(area, $geometry) AND b >= $b",
        **replaced("a > 3 AND b <= -3", "3", (f"{'1' * 5000}.5e-4000", *NUMBERS)),
        **replaced("a = 'x' AND \"b\" LIKE '%x%'", "x", PIECES),
        "lone surrogate": "a = '\ud800' AND \"\udfff\" LIKE '%\ud800%'",
        "curve": "overlaps(a, CURVEPOLYGON(CIRCULARSTRING(0 0, 1 1, 2 0, 1 -1, 0 0)))",
        "empty geometry": "overlaps(a, POLYGON EMPTY)",
        "nested": "NOT (" * 60 + "a = 1" + ")" * 60,
        "arithmetic": "a + 1 = 2 * (b - 3) / 0",
        "double quotes": 'a = "text"',
        "two equals": "a == 1",
        "json text": json.dumps({"op": "in", "args": [{"property": "kind"}, ["a", "b"]]}),
        "json text, key twice": '{"op": "not", "op": "and", "args": []}',
        "nothing": "",
        "nested deep": lambda: "NOT (" * DEEP + "a = 1" + ")" * DEEP,
        "brackets": lambda: "(" * 900_000,
        "nots deep": lambda: "NOT " * 200_000 + "a = 1",
        "nested geometry": lambda: "overlaps(a, " + "GEOMETRYCOLLECTION(" * 40_000,
        **{f"{name}, {count:,}": partial(joined, joiner, condition, count)
           for name, (joiner, condition, counts) in MANY.items() for count in counts},
        "two long filters": lambda: " OR ".join(
            f"({joined(' AND ', like, 4_900)})" for like in ("a LIKE '%{}x%'", "a LIKE '%{}y%'")
        ),
        "in": lambda: f"a IN ({joined(', ', '{}', 100_000)})",
        "not in": lambda: f"a NOT IN ({joined(', ', '{}', 100_000)})",
        "nots of in": _nots_of_in,
        "long like": lambda: "a LIKE '" + "%a_" * 200_000 + "b'",
        "long text": lambda: "a = '" + "x" * 900_000 + "'",
        "long name": lambda: "a" * 900_000 + " = 1",
        "digits": lambda: "a = " + "9" * 900_000,
        "key twice among many": lambda: "{" + ", ".join(f'"a{k % 20_000}": 1' for k in range(40_000)) + "}",
        **large(lambda shape: f"overlaps(a, {wkt(shape)})", 6),
    }  # fmt: skip


def _nots_of_in() -> str:
    inner = f"NOT (NOT (a NOT IN ({joined(', ', '{}', 200)})))"
    return f"NOT ({' OR '.join([inner] * 700)})"


@cache
def json_corpus() -> dict[str, Any]:
    """CQL2 JSON, as Python has it."""
    return {
        "in": operation("in", PROPERTY, ["x", "y"]),
        "like": operation("like", PROPERTY, "a%"),
        "spatial": operation("s_intersects", PROPERTY, AREA),
        "box": operation("s_within", PROPERTY, {"bbox": [0, 0, 1, 1]}),
        "timestamp": operation("t_after", PROPERTY, {"timestamp": "2024-01-01T00:00:00Z"}),
        **{date: operation(">", PROPERTY, {"date": date}) for date in DATES},
        **{
            f"equal to {value!a:.9}": operation("=", PROPERTY, value)
            for value in (10**400, math.nan, {"parameter": "b"})
        },
        "crs": operation("s_within", PROPERTY, {**AREA, "crs": {"properties": {"name": "EPSG:25832"}}}),
        "digits in coordinates": operation("s_within", PROPERTY, {"type": "Point", "coordinates": [10**400, 0]}),
        "and": operation("and", operation(">", PROPERTY, 1), operation("not", PROPERTY)),
        "between": operation("between", PROPERTY, 1, 2),
        "null": operation("isNull", PROPERTY),
        "surrogate": operation("=", {"property": "\ud800"}, "\ud800"),
        "list as op": {"op": [], "args": []},
        "nothing": {},
        "deep": partial(deep, partial(operation, "not"), 20_000, PROPERTY),
        "deep coordinates": lambda: operation(
            "s_within", PROPERTY, {**AREA, "coordinates": deep(lambda x: [x], 20_000)}
        ),
        "in below nots": _in_below_nots,
    }


PROPERTY = {"property": "a"}


def operation(operator: str, *operands: Any) -> dict[str, Any]:
    """An operation in CQL2 JSON."""
    return {"op": operator, "args": list(operands)}


def _in_below_nots() -> Any:
    asked = deep(partial(operation, "not"), 61, operation("in", PROPERTY, list(range(10_000))))
    return operation("and", *[asked] * 10)


def _constraint(case: dict[str, Any]) -> object:
    flags = {name: bool(case.get(name)) for name in ("casei", "accenti")}
    value = case.get("value")
    one = ct.Constraint(case.get("attribute"), case.get("operator"), value, **flags)  # type: ignore[arg-type]
    return use_asked(ct.Predicate([ct.Filter([one, one]), ct.Filter([one])]))


@cache
def constraint_corpus() -> dict[str, Any]:
    """Constraints by attribute, operator and value."""
    operators = ("=", "!=", "<", "<=", ">", ">=", "prefix", "suffix", "contains", "like", "not like", "in", "not in",
                 "between", "exists", "is null", "not null", "overlaps", "s_intersects", "rubbish")  # fmt: skip
    values = (3, "text", "a%", None, [1, 2], ["a", None], True, 2.5, 10**400, math.nan, b"\xff", {}, "\ud800")
    return {
        f"{operator} {k}": {"attribute": "a", "operator": operator, "value": value, "casei": k % 2, "accenti": k % 3}
        for operator in operators for k, value in enumerate(values)
    }  # fmt: skip


def _match(case: dict[str, Any]) -> object:
    """Subscribe, match every way, explain, pack and match again."""
    table = ct.ForwardingTable()
    table.subscribe("ops", "severity >= 3", key="old")
    table.subscribe("ops", case.get("filter"), key="new")  # type: ignore[arg-type]
    message = _lying(case.get("message"))
    found = list(table.match(message)), list(table.match_keys(message)), table.explain(message, "new")
    if isinstance(found[2].truth, bool):
        assert found[2].truth == ("new" in found[1]), "explain and match disagree"
    str(found[2])
    many = table.match_many([message, {}], by="subscription", threads=1)
    table.pack()
    assert list(table.match(message)) == found[0], "packing changes the answer"
    return many


def _lying(message: Any, is_top: bool = True) -> Any:
    """The message, with the dicts that lie in the place of their names, at the top and one level below."""
    if is_top and isinstance(message, dict):
        return {name: _lying(value, is_top=False) for name, value in message.items()}
    return LYING[message]() if isinstance(message, str) and message in LYING else message


LONG_LIKES = {  # the pattern, and how long the text is
    "long like": ("%a" * 10_000 + "b", 200_000),
    "long like of one": ("%_a" * 7_000 + "b", 200_000),
    "long like of runs": (f"%{'a' * 20_000}b%", 400_000),
    "like of runs, as long as is taken": (f"%{'a' * 4_080}b%", 900_000),
    "like, as long as is taken": ("%_a" * 1_360 + "b", 900_000),
}


@cache
def match_corpus() -> dict[str, Any]:
    """Filters with messages."""
    spatial = "S_INTERSECTS(area, BBOX(0, 0, 2, 2)) AND severity >= 3 OR kind LIKE '%oo_'"
    message: dict[str, Any] = {"severity": 4, "kind": "flood", "is_open": True}
    return {
        "scalars": {"filter": "severity >= 3 AND kind = 'flood' OR is_open", "message": message},
        "spatial": {"filter": spatial, "message": message},
        "geojson": {"filter": spatial, "message": {**message, "area": AREA}},
        "nested": {"filter": "wind.speed > 3", "message": {"wind": {"speed": 12}}},
        "row": {"filter": "severity >= 3", "message": dict(ROW)},
        "digits": {"filter": f"severity >= {'9' * 400}", "message": {"severity": 10**400}},
        "5000 digits": {"filter": "severity >= 3", "message": {"severity": 10**5000}},
        "nan": {"filter": "severity >= 3 OR NOT severity >= 3", "message": {"severity": math.nan}},
        "surrogates": {"filter": "kind LIKE '%\ud800_'", "message": {"kind": "a\ud800b", "\udfff": 1}},
        "bytes": {"filter": spatial, "message": {"area": b"\x01\x03", "kind": b"\xff"}},
        "names": {"filter": "\"a b\" = 1 AND \"\" = 2", "message": {"a b": 1, "": 2, "\0": 3}},
        "not text": {"filter": "a = 1", "message": {"a": [1], "b": {"c": None}}},
        **{name: {"filter": "severity >= 3 AND kind = 'flood'", "message": name} for name in LYING},
        **{f"{name}, nested": {"filter": "a.severity >= 3", "message": {"a": name}} for name in LYING},
        "list": {"filter": "a = 1", "message": [1]},
        "none": {"filter": "a = 1", "message": None},
        "text": {"filter": "a = 1", "message": "a"},
        **{name: partial(lambda pattern, size: {"filter": f"a LIKE '{pattern}'", "message": {"a": "a" * size}}, *case)
           for name, case in LONG_LIKES.items()},
        **{f"many attributes,{joiner}": partial(_many_attributes, joiner, count)
           for joiner, count in ((" AND ", 20_000), (" OR ", 16_000))},
        "deep message": lambda: {"filter": "a = 1", "message": deep(lambda value: {"a": value}, 50_000)},
        "deep list": lambda: {"filter": "a = 1", "message": {"a": deep(lambda value: [value], 50_000)}},
    }  # fmt: skip


def _many_attributes(joiner: str, count: int) -> dict[str, Any]:
    return {"filter": joined(joiner, "a{0} = {0}", count), "message": {f"a{k}": k for k in range(count)}}


def _cover(text: str) -> object:
    index = ct.CoveringIndex(k=2, withdraw=True)
    index.subscribe("a", "severity >= 3")
    asked = ct.parse(text)  # once, or the time would be that of two inputs
    index.subscribe("b", asked)
    index.subscribe("c", asked)
    return index.unsubscribe("b"), list(index.forwarded)
