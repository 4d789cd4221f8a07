"""Replace many boxes by few: drop boxes that lie in others, then repeatedly merge the pair that wastes least.

Boxes are as in kernels/rtree/split.py. The waste of a pair is the area of the box around both that neither covers; ties
are decided by the least margin of that box, then by order.
"""

import numpy as np

from contrada.jit import allocating_kernel, entry, kernel
from contrada.kernels.rtree.split import area_of, common_area, enlarge_box, fill_finite, joint_area


@kernel
def covers_box(boxes, i, j):
    """Return True if box i covers box j."""
    axes = boxes.shape[1] // 2
    for axis in range(axes):
        if boxes[i, axis] > boxes[j, axis] or boxes[i, axis + axes] < boxes[j, axis + axes]:
            return False
    return True


@kernel
def joint_margin(boxes, i, j):
    """Return the sum of the sides of the box around two boxes."""
    axes = boxes.shape[1] // 2
    margin = 0.0
    for axis in range(axes):
        margin += max(boxes[i, axis + axes], boxes[j, axis + axes]) - min(boxes[i, axis], boxes[j, axis])
    return margin


@kernel
def offer_partner(work, areas, i, j, partners, wastes, margins):
    """Set partners[i] = j if merging the two wastes less than box i and its partner so far."""
    waste = joint_area(work, i, work, j) - areas[i] - areas[j]
    if waste > wastes[i]:
        return  # their common area only adds to the waste
    waste += common_area(work, i, work, j)
    if waste <= wastes[i]:
        margin = joint_margin(work, i, j)
        if waste < wastes[i] or margin < margins[i] or (margin == margins[i] and j < partners[i]):
            partners[i] = j
            wastes[i] = waste
            margins[i] = margin


@kernel
def fill_partner(work, areas, alive, i, partners, wastes, margins):
    """Set partners[i] to the later box that box i is merged with at least waste; len(work) if there is none."""
    partners[i] = len(work)
    wastes[i] = np.inf
    margins[i] = np.inf
    for j in range(i + 1, len(work)):
        if alive[j]:
            offer_partner(work, areas, i, j, partners, wastes, margins)


@allocating_kernel
def fill_outer(boxes, outer):
    """Write the positions of the boxes that lie in no other, of equal boxes the first; return their number."""
    count = len(boxes)
    is_inner = np.zeros(count, np.bool_)
    left = 0
    for i in range(count):
        for j in range(count):
            # A box that lies in another can be skipped: that other box covers all that it covers.
            if i != j and not is_inner[j] and covers_box(boxes, j, i) and (j < i or not covers_box(boxes, i, j)):
                is_inner[i] = True
                break
        if not is_inner[i]:
            outer[left] = i
            left += 1
    return left


@allocating_kernel
def merge_pairs(boxes, work, most):
    """Merge boxes until `most` are left, and return which; changes `boxes` and `work`, the scaled boxes."""
    count = len(boxes)
    alive = np.ones(count, np.bool_)
    areas = np.empty(count)
    partners = np.empty(count, np.int64)
    wastes = np.empty(count)
    margins = np.empty(count)
    for i in range(count):
        areas[i] = area_of(work, i)
    for i in range(count):
        fill_partner(work, areas, alive, i, partners, wastes, margins)
    for _ in range(count - most):
        best = -1
        for i in range(count):
            if alive[i] and partners[i] < count:
                if best < 0 or wastes[i] < wastes[best] or (wastes[i] == wastes[best] and margins[i] < margins[best]):
                    best = i
        gone = partners[best]
        enlarge_box(work, best, work, gone)
        enlarge_box(boxes, best, boxes, gone)
        areas[best] = area_of(work, best)
        alive[gone] = False
        for i in range(count):
            if alive[i]:
                if i == best or partners[i] == gone or partners[i] == best:
                    fill_partner(work, areas, alive, i, partners, wastes, margins)
                elif i < best:
                    offer_partner(work, areas, i, best, partners, wastes, margins)
    return alive


@entry("f8[2] i8")
def merged_boxes(boxes, most):
    """Return at most `most` boxes that cover all given boxes, in their order."""
    outer = np.empty(len(boxes), np.int64)
    outer = outer[: fill_outer(boxes, outer)]
    out = boxes[outer]
    if len(outer) <= most:
        return out
    work = np.empty(boxes.shape)
    fill_finite(boxes, work)
    return out[merge_pairs(out, work[outer], most)]
