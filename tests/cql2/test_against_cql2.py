"""Texts against the package `cql2`: its JSON of a text must say to us what the text says.

It runs in a process of its own, with a time limit: on nested brackets it takes exponential time.
"""

import importlib.util
import json
import random
import subprocess
import sys

import pytest

from contrada.cql2 import parse_json, parse_text, to_json

pytestmark = pytest.mark.skipif(importlib.util.find_spec("cql2") is None, reason="the package cql2 is not installed")

READ = """
import json, sys, cql2
for line in sys.stdin:
    try:
        answer = cql2.parse_text(json.loads(line)).to_json()
    except Exception as error:
        answer = None
    print(json.dumps(answer))
"""
WRITE = """
import json, sys, cql2
for line in sys.stdin:
    print(json.dumps(cql2.parse_json(line).to_text()))
"""
POLYGONS = ["POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((0 0,5 0,5 5,0 5,0 0),(1 1,2 1,2 2,1 1))", "POINT(1.5 -2)",
            "MULTIPOLYGON(((0 0, 1 0, 0 1, 0 0)),((5 5, 6 5, 5 6, 5 5)))", "BBOX(-1,-2.5,3,4)"]  # fmt: skip
NAMES = ["x", "name", "eo:cloud_cover", "sea.depth", '"my name"', "is_open"]


def asked(code, lines, seconds=60):
    """What a process answers to lines of JSON."""
    given = "".join(json.dumps(line) + "\n" for line in lines)
    run = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, timeout=seconds, check=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def literal(rng):
    number = rng.choice([str(rng.randint(-99, 99)), f"{rng.randint(-9, 9)}.{rng.randint(0, 99)}", "1e3", "2.5e-2"])
    return rng.choice([number, number, "'a b'", "'it''s'", "'Straße'", "DATE('2020-01-31')",
                       "TIMESTAMP('2020-01-31T18:30:00Z')"])  # fmt: skip


def condition(rng):
    name = rng.choice(NAMES)
    spatial = rng.choice(["S_INTERSECTS", "s_within", "S_CONTAINS", "S_DISJOINT", "S_EQUALS", "S_TOUCHES",
                          "S_OVERLAPS", "inside", "covered_by", "meets"])  # fmt: skip
    several = rng.choice(["1, 2.5, -3", "'a', 'b'", "'only'"])
    return rng.choice([
        f"{name} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {literal(rng)}",
        f"{literal(rng)} {rng.choice(['=', '<>', '<', '>='])} {name}",
        f"{name}{rng.choice([' NOT ', ' '])}BETWEEN {rng.randint(-5, 0)} AND 7.5",
        f"{name}{rng.choice([' not ', ' '])}in ({several})",
        f"{name}{rng.choice([' NOT ', ' '])}LIKE '{rng.choice(['a%', '%b_', 'plain'])}'",
        f"CASEI({name}) = CASEI('ÄB')", f"ACCENTI({name}) LIKE ACCENTI('é%')",
        f"{name} IS{rng.choice([' NOT ', ' '])}NULL", "is_open", "is_open = TRUE",
        f"{spatial}(area, {rng.choice(POLYGONS)})", f"{spatial}({rng.choice(POLYGONS)}, area)",
    ])  # fmt: skip


def expression(rng, depth=2):
    roll = rng.random()
    if depth == 0 or roll < 0.3:
        return condition(rng)
    if roll < 0.45:
        return f"NOT ({expression(rng, depth - 1)})"
    return rng.choice([" AND ", " OR ", " and "]).join(
        f"({expression(rng, depth - 1)})" if rng.random() < 0.5 else condition(rng) for _ in range(rng.randint(2, 3))
    )


def test_the_same_texts_say_the_same():
    rng = random.Random(3)
    texts = [expression(rng) for _ in range(500)]
    answers = asked(READ, texts)
    read = [(text, answer) for text, answer in zip(texts, answers, strict=True) if answer is not None]
    assert len(read) > 450, "it can read what we write"
    for text, answer in read:
        assert parse_json(answer) == parse_text(text), text


def test_our_json_is_json_to_it():
    rng = random.Random(4)
    texts = [condition(rng) for _ in range(200)]
    predicates = [parse_text(text) for text in texts]
    for text, back in zip(texts, asked(WRITE, [to_json(predicate) for predicate in predicates]), strict=True):
        assert parse_text(back) == parse_text(text), (text, back)


def test_what_it_refuses_we_refuse():
    texts = ["x = ", "x = 1 AND", "(x = 1", "x BETWEEN 1", "x IN (", "x = 'a", "= 1", "x LIKE"]
    assert asked(READ, texts) == [None] * len(texts)
    for text in texts:
        with pytest.raises(ValueError, match="line 1, column"):
            parse_text(text)
