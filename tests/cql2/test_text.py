"""CQL2 text: the standard's examples, what each form means, how texts fail and which hint they get."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import numpy as np
import pytest

import contrada as ct
from contrada import Column, Constraint, Filter, LanguageError, Line, LineRelation, Point, Predicate, Region, Relation
from contrada import RelationSet as R
from contrada.cql2 import parse, parse_text, to_json
from contrada.model.filter import as_predicate

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
REGION = Region.box(0, 0, 4, 4)


def both(*constraints):
    return Filter(constraints)


def either(*parts):
    return Predicate([part if isinstance(part, Filter) else Filter([part]) for part in parts])


# From the examples of OGC 21-065 that are in scope (examples/text of the standard's repository).
STANDARD = [
    ("avg_wind_speed >= 15", Constraint("avg_wind_speed", ">=", 15)),
    ("landsat:scene_id = 'LC82030282019133LGN00'", Constraint("landsat:scene_id", "=", "LC82030282019133LGN00")),
    ("eo:instrument LIKE 'OLI%'", Constraint("eo:instrument", "like", "OLI%")),
    ("landsat:wrs_path IN ('153','154','15X')", Constraint("landsat:wrs_path", "in", ["153", "154", "15X"])),
    ("eo:cloud_cover < 0.1 AND landsat:wrs_row = 28 AND landsat:wrs_path = 203",
     both(Constraint("eo:cloud_cover", "<", 0.1), Constraint("landsat:wrs_row", "=", 28),
          Constraint("landsat:wrs_path", "=", 203))),
    ("eo:cloud_cover = 0.1 OR eo:cloud_cover = 0.2",
     either(Constraint("eo:cloud_cover", "=", 0.1), Constraint("eo:cloud_cover", "=", 0.2))),
    ("eo:cloud_cover BETWEEN 0.1 AND 0.2 AND landsat:wrs_row = 28 AND landsat:wrs_path = 203",
     both(Constraint("eo:cloud_cover", "between", (0.1, 0.2)), Constraint("landsat:wrs_row", "=", 28),
          Constraint("landsat:wrs_path", "=", 203))),
    ("eo:cloud_cover BETWEEN 0 AND 50", Constraint("eo:cloud_cover", "between", (0, 50))),
    ("S_INTERSECTS(geometry,POLYGON((-77.0824 38.7886,-77.0189 38.7886,-77.0189 38.8351,-77.0824 38.8351,"
     "-77.0824 38.7886)))",
     Constraint("geometry", R.S_INTERSECTS, Region.box(-77.0824, 38.7886, -77.0189, 38.8351))),
    ("updated >= DATE('2012-06-05') AND updated < DATE('2012-06-06')",
     both(Constraint("updated", ">=", date(2012, 6, 5)), Constraint("updated", "<", date(2012, 6, 6)))),
    ("updated >= TIMESTAMP('2012-08-10T05:30:00Z')",
     Constraint("updated", ">=", datetime(2012, 8, 10, 5, 30, tzinfo=UTC))),
    ("cityName = 'Toronto'", Constraint("cityName", "=", "Toronto")),
    ("balance-150.0 > 0", None),
    ("CASEI(road_class) IN (CASEI('Οδος'),CASEI('Straße'))",
     Constraint("road_class", "in", ["Οδος", "Straße"], casei=True)),
    ("ACCENTI(etat_vol) = ACCENTI('débárquér')", Constraint("etat_vol", "=", "débárquér", accenti=True)),
    ("CASEI(geophys:SURVEY_NAME) LIKE CASEI('%calcutta%')",
     Constraint("geophys:SURVEY_NAME", "like", "%calcutta%", casei=True)),
    ("geophys:SURVEY_NAME IS NOT NULL", Constraint("geophys:SURVEY_NAME", "is not null")),
    ("NOT (geophys:SURVEY_NAME IS NULL)", Constraint("geophys:SURVEY_NAME", "is not null")),
    ("name LIKE 'Smith.'", Constraint("name", "like", "Smith.")),
    ("owner NOT LIKE '%Mike%'", Constraint("owner", "not contains", "Mike")),
    ("depth BETWEEN 100.0 AND 150.0", Constraint("depth", "between", (100, 150))),
    ("cityName IN ('Toronto','Frankfurt','Tokyo','New York')",
     Constraint("cityName", "in", ["Toronto", "Frankfurt", "Tokyo", "New York"])),
    ("category NOT IN (1,2,3,4)", Constraint("category", "not in", [1, 2, 3, 4])),
    ("value = field^2+8", None),
    ("S_WITHIN(location,BBOX(-118,33.8,-117.9,34))",
     Constraint("location", R.S_WITHIN, Region.box(-118, 33.8, -117.9, 34))),
    ("T_DURING(INTERVAL(starts_at, ends_at), INTERVAL('2005-01-10','2010-02-10'))", None),
    ("S_CROSSES(road, LINESTRING(43.7286 -79.2986,43.7311 -79.2996))",
     Constraint("road", LineRelation.CROSSES, Line([(43.7286, -79.2986), (43.7311, -79.2996)]))),
    ("A_CONTAINS(layer:ids, ('layers-ca','layers-us'))", None),
    ("swimming_pool=TRUE AND (floors>5 OR material LIKE 'brick%' OR material LIKE '%brick')",
     either(*(both(Constraint("swimming_pool", "=", True), other) for other in (
         Constraint("floors", ">", 5), Constraint("material", "prefix", "brick"),
         Constraint("material", "suffix", "brick"))))),
    ("(floors > 5 AND swimming_pool = TRUE) OR NOT (floors >= 20)",
     either(both(Constraint("floors", ">", 5), Constraint("swimming_pool", "=", True)), Constraint("floors", "<", 20))),
    ("NOT floors < 5 OR swimming_pool=TRUE",
     either(Constraint("floors", ">=", 5), Constraint("swimming_pool", "=", True))),
    ("\"vehicle height\" > (bridge_clearance-1)", None),
    ("built BETWEEN TIMESTAMP('1970-01-01T00:00:00Z') AND TIMESTAMP('1990-12-31T23:59:59Z')",
     Constraint("built", "between",
                (datetime(1970, 1, 1, tzinfo=UTC), datetime(1990, 12, 31, 23, 59, 59, tzinfo=UTC)))),
]  # fmt: skip

MEANINGS = [
    ("5 < x", Constraint("x", ">", 5)),
    ("l\u0131ke = 5 AND größe:max.1 > 2", both(Constraint("l\u0131ke", "=", 5), Constraint("größe:max.1", ">", 2))),
    ("5 >= x", Constraint("x", "<=", 5)),
    ("5 = x", Constraint("x", "=", 5)),
    ("5 <> x", Constraint("x", "!=", 5)),
    ("x != 5", Constraint("x", "!=", 5)),
    ("(x) = (5)", Constraint("x", "=", 5)),
    ("is_open", Constraint("is_open", "=", True)),
    ("NOT is_open", Constraint("is_open", "=", False)),
    ("not not x = 1", Constraint("x", "=", 1)),
    ("a AND NOT (b OR c)", both(*(Constraint(n, "=", v) for n, v in (("a", True), ("b", False), ("c", False))))),
    ("NOT (a AND b)", either(Constraint("a", "=", False), Constraint("b", "=", False))),
    ("x = 1 AND TRUE", Constraint("x", "=", 1)),
    ("x = 1 OR FALSE", Constraint("x", "=", 1)),
    ("x = 1 AND x = 1 OR x = 1", Constraint("x", "=", 1)),
    ("x = -5", Constraint("x", "=", -5)),
    ("x = +.5", Constraint("x", "=", 0.5)),
    ("x = 5.", Constraint("x", "=", 5)),
    ("x = 9007199254740993", Constraint("x", "=", 2**53 + 1)),
    ("x = 9007199254740993.0", Constraint("x", "=", 2**53)),
    ("x = 1.00000000000000011102230246251565404236316680908203125", Constraint("x", "=", 1.0)),
    ("x = 1.00000000000000011102230246251565404236316680908203126", Constraint("x", "=", 1 + 2**-52)),
    ("x < 1e999", Constraint("x", "<", float("inf"))),
    ("x = DECIMAL('0.1')", Constraint("x", "=", ct.model.values.Decimal("0.1"))),
    ("x NOT BETWEEN -1 AND +1", Constraint("x", "not between", (-1, 1))),
    ("x IS NULL", Constraint("x", "is null")),
    ("CASEI(x) IS NULL", Constraint("x", "is null")),
    ("x = 'it''s'", Constraint("x", "=", "it's")),
    (r"x LIKE '50\%%'", Constraint("x", "prefix", "50%")),
    ("CASEI(x) = 'straße'.", None),
    ("CASEI(x) = 'abc'", Constraint("x", "=", "abc", casei=True)),
    ("ACCENTI(CASEI(x)) LIKE CASEI(ACCENTI('A%'))", Constraint("x", "prefix", "a", casei=True, accenti=True)),
    ("x PREFIX 'a%'", Constraint("x", "prefix", "a%")),
    ("x NOT CONTAINS $part", Constraint("x", "not contains", Column("part"))),
    ("prefix = 'contains' AND NOT suffix = 'a'",
     both(Constraint("prefix", "=", "contains"), Constraint("suffix", "!=", "a"))),
    ('"a ""b""".c = 1', None),
    ('"a ""b"".c" = 1', Constraint('a "b".c', "=", 1)),
    ("point IS NULL AND date = 1", both(Constraint("point", "is null"), Constraint("date", "=", 1))),
    ("x\t=\n1\r\nAND\u00a0y=2", both(Constraint("x", "=", 1), Constraint("y", "=", 2))),
    ("at > TIMESTAMP('2020-01-02T03:04:05.5+01:00')",
     Constraint("at", ">", datetime(2020, 1, 2, 2, 4, 5, 500000, tzinfo=UTC))),
    ("at = TIMESTAMP('2020-01-02T03:04:05.000000001')",
     Constraint("at", "=", np.datetime64("2020-01-02T03:04:05.000000001"))),
    (f"S_WITHIN({SQUARE}, area)", Constraint("area", R.S_CONTAINS, REGION)),
    (f"inside({SQUARE}, area)", Constraint("area", Relation.CONTAINS, REGION)),
    (f"relation({SQUARE}, area, 'covers', 'meets')", Constraint("area", Relation.COVERED_BY | Relation.MEETS, REGION)),
    (f"relation(area, {SQUARE}, 'Covered_By', 'meets')",
     Constraint("area", Relation.COVERED_BY | Relation.MEETS, REGION)),
    (f"relation(area, {SQUARE})", Constraint("area", R.NONE, REGION)),
    (f"NOT S_INTERSECTS(area, {SQUARE})", Constraint("area", Relation.DISJOINT, REGION)),
    ("meets(area, POINT(1 2))", Constraint("area", Relation.MEETS, Point(1, 2))),
    ("meets(area, POINT Z (1 2 3))", Constraint("area", Relation.MEETS, Point(1, 2))),
    ("equals(area, MULTIPOLYGON(((0 0, 4 0, 4 4, 0 4, 0 0))))", Constraint("area", Relation.EQUALS, REGION)),
    ("overlaps(area, $geometry) AND severity >= $min_severity",
     both(Constraint("area", Relation.OVERLAPS, Column("geometry")),
          Constraint("severity", ">=", Column("min_severity")))),
    ('x = $"min severity"', Constraint("x", "=", Column("min severity"))),
]  # fmt: skip

FAULTS = [  # text, line, column, part of the message
    ("", 1, 1, "unexpected end of text"),
    ("x =", 1, 4, "expected one of (, FALSE, TRUE, a $column, a geometry, a number"),
    ("x = 1\nAND y > > 2", 2, 9, "unexpected '>'"),
    ("x = 1 y = 2", 1, 7, "expected one of AND, OR, the end"),
    ("(x = 1", 1, 7, "expected one of ), ,, AND, OR"),
    ("x BETWEEN 1 OR 2", 1, 13, "expected one of AND"),
    ("x IS 5", 1, 6, "expected one of NOT, NULL"),
    ("x = 'abc", 1, 5, "text is not closed"),
    (r"x = 'it\'s'", 1, 10, "inside text write '' for '"),
    ('"abc = 5', 1, 1, "name is not closed"),
    ("x = §5", 1, 5, "unexpected character '§'"),
    ("x = $ 5", 1, 5, "need the name of a column after $"),
    ("x = y", 1, 5, "two attributes cannot be compared"),
    ("x IN (1, y)", 1, 10, "two attributes cannot be compared"),
    ("5 = 5", 1, 1, "two values cannot be compared"),
    ("5 BETWEEN x AND 7", 1, 1, "BETWEEN needs an attribute on its left side"),
    ("x = NULL", 1, 5, "write `x IS NULL`"),
    ("NULL", 1, 1, "NULL is not a condition"),
    ("x = 1 OR 5", 1, 10, "need a condition, got a value"),
    ("$flag", 1, 1, "need a condition, got a value"),
    ("TRUE", 1, 1, "always true"),
    ("x = 1 OR NOT FALSE", 1, 1, "always true"),
    ("x = 1 AND FALSE", 1, 1, "never true"),
    ("x + 1 = 5", 1, 3, "arithmetic (`+`) is not supported"),
    ("x = 5 * 2", 1, 7, "arithmetic (`*`) is not supported"),
    ("x = -y", 1, 5, "arithmetic (`-`) is not supported"),
    ("x = 5 div 2", 1, 7, "arithmetic (`div`) is not supported"),
    ("a = 1 AND S_COVERS(area, b)", 1, 11, "write S_CONTAINS"),
    (
        "meets(area, MULTIPOINT(0 0, 1 1))",
        1,
        13,
        "POINT, LINESTRING, MULTILINESTRING or BBOX",
    ),
    ("T_AFTER(t, DATE('2020-01-01'))", 1, 1, "write `time > TIMESTAMP('...')`"),
    ("T_STARTS(t, u)", 1, 1, "values are instants"),
    ("t = INTERVAL('2020-01-01', '..')", 1, 5, "BETWEEN"),
    ("A_EQUALS(a, ('x', 'y'))", 1, 1, "arrays are not supported"),
    ("a = ('x', 'y')", 1, 5, "arrays are not supported"),
    ("avg(x) = 5", 1, 1, "unknown function 'avg'"),
    ("s_intersect(x, POINT(1 2))", 1, 1, "did you mean s_intersects?"),
    ("within(x, POINT(1 2))", 1, 1, "write S_WITHIN"),
    ("(a = 1) = TRUE", 1, 2, "need a value or an attribute, got a condition"),
    ("CASEI(x)", 1, 1, "CASEI returns a value"),
    ("CASEI(x) = 'ABC'", 1, 12, "write CASEI('...') here too"),
    ("CASEI(x) = $c", 1, 12, "CASEI must be on both sides"),
    ("x = CASEI('a')", 1, 11, "CASEI must be on both sides"),
    ("ACCENTI(x) LIKE 'é%'", 1, 17, "write ACCENTI('...') here too"),
    ("CASEI(x) = 5", 1, 12, "CASEI must be on both sides"),
    ("CASEI(x) = CASEI(5)", 1, 18, "apply to text only"),
    ("x < TRUE", 1, 5, "does not apply to booleans"),
    ("x IN (1, 'a')", 1, 1, "values of one kind"),
    ("x LIKE 5", 1, 1, "needs text, got int"),
    ("x LIKE 'a\\'", 1, 1, "nothing follows the escape"),
    (f"x = {SQUARE}", 1, 5, "for regions use a Relation"),
    ("inside(area, 5)", 1, 14, "INSIDE needs a geometry"),
    ("inside(area)", 1, 1, "INSIDE needs 2 arguments, got 1"),
    ("inside(area, other)", 1, 1, "two attributes cannot be related"),
    ("inside(POINT(1 2), POINT(1 2))", 1, 1, "two values cannot be related"),
    ("relation(area)", 1, 1, "RELATION needs an attribute, a geometry"),
    (f"relation(area, {SQUARE}, 'near')", 1, 52, "need the name of a relation"),
    ("meets(area, POLYGON((0 0, 1 1, 0 0)))", 1, 13, "fewer than three distinct vertices"),
    ("meets(area, POLYGON((0 0, 2 2, 2 0, 0 2, 0 0)))", 1, 13, "self-intersection"),
    ("meets(area, POLYGON EMPTY)", 1, 13, "empty geometry"),
    ("meets(area, POINT(1 nan))", 1, 21, "unexpected 'n' in the coordinates"),
    ("meets(area, POLYGON((0 0, 1 0, 0 1))", 1, 37, "unexpected end of text"),
    ("meets(area, POLYGON((0 0, 1 0, 0 1)", 1, 13, "the brackets of this POLYGON are not closed"),
    ("meets(area, BBOX(0, 0, 0, 1, 1, 1))", 1, 13, "BBOX needs four numbers (xmin, ymin, xmax, ymax)"),
    ("meets(area, BBOX(0, 0, 0, 1))", 1, 13, "need xmin < xmax"),
    ("meets(area, BBOX(0, 0, x, 1))", 1, 24, "BBOX needs numbers"),
    ("t > DATE('2020-02-30')", 1, 10, "day"),
    ("t > DATE('today')", 1, 10, "write a date as DATE('2020-01-31')"),
    ("t > TIMESTAMP('2020-02-03')", 1, 15, "write a day as DATE('2020-01-31')"),
    ("t > TIMESTAMP('2020-02-03T24:00:00Z')", 1, 15, "the time of day is outside"),
    ("t > TIMESTAMP('2020-02-03T23:00:00.1234567891Z')", 1, 15, "nine digits"),
    ("t > TIMESTAMP(5)", 1, 15, "TIMESTAMP needs text"),
    ("x = " + "9" * 5000, 1, 5, "integer has 5,000 digits"),
    ("x = DECIMAL('" + "9" * 20_000 + "')", 1, 13, "decimal has 20,000 digits"),
    ("x = DECIMAL('1,5')", 1, 13, "is not a decimal number"),
    ("x = DECIMAL('nan')", 1, 5, "is never true"),
    ("x = 1 AND\n" + "  " * 100 + "x = y", 2, 205, "two attributes"),
    ("(" * 201 + "x = 1" + ")" * 201, 1, 201, "nested more than 200 deep"),
    ("NOT " * 201 + "x", 1, 801, "nested more than 200 deep"),
    ("(" * 500_000, 1, 201, "nested more than 200 deep"),
]


@pytest.mark.parametrize(("text", "meaning"), [*STANDARD, *MEANINGS], ids=lambda case: str(case)[:60])
def test_texts_mean_what_they_say(text, meaning):
    if meaning is None:
        with pytest.raises(LanguageError):
            parse_text(text)
    else:
        assert parse_text(text) == as_predicate(meaning)


OGC = ("S_INTERSECTS", "S_DISJOINT", "S_EQUALS", "S_TOUCHES", "S_OVERLAPS", "S_WITHIN", "S_CONTAINS")
FUNCTIONS = {name: getattr(R, name) for name in OGC} | {relation.name: R(relation) for relation in Relation}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_sets_of_relations(name):
    relations = FUNCTIONS[name]
    asked, negated, turned = (
        as_predicate(Constraint("area", mask, REGION)) for mask in (relations, ~relations, relations.inverse)
    )
    assert parse(f"{name}(area, {SQUARE})") == parse(f"{name.lower()}(area,{SQUARE})") == asked
    assert parse(f"NOT {name.lower()}(area, {SQUARE})") == negated
    assert parse(f"{name}({SQUARE}, area)") == turned


@pytest.mark.parametrize(("text", "line", "column", "message"), FAULTS, ids=lambda case: str(case)[:40])
def test_faults_have_a_place(text, line, column, message):
    with pytest.raises(LanguageError) as caught:
        parse_text(text)
    first, source, mark = str(caught.value).split("\n")
    assert message in first
    assert (caught.value.line, caught.value.column) == (line, column)
    assert first.startswith(f"line {line}, column {column}: ")
    faulty = text.split("\n")[line - 1][column - 1 : column + 10]
    assert source[mark.index("^") :].startswith(faulty)
    assert len(source) < 140


def test_what_could_stand_there_is_data_too():
    with pytest.raises(LanguageError) as caught:
        parse("x = 1 y")
    assert caught.value.expected == ("AND", "OR", "the end")
    assert isinstance(caught.value, ct.FilterError)
    assert caught.value.path is None
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (str(copied), copied.column, copied.expected) == (str(caught.value), 7, caught.value.expected)


def test_threads_parse_at_the_same_time():
    texts = [f"x = {k} AND (y > {k} OR NOT z)" for k in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(parse, texts)) == [parse(text) for text in texts]


def test_nesting_of_200_is_taken():
    assert parse("(" * 200 + "x = 1" + ")" * 200) == parse("x = 1")
    assert parse("NOT " * 200 + "x") == parse("x")
    deep = "x = 0"
    for level in range(198):
        deep = f"NOT (y{level} AND {deep})"
    assert len(parse(deep)) == 100


def test_the_limit_on_filters_is_known_before():
    pairs = " AND ".join(f"(a{k} = 1 OR b{k} = 1)" for k in range(13))
    assert len(parse(pairs)) == 2**13
    with pytest.raises(LanguageError, match="this part expands to 16,384 filters") as caught:
        parse(f"x = 1 AND y = 2 OR (\n{pairs} AND (c = 1 OR d = 1)) AND z")
    assert caught.value.line == 2
    with pytest.raises(LanguageError, match=r"more than 10\^15 filters"):
        parse(" AND ".join(f"(a{k} = 1 OR b{k} = 1)" for k in range(2000)))
    with pytest.raises(LanguageError, match="this part expands to 20,000 filters"):
        parse(" OR ".join(f"x = {k}" for k in range(20_000)))
    wide = " AND ".join(f"a{k} <> 1" for k in range(300))
    with pytest.raises(LanguageError, match="5,000 filters with 1,505,000 constraints"):
        parse(f"{wide} AND ({' OR '.join(f'x = {k}' for k in range(5000))})")


def test_ten_thousand_filters_are_subscribed():
    table = ct.ForwardingTable()
    table.subscribe("scalars", " OR ".join(f"x = {k} AND y > {k}" for k in range(10_000)))
    boxes = (f"S_INTERSECTS(a, BBOX({k}, 0, {k + 1}, 1)) AND meets(b, BBOX(0, {k}, 1, {k + 1}))" for k in range(3000))
    table.subscribe("regions", " OR ".join(boxes))
    assert set(table.match({"x": 9999, "y": 10_000})) == {"scalars"}
    assert set(table.match({"x": 9999, "y": 9999})) == set()
    assert set(table.match({"a": Point(2999.5, 0.5), "b": Point(0.5, 2999)})) == {"regions"}
    table.wait_for_compaction()
    table.check()


HINTS = {
    "a == 5": "a single =",
    "a === 5": "a single =",
    'kind = "storm"': "single quotes for text, 'storm'",
    '"storm" = kind': "single quotes for text, 'storm'",
    "kind IN (\"storm\", 'flood')": "single quotes for text, 'storm'",
    'kind LIKE "it\'s%"': "single quotes for text, 'it''s%'",
    'kind BETWEEN "a" AND "b"': "single quotes for text, 'a'",
    "kind = storm": "if storm is text, write 'storm'",
    "a = 1 && b = 2": "use AND to join",
    "a = 1 || b = 2": "use OR to join",
    "!(a = 1)": "use NOT to negate",
    "a ! = 1": "<> for unequal",
    "a => 1": "use >= for at least",
    "a =< 1": "use <= for at most",
    "a = ‘x’": "straight single quotes",  # noqa: RUF001 - as editors type it
    "`a` = 1": "double quotes",
    "a = 1;": "remove the semicolon",
}


@pytest.mark.parametrize("text", HINTS)
def test_habits_get_a_hint(text):
    with pytest.raises(LanguageError) as caught:
        parse(text)
    assert HINTS[text] in str(caught.value).splitlines()[0]
    assert caught.value.line == 1


@pytest.mark.parametrize("text", ["= 5", "a = ", "a AND", "a + 1 = 2", 'a = "', "a b", ""])
def test_other_faults_get_none(text):
    with pytest.raises(LanguageError) as caught:
        parse(text)
    assert not any(hint in str(caught.value).splitlines()[0] for hint in HINTS.values())


@pytest.mark.parametrize(
    "word", ["S_DISJOINT", "S_TOUCHES", "S_OVERLAPS", "S_EQUALS", "S_WITHIN", "S_CONTAINS", "S_INTERSECTS", "inside"]
)
def test_words_of_ogc_are_printed_back(word):
    text = f"{word}(area, POLYGON ((0 0, 4.123456789012345 0, 4 4, 0 0)))"
    assert str(parse(text)) == text
    negated = str(parse(f"NOT {text}"))
    assert negated == {
        "S_DISJOINT": text.replace(word, "S_INTERSECTS"),
        "S_INTERSECTS": text.replace(word, "S_DISJOINT"),
    }.get(word, f"NOT {text}")
    assert to_json(parse(text))["op"] == word.lower()
