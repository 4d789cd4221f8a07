"""What a family of pairs of regions is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import shapely

from generators.rings import Geometries
from oracles.rational import CONTAINS, DISJOINT, INSIDE, MEETS

Pairs: TypeAlias = tuple[Geometries, Geometries]
Maker: TypeAlias = Callable[[np.random.Generator, int], Pairs]

CONTACT = {
    DISJOINT: "the boundaries always touch",
    INSIDE: "the boundaries always touch",
    CONTAINS: "the boundaries always touch",
}
NEARLY_EQUAL = {**CONTACT, MEETS: "the regions differ in two cells and have others in common"}


@dataclass(frozen=True)
class Family:
    """Pairs of regions of one kind: make(rng, count) returns about count of them, some perhaps invalid.

    impossible gives the reason for each relation, by its code, that the family cannot produce; weight is
    the family's share of all pairs against the others' of 1.
    """

    name: str
    about: str
    make: Maker
    impossible: Mapping[int, str] = field(default_factory=dict)
    weight: float = 1.0

    def pairs(self, rng: np.random.Generator, count: int) -> Pairs:
        """Return about count pairs of regions that are valid to Shapely, half of them swapped."""
        a, b = self.make(rng, count)
        swap = rng.random(len(a)) < 0.5
        a, b = np.where(swap, b, a), np.where(swap, a, b)
        good = sound(a) & sound(b)
        return a[good], b[good]


def sound(regions: Geometries) -> Geometries:
    """Return whether each geometry is a valid region that is not empty."""
    return np.asarray(shapely.is_valid(regions) & ~shapely.is_empty(regions))
