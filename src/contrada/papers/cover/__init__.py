"""[COVER] as printed: relation graphs over k-d trees and Z-curves, and the paper's experiments."""

from contrada.papers.cover.complete_graph import CompleteGraph, StrictPoset
from contrada.papers.cover.kd_tree import KdTree
from contrada.papers.cover.rectangles import Range, rectangle_point
from contrada.papers.cover.relation_graph import RelationGraph
from contrada.papers.cover.replay import Replayed, replay
from contrada.papers.cover.scan import Scan
from contrada.papers.cover.z_curve import ZCurve

__all__ = [
    "CompleteGraph",
    "KdTree",
    "Range",
    "RelationGraph",
    "Replayed",
    "Scan",
    "StrictPoset",
    "ZCurve",
    "rectangle_point",
    "replay",
]
