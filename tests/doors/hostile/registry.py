"""Doors: how an entry point is driven with one input, and the inputs that it is driven with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from hostile.mutation import mutated

Case = Any  # of None, bool, int, float, str, bytes, list and dict, so that it can be written to a file and replayed
MOST_BYTES = 1_000_000  # of an input


@dataclass(frozen=True)
class Door:
    """One way in. `corpus` gives named inputs; one that is a function is large and is made when it is needed."""

    name: str
    entries: tuple[str, ...]
    drive: Callable[[Case], object]
    corpus: Callable[[], Mapping[str, Case | Callable[[], Case]]]
    weight: float = 1.0  # of 1: its share of mutations
    refusals: tuple[type[BaseException], ...] = ()  # documented errors beside ContradaError

    @cached_property
    def cases(self) -> Mapping[str, Case | Callable[[], Case]]:
        """The corpus."""
        return self.corpus()

    @cached_property
    def small(self) -> list[Case]:
        """The inputs of the corpus that are not large."""
        return [case for case in self.cases.values() if not callable(case)]

    def named(self, name: str) -> Case:
        """The input of the corpus with this name."""
        found = self.cases[name]
        return found() if callable(found) else found

    def names(self, large: bool = True) -> list[str]:
        """The names of the inputs of the corpus, in order, with large ones or without."""
        return [name for name, case in self.cases.items() if large or not callable(case)]

    def mutation(self, seed: int, number: int) -> Case:
        """Mutation `number` of the corpus; the same for the same seed."""
        return self.drawn(Random(f"{seed}/{self.name}/{number}"))

    def drawn(self, rng: Random) -> Case:
        """A mutated input of the corpus, drawn with `rng`: that of Hypothesis too."""
        case = rng.choice(self.small)
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 6))):
            case = mutated(rng, case, self.small)
        return case
