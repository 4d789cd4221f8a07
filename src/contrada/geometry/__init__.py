"""Regions, points and the relations between them."""

from contrada.geometry.circle import Circle
from contrada.geometry.column import RegionArray, Sifted
from contrada.geometry.composition import compose
from contrada.geometry.crs import Crs
from contrada.geometry.distance import within_distance
from contrada.geometry.faults import FaultCode, Rejection
from contrada.geometry.line import Line
from contrada.geometry.line_column import LineArray, SiftedLines
from contrada.geometry.line_relation import LineRelation, LineRelationSet
from contrada.geometry.matrix import (
    contains,
    covered_by,
    covers,
    crosses,
    de9im,
    disjoint,
    equals,
    intersects,
    overlaps,
    touches,
    within,
)
from contrada.geometry.point import Point, PointArray
from contrada.geometry.reading import read_lines, read_points, read_regions
from contrada.geometry.region import Region
from contrada.geometry.relate import relate, relate_boxes
from contrada.geometry.relation import Relation, RelationSet

__all__ = [
    "Circle",
    "Crs",
    "FaultCode",
    "Line",
    "LineArray",
    "LineRelation",
    "LineRelationSet",
    "Point",
    "PointArray",
    "Region",
    "RegionArray",
    "Rejection",
    "Relation",
    "RelationSet",
    "Sifted",
    "SiftedLines",
    "compose",
    "contains",
    "covered_by",
    "covers",
    "crosses",
    "de9im",
    "disjoint",
    "equals",
    "intersects",
    "overlaps",
    "read_lines",
    "read_points",
    "read_regions",
    "relate",
    "relate_boxes",
    "touches",
    "within",
    "within_distance",
]
