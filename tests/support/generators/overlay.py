"""Boxes and points of any number of dimensions, and notes of every kind that peers of an overlay send each other.

Boxes have coarse numbers, so that they touch and are equal often; notes have contents that no peer would send.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from contrada.overlay import protocol

IDS = [*range(12), "stranger"]


def draw_box(rng: random.Random, dimensions: int = 2, unbounded: float = 0.1) -> tuple[float, ...]:
    """A box, the lows and then the highs; such a share of its sides is unbounded on one end or both.

    >>> draw_box(random.Random(1), unbounded=0)
    (4.0, 15.0, 5.0, 22.0)
    """
    lows, highs = [], []
    for _ in range(dimensions):
        low = float(rng.randrange(20))
        high = low + rng.randrange(8)
        if rng.random() < unbounded:
            low, high = rng.choice([(-math.inf, high), (low, math.inf), (-math.inf, math.inf)])
        lows.append(low)
        highs.append(high)
    return (*lows, *highs)


def draw_point(rng: random.Random, dimensions: int = 2) -> tuple[float, ...]:
    """A point, as a box without extent."""
    point = [float(rng.randrange(28)) for _ in range(dimensions)]
    return (*point, *point)


def note_makers(rng: random.Random) -> dict[str, Callable[[], Any]]:
    """By kind, a function that draws a note of it."""

    def some() -> Any:
        return rng.choice(IDS)

    def level() -> int:
        return rng.choice([0, 0, 1, 1, 2, 3, 7, 60])

    def entry() -> protocol.ChildEntry:
        box = draw_box(rng)
        return protocol.ChildEntry(box, box, tuple(draw_box(rng) for _ in range(rng.randrange(3))))

    def table() -> dict[Any, protocol.ChildEntry]:
        return {some(): entry() for _ in range(rng.randrange(6))}

    def join() -> protocol.Join:
        known = rng.choice([None, some()])
        return protocol.Join(some(), level(), entry(), rng.random() < 0.5, known, rng.randrange(16))

    def take() -> protocol.Take:
        tables = [table() for _ in range(rng.randrange(4))]
        return protocol.Take(level(), some(), tables, some(), some(), rng.random() < 0.5)

    def keys() -> tuple[str, ...]:
        return tuple(f"rubbish {rng.randrange(5)}" for _ in range(rng.randrange(4)))

    publication = protocol.Publication(f"rubbish {rng.randrange(5)}", draw_point(rng), "{}")
    return {
        "join": join,
        "take": take,
        "place": lambda: protocol.Place(join(), level()),
        "adopted": lambda: protocol.Adopted(level(), some(), entry(), some(), (some(),)),
        "report": lambda: protocol.Report(level(), some(), some(), entry(), table(), rng.randrange(16)),
        "replace": lambda: protocol.Replace(level(), some(), some(), some(), entry()),
        "leave": lambda: protocol.Leave(level(), some()),
        "orphaned": lambda: protocol.Orphaned(level(), rng.choice([None, some()]), some()),
        "yield": lambda: protocol.Yield(some()),
        "beat": lambda: protocol.Beat(level(), entry(), (some(),), keys(), rng.randrange(-1, 9), rng.random()),
        "ack": lambda: protocol.Ack(level(), (some(), some()), rng.randrange(-1, 9), keys()),
        "disown": lambda: protocol.Disown(level()),
        "up": lambda: protocol.Up(publication, rng.choice([None, level()]), some(), 0, rng.random()),
        "down": lambda: protocol.Down(publication, level(), 0, rng.random()),
    }


def draw_note(rng: random.Random) -> Any:
    """A note of any kind."""
    return rng.choice(list(note_makers(rng).values()))()
