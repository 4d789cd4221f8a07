"""Whatever the text, the answer is a predicate or an error of ours, soon."""

import json
import math
import random
from contextlib import suppress

import pytest

import contrada as ct
from contrada.cql2 import parse, to_json
from contrada.limits import limit
from effort import examples, within

SEEDS = [
    "overlaps(cloud, POLYGON((10 5, 7 12, 1 1, 10 5))) AND pressure < 1000",
    "NOT (a = 1 OR b <> 'it''s') AND c NOT IN (1, 2.5, -3e4) OR \"d e.f\" BETWEEN DATE('2020-01-01') AND $x",
    "CASEI(ACCENTI(n)) LIKE CASEI(ACCENTI('a\\%_%')) AND t > TIMESTAMP('2020-01-02T03:04:05.678Z') OR x IS NOT NULL",
    "relation(a, MULTIPOLYGON(((0 0, 1 0, 0 1, 0 0)), ((5 5, 6 5, 5 6, 5 5))), 'meets', 'covered-by') OR is_open",
    "S_WITHIN(POINT(1 2), a) AND S_INTERSECTS(b, BBOX(-1, -2, 3.5, 4)) AND n PREFIX $p OR (5 < x AND TRUE)",
    json.dumps(to_json(parse("x IN ('a', 'b') AND inside(a, POLYGON((0 0, 1 0, 0 1, 0 0))) OR NOT y BETWEEN 1 AND 2"))),
]
PIECES = [*"()'\"$,.;:+-*/%^<>=!\\ \n\t\0{}[]", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE",
          "POLYGON", "POINT(", "EMPTY", "BBOX(", "CASEI(", "DATE('", "''", "1e999", "9" * 400, "((((((", "))))))", "é",
          "\ud800", "INTERVAL", "LINESTRING(0 0)", "relation(", "\u0660", "nan", "-", "{\"op\":", "null"]  # fmt: skip


def mutated(rng, text):
    """The text with one to three pieces put in, taken out or replaced."""
    for _ in range(rng.randint(1, 3)):
        other, start = rng.choice(SEEDS), rng.randrange(len(text) + 1)
        cut = rng.randrange(len(other))
        part = other[cut : cut + rng.randint(1, 40)]
        ways = [(rng.choice(PIECES), 0), ("", rng.randint(1, 6)), (part, 0), (rng.choice(PIECES), 1)]
        new, gone = rng.choice(ways)
        text = text[:start] + new + text[start + gone :]
    return text


@pytest.mark.effort
def test_mutations():
    rng = random.Random(7)
    parse(SEEDS[0])
    outcomes = {"read": 0, "refused": 0}
    for _ in range(examples(10_000)):
        text = mutated(rng, rng.choice(SEEDS))
        with within(1, text):
            try:
                predicate = parse(text)
            except ct.LanguageError:
                outcomes["refused"] += 1
            else:
                outcomes["read"] += 1
                assert parse(str(predicate)) == predicate, text
    assert min(outcomes.values()) > examples(200)


def mutated_json(rng, value):
    """JSON with one part in another's place, or rubbish."""
    rubbish = [None, True, -1, 1e308, "x", [], {}, [[]], {"op": "not"}, {"property": None}, {"type": "Polygon"}, "not"]
    if rng.random() < 0.2 or not isinstance(value, (dict, list)):
        return rng.choice(rubbish)
    if isinstance(value, list):
        at = rng.randrange(len(value)) if value else 0
        return [mutated_json(rng, item) if k == at else item for k, item in enumerate(value)]
    at = rng.choice(list(value)) if value else ""
    return {key: mutated_json(rng, item) if key == at else item for key, item in value.items()}


@pytest.mark.effort
def test_mutated_json():
    rng = random.Random(8)
    seeds = [to_json(parse(text)) for text in SEEDS]
    for _ in range(examples(3000)):
        with suppress(ct.FilterError):
            parse(mutated_json(rng, rng.choice(seeds)))


def polygon(vertices):
    turns = [2 * math.pi * k / vertices for k in (*range(vertices), 0)]
    return "inside(a, POLYGON((" + ", ".join(f"{math.cos(turn)!r} {math.sin(turn)!r}" for turn in turns) + ")))"


LONG = {
    "polygon": polygon,
    "numbers": lambda n: f"x IN ({', '.join(str(k) for k in range(n))})",
    "texts": lambda n: "x IN (" + ", ".join(f"'name {k}'" for k in range(n)) + ")",
    "text": lambda n: "x = '" + "it''s " * n + "'",
    "conditions": lambda n: " AND ".join(f"attribute_of_a_long_name <> {k:016}" for k in range(n // 2)),
    "space": lambda n: "x" + " " * n + "= 1",
}


@pytest.mark.parametrize("kind", LONG)
def test_time_grows_with_the_text(kind):
    """Half a megabyte takes seconds, even on a slow machine, where quadratic time would be minutes."""
    make = LONG[kind]
    text = make(int(500_000 / (len(make(1000)) / 1000)))
    with within(15):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "x IN (" + "1, " * 40_000,
        "x IN (" + "'a', " * 40_000 + "y)",
        "x = '" + "''" * 300_000,
        "POINT(" + "1 " * 300_000,
        "POINT(" + "(" * 300_000,
        "a" * 500_000 + "(",
        "9" * 500_000 + " = x",
        "x = " + "-" * 40_000 + "y",
        "x = 1 ^ " + "2 ^ " * 20_000 + "3",
        "x = " + "1e" * 200_000,
        "NOT " * 100_000,
        '"' * 300_001,
        " AND " * 50_000,
        "$" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_long_rubbish_is_refused_soon(text):
    with within(15), pytest.raises(ct.LanguageError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("word", ["AND", "OR", "and"])
def test_more_terms_than_the_limit_are_refused_before_they_are_parsed(word):
    most = limit("terms")
    with pytest.raises(ct.LanguageError, match="CONTRADA_MAX_TERMS"):
        parse(f" {word} ".join(["a = 1"] * (most + 1)))
    with pytest.raises(ct.LanguageError, match="CONTRADA_MAX_TERMS"):
        parse({"op": word, "args": [{"op": "=", "args": [{"property": "a"}, 1]}] * (most + 1)})
    assert len(parse(f" {word} ".join(["a = 1"] * 1_000)).filters) == 1
