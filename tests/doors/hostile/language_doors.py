"""Doors that read filters: CQL2 text and JSON, constraints with every operator, and messages against them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import contrada as ct
from hostile.awkward import LYING, deep
from hostile.files import AREA, ROW
from hostile.geometries import large, wkt
from hostile.registry import Door
from hostile.use import use_asked

DEEP = 100_000


def language_doors() -> Iterator[Door]:
    """The doors of filters."""
    yield Door("parse", ("parse", "simplify"), _parse, text_corpus, 6)
    yield Door("parse, JSON", ("parse",), lambda value: use_asked(ct.parse(value)), json_corpus, 3)
    yield Door("Constraint, every operator", ("Constraint", "Filter", "Predicate"), _constraint, constraint_corpus, 1)
    yield Door("filter and message", ("ForwardingTable.subscribe", "ForwardingTable.match", "ForwardingTable.explain",
                                      "ForwardingTable.match_many"), _match, match_corpus, 4)  # fmt: skip
    yield Door("CoveringIndex", ("CoveringIndex.subscribe", "CoveringIndex.unsubscribe"), _cover, text_corpus, 1)


def _parse(text: str) -> object:
    return use_asked(ct.parse(text))


MANY_OF_ONE: dict[str, Callable[[int], str]] = {
    "not equal": "a <> {}".format,
    "likes": "a LIKE '%{}%'".format,
    "attributes": "a{0} = {0}".format,
    "regions": lambda k: f"overlaps(a, BBOX({k}, 0, {k + 9000}, 1))",
}


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
        "date beyond 9999": "d > DATE('10000-01-01') OR t = TIMESTAMP('99999-01-01T00:00:00Z')",
        "contradiction": "a = 1 AND a = 2 AND a <> a",
        "template": "overlaps(area, $geometry) AND b >= $b",
        "400 digits": f"a > {'9' * 400}",
        "5000 digits": f"a > {'9' * 5000} AND b = {'1' * 5000}.5e-4000",
        "exponent": "a > 1e400 AND b < -1e-400",
        "lone surrogate": "a = '\ud800' AND \"\udfff\" LIKE '%\ud800%'",
        "nul": "a = '\0'",
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
        "many attributes": lambda: " AND ".join(f"a{k} = {k}" for k in range(60_000)),
        "many alternatives": lambda: " OR ".join(f"a{k} = {k}" for k in range(60_000)),
        "one attribute": lambda: " AND ".join(f"a <> {k}" for k in range(60_000)),
        "alternatives of one": lambda: " OR ".join(f"a = {k}" for k in range(60_000)),
        "products": lambda: " AND ".join(f"(a{k} = 1 OR b{k} = 2)" for k in range(20_000)),
        **{f"{name}, as many as are taken": partial(" AND ".join, map(form, range(9_990)))
           for name, form in MANY_OF_ONE.items()},
        "alternatives, as many as are taken": partial(" OR ".join, map("a = {}".format, range(9_990))),
        "two long filters": lambda: " OR ".join(
            "(" + " AND ".join(f"a LIKE '%{k}{n}%'" for k in range(4_900)) + ")" for n in "xy"
        ),
        "in": lambda: f"a IN ({', '.join(str(k) for k in range(100_000))})",
        "not in": lambda: f"a NOT IN ({', '.join(str(k) for k in range(100_000))})",
        "nots of in": _nots_of_in,
        "regions": lambda: " OR ".join(f"overlaps(a, BBOX({k}, 0, {k + 1}, 1))" for k in range(20_000)),
        "likes": lambda: " AND ".join(f"a LIKE '%{k}%'" for k in range(40_000)),
        "long like": lambda: "a LIKE '" + "%a_" * 200_000 + "b'",
        "long text": lambda: "a = '" + "x" * 900_000 + "'",
        "long name": lambda: "a" * 900_000 + " = 1",
        "digits": lambda: "a = " + "9" * 900_000,
        "key twice among many": lambda: "{" + ", ".join(f'"a{k % 20_000}": 1' for k in range(40_000)) + "}",
        **large(lambda shape: f"overlaps(a, {wkt(shape)})", 6),
    }  # fmt: skip


def _nots_of_in() -> str:
    inner = " OR ".join(f"NOT (NOT (a NOT IN ({', '.join(str(k) for k in range(200))})))" for _ in range(700))
    return f"NOT ({inner})"


@cache
def json_corpus() -> dict[str, Any]:
    """CQL2 JSON, as Python has it."""
    prop = {"property": "a"}
    return {
        "in": {"op": "in", "args": [prop, ["x", "y"]]},
        "and": {"op": "and", "args": [{"op": ">", "args": [prop, 1]}, {"op": "not", "args": [prop]}]},
        "between": {"op": "between", "args": [prop, 1, 2]},
        "like": {"op": "like", "args": [prop, "a%"]},
        "spatial": {"op": "s_intersects", "args": [prop, AREA]},
        "box": {"op": "s_within", "args": [prop, {"bbox": [0, 0, 1, 1]}]},
        "date": {"op": ">", "args": [prop, {"date": "10000-01-01"}]},
        "timestamp": {"op": "t_after", "args": [prop, {"timestamp": "2024-01-01T00:00:00Z"}]},
        "null": {"op": "isNull", "args": [prop]},
        "column": {"op": "=", "args": [prop, {"parameter": "b"}]},
        "digits": {"op": "=", "args": [prop, 10**400]},
        "nan": {"op": "=", "args": [prop, float("nan")]},
        "surrogate": {"op": "=", "args": [{"property": "\ud800"}, "\ud800"]},
        "crs": {"op": "s_within", "args": [prop, {**AREA, "crs": {"properties": {"name": "EPSG:25832"}}}]},
        "digits in coordinates": {"op": "s_within", "args": [prop, {"type": "Point", "coordinates": [10**400, 0]}]},
        "list as op": {"op": [], "args": []},
        "nothing": {},
        "deep": partial(deep, lambda inner: {"op": "not", "args": [inner]}, 20_000, prop),
        "deep coordinates": lambda: {
            "op": "s_within",
            "args": [prop, {"type": "Polygon", "coordinates": deep(lambda x: [x], 20_000)}],
        },
        "in below nots": _in_below_nots,
    }


def _in_below_nots() -> Any:
    inner = {"op": "in", "args": [{"property": "a"}, list(range(10_000))]}
    asked = deep(lambda inner: {"op": "not", "args": [inner]}, 61, inner)
    return {"op": "and", "args": [asked] * 10}


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
    values = (3, "text", "a%", None, [1, 2], ["a", None], True, 2.5, 10**400, float("nan"), b"\xff", {}, "\ud800")
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


def _lying(message: Any) -> Any:
    """The message, with the dicts that lie in the place of their names, at the top and one level below."""
    if isinstance(message, dict):
        return {name: _lying_value(value) for name, value in message.items()}
    return _lying_value(message)


def _lying_value(value: Any) -> Any:
    return LYING[value]() if isinstance(value, str) and value in LYING else value


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
        "nan": {"filter": "severity >= 3 OR NOT severity >= 3", "message": {"severity": float("nan")}},
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
        "many attributes": lambda: {"filter": " AND ".join(f"a{k} = {k}" for k in range(20_000)),
                     "message": {f"a{k}": k for k in range(20_000)}},
        "many alternatives": lambda: {"filter": " OR ".join(f"a{k} = {k}" for k in range(16_000)),
                     "message": {f"a{k}": k for k in range(16_000)}},
        "deep message": lambda: {"filter": "a = 1", "message": deep(lambda value: {"a": value}, 50_000)},
        "deep list": lambda: {"filter": "a = 1", "message": {"a": deep(lambda value: [value], 50_000)}},
    }  # fmt: skip


def _cover(text: str) -> object:
    index = ct.CoveringIndex(k=2, withdraw=True)
    index.subscribe("a", "severity >= 3")
    asked = ct.parse(text)  # once, or the time would be that of two inputs
    index.subscribe("b", asked)
    index.subscribe("c", asked)
    return index.unsubscribe("b"), list(index.forwarded)
