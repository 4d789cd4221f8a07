"""Subscriptions and messages for networks of brokers: few values, so that much is equal, covered or overlaps."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from contrada import Constraint, Filter, Point, Predicate, Region, RelationSet
from contrada.simplification.simplifying import conflict_in

SIDES = [(0, 1), (0, 2), (1, 2), (0, 4), (1, 3), (6, 8)]
TEXTS = ["a", "ab", "abc", "b", "bab"]
RELATIONS = [
    *[RelationSet.S_INTERSECTS] * 4, *[RelationSet.S_WITHIN] * 2, RelationSet.S_CONTAINS, RelationSet.S_DISJOINT,
]  # fmt: skip
RING = Region.from_wkt("POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))")
PARTS = Region.from_wkt("MULTIPOLYGON(((0 0, 1 0, 1 1, 0 1, 0 0)), ((2 0, 4 0, 4 2, 2 2, 2 0)))")
TYPES = {"size": pa.float64(), "name": pa.string(), "flag": pa.bool_(), "area": pa.binary()}


def region(rng: random.Random) -> Region:
    """A box of few sizes and places; seldom one with a hole or of two parts."""
    if rng.random() < 0.1:
        return rng.choice([RING, PARTS])
    (xmin, xmax), (ymin, ymax) = rng.choice(SIDES), rng.choice(SIDES)
    return Region.box(xmin, ymin, xmax, ymax)


def constraint(rng: random.Random) -> Constraint:
    """A constraint on one of four attributes."""
    attribute = rng.choice(["size", "size", "name", "flag", "area", "area"])
    if rng.random() < 0.08:
        return Constraint(attribute, rng.choice(["is null", "is not null"]))
    if attribute == "size":
        operator = rng.choice(["=", "<", "<=", ">", ">=", ">=", "!=", "between", "in"])
        pair = tuple(sorted(rng.choices(range(5), k=2)))
        return Constraint(attribute, operator, pair if operator in ("between", "in") else pair[0])
    if attribute == "name":
        operator = rng.choice(["=", "prefix", "suffix", "contains", "in", "like", "!="])
        text = rng.choice(TEXTS)
        value = {"in": tuple({text: 0, "b": 0}), "like": f"{text[0]}%{text[-1]}"}.get(operator, text)
        return Constraint(attribute, operator, value)
    if attribute == "flag":
        return Constraint(attribute, "=", rng.random() < 0.5)
    if rng.random() < 0.1:
        return Constraint(attribute, RelationSet.S_INTERSECTS, Point(rng.randrange(4), rng.randrange(4)))
    return Constraint(attribute, rng.choice(RELATIONS), region(rng))


def filter_of(rng: random.Random, most: int) -> Filter:
    """A filter of up to `most` constraints that may hold.

    CoveringIndex finds covers of a filter that never holds only if a single constraint of it is covered.
    """
    while True:
        drawn = Filter(constraint(rng) for _ in range(rng.randint(1, most)))
        if not conflict_in(drawn):
            return drawn


def predicate(rng: random.Random) -> Predicate:
    """One filter of one or two constraints; seldom up to three filters of up to three constraints."""
    filters, constraints = (rng.randint(1, 3), 3) if rng.random() < 0.2 else (1, 2)
    return Predicate(filter_of(rng, constraints) for _ in range(filters))


def message(rng: random.Random) -> dict[str, Any]:
    """A message with most attributes; others are null."""
    drawn = {
        "size": float(rng.randint(-1, 5)),
        "name": rng.choice([*TEXTS, "x"]),
        "flag": rng.random() < 0.5,
        "area": region(rng) if rng.random() < 0.6 else Point(rng.randrange(9) / 2, rng.randrange(9) / 2),
    }
    return {name: value for name, value in drawn.items() if rng.random() < 0.85}


def columns(messages: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Messages as a table; an attribute that none of them has is no column."""
    names = [name for name in TYPES if any(name in message for message in messages)]
    found = {name: [message.get(name) for message in messages] for name in names}
    if "area" in found:
        found["area"] = [None if area is None else area.to_wkb() for area in found["area"]]
    table = pa.table({name: pa.array(found[name], TYPES[name]) for name in names})
    return table if names else pa.table({"none": pa.nulls(len(messages), pa.string())})
