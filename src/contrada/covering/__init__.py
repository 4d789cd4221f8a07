"""Which subscription covers which: predicates live, and rectangles after [COVER]."""

from contrada.covering.complete_graph import CompleteGraph
from contrada.covering.covering_index import CoveringIndex
from contrada.covering.kd_tree import KdTree
from contrada.covering.members import Subscribed, Unsubscribed
from contrada.covering.poset import StrictPoset
from contrada.covering.rectangles import Range, rectangle_point
from contrada.covering.relation_graph import RelationGraph
from contrada.covering.replay import Replayed, replay
from contrada.covering.scan import Scan
from contrada.covering.z_curve import ZCurve

__all__ = [
    "CompleteGraph",
    "CoveringIndex",
    "KdTree",
    "Range",
    "RelationGraph",
    "Replayed",
    "Scan",
    "StrictPoset",
    "Subscribed",
    "Unsubscribed",
    "ZCurve",
    "rectangle_point",
    "replay",
]
