"""Points of a batch that descend together, against circles: judged by the rationals, however a group ends."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import contrada as ct
from effort import COMPILED, examples
from oracles.distance import doubles_around_root, is_within

REACH = ct.WithinDistance
HUGE, TINY = 1e200, 1e-130  # their squares overflow and vanish


def table_of(places: np.ndarray, distances: np.ndarray, beyond: int = 0) -> ct.ForwardingTable:
    """Return a packed table of circles with numbers as keys, the last `beyond` of them asking for what is outside."""
    table = ct.ForwardingTable()
    for k, (place, distance) in enumerate(zip(places.tolist(), distances.tolist(), strict=True)):
        operator = (ct.BeyondDistance if k >= len(places) - beyond else REACH)(distance)
        table.subscribe("s", ct.Constraint("area", operator, ct.Point(*place)), key=k)
    table.pack()
    table.check()
    return table


def square_of(place: list[float], other: list[float]) -> Fraction:
    """Return the square of the distance of two points."""
    return sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(place, other, strict=True)), Fraction())


def keys_of(table: ct.ForwardingTable, messages: np.ndarray, threads: int | None = None) -> list[set[int]]:
    """Return the keys that a batch of points answers."""
    column = pa.table({"area": ct.PointArray(messages).to_wkb()})
    answer = table.match_many(column, by="subscription", threads=threads)
    return [set(answer.keys(k)) for k in range(len(messages))]


# Squares of the largest distances are infinite, as the kernel expects; only interpreted code warns of it.
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("seed", range(examples(6) if COMPILED else 1))
def test_groups_answer_as_the_rationals(seed):
    """Circles and points in clusters of a coarse grid, many of them equal or just at their distance."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 12, (300, 2)).astype(float)
    messages = rng.integers(0, 12, (120, 2)) + rng.choice([0.0, 0.5, 100.0], (120, 1))
    distances = rng.choice([0.0, 1.0, 2.5, TINY, HUGE, 5.0], 300, p=[0.2, 0.3, 0.2, 0.1, 0.05, 0.15])
    for k in range(0, 300, 3):
        far = messages[rng.integers(len(messages))]
        distances[k] = rng.choice(doubles_around_root(square_of(places[k].tolist(), far.tolist())))
    circles = list(zip(places.tolist(), distances.tolist(), strict=True))
    expected = [
        {k for k, (place, d) in enumerate(circles) if is_within(square_of(message, place), d)}
        for message in messages.tolist()
    ]
    assert keys_of(table_of(places, distances), messages) == expected
    assert keys_of(table_of(places, distances), messages, threads=1) == expected
    beyond = [keys ^ set(range(290, 300)) for keys in expected]
    assert keys_of(table_of(places, distances, beyond=10), messages) == beyond, "lists answer for what is beyond"
    assert min(map(len, expected)) < 30 < max(map(len, expected))


def test_answers_that_fill_the_room():
    """All circles hold all points: groups end where the room for rows does."""
    rng = np.random.default_rng(3)
    count, size = (700, 400) if COMPILED else (40, 20)
    places, messages = rng.uniform(0, 1, (size, 2)), rng.uniform(0, 1, (count, 2))
    table = table_of(places, np.full(size, 3.0))
    assert keys_of(table, messages, threads=1) == [set(range(size))] * count


@pytest.mark.skipif(not COMPILED, reason="takes minutes in plain Python")
@pytest.mark.parametrize("near", [4079, 4080, 4081, 4096, 4097, 4500])
def test_points_near_more_circles_than_a_group_gathers(near):
    rng = np.random.default_rng(near)
    places = np.concatenate([rng.uniform(0, 1, (near, 2)), rng.uniform(1000, 2000, (200, 2))])
    messages = np.concatenate([rng.uniform(0, 1, (40, 2)), rng.uniform(1000, 2000, (40, 2))])
    distances = np.concatenate([np.full(near, 2.0), rng.uniform(0, 200, 200)])
    within = np.hypot(*(messages[:, None] - places[None]).transpose(2, 0, 1)) <= distances
    assert keys_of(table_of(places, distances), messages) == [set(np.flatnonzero(row).tolist()) for row in within]
