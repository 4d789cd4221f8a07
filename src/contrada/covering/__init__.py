"""Which subscription covers which: relation graphs above dynamic indexes of rectangles, after [COVER]."""

from contrada.covering.complete_graph import CompleteGraph
from contrada.covering.kd_tree import KdTree
from contrada.covering.poset import StrictPoset
from contrada.covering.rectangles import Range, rectangle_point
from contrada.covering.relation_graph import RelationGraph
from contrada.covering.replay import Replayed, replay
from contrada.covering.scan import Scan
from contrada.covering.z_curve import ZCurve

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
