"""Constraints and messages of [SPATIAL], section 5: synthetic regions, or the polygons of a file, with operators."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from contrada.errors import FormatError
from contrada.geometry import Region, RegionArray, Relation
from contrada.papers.exhibit import Setting
from contrada.papers.network.region_sets import file_of, region_set
from contrada.papers.spatial import drawn_regions
from contrada.papers.spatial.drawn_regions import FRAMES, UNIVERSE, Box, Boxes, MessageKind

SYNTHETIC = "synthetic"
TWENTY_POINTS = "20 points"  # messages as the synthetic constraints are
KINDS = ("A", "B", "C")
SETS = ("London", "Rhône-Alpes", "SoCal")
MAX_SYNTHETIC = 10_000
SHOWN_CHARACTERS = 60


class PolygonSet(NamedTuple):
    """Simple polygons in random order, each with one of the eight relations, and the box of them all."""

    column: RegionArray
    operators: NDArray[np.uint8]
    universe: Box

    @property
    def masks(self) -> NDArray[np.uint8]:
        """The operators as masks."""
        return (1 << self.operators).astype(np.uint8)

    def first(self, count: int) -> PolygonSet:
        """Return the first polygons alone, all for 0."""
        return self if not count else self._replace(column=self.column[:count], operators=self.operators[:count])

    def density(self, per_half_length: float) -> float:
        """Return the points per unit of length for so many per half-length of the universe: D / (UX + UY)."""
        xmin, ymin, xmax, ymax = self.universe
        return per_half_length / (xmax - xmin + ymax - ymin)


@lru_cache(maxsize=4)
def polygon_set(name: str, seed: int, data: Path | None) -> PolygonSet:
    """Return the synthetic set or that of a file in `data`; polygons with holes or several parts are left out.

    Algorithm 1 is not defined for these.
    """
    rng = np.random.default_rng(seed)
    column = drawn_regions.paper_regions(rng, MAX_SYNTHETIC) if name == SYNTHETIC else region_set(name, data)
    simple = np.flatnonzero(column.is_simple)
    if not len(simple):
        raise FormatError(f"{name}: there is no polygon without holes")
    chosen = column[rng.permutation(simple)]
    low, high = chosen.bounds[:, :2].min(axis=0), chosen.bounds[:, 2:].max(axis=0)
    universe = UNIVERSE if name == SYNTHETIC else cast("Box", (*low.tolist(), *high.tolist()))
    return PolygonSet(chosen, rng.integers(0, len(Relation), len(chosen)).astype(np.uint8), universe)


def file_of_set(setting: Setting) -> str | None:
    """Return the file of the set of a setting; None for the synthetic one."""
    name = str(setting["set"])
    return None if name == SYNTHETIC else file_of(name)


def messages_of(polygons: PolygonSet, kind: str, count: int, seed: int, boxes: str = "area") -> list[Region]:
    """Return messages of kind A, B or C whose boxes take 1 to 25 % of the universe, or as synthetic constraints.

    `boxes` names another reading of the sizes of kinds A, B and C.
    """
    rng = np.random.default_rng((seed, 1, (TWENTY_POINTS, *KINDS).index(kind)))
    if kind == TWENTY_POINTS:
        return list(drawn_regions.paper_regions(rng, count))
    chosen = cast("MessageKind", kind), cast("Boxes", boxes)
    return list(drawn_regions.message_regions(rng, count, chosen[0], universe=polygons.universe, boxes=chosen[1]))


def check_kind(kind: str) -> None:
    """Raise FormatError for an unknown kind of messages."""
    if kind not in (TWENTY_POINTS, *KINDS):
        known = ", ".join((TWENTY_POINTS, *KINDS))
        raise FormatError(f"unknown kind of messages {kind!r:.{SHOWN_CHARACTERS}}; kinds: {known}")


def check_boxes(name: str) -> None:
    """Raise FormatError for an unknown reading of the sizes of messages."""
    if name not in FRAMES:
        raise FormatError(f"unknown boxes {name!r:.{SHOWN_CHARACTERS}}; boxes: {', '.join(FRAMES)}")
