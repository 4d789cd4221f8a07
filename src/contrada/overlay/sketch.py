"""Sketches: a parent keeps several boxes instead of one for a low node, so that fewer messages reach it in vain.

This variant is our own. A node's box is mostly empty: in the paper's workload most false positives are messages that
fall between the boxes of a node's children. A sketch consists of the children's boxes, without those inside others,
merged in pairs that waste the least space until few enough are left. The tree and its degrees do not change.
"""

from __future__ import annotations

from contrada import kernels
from contrada.overlay.boxes import Box, bounds, rows_of
from contrada.overlay.protocol import ChildEntry, Table
from contrada.overlay.rules import SKETCHED_LEVELS, Rules


def entry_of(rules: Rules, level: int, own: Box, table: Table) -> ChildEntry:
    """Return the entry of a node with these children, held by a peer whose subscriptions have the box `own`."""
    return ChildEntry(bounds([entry.box for entry in table.values()]), own, parts_of(rules, level, table))


def parts_of(rules: Rules, level: int, table: Table) -> tuple[Box, ...]:
    """Return the sketch of a node with these children: boxes that cover all below it; empty if its box suffices.

    >>> boxes = [(0.0, 2.0), (1.0, 2.0), (8.0, 9.0), (9.0, 9.5)]
    >>> parts_of(Rules(sketch=2), 1, {k: ChildEntry(box, box) for k, box in enumerate(boxes)})
    ((0.0, 2.0), (8.0, 9.5))
    """
    if not rules.sketch or level > SKETCHED_LEVELS:
        return ()
    return merged([part for entry in table.values() for part in entry.parts or (entry.box,)], rules.sketch)


def merged(boxes: list[Box], most: int) -> tuple[Box, ...]:
    """Return at most `most` boxes that cover `boxes`; empty if one box is enough."""
    distinct = list(dict.fromkeys(boxes))
    if len(distinct) == 1:
        return ()
    found = kernels.merged_boxes(rows_of(distinct), most)
    return tuple(map(tuple, found.tolist())) if len(found) > 1 else ()
