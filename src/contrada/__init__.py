"""Content-based publish/subscribe in which a 2D region is a value like any other."""

from contrada.covering import CoveringIndex
from contrada.cql2 import parse
from contrada.errors import (
    ContradaError,
    CrsError,
    FilterError,
    FormatError,
    KeyInUseError,
    KeysGoneError,
    LanguageError,
    LimitError,
    RegionError,
    UnknownKeyError,
)
from contrada.formats.messages import message_of
from contrada.geometry import (
    Point,
    PointArray,
    Region,
    RegionArray,
    Relation,
    RelationSet,
    compose,
    relate,
)
from contrada.matching import Explanation, ForwardingTable, Simplification, simplify
from contrada.model import Column, Constraint, Filter, Predicate, ValueType, register_type

__version__ = "0.1.0"

__all__ = [
    "Column",
    "Constraint",
    "ContradaError",
    "CoveringIndex",
    "CrsError",
    "Explanation",
    "Filter",
    "FilterError",
    "FormatError",
    "ForwardingTable",
    "KeyInUseError",
    "KeysGoneError",
    "LanguageError",
    "LimitError",
    "Point",
    "PointArray",
    "Predicate",
    "Region",
    "RegionArray",
    "RegionError",
    "Relation",
    "RelationSet",
    "Simplification",
    "UnknownKeyError",
    "ValueType",
    "compose",
    "message_of",
    "parse",
    "register_type",
    "relate",
    "simplify",
]
