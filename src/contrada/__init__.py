"""Content-based publish/subscribe in which a 2D region is a value like any other."""

from contrada.covering import CoveringIndex
from contrada.cql2 import parse
from contrada.errors import (
    ArgumentError,
    ContradaError,
    CoveringError,
    CrsError,
    FilterError,
    FormatError,
    KeyInUseError,
    LanguageError,
    LimitError,
    OverlayError,
    RegionError,
    TableError,
    UnknownKeyError,
)
from contrada.formats.messages import message_of
from contrada.geometry import (
    Point,
    PointArray,
    Region,
    RegionArray,
    Rejection,
    Relation,
    RelationSet,
    compose,
    relate,
)
from contrada.matching import (
    Explanation,
    ForwardingTable,
    ManyMatches,
    Matches,
    Simplification,
    Stats,
    SubscriberTable,
    simplify,
)
from contrada.model import Column, Constraint, Filter, Predicate, ValueType, register_type

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "Column",
    "Constraint",
    "ContradaError",
    "CoveringError",
    "CoveringIndex",
    "CrsError",
    "Explanation",
    "Filter",
    "FilterError",
    "FormatError",
    "ForwardingTable",
    "KeyInUseError",
    "LanguageError",
    "LimitError",
    "ManyMatches",
    "Matches",
    "OverlayError",
    "Point",
    "PointArray",
    "Predicate",
    "Region",
    "RegionArray",
    "RegionError",
    "Rejection",
    "Relation",
    "RelationSet",
    "Simplification",
    "Stats",
    "SubscriberTable",
    "TableError",
    "UnknownKeyError",
    "ValueType",
    "compose",
    "message_of",
    "parse",
    "register_type",
    "relate",
    "simplify",
]
