"""Content-based publish/subscribe in which a 2D region is a value like any other."""

from contrada.errors import ContradaError, CrsError, RegionError
from contrada.geometry import (
    Point,
    PointArray,
    Region,
    RegionArray,
    Relation,
    RelationSet,
    compose,
    relate,
    relate_sampled,
)

__version__ = "0.1.0"

__all__ = [
    "ContradaError",
    "CrsError",
    "Point",
    "PointArray",
    "Region",
    "RegionArray",
    "RegionError",
    "Relation",
    "RelationSet",
    "compose",
    "relate",
    "relate_sampled",
]
