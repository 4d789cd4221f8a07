"""Notes of every kind that peers of an overlay send each other, with contents that no peer would send."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from contrada.overlay import protocol
from generators.boxes import draw_box, draw_point

IDS = [*range(12), "stranger"]


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
        "beat": lambda: protocol.Beat(level(), entry(), (some(),)),
        "ack": lambda: protocol.Ack(level(), (some(), some())),
        "disown": lambda: protocol.Disown(level()),
        "up": lambda: protocol.Up(publication, rng.choice([None, level()]), some()),
        "down": lambda: protocol.Down(publication, level()),
    }


def draw_note(rng: random.Random) -> Any:
    """A note of any kind."""
    return rng.choice(list(note_makers(rng).values()))()
