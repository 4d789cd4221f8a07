"""[SPATIAL] as printed: the CR-tree, the sampled relation, the counting matcher."""

from contrada.papers.spatial.counting import CountingMatcher
from contrada.papers.spatial.crtree import CRTree
from contrada.papers.spatial.sampled import relate_sampled

__all__ = ["CRTree", "CountingMatcher", "relate_sampled"]
